"""Corrupted graphs: which facts are false, what stays as it was, what a seed fixes."""

from __future__ import annotations

import gzip
import json
import os
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evals.noise import NoiseError, NoiseSettings, corrupt, corrupt_to_shares, default_pattern
from evals.noise.drawing import draw
from evals.noise.source import read_source
from graph_store import Triple, ingest, open_store
from graph_store.memory_store import MemoryStore
from graph_store.sqlite_writer import SqliteWriter
from tests.cli_helpers import command_in_process, error_lines

ROOT = Path(__file__).parents[2]
DATA = ROOT / os.environ.get("GRAPHMOOT_DATA", "../shared/data")
CN15K = DATA / "ukg" / "cn15k" / "test.tsv.gz"

FACTS = """fox	located at	forest	0.95	encyclopedia
fox	located at	moon	0.4	forum
fox	eats	mouse	0.9
mouse	lives in	barn	0.8
mouse	eats	grain	0.7
forest	part of	nature	0.9
barn	part of	farm	0.9
fox	is a	fox	1.0
Q5	eats	grain	0.005
"""


@pytest.fixture
def store(tmp_path):
    files = {
        "facts.tsv": FACTS,
        "names.tsv": "id\tname\nQ5\thare\n",
        "aliases.tsv": "moon\tLuna\nQ5\trabbit-like animal\n",
        "relations.tsv": "eats\tfeeds on\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    target = tmp_path / "fox.graphmoot"
    ingest(
        tmp_path / "facts.tsv", target,
        names=tmp_path / "names.tsv", aliases=tmp_path / "aliases.tsv",
        relations=tmp_path / "relations.tsv",
    )  # fmt: skip
    return target


def everything(store):
    """All that facts(), entity() and the labels tell, in no order."""
    facts = {
        (f.key, f.confidence, f.head_name, f.tail_name, f.relation_label, f.provenance, f.validity)
        for f in store.facts()
    }
    ends = {end for fact in store.facts() for end in (fact.head, fact.tail)}
    return facts, {store.entity(end) for end in ends}


def facts_of(location):
    return {fact.key: fact.confidence for fact in open_store(location).facts()}


def listed(record):
    with gzip.open(record.corrupted_facts, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [
        (r["how"], Triple.from_dict(r["original"]), Triple.from_dict(r["replacement"]))
        for r in rows
    ]


# Drawing, held against brute force

IDS = st.sampled_from("abcde")
GRAPHS = st.lists(
    st.builds(
        Triple,
        IDS,
        st.sampled_from(("likes", "knows", "eats")),
        IDS,
        st.sampled_from((0.004, 0.3, 0.5, 0.9, 1.0)),
    ),
    min_size=1,
    max_size=14,
)
HOW = st.builds(
    NoiseSettings,
    corrupt=st.sampled_from(("tail", "relation", "both")),
    tails=st.sampled_from(("same-relation", "uniform")),
    confidence=st.sampled_from(("keep", "lower", "remove")),
    seed=st.integers(0, 5),
)


def possible(true, fact, how):
    """All false facts that may stand in for a fact, by looking at every one there is."""
    entities = {end for h, _, t in true for end in (h, t)}
    relations = {r for _, r, _ in true}
    head, relation, tail = fact
    tails = entities
    if how.tails == "same-relation":
        tails = {t for _, r, t in true if r == relation}
    by_tail = {(head, relation, t) for t in tails if t != head}
    by_relation = {(head, r, tail) for r in relations}
    return {
        "tail": by_tail, "relation": by_relation, "both": by_tail | by_relation,
    }[how.corrupt] - set(true)  # fmt: skip


def drawn_facts(source, drawn):
    names, relations = source.entities, source.relations
    for c in drawn:
        h, r, t = source.facts[c.fact].tolist()
        yield (
            (names[h], relations[r], names[t]),
            (names[h], relations[c.relation], names[c.tail]),
            c,
        )


def drawn_or_fault(source, count, how):
    try:
        return draw(source, count, how), ""
    except NoiseError as error:
        return [], str(error)


@settings(max_examples=150, deadline=None)
@given(GRAPHS, HOW, st.floats(0, 1))
def test_exactly_the_asked_facts_become_false_ones_that_could_stand_there(facts, how, share):
    graph = MemoryStore.from_triples(facts)
    true = {fact.key for fact in graph.facts()}
    walkable = [fact for fact in true if fact[0] != fact[2]]
    count = round(share * len(walkable))
    source = read_source(graph)
    drawn, fault = drawn_or_fault(source, count, how)
    if fault:
        assert f"{count:,} facts were to be corrupted" in fault
        found = int(fault.split("only ")[1].split(" ")[0])
        assert found < count
        drawn = draw(source, found, how)  # what the message says is possible
        taken = {new for _, new, _ in drawn_facts(source, drawn)}
        left = set(walkable) - {old for old, _, _ in drawn_facts(source, drawn)}
        assert all(possible(true, fact, how) <= taken for fact in left)
        count = found
    pairs = list(drawn_facts(source, drawn))
    assert len({old for old, _, _ in pairs}) == len({new for _, new, _ in pairs}) == count
    for old, new, corruption in pairs:
        assert old in walkable
        assert new in possible(true, old, how)
        assert [old[place] != new[place] for place in range(3)] == [
            False, corruption.how == "relation", corruption.how == "tail",
        ]  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(GRAPHS, HOW, st.integers(0, 14), st.integers(0, 14))
def test_fewer_corruptions_are_the_beginning_of_more(facts, how, some, more):
    source = read_source(MemoryStore.from_triples(facts))
    few, many = sorted((some, more))
    more_drawn, fault = drawn_or_fault(source, many, how)
    if not fault:
        assert draw(source, few, how) == more_drawn[:few]


def test_every_fact_and_every_possible_replacement_is_as_likely():
    from scipy.stats import chisquare

    facts = [Triple(h, "r", t) for h, t in ("ab", "ac", "bc", "ca", "da", "de")]
    source = read_source(MemoryStore.from_triples(facts))
    how = {"tails": "uniform"}
    chosen, replaced = Counter(), Counter()
    for seed in range(900):
        (corruption,) = draw(source, 1, NoiseSettings(seed=seed, **how))
        ((old, new, _),) = drawn_facts(source, [corruption])
        chosen[old] += 1
        if old == ("b", "r", "c"):
            replaced[new[2]] += 1
    assert len(chosen) == 6
    assert chisquare(list(chosen.values())).pvalue > 1e-4
    assert set(replaced) == {"a", "d", "e"}
    assert chisquare(list(replaced.values())).pvalue > 1e-4


def test_replacements_stay_even_where_candidates_are_many_and_nearly_all_are_taken():
    others = [f"e{n}" for n in range(100)]
    facts = [Triple("hub", "r", other) for other in others[:98]]
    facts += [Triple("x", "other", other) for other in others[98:]]
    source = read_source(MemoryStore.from_triples(facts))
    seen = Counter()
    for seed in range(30):
        how = NoiseSettings(seed=seed, tails="uniform")
        for old, new, _ in drawn_facts(source, draw(source, 5, how)):
            if old[0] == "hub":
                seen[new[2]] += 1
    assert set(seen) == {"e98", "e99", "x"}
    assert min(seen.values()) > 10


# Versions on disk


def test_share_zero_gives_the_same_graph(store, tmp_path):
    record = corrupt(store, to=tmp_path / "copy.graphmoot", share=0)
    before, after = open_store(store), open_store(record.store)
    assert everything(after) == everything(before)
    assert after.info() == before.info()
    assert after.link("rabbit like animal") == before.link("rabbit like animal")
    assert listed(record) == []


def test_a_version_differs_from_its_graph_in_the_listed_facts_only(store, tmp_path):
    record = corrupt(store, to=tmp_path / "v.graphmoot", share=0.5, corrupt="both", seed=3)
    before, after = facts_of(store), facts_of(record.store)
    rows = listed(record)
    assert sum(record.corrupted.values()) == len(rows) == 4  # of 8 facts, self-loop not counted
    assert Counter(how for how, _, _ in rows) == Counter(record.corrupted)
    assert set(before) - set(after) == {old.key for _, old, _ in rows}
    assert set(after) - set(before) == {new.key for _, _, new in rows}
    assert all(after[key] == before[key] for key in set(before) & set(after))
    assert ("fox", "is a", "fox") in after
    assert (record.facts, record.self_loops, record.share_reached) == (9, 1, 0.5)


def test_a_larger_share_has_the_smaller_ones_corruptions(store, tmp_path):
    pattern = tmp_path / "v-{share}.graphmoot"
    records = corrupt_to_shares(
        store, to=pattern, shares=[0.75, 0.25], settings=NoiseSettings(tails="uniform")
    )
    alone = corrupt(store, to=tmp_path / "alone.graphmoot", share=0.25, tails="uniform")
    more, less = (listed(record) for record in records)
    assert more[: len(less)] == less
    assert alone.sha256 == records[1].sha256
    assert records[0].store.name == "v-0.75.graphmoot"


def test_equal_seeds_give_equal_bytes_and_other_seeds_other_facts(store, tmp_path):
    one, same, other = (
        corrupt(store, to=tmp_path / f"{name}.graphmoot", share=0.5, seed=seed, tails="uniform")
        for name, seed in (("one", 1), ("same", 1), ("other", 2))
    )
    assert one.store.read_bytes() == same.store.read_bytes()
    assert one.corrupted_facts.read_bytes() == same.corrupted_facts.read_bytes()
    assert facts_of(one.store) != facts_of(other.store)


def test_the_order_of_the_source_does_not_matter(tmp_path):
    lines = FACTS.splitlines()
    versions = []
    for name, rows in (("a", lines), ("b", lines[::-1])):
        (tmp_path / f"{name}.tsv").write_text("\n".join(rows), encoding="utf-8")
        to = tmp_path / f"{name}.graphmoot"
        corrupt(tmp_path / f"{name}.tsv", to=to, share=0.5, confidence="lower")
        versions.append(facts_of(to))
    assert versions[0] == versions[1]


def test_what_a_seed_gives_does_not_change_with_the_package(tmp_path):
    # A robustness curve that was published must be repeatable: these facts are fixed for good.
    facts = tmp_path / "facts.tsv"
    facts.write_text(FACTS, encoding="utf-8")
    how = {"tails": "uniform", "corrupt": "both", "confidence": "lower"}
    record = corrupt(facts, to=tmp_path / "v.graphmoot", share=0.5, seed=0, **how)
    assert [(*new.key, new.confidence) for _, _, new in listed(record)] == [
        ("mouse", "located at", "grain", 0.185587),
        ("mouse", "lives in", "moon", 0.420639),
        ("forest", "eats", "nature", 0.344423),
        ("Q5", "eats", "forest", 0.005),
    ]


def test_entities_whose_facts_are_all_gone_stay_with_names_and_aliases(store, tmp_path):
    for seed in range(20):
        how = {"share": 0.5, "seed": seed, "tails": "uniform"}
        record = corrupt(store, to=tmp_path / "v.graphmoot", **how)
        if not any("moon" in key for key in facts_of(record.store)):
            break
    else:
        pytest.fail("no seed corrupts the fact about the moon")
    version = open_store(record.store)
    assert version.entity("moon").aliases == ("Luna",)
    assert version.link("Luna")[0].entity == "moon"
    assert version.info().entities == open_store(store).info().entities
    again = corrupt(record.store, to=tmp_path / "again.graphmoot", share=0)
    assert open_store(again.store).entity("moon").aliases == ("Luna",)
    assert open_store(again.store).info() == version.info()


def test_corrupted_facts_keep_their_provenance_so_that_nothing_gives_them_away(store, tmp_path):
    record = corrupt(store, to=tmp_path / "v.graphmoot", share=1, tails="uniform")
    notes = Counter(fact.provenance for fact in open_store(record.store).facts())
    assert notes == Counter(fact.provenance for fact in open_store(store).facts())


def test_confidences_are_kept_lowered_or_removed_for_the_same_corruptions(store, tmp_path):
    def made(confidence, **choices):
        record = corrupt(
            store, to=tmp_path / f"{confidence}.graphmoot", share=0.75, tails="uniform",
            confidence=confidence, **choices,
        )  # fmt: skip
        return record, listed(record), facts_of(record.store)

    keep, kept_rows, kept = made("keep")
    lower, lowered_rows, lowered = made("lower", factor=(0.3, 0.4), floor=0.2)
    _, removed_rows, removed = made("remove")
    assert set(kept) == set(lowered) == set(removed)
    assert [row[1] for row in kept_rows] == [row[1] for row in lowered_rows]
    for (_, old, same), (_, _, less), (_, _, one) in zip(
        kept_rows, lowered_rows, removed_rows, strict=True
    ):
        assert kept[same.key] == same.confidence == old.confidence
        least = min(old.confidence, 0.2)
        assert max(least, old.confidence * 0.3) - 1e-6 <= lowered[less.key] == less.confidence
        assert less.confidence <= max(least, old.confidence * 0.4) + 1e-6
        assert one.confidence == 1.0
    assert set(removed.values()) == {1.0}
    true = set(kept) - {new.key for _, _, new in kept_rows}
    before = facts_of(store)
    assert all(lowered[key] == kept[key] == before[key] for key in true)
    assert lower.mean_confidence["corrupted"] < keep.mean_confidence["corrupted"]
    assert lower.mean_confidence["true"] == pytest.approx(sum(before[k] for k in true) / len(true))
    assert lower.settings.to_json()["factor"] == [0.3, 0.4]
    assert "factor" not in keep.settings.to_json()


def test_the_record_tells_how_to_make_the_version_again(store, tmp_path):
    record = corrupt(store, to=tmp_path / "v.graphmoot", share=0.3, seed=11, confidence="lower")
    kept = json.loads((tmp_path / "v.graphmoot.noise.json").read_text(encoding="utf-8"))
    assert kept == json.loads(json.dumps(record.to_json()))
    again = corrupt(
        kept["source"], to=tmp_path / "w.graphmoot", share=kept["share_asked"],
        **{**kept["settings"], "factor": tuple(kept["settings"]["factor"])},
    )  # fmt: skip
    assert again.sha256 == kept["sha256"]


# What is refused


def test_a_graph_that_cannot_be_corrupted_so_is_named_and_nothing_is_written(tmp_path):
    source = tmp_path / "one.tsv"
    source.write_text("a\tr\tb\t0.5\nc\tr\td\t0.5\n", encoding="utf-8")
    with pytest.raises(NoiseError, match=r"2 facts .* only 0 can be .* --corrupt both"):
        corrupt(source, to=tmp_path / "v.graphmoot", share=1, corrupt="relation")
    assert [path.name for path in tmp_path.iterdir()] == ["one.tsv"]


def test_an_interrupt_leaves_what_was_there(store, tmp_path, monkeypatch):
    to = tmp_path / "v.graphmoot"
    corrupt(store, to=to, share=0.25)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}

    def interrupted(self, on_step):
        raise KeyboardInterrupt

    monkeypatch.setattr(SqliteWriter, "finish", interrupted)
    with pytest.raises(KeyboardInterrupt):
        corrupt(store, to=to, share=0.5)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (("--share", "1.5"), "--share 1.5: is not from 0 to 1"),
        (("--share", "nan"), "--share nan"),
        (("--share", "0.1", "0.10"), "is given twice"),
        (("--share", "0.1", "0.2", "--to", "x.graphmoot"), "need {share} in the name"),
        (("--share", "0.1", "--to", "fox.graphmoot"), "is the graph itself"),
        (("--share", "0.1", "--factor", "0.5:0.1"), "factor is 0.5:0.1"),
        (("--share", "0.1", "--factor", "half"), "--factor 'half'"),
        (("--share", "0.1", "--floor", "0"), "floor is 0"),
        (("--share", "0.1", "--to", "nowhere/x.graphmoot"), "no such folder"),
    ],
)
def test_faulty_options_are_named_in_one_line(store, capsys, monkeypatch, arguments, fault):
    monkeypatch.chdir(store.parent)
    ran = command_in_process(capsys)("eval", "noise", "fox.graphmoot", *arguments)
    assert ran.status == 2
    assert len(error_lines(ran)) == 1
    assert fault in error_lines(ran)[0]


