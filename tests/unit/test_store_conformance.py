"""What every backend of the store does: one suite, a factory a backend.

A new backend joins by one line in `BACKENDS`: a function that makes a store of facts (in the order
given), names, aliases and relation words in a folder.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from graph_store import (
    GraphStore,
    Triple,
    UnknownEntityError,
    find_evidence,
    find_mentions,
    ingest,
    open_store,
)
from graph_store.linking import name_key
from graph_store.memory_store import MemoryStore
from graph_store.protocol import RelationUse
from tests.fake_embedder import FakeEmbedder

Aliases = Mapping[str, Sequence[str]]
Make = Callable[..., GraphStore]


def make_sqlite(
    folder: Path, facts: Sequence[Triple], aliases: Aliases, labels: Mapping[str, str]
) -> GraphStore:
    def table(name: str, rows: list[tuple[str, str]]) -> Path | None:
        path = folder / name
        path.write_text("".join(f"{a}\t{b}\n" for a, b in rows), encoding="utf-8")
        return path if rows else None

    source = folder / "facts.jsonl"
    with source.open("w", encoding="utf-8") as file:
        for fact in facts:
            row = {
                "head_id": fact.head,
                "head": fact.head_name,
                "relation": fact.relation,
                "tail_id": fact.tail,
                "tail": fact.tail_name,
                "confidence": fact.confidence,
                "provenance": fact.provenance,
                "validity": fact.validity,
            }
            file.write(json.dumps(row) + "\n")
    ingest(
        [source],
        folder / "store",
        aliases=table("aliases", [(e, a) for e, some in aliases.items() for a in some]),
        relations=table("relations", list(labels.items())),
    )
    return open_store(folder / "store")


def make_memory(
    folder: Path, facts: Sequence[Triple], aliases: Aliases, labels: Mapping[str, str]
) -> GraphStore:
    labelled = [replace(fact, relation_label=labels.get(fact.relation, "")) for fact in facts]
    return MemoryStore.from_triples(labelled, aliases=aliases)


BACKENDS: dict[str, Callable[[Path, Sequence[Triple], Aliases, Mapping[str, str]], GraphStore]] = {
    "sqlite": make_sqlite,
    "memory": make_memory,
}


@pytest.fixture(params=sorted(BACKENDS))
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    stores: list[GraphStore] = []

    def make_store(
        facts: Sequence[Triple], aliases: Aliases | None = None, labels: Any = None
    ) -> GraphStore:
        folder = tmp_path / str(len(stores))
        folder.mkdir()
        stores.append(BACKENDS[request.param](folder, facts, aliases or {}, labels or {}))
        return stores[-1]

    yield make_store
    for store in stores:
        store.close()


ODD_NAMES = ["sample's_table", 'a"b', "50% off", "C++", "São Paulo", "東京", "O'Neil (actor)"]
FAMILY = [
    Triple("amy", "sister_of", "bob", 0.9),
    Triple("bob", "brother_of", "amy", 0.9),
    Triple("zed", "parent", "amy", 0.7),
    Triple("amy", "knows", "bob", 0.4),
    Triple("amy", "knows", "amy", 0.6),
    Triple("amy", "knows", "cat", 0.4),
    Triple("cat", "knows", "amy", 0.4),
    Triple("dan", "knows", "cat", 1.0),
]


def keys(facts: Sequence[Triple]) -> list[tuple[str, str, str]]:
    return [fact.key for fact in facts]


# neighbours


def test_neighbors_come_by_confidence_relation_name_id_and_direction(make: Make) -> None:
    assert keys(make(FAMILY).neighbors("amy")) == [
        ("bob", "brother_of", "amy"),
        ("amy", "sister_of", "bob"),
        ("zed", "parent", "amy"),
        ("amy", "knows", "amy"),
        ("amy", "knows", "bob"),
        ("amy", "knows", "cat"),
        ("cat", "knows", "amy"),
    ]


def test_order_does_not_depend_on_the_order_of_the_source(make: Make) -> None:
    forth, back = make(FAMILY), make(FAMILY[::-1])
    for entity in ("amy", "bob", "cat", "dan", "zed"):
        assert forth.neighbors(entity) == back.neighbors(entity)
        assert forth.relations(entity) == back.relations(entity)


def test_ties_are_ordered_by_name_before_id(make: Make) -> None:
    store = make(
        [
            Triple("hub", "r", "1", 0.5, tail_name="Zoe"),
            Triple("hub", "r", "2", 0.5, tail_name="Ann"),
            Triple("hub", "r", "4", 0.5, tail_name="Moe"),
            Triple("hub", "r", "3", 0.5, tail_name="Moe"),
        ]
    )
    assert [fact.tail for fact in store.neighbors("hub")] == ["2", "3", "4", "1"]


def test_names_outside_ascii_are_ordered_by_code_point(make: Make) -> None:
    tails = ["Z", "a", "é", "\uff21", "\U0001f600"]
    store = make([Triple("hub", "r", tail, 0.5) for tail in reversed(tails)])
    assert [fact.tail for fact in store.neighbors("hub")] == tails


@pytest.mark.parametrize(
    ("direction", "expected"),
    [
        ("out", ["amy sister_of bob", "amy knows amy", "amy knows bob", "amy knows cat"]),
        ("in", ["bob brother_of amy", "zed parent amy", "amy knows amy", "cat knows amy"]),
    ],
)
def test_direction_chooses_the_end_and_keeps_the_orientation(
    make: Make, direction: Any, expected: list[str]
) -> None:
    facts = make(FAMILY).neighbors("amy", direction=direction)
    assert [" ".join(fact.key) for fact in facts] == expected


def test_an_unknown_direction_is_refused(make: Make) -> None:
    store = make(FAMILY)
    with pytest.raises(ValueError, match="not one of out, in, both"):
        store.neighbors("amy", direction="up")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="not one of out, in, both"):
        store.relations("amy", "up")  # type: ignore[arg-type]


def test_a_relation_filters_both_directions(make: Make) -> None:
    facts = make(FAMILY).neighbors("amy", relation="knows")
    assert [" ".join(fact.key) for fact in facts] == [
        "amy knows amy",
        "amy knows bob",
        "amy knows cat",
        "cat knows amy",
    ]


def test_an_unknown_relation_has_no_facts(make: Make) -> None:
    store = make(FAMILY)
    assert store.neighbors("amy", relation="never seen") == []
    assert store.neighbors("amy", relation="Knows") == []
    assert store.tails("amy", "never seen") == []
    assert store.heads("\ud800", "amy") == []


def test_a_limit_takes_the_first(make: Make) -> None:
    store = make(FAMILY)
    everything = store.neighbors("amy")
    for limit in range(len(everything) + 2):
        assert store.neighbors("amy", limit=limit) == everything[:limit]


def test_a_negative_limit_is_refused(make: Make) -> None:
    store = make(FAMILY)
    with pytest.raises(ValueError, match="limit is -1"):
        store.neighbors("amy", limit=-1)


def test_a_self_loop_is_given_once_in_every_direction(make: Make) -> None:
    store = make([Triple("a", "r", "a", 0.5)])
    for direction in ("out", "in", "both"):
        assert keys(store.neighbors("a", direction=direction)) == [("a", "r", "a")]  # type: ignore[arg-type]
    assert store.degree("a", at_most=9) == 1
    assert store.info().self_loops == 1


def test_two_facts_that_point_at_each_other_are_two_facts(make: Make) -> None:
    store = make([Triple("A", "near", "B", 0.8), Triple("B", "near", "A", 0.3)])
    assert keys(store.neighbors("A")) == [("A", "near", "B"), ("B", "near", "A")]
    assert keys(store.neighbors("B")) == [("A", "near", "B"), ("B", "near", "A")]
    assert store.info().facts == 2


def test_a_fact_keeps_its_direction(make: Make) -> None:
    store = make([Triple("Zed", "parent", "Amy", 0.8)])
    (seen_from_tail,) = store.neighbors("Amy")
    assert (seen_from_tail.head, seen_from_tail.tail) == ("Zed", "Amy")
    assert store.neighbors("Amy", direction="out") == []
    assert store.tails("Amy", "parent") == []


def test_two_relations_between_one_pair_both_survive(make: Make) -> None:
    store = make([Triple("a", "likes", "b", 0.2), Triple("a", "hates", "b", 0.2)])
    assert keys(store.neighbors("a")) == [("a", "hates", "b"), ("a", "likes", "b")]


def test_of_equal_facts_the_highest_confidence_wins_with_its_provenance(make: Make) -> None:
    store = make(
        [
            Triple("a", "r", "b", 0.2, provenance="first", validity="1999"),
            Triple("a", "r", "b", 0.7, provenance="second"),
            Triple("a", "r", "b", 0.7, provenance="third"),
            Triple("a", "r", "b", 0.1, provenance="fourth"),
        ]
    )
    (fact,) = store.neighbors("a")
    assert (fact.confidence, fact.provenance, fact.validity) == (0.7, "second", None)
    assert store.info().facts == 1


def test_a_winner_without_provenance_does_not_inherit_one(make: Make) -> None:
    store = make([Triple("a", "r", "b", 0.2, provenance="weak"), Triple("a", "r", "b", 0.9)])
    assert store.neighbors("a")[0].provenance is None


def test_provenance_and_validity_are_kept_everywhere(make: Make) -> None:
    store = make(
        [
            Triple("a", "r", "b", 0.5, provenance="the register", validity="1787–1790"),
            Triple("a", "r", "c", 0.5),
        ]
    )
    for facts in (store.neighbors("a"), store.tails("a", "r"), list(store.facts())):
        notes = {fact.tail: (fact.provenance, fact.validity) for fact in facts}
        assert notes == {"b": ("the register", "1787–1790"), "c": (None, None)}


def test_facts_of_an_entity_carry_names_and_relation_words(make: Make) -> None:
    store = make(
        [Triple("Q1", "P31", "Q2", 0.5, "Ada", "human")], labels={"P31": "is an instance of"}
    )
    for facts in (store.neighbors("Q1"), store.neighbors("Q2"), list(store.facts())):
        (fact,) = facts
        assert (fact.head_name, fact.tail_name) == ("Ada", "human")
        assert fact.text == "Ada is an instance of human"
    assert store.relations("Q2") == [RelationUse("P31", "is an instance of", "in", 1)]


def test_an_odd_relation_is_selected_exactly_and_unchanged(make: Make) -> None:
    relation = "definiert_icp-kriterien_für"
    store = make([Triple("a", relation, "b", 0.5), Triple("a", relation.upper(), "b", 0.5)])
    assert [fact.relation for fact in store.tails("a", relation)] == [relation]


# relations, tails, heads, degree


def test_relations_are_counted_by_direction_in_a_total_order(make: Make) -> None:
    store = make(FAMILY)
    assert store.relations("amy") == [
        RelationUse("brother_of", "", "in", 1),
        RelationUse("knows", "", "in", 2),
        RelationUse("knows", "", "out", 3),
        RelationUse("parent", "", "in", 1),
        RelationUse("sister_of", "", "out", 1),
    ]
    assert store.relations("zed", "in") == []
    assert store.relations("zed", "out") == [RelationUse("parent", "", "out", 1)]


def test_tails_and_heads_are_the_facts_of_one_relation(make: Make) -> None:
    store = make(FAMILY)
    assert [fact.tail for fact in store.tails("amy", "knows")] == ["amy", "bob", "cat"]
    assert [fact.head for fact in store.heads("knows", "cat")] == ["dan", "amy"]


def test_degree_counts_facts_no_further_than_asked(make: Make) -> None:
    store = make(FAMILY)
    assert [store.degree("amy", at_most=n) for n in (1, 6, 7, 100)] == [1, 6, 7, 7]
    assert store.degree("zed", at_most=100) == 1


# entities


def test_an_entity_has_its_name_and_its_aliases_in_the_order_given(make: Make) -> None:
    store = make([Triple("Q1", "r", "x", 0.5, "Ada")], aliases={"Q1": ["Zountess", "Countess"]})
    entity = store.entity("Q1")
    assert (entity.id, entity.name, entity.aliases) == ("Q1", "Ada", ("Zountess", "Countess"))
    assert (store.entity("x").name, store.entity("x").aliases) == ("x", ())


@pytest.mark.parametrize("call", ["entity", "neighbors", "relations", "tails", "heads", "degree"])
def test_an_unknown_entity_is_an_error_with_ranked_suggestions(make: Make, call: str) -> None:
    store = make(
        [Triple("Edith_Venn", "built", "Marrow_Light", 0.9), Triple("Edit", "x", "Venn", 0.9)]
    )
    arguments: dict[str, tuple[Any, ...]] = {
        "tails": ("Edith_Ven", "built"),
        "heads": ("built", "Edith_Ven"),
        "degree": ("Edith_Ven", 5),
    }
    with pytest.raises(UnknownEntityError, match="no entity 'Edith_Ven'") as caught:
        getattr(store, call)(*arguments.get(call, ("Edith_Ven",)))
    assert caught.value.suggestions[0] == "Edith_Venn"
    assert caught.value.mention == "Edith_Ven"


@pytest.mark.parametrize("name", ["", " ", "amy ", "AMY", "a\x00my", "\ud800", "%", "*", "amy'--"])
def test_ids_are_matched_exactly(make: Make, name: str) -> None:
    store = make(FAMILY)
    with pytest.raises(UnknownEntityError):
        store.neighbors(name)


def test_two_entities_of_one_name_never_merge(make: Make) -> None:
    store = make(
        [
            Triple("p2", "born_in", "Xi'an", 0.9, head_name="Li Wei"),
            Triple("p1", "born_in", "Harbin", 0.8, head_name="Li Wei"),
            Triple("p1", "knows", "p2", 0.7, head_name="Li Wei", tail_name="Li Wei"),
        ]
    )
    assert store.info().entities == 4
    assert keys(store.tails("p1", "born_in")) == [("p1", "born_in", "Harbin")]
    assert keys(store.tails("p2", "born_in")) == [("p2", "born_in", "Xi'an")]
    both = store.link("Li Wei", top=2)
    assert [(c.entity, c.name, c.score) for c in both] == [
        ("p1", "Li Wei", 1.0),
        ("p2", "Li Wei", 1.0),
    ]


@pytest.mark.parametrize("name", [*ODD_NAMES, "😀 bar", "a\u2028b", "नदी", "x" * 10_000])
def test_odd_names_round_trip(make: Make, name: str) -> None:
    store = make([Triple(name, "r", "plain", 0.5), Triple("plain", name, name, 0.25)])
    assert store.entity(name).name == name
    assert keys(store.neighbors(name)) == [(name, "r", "plain"), ("plain", name, name)]
    assert keys(store.tails("plain", name)) == [("plain", name, name)]
    assert [c.entity for c in store.link(name, top=1)] == [name]
    assert store.link(name, top=1)[0].how == "exact"
    assert set(keys(list(store.facts()))) == {(name, "r", "plain"), ("plain", name, name)}


# names


def test_by_name_keys_gives_who_has_a_key_by_id_name_or_alias(make: Make) -> None:
    store = make(
        [Triple("Q1", "r", "Q2", 0.5, "Ada", "Bob"), Triple("Q3", "r", "Q2", 0.5, "ADA")],
        aliases={"Q2": ["Ada"], "Q1": ["Countess of Lovelace"]},
    )
    found = store.by_name_keys(["ada", "nothing", "countess of lovelace", "q2", "ada"])
    shown = {
        key: sorted((h.entity, h.name, h.label, h.is_alias) for h in hits)
        for key, hits in found.items()
    }
    assert shown == {
        "ada": [
            ("Q1", "Ada", "Ada", False),
            ("Q2", "Bob", "Ada", True),
            ("Q3", "ADA", "ADA", False),
        ],
        "countess of lovelace": [("Q1", "Ada", "Countess of Lovelace", True)],
        "q2": [("Q2", "Bob", "Q2", False)],
    }


def test_by_name_keys_takes_thousands_of_keys(make: Make) -> None:
    store = make([Triple(f"e{n}", "r", f"e{n + 1}", 0.5) for n in range(0, 1500, 2)])
    wanted = [f"e{n}" for n in range(3000)]
    assert sorted(store.by_name_keys(wanted)) == sorted(wanted[:1500])
    assert store.by_name_keys([]) == {}


def test_by_trigram_gives_the_likeliest_first_within_the_limit(make: Make) -> None:
    towns = ["Tarrowhithe", "Tarrow Hill", "Marrow Light", "Vell Sound", "Harbour"]
    store = make([Triple(town, "in", "Nowhere", 0.5) for town in towns])
    hits = store.by_trigram("tarrowhithe", 10)
    assert hits[0].label == "Tarrowhithe"
    assert "Tarrow Hill" in [hit.label for hit in hits]
    assert "Vell Sound" not in [hit.label for hit in hits]
    assert [len(store.by_trigram("tarrowhithe", limit)) for limit in (1, 2)] == [1, 2]


def test_by_trigram_of_a_short_key_gives_names_that_begin_alike(make: Make) -> None:
    store = make([Triple("Ox", "in", "Oxford", 0.5), Triple("Elk", "in", "Fox", 0.5)])
    assert sorted(hit.label for hit in store.by_trigram("ox", 10)) == ["Ox", "Oxford"]


def test_by_trigram_tells_the_text_that_matched(make: Make) -> None:
    store = make(
        [Triple("lighthouse-17", "in", "sea", 0.5, "Marrow")], aliases={"sea": ["lightwater"]}
    )
    hits = {(h.entity, h.label, h.is_alias) for h in store.by_trigram("lighthouse", 10)}
    assert hits == {
        ("lighthouse-17", "lighthouse-17", False),
        ("sea", "lightwater", True),
    }


@pytest.mark.parametrize("name", ['say """ now', "near(a b)", "a AND b", "^abc*", "x:{y z}", "and"])
def test_by_trigram_takes_signs_of_a_query_language_as_text(make: Make, name: str) -> None:
    store = make([*FAMILY, Triple(name, "r", "something else", 0.5)])
    assert [hit.label for hit in store.by_trigram(name_key(name), 5)] == [name]


