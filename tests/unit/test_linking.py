"""From words to entities: `link`, `resolve_entity` and `find_mentions`."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from graph_store import GraphStore, Mention, Triple, UnknownEntityError, find_mentions
from graph_store.linking import name_key, name_keys, resolve_entity
from graph_store.memory_store import MemoryStore
from graph_store.protocol import Candidate
from tests.unit.test_store_conformance import make_sqlite

Make = Callable[..., GraphStore]


@pytest.fixture(params=["memory", "sqlite"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    def make_store(*names: str | tuple[str, str], **aliases: Sequence[str]) -> GraphStore:
        """Make a store of entities (name, or id and name) that are all linked to a hub."""
        pairs = [(n, n) if isinstance(n, str) else n for n in names]
        facts = [Triple(e, "r", "zzhubzz", 0.5, head_name=name) for e, name in pairs]
        if request.param == "memory":
            return MemoryStore.from_triples(facts, aliases=aliases)
        return make_sqlite(tmp_path, facts, aliases, {})

    return make_store


def linked(store: GraphStore, mention: str, least: float = 0.9) -> list[str]:
    return [c.entity for c in store.link(mention) if c.score >= least]


def found(mentions: Sequence[Mention]) -> list[tuple[str, list[str]]]:
    return [(m.text, [c.entity for c in m.candidates]) for m in mentions]


# link


def test_names_that_differ_only_in_case_are_all_found_the_very_one_first(make: Make) -> None:
    store = make("electrons", "ELECTRONS", "Electrons")
    assert store.link("electrons", top=3) == [
        Candidate("electrons", "electrons", 1.0, "exact"),
        Candidate("ELECTRONS", "ELECTRONS", 0.97, "case-folded"),
        Candidate("Electrons", "Electrons", 0.97, "case-folded"),
    ]
    assert linked(store, "ELECTRONS")[0] == "ELECTRONS"


def test_a_quoted_name_with_a_trailing_blank_is_one_clean_entity(tmp_path: Path) -> None:
    from graph_store import ingest, open_store

    source = tmp_path / "f.tsv"
    source.write_text('"Roman Empire "\tin\tEurope\t0.5\nRoman Empire\tfell\t476\t0.9\n')
    ingest([source], tmp_path / "store")
    store = open_store(tmp_path / "store")
    assert store.info().entities == 3
    (mention,) = find_mentions(store, "Why did the Roman Empire fall?")
    assert (mention.text, mention.candidates[0].entity) == ("Roman Empire", "Roman Empire")
    assert linked(store, '"Roman Empire "') == ["Roman Empire"]


def test_a_shared_name_is_ambiguous_and_lists_both(make: Make) -> None:
    store = make(("p2", "Li Wei"), ("p1", "Li Wei"))
    assert store.link("Li Wei", top=2) == [
        Candidate("p1", "Li Wei", 1.0, "exact"),
        Candidate("p2", "Li Wei", 1.0, "exact"),
    ]
    (mention,) = find_mentions(store, "Where was Li Wei born?")
    assert mention.ambiguous
    assert [c.entity for c in mention.best] == ["p1", "p2"]
    assert [c.entity for c in resolve_entity(store, "Li Wei")] == ["p1", "p2"]
    assert [c.entity for c in resolve_entity(store, "p2")] == ["p2"]


def test_an_exact_name_beside_a_case_variant_is_not_ambiguous(make: Make) -> None:
    (mention,) = find_mentions(make("Mercury", "mercury"), "How hot is Mercury today?")
    assert not mention.ambiguous
    assert [c.entity for c in mention.candidates] == ["Mercury", "mercury"]


@pytest.mark.parametrize(
    "name", ["sample's_table", 'a"b', "50% off", "C++", "São Paulo", "東京", "O'Neil (actor)"]
)
def test_odd_names_are_linked_and_found_in_a_question(make: Make, name: str) -> None:
    store = make(name, "C", "50", "Neil", "sample", "東")
    assert store.link(name, top=1) == [Candidate(name, name, 1.0, "exact")]
    assert found(find_mentions(store, f"Tell me about {name}, please."))[0] == (name, [name])


def test_what_is_not_there_gives_ranked_suggestions(make: Make) -> None:
    store = make("Edith Venn", "Edith Vance", "Quartz")
    with pytest.raises(UnknownEntityError) as caught:
        resolve_entity(store, "Edith Ven")
    assert caught.value.suggestions[:2] == ["Edith Venn", "Edith Vance"]
    with pytest.raises(UnknownEntityError, match=r"no entity 'xyzzy' in this graph$"):
        resolve_entity(store, "xyzzy")


def test_the_order_of_trust(make: Make) -> None:
    store = make(
        "Tarrow", "TARROW", "tar_row", "Tar Row", "Tárrow", "e1", "e2", "Marrow",
        e1=["Tarrow"], e2=["TARROW"],
    )  # fmt: skip
    assert [(c.entity, c.score, c.how) for c in store.link("Tarrow")][:6] == [
        ("Tarrow", 1.0, "exact"),
        ("TARROW", 0.97, "case-folded"),
        ("Tárrow", 0.95, "normalised"),
        ("e1", 0.93, "alias"),
        ("e2", 0.92, "alias"),
        ("Tar Row", 0.8215, "trigram"),
    ]


@pytest.mark.parametrize(
    ("name", "mention"),
    [
        ("Edith_Venn", "edith venn"),
        ("Edith Venn", "Edith_Venn"),
        ("EdithVenn", "edith venn"),
        ("Edith Venn", "EdithVenn"),
        ("HTTPServer", "http server"),
        ("São Paulo", "Sao Paulo"),
        ("Sao Paulo", "São Paulo"),
        ("Sa\u0303o Paulo", "S\u00e3o Paulo"),
        ("Łódź", "Lodz"),
        ("Tromsø", "tromso"),
        ("Straße", "STRASSE"),
        ("ﬁnland", "Finland"),
        ("Ｔｏｋｙｏ", "tokyo"),
        ("Jean-Luc", "jean luc"),
        ("Edith   Venn", "Edith\tVenn"),
        ("Yahoo!", "yahoo"),
        ("Wham", "Wham!"),
        ("Ёлка", "елка"),
        ("كِتَاب", "كتاب"),
    ],
)
def test_spellings_of_one_name_meet(make: Make, name: str, mention: str) -> None:
    (candidate, *_) = make(name, "Quartz").link(mention)
    assert candidate.entity == name
    assert candidate.how in ("normalised", "case-folded")


@pytest.mark.parametrize(("name", "mention"), [("かき", "がき"), ("पकाना", "पकाना\u093c")])
def test_marks_that_make_another_letter_are_kept(make: Make, name: str, mention: str) -> None:
    assert linked(make(name), mention) == []


def test_a_typo_is_found_by_trigrams_below_the_trust_of_a_name(make: Make) -> None:
    store = make("Tarrowhithe", "Marrow Light", "Vell Sound")
    best = store.link("Tarowhithe")[0]
    assert (best.entity, best.how) == ("Tarrowhithe", "trigram")
    assert 0.8 < best.score < 0.9


def test_a_plural_is_found_by_trigrams(make: Make) -> None:
    store = make("electron", "proton")
    assert store.link("electrons")[0].entity == "electron"
    (mention,) = find_mentions(store, "What do electrons orbit?")
    assert (mention.text, mention.candidates[0].how) == ("electrons", "trigram")


def test_scores_are_ordered_and_do_not_depend_on_the_order_of_the_source(make: Make) -> None:
    names = [
        f"{a} {b}" for a in ("Marrow", "Tarrow", "marrow", "Mårrow") for b in ("Light", "Hill")
    ]
    mentions = ["Marrow Light", "marrow hil", "light", "Tarow"]
    first = [make(*names).link(mention) for mention in mentions]
    for candidates in first:
        assert candidates == sorted(candidates, key=lambda c: (-c.score, c.name, c.entity))
        assert len({c.entity for c in candidates}) == len(candidates)
    shuffled = random.Random(1).sample(names, len(names))
    assert [make(*shuffled).link(mention) for mention in mentions] == first


def test_top_bounds_the_candidates(make: Make) -> None:
    store = make(*(f"Marrow {n}" for n in range(30)))
    everything = store.link("Marrow 3", top=20)
    assert len(everything) == 20
    assert [store.link("Marrow 3", top=n) for n in (0, 1, 5)] == [
        [],
        everything[:1],
        everything[:5],
    ]


@pytest.mark.parametrize("mention", ["", " ", "\t\n", "_", "\x00", "___ "])
def test_an_empty_mention_means_nothing(make: Make, mention: str) -> None:
    store = make("Ada")
    assert store.link(mention) == []
    assert find_mentions(store, mention) == []
    with pytest.raises(UnknownEntityError):
        resolve_entity(store, mention)


@pytest.mark.parametrize(
    "mention",
    ['"', '"""', "*", "a*", "AND", "a AND b", "NEAR(", "NEAR(a b, 2)", "key:ada", "^ada",
     "{ada}", "ada\x00ada", "\ud800da", "'; DROP TABLE entity; --", "%", "_da"],
)  # fmt: skip
def test_signs_of_query_languages_are_text(make: Make, mention: str) -> None:
    store = make("Ada", "Quartz")
    assert linked(store, mention) == []
    assert all(c.how == "trigram" for c in store.link(mention))
    find_mentions(store, f"What is {mention}?")
    assert store.link("Ada")[0].score == 1.0