# The command


def test_the_command_writes_versions_beside_the_graph_and_prints_their_records(store, capsys):
    ran = command_in_process(capsys)("eval", "noise", store, "--share", "0.25", "0.5", "--json")
    assert ran.status == 0
    assert [Path(row["store"]).name for row in ran.json] == [
        "fox-noise-0.25.graphmoot",
        "fox-noise-0.5.graphmoot",
    ]
    assert [sum(row["corrupted"].values()) for row in ran.json] == [2, 4]
    for row in ran.json:
        assert Path(row["store"]).parent == store.parent
        assert json.loads(Path(f"{row['store']}.noise.json").read_text(encoding="utf-8")) == row
        assert Path(row["corrupted_facts"]).exists()


def test_the_command_prints_a_table_with_notes_on_stderr(store, capsys):
    ran = command_in_process(capsys)("eval", "noise", store, "--share", "0.5")
    assert ran.status == 0
    assert "fox-noise-0.5.graphmoot" in ran.out
    assert "the false facts and what they replaced" in ran.err


@pytest.mark.parametrize(
    ("location", "pattern"),
    [
        ("graphs/v1.5.graphmoot", "v1.5-noise-{share}.graphmoot"),
        ("facts.tsv.gz", "facts-noise-{share}.graphmoot"),
        ("sample", "sample-noise-{share}.graphmoot"),
    ],
)
def test_versions_are_named_after_their_graph(location, pattern):
    assert default_pattern(location) == pattern


# Real data


@pytest.mark.skipif(not CN15K.exists(), reason=f"no CN15k in {DATA} (set GRAPHMOOT_DATA)")
def test_on_cn15k_false_facts_are_false_and_plausible(tmp_path):
    graph = open_store(CN15K)
    record = corrupt(graph, to=tmp_path / "v.graphmoot", share=0.2, confidence="lower")
    true = {fact.key for fact in graph.facts()}
    tails = {(r, t) for _, r, t in true}
    walkable = sum(h != t for h, _, t in true)
    rows = listed(record)
    assert len(rows) == len({new.key for _, _, new in rows}) == round(0.2 * walkable)
    for _, old, new in rows:
        assert old.key in true
        assert new.key not in true
        assert new.head == old.head != new.tail
        assert (new.relation, new.tail) in tails
        assert new.confidence < old.confidence
    assert set(facts_of(record.store)) == true - {o.key for _, o, _ in rows} | {
        n.key for _, _, n in rows
    }