@pytest.mark.parametrize(
    "key", ['"', '""', '"""', "*", "(((", "a\x00b", "\x00\x00\x00", "\ud800", ""]
)
def test_by_trigram_of_a_key_like_nothing_is_no_error(make: Make, key: str) -> None:
    store = make([Triple("bob", "r", "cat", 0.5)])
    assert all(hit.label in ("bob", "cat") for hit in store.by_trigram(key, 5))
    assert store.link(key) == []


# whole graph


def test_facts_are_all_facts(make: Make) -> None:
    assert sorted(make(FAMILY).facts(), key=lambda f: f.key) == sorted(FAMILY, key=lambda f: f.key)


def test_info_counts(make: Make) -> None:
    info = make([*FAMILY, FAMILY[0]], aliases={"amy": ["Amelia", "A."], "bob": ["Robert"]}).info()
    assert (info.facts, info.entities, info.relations) == (8, 5, 4)
    assert (info.self_loops, info.aliases) == (1, 3)
    assert info.confidence == {
        "min": 0.4,
        "mean": pytest.approx(sum(fact.confidence for fact in FAMILY) / 8),
        "max": 1.0,
    }
    assert info.to_dict()["facts"] == 8


def test_to_networkx_has_every_fact_with_its_confidence(make: Make) -> None:
    named = [Triple("Q1", "r", "amy", 0.5, head_name="Ada")]
    graph = make([*FAMILY, *named]).to_networkx()
    edges = {(h, r, t): data for h, t, r, data in graph.edges(keys=True, data=True)}
    assert {key: data["confidence"] for key, data in edges.items()} == {
        fact.key: fact.confidence for fact in [*FAMILY, *named]
    }
    assert all(data["relation"] == key[1] for key, data in edges.items())
    assert graph.nodes["Q1"]["name"] == "Ada"
    assert graph.nodes["amy"]["name"] == "amy"