# long names


def test_long_names_and_mentions_are_linked_fast(make: Make) -> None:
    long = "Ab cd " * 1666 + "last"
    store = make(long, long[:-4] + "east", "Ada", *(f"Word{n}" for n in range(200)))
    started = time.perf_counter()
    assert linked(store, long) == [long]
    assert [c.how for c in store.link(long, top=2)] == ["exact", "trigram"]
    assert linked(store, "no such thing " * 700) == []
    assert found(find_mentions(store, f"Is Ada {long}?"))[0] == ("Ada", ["Ada"])
    assert time.perf_counter() - started < 5


@pytest.mark.parametrize("words", ["known unknown ", "nothing here fits ", "東京都"])
def test_a_long_question_is_searched_in_bounded_time(make: Make, words: str) -> None:
    store = make("known", "東京", *(f"{a}{b} thing" for a in "abcdefgh" for b in "ijklmnop"))
    started = time.perf_counter()
    mentions = find_mentions(store, words * (4000 // len(words)))
    assert time.perf_counter() - started < 8
    assert [m.candidates[0].entity for m in mentions] == {
        "known unknown ": ["known"] * 3,
        "nothing here fits ": [],
        "東京都": ["東京"] * 3,
    }[words]


# mentions in a question


def test_the_longest_name_wins(make: Make) -> None:
    store = make("New York", "York", "New York Times", "Times")
    assert found(find_mentions(store, "Who owns the New York Times?")) == [
        ("New York Times", ["New York Times"])
    ]
    assert found(find_mentions(store, "Is York near New York?")) == [
        ("York", ["York"]),
        ("New York", ["New York"]),
    ]


def test_stop_words_alone_are_no_mention_but_count_inside_one(make: Make) -> None:
    store = make("The Who", "Who", "It", "of")
    assert find_mentions(store, "Who is it of?") == []
    assert find_mentions(store, "Who is the who?") == []
    store = make("Lord of the Rings", "the")
    assert found(find_mentions(store, "Who wrote the Lord of the Rings?")) == [
        ("Lord of the Rings", ["Lord of the Rings"])
    ]


def test_an_alias_is_a_mention(make: Make) -> None:
    store = make(("Q1", "Marrow Light"), Q1=["the Marrow", "Old Lantern"])
    (mention,) = find_mentions(store, "Who built the old lantern?")
    assert (mention.text, mention.start) == ("old lantern", 14)
    assert mention.candidates == (Candidate("Q1", "Marrow Light", 0.92, "alias"),)


@pytest.mark.parametrize(
    ("name", "question"),
    [
        ("O'Neil (actor)", "Where was O'Neil (actor) born?"),
        ("O’Neil (actor)", "(Is O’Neil (actor) alive?)"),
        ("(No) Reply", "Who sang (No) Reply?"),
        ("f(x)", "What is f(x)?"),
        ("AC/DC", "Where are AC/DC from?"),
        ("Jay-Z", "Who is Jay-Z married to?"),
        ("U.S.A.", "How large is the U.S.A.?"),
        ("3.14", "What is 3.14?"),
        ("Marrow_Light", "Who built Marrow_Light?"),
        ("Marrow_Light", "who built marrow light"),
        ("MarrowLight", "WHO BUILT MARROW LIGHT"),
        ("Café Zoë", "Where is Cafe Zoe?"),
        ("R&B", "When did R&B start?"),
    ],
)
def test_names_of_every_make_are_found_in_a_question(make: Make, name: str, question: str) -> None:
    mentions = find_mentions(make(name, "Quartz"), question)
    assert [m.candidates[0].entity for m in mentions] == [name]
    (mention,) = mentions
    assert question[mention.start : mention.start + len(mention.text)] == mention.text


@pytest.mark.parametrize(
    ("name", "question"),
    [
        ("東京", "東京の人口は何人ですか"),
        ("东京塔", "请问东京塔有多高"),
        ("上海合作组织成员国元首理事会", "上海合作组织成员国元首理事会在哪里开会"),
        ("서울", "서울의 인구는?"),
        ("東京タワー", "東京タワーはどこ"),
    ],
)
def test_names_are_found_in_questions_without_blanks(make: Make, name: str, question: str) -> None:
    assert found(find_mentions(make(name, "京"), question))[0] == (name, [name])


def test_the_limit_keeps_longer_names_then_rarer_ones_in_the_order_of_the_question(
    tmp_path: Path,
) -> None:
    facts = [Triple("common", "r", f"x{n}", 0.5) for n in range(9)]
    facts += [Triple("rare", "r", "x1", 0.5), Triple("two words", "r", f"x{2}", 0.5)]
    facts += [Triple("middling", "r", f"x{n}", 0.5) for n in range(4)]
    store = MemoryStore.from_triples(facts)
    question = "Do common and rare and middling know two words?"
    texts = [[m.text for m in find_mentions(store, question, limit=n)] for n in range(1, 5)]
    assert texts == [
        ["two words"],
        ["rare", "two words"],
        ["rare", "middling", "two words"],
        ["common", "rare", "middling", "two words"],
    ]


def test_a_repeated_name_is_found_where_it_stands(make: Make) -> None:
    mentions = find_mentions(make("Ada"), "Ada? ada!")
    assert [(m.text, m.start) for m in mentions] == [("Ada", 0), ("ada", 5)]


def test_the_least_trigram_score_is_a_setting(make: Make) -> None:
    store = make("Tarrowhithe")
    question = "Where is Tarowhite?"
    assert found(find_mentions(store, question, min_trigram_score=0.5))[0][1] == ["Tarrowhithe"]
    assert find_mentions(store, question, min_trigram_score=0.89) == []


# keys


def test_the_main_key_comes_first_and_is_the_same_for_its_own_key() -> None:
    for name in ("Edith_Venn", "ÅNGSTRÖM", "a  b", "東京", "x" * 10_000, "Straße (Ort)"):
        keys = name_keys(name)
        assert keys[0] == name_key(name)
        assert name_key(keys[0]) == keys[0]
        assert len(set(keys)) == len(keys)
        assert max(map(len, keys)) <= 400


def test_a_name_of_blanks_has_no_key() -> None:
    assert name_keys(" _ \t") == ()