def test_a_store_gives_the_evidence_around_topics(make: Make) -> None:
    store, embedder = make(FAMILY), FakeEmbedder()
    topic = FAMILY[0].head
    found = store.subgraph("Who is the parent?", [topic], k=1, width=2, embedder=embedder)
    same = find_evidence(store, "Who is the parent?", [topic], k=1, width=2, embedder=embedder)
    assert found.facts == same.facts
    assert found.facts


def test_a_backend_is_a_graph_store_and_closes_twice(make: Make) -> None:
    store = make(FAMILY)
    assert isinstance(store, GraphStore)
    assert store.location
    store.close()
    store.close()


def test_links_find_names_by_case_diacritics_underscore_and_typo(make: Make) -> None:
    store = make([Triple("Edith_Venn", "lives_in", "São Paulo", 0.5)])
    for mention, entity, how in [
        ("edith venn", "Edith_Venn", "normalised"),
        ("EDITH_VENN", "Edith_Venn", "case-folded"),
        ("Sao paulo", "São Paulo", "normalised"),
        ("Edith Vennn", "Edith_Venn", "trigram"),
    ]:
        best = store.link(mention)[0]
        assert (best.entity, best.how) == (entity, how)


# threads


def test_eight_threads_read_the_same(make: Make) -> None:
    facts = [
        Triple(f"e{n % 40}", f"r{n % 3}", f"e{(n * 7) % 41}", 0.1 + n % 9 / 10, provenance=f"p{n}")
        for n in range(300)
    ]
    store = make(facts)
    entities = [f"e{n}" for n in range(41)]

    def read_all(_: int) -> list[Any]:
        start.wait()
        return [
            (store.neighbors(e), store.relations(e), store.degree(e, 99), store.link(e, top=3))
            for e in entities
        ] + [sorted(store.facts(), key=lambda f: f.key), store.info()]

    start = threading.Barrier(8)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(read_all, range(8)))
    start = threading.Barrier(1)
    assert all(answer == answers[0] for answer in answers)
    assert read_all(0) == answers[0]


# any graph: all backends answer alike

NAMES = st.one_of(
    st.sampled_from(["a", "b", "Ab", "aB_c", "São", "sao", "東京", "x y z", "Li Wei", 'a"b', "ﬁn"]),
    st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z", "P", "S"]), min_size=1)
    .filter(lambda text: text == text.strip() and name_key(text) != "")
    .map(lambda text: "n" + text),
)
RELATIONS = st.sampled_from(["r", "R", "/r/UsedFor", "für", "r"])
NOTES = st.sampled_from([None, None, "one", "two"])


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[Triple], dict[str, list[str]], dict[str, str]]:
    ids = draw(st.lists(NAMES, min_size=1, max_size=7, unique=True))
    entity = st.sampled_from(ids)
    shown = {e: draw(st.one_of(st.just(e), NAMES)) for e in ids}
    rows = draw(
        st.lists(
            st.tuples(
                entity, RELATIONS, entity, st.sampled_from([0.25, 0.5, 1 / 3, 1.0]), NOTES, NOTES
            ),
            min_size=1,
            max_size=14,
        )
    )
    facts = [Triple(h, r, t, c, shown[h], shown[t], "", p, v) for h, r, t, c, p, v in rows]
    used = sorted({fact.head for fact in facts} | {fact.tail for fact in facts})
    aliases = {
        e: draw(st.lists(NAMES, max_size=2, unique=True)) for e in used if draw(st.booleans())
    }
    labels = {"r": "relates to"} if any(f.relation == "r" for f in facts) else {}
    return facts, aliases, labels


def everything(store: GraphStore, facts: list[Triple], mentions: list[str]) -> dict[str, Any]:
    entities = sorted({fact.head for fact in facts} | {fact.tail for fact in facts})
    relations = sorted({fact.relation for fact in facts})
    answers: dict[str, Any] = {"facts": sorted(map(whole, store.facts()))}
    for e in entities:
        answers[f"entity {e}"] = store.entity(e)
        answers[f"relations {e}"] = store.relations(e)
        answers[f"degree {e}"] = [store.degree(e, n) for n in (1, 3, 99)]
        for direction in ("out", "in", "both"):
            for r in [None, *relations]:
                found = store.neighbors(e, direction=direction, relation=r)  # type: ignore[arg-type]
                answers[f"neighbors {e} {direction} {r}"] = list(map(whole, found))
    for mention in mentions:
        answers[f"link {mention}"] = store.link(mention)
        answers[f"mentions {mention}"] = find_mentions(store, f"What is {mention} to {mention}?")
    info = store.info().to_dict()
    answers["info"] = {
        **info,
        "confidence": {k: round(v, 9) for k, v in info["confidence"].items()},
    }
    return answers


def whole(fact: Triple) -> tuple[Any, ...]:
    """All fields; equality of facts looks at ids and confidence only."""
    names = (fact.head_name, fact.tail_name, fact.relation_label)
    return (*fact.key, fact.confidence, *names, fact.provenance or "", fact.validity or "")


@settings(
    max_examples=40,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(graphs(), st.lists(NAMES, max_size=2))
@example(([Triple("Q1", "r", "Q2", 0.5, "Ada", "Bob")], {}, {}), ["Q1", "Adda", "q"])
def test_backends_answer_alike_on_any_graph(
    graph: tuple[list[Triple], dict[str, list[str]], dict[str, str]], mentions: list[str]
) -> None:
    facts, aliases, labels = graph
    mentions = [*mentions, *(fact.head_name for fact in facts[:2]), facts[0].tail[:-1] + "q"]
    answers: dict[str, dict[str, Any]] = {}
    for name, make_store in BACKENDS.items():
        with TemporaryDirectory() as folder:
            store = make_store(Path(folder), facts, aliases, labels)
            answers[name] = everything(store, facts, mentions)
            store.close()
    first = answers.pop("memory")
    for name, answer in answers.items():
        assert answer == first, name
