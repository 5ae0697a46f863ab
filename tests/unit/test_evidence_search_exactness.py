"""The fast evidence search gives exactly what the slow reference gives."""

from __future__ import annotations

import hashlib
import math
import os
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from graph_store.evidence_search import find_evidence
from graph_store.memory_store import MemoryStore
from graph_store.model import Subgraph, Triple
from tests.reference_evidence_search import (
    ReferenceResult,
    reference_evidence,
    relation_in_words,
)

EXAMPLES = os.environ.get("GRAPHMOOT_HYPOTHESIS_EXAMPLES")  # for long, truly random runs
PROFILE = settings(
    max_examples=int(EXAMPLES or 300),
    derandomize=EXAMPLES is None,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
DEFAULTS: dict[str, Any] = {
    "k": 3,
    "width": 3,
    "max_distance": 3.0,
    "alpha": 1.0,
    "direction": "both",
    "ignore_confidence": False,
}
RELATIONS = {  # id -> the store's label; two of them read the same
    "knows": "",
    "/r/UsedFor": "",
    "usedFor": "",
    "people.person.place_of_birth": "",
    "P31": "instance of",
}
CONFIDENCES = (0.34, 0.5, 0.67, 0.9, 0.95, 1.0, 1 / 3, 2 / 3)
QUESTION = "where is it used"
AB, AC, BD, CD = (("A", "r", "B"), ("A", "r", "C"), ("B", "r", "D"), ("C", "r", "D"))
DIAMOND = [Triple(*AB, 1.0), Triple(*AC, 0.9), Triple(*BD, 1.0), Triple(*CD, 1.0)]


def _number(text: str, *salt: object) -> int:
    data = repr((text, salt)).encode()
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big")


class FakeEmbedder:
    """Unit vectors from hashes of words; a text's vector never depends on the other texts.

    Kinds: `signs` (cosines are exact multiples of 1/8, so ties and halves are common), `floats`
    (any cosine, none related to another), `words` (sums of word vectors: like texts are alike).
    The first two take a text for one of `codes` codes, so that texts collide, also with the
    question (cosine 1).
    """

    def __init__(self, kind: str, seed: int, codes: int) -> None:
        self.kind, self.seed, self.codes = kind, seed, codes
        self.fingerprint = f"fake-{kind}-{seed}-{codes}"

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        return np.array([self.encode_one(text) for text in texts], dtype=np.float32)

    def encode_one(self, text: str) -> np.ndarray:
        words = text.replace(",", " ").split()
        if self.kind == "words":
            vector = sum(self._floats(_number(word) % self.codes) for word in words)
            return (vector / np.linalg.norm(vector)).astype(np.float32)
        code = sum(_number(word) for word in words) % self.codes
        if self.kind == "floats":
            return self._floats(code).astype(np.float32)
        bits = _number("signs", code, self.seed)
        return np.array([0.25 if bits >> i & 1 else -0.25 for i in range(16)], dtype=np.float32)

    def _floats(self, code: int) -> np.ndarray:
        vector = np.random.default_rng([code, self.seed]).standard_normal(24)
        return vector / np.linalg.norm(vector)


class TableEmbedder:
    """Vectors with a given cosine to the question for each text; 1.0 for all others."""

    def __init__(self, cosines: dict[str, float] | None = None) -> None:
        self.cosines = cosines or {}
        self.fingerprint = f"table-{sorted(self.cosines.items())}"

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        return np.array([self.encode_one(text) for text in texts], dtype=np.float32)

    def encode_one(self, text: str) -> np.ndarray:
        cosine = 1.0 if text == QUESTION else self.cosines.get(text, 1.0)
        return np.array([cosine, math.sqrt(1 - cosine**2)], dtype=np.float32)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[Triple], dict[str, str]]:
    """A few entities, some of one name, and a tangle of facts between them."""
    entities = [f"e{i}" for i in range(draw(st.integers(2, 14)))]
    pools = [["Li Wei", "New_York", ""], ["x", "y_z", "Zed", "b c", "a", "e", ""]]
    name = st.sampled_from(draw(st.sampled_from(pools)))  # "": no name but the id
    names = {entity: n for entity in entities if (n := draw(name))}
    ends = st.sampled_from(entities)
    relations = st.sampled_from(list(RELATIONS)[: draw(st.integers(1, len(RELATIONS)))])
    confidence = draw(
        st.sampled_from(
            [
                st.sampled_from(CONFIDENCES),
                st.sampled_from([0.9, 0.95, 1.0]),
                st.just(1.0),
                st.floats(0.05, 1.0),
            ]
        )
    )
    fewest = len(entities) * draw(st.sampled_from([0, 1, 2])) or 1
    edges = draw(st.lists(st.tuples(ends, relations, ends), min_size=fewest, max_size=fewest + 14))
    if draw(st.booleans()):  # a hub
        edges += [(entities[0], draw(relations), other) for other in entities[1:]]
    if draw(st.booleans()):  # antiparallel facts
        edges += [(tail, relation, head) for head, relation, tail in edges[::2]]
    triples = [
        Triple(head, relation, tail, draw(confidence), relation_label=RELATIONS[relation])
        for head, relation, tail in edges
    ]
    return triples, names


EMBEDDERS = st.builds(
    FakeEmbedder,
    st.sampled_from(["signs", "floats", "words"]),
    st.integers(0, 7),
    st.sampled_from([2, 5, 20, 1000]),
)
SETTINGS = st.fixed_dictionaries(
    {
        "k": st.sampled_from([1, 2, 3, 5]),
        "width": st.integers(1, 4),
        "max_distance": st.sampled_from([1, 2, 3, 4.5]),
        "alpha": st.sampled_from([0, 0.5, 1, 2]),
        "direction": st.sampled_from(["both", "out"]),
        "ignore_confidence": st.booleans(),
    }
)


def reference(triples, names, topics, embedder, **options) -> ReferenceResult:
    options = DEFAULTS | options
    return reference_evidence(triples, names, QUESTION, topics, embedder.encode_one, **options)


def fast(triples, names, topics, embedder, **options) -> Subgraph:
    store = MemoryStore.from_triples(triples, names=names)
    return find_evidence(store, QUESTION, topics, embedder=embedder, **DEFAULTS | options)


def rows(paths) -> list[tuple]:
    return [
        (p.topic, p.entity, tuple(f.key for f in p.facts), p.score, p.confidence, p.distance)
        for p in paths
    ]


def check(triples, names, topics, embedder, **options) -> ReferenceResult:
    """Compare the fast search with the reference; return what both found."""
    expected = reference(triples, names, topics, embedder, **options)
    found = fast(triples, names, topics, embedder, **options)
    assert rows(found.paths) == expected.paths
    assert [(fact.key, fact.confidence) for fact in found.facts] == expected.facts
    assert found.topic_entities == tuple(topics)
    assert found.stats.visited == sum(map(len, expected.visited))
    assert not found.stats.approximate
    assert not any(math.copysign(1, path.score) < 0 for path in found.paths)
    return expected


@PROFILE
@given(graph=graphs(), embedder=EMBEDDERS, options=SETTINGS, data=st.data())
def test_fast_search_equals_the_reference_on_random_graphs(graph, embedder, options, data):
    triples, names = graph
    entities = [triple.head for triple in triples] + [triple.tail for triple in triples[:3]]
    topics = data.draw(st.lists(st.sampled_from(entities), min_size=1, max_size=3, unique=True))
    expected = check(triples, names, topics, embedder, **options)
    event(f"most hops: {max((len(path[2]) for path in expected.paths), default=0)}")
    event(f"several paths to one: {len({p[:2] for p in expected.paths}) < len(expected.paths)}")
    far = any(distance > options["max_distance"] + 1e-9 for *_, distance in expected.paths)
    event(f"a kept path is itself beyond the bound: {far}")


@settings(PROFILE, max_examples=PROFILE.max_examples // 6)
@given(graph=graphs(), embedder=EMBEDDERS, options=SETTINGS, data=st.data())
def test_order_of_insertion_does_not_matter(graph, embedder, options, data):
    triples, names = graph
    topics = [triples[0].head]
    shuffled = data.draw(st.permutations(triples))
    one, other = (fast(t, names, topics, embedder, **options) for t in (triples, shuffled))
    assert rows(one.paths) == rows(other.paths)
    assert one.facts == other.facts


@settings(PROFILE, max_examples=PROFILE.max_examples // 6)
@given(graph=graphs(), embedder=EMBEDDERS, data=st.data())
def test_what_an_earlier_search_left_in_the_store_changes_nothing(graph, embedder, data):
    triples, names = graph
    store = MemoryStore.from_triples(triples, names=names)
    for _ in range(3):
        options = data.draw(SETTINGS)
        topic = data.draw(st.sampled_from(triples)).head
        found = find_evidence(store, QUESTION, [topic], embedder=embedder, **options)
        assert rows(found.paths) == reference(triples, names, [topic], embedder, **options).paths


def wide_graph(chance: random.Random) -> tuple[list[Triple], dict[str, str]]:
    """One to three hubs of up to 120 neighbours: many candidates for one expansion."""
    entities = [f"e{i}" for i in range(chance.choice([20, 60, 120]))]
    names = {e: chance.choice(["Li Wei", "x", "y_z", e]) for e in entities}
    pool = chance.choice([CONFIDENCES, (0.9, 0.95, 1.0), (0.2, 0.34, 0.4, 0.5), (1.0,)])
    pairs = [(hub, other) for hub in entities[: chance.randint(1, 3)] for other in entities]
    pairs += [tuple(chance.choices(entities, k=2)) for _ in range(chance.choice([0, 60, 200]))]
    triples = []
    for pair in pairs:
        head, tail = chance.sample(pair, 2)
        relation = chance.choice(list(RELATIONS))
        confidence = chance.choice([*pool, chance.uniform(0.1, 1.0)])
        label = RELATIONS[relation]
        triples.append(Triple(head, relation, tail, confidence, relation_label=label))
    return triples, names


@settings(PROFILE, max_examples=PROFILE.max_examples // 6)
@given(seed=st.integers(0, 10**9), embedder=EMBEDDERS, options=SETTINGS)
def test_fast_search_equals_the_reference_around_hubs(seed, embedder, options):
    triples, names = wide_graph(random.Random(seed))
    topics = ["e0", "e1", triples[-1].head][: 1 + seed % 3]
    check(triples, names, list(dict.fromkeys(topics)), embedder, **options)


@pytest.mark.parametrize("confidence", [0.1234565, 0.4000005, 0.6999995, 0.8123445])
def test_scores_are_the_nearest_number_of_six_decimals(confidence):
    result = check([Triple(*AB, confidence)], {}, ["A"], TableEmbedder(), max_distance=9.0)
    assert result.paths[0][3] == float(f"{confidence:.6f}")


def paths_to(result: ReferenceResult, entity: str) -> list[tuple]:
    return [facts for _, end, facts, *_ in result.paths if end == entity]


@pytest.mark.parametrize(("k", "expected"), [(1, [(AB, BD)]), (2, [(AB, BD), (AC, CD)])])
def test_both_sides_of_a_diamond_survive_when_k_allows(k, expected):
    result = check(DIAMOND, {}, ["A"], TableEmbedder(), k=k, direction="out")
    assert paths_to(result, "D") == expected
    assert [key for key, _ in result.facts] == [AB, BD, AC, CD][: 2 * k] + [AC][: 2 - k]


def test_parallel_relations_are_paths_of_their_own():
    triples = [Triple("A", "likes", "B", 1.0), Triple("A", "knows", "B", 0.9)]
    cosines = {"A likes B": 0.8, "A knows B": 0.9}
    result = check(triples, {}, ["A"], TableEmbedder(cosines), width=1)
    # The threshold is the neighbour's best score, so with one neighbour only its best path stays.
    assert paths_to(result, "B") == [(("A", "knows", "B"),)]
    triples.append(Triple("A", "r", "C", 0.5))
    result = check(triples, {}, ["A"], TableEmbedder(cosines), width=2)
    assert paths_to(result, "B") == [(("A", "knows", "B"),), (("A", "likes", "B"),)]
    assert [score for *_, score, _, _ in result.paths] == [0.81, 0.8, 0.5]
    result = check(triples, {}, ["A"], TableEmbedder(cosines), width=2, k=1)
    assert paths_to(result, "B") == [(("A", "knows", "B"),)]


def test_a_fact_walked_against_its_direction_is_shown_as_stored():
    triples = [Triple("Zed", "parent", "Amy", 1.0), Triple("Zed", "parent", "Bob", 1.0)]
    result = check(triples, {}, ["Amy"], TableEmbedder({"Amy parent Zed": 0.0}), direction="both")
    assert paths_to(result, "Bob") == [(("Zed", "parent", "Amy"), ("Zed", "parent", "Bob"))]
    assert [key for key, _ in result.facts] == [triples[0].key, triples[1].key]
    assert {score for *_, score, _, _ in result.paths} == {1.0}  # not "Amy parent Zed" in words
    assert check(triples, {}, ["Amy"], TableEmbedder(), direction="out").facts == []


@pytest.mark.parametrize(("confidence", "reached"), [(0.34, True), (1 / 3, True), (0.33, False)])
def test_one_hop_within_distance_3_needs_a_third(confidence, reached):
    result = check([Triple(*AB, confidence)], {}, ["A"], TableEmbedder())
    assert bool(result.facts) is reached


@pytest.mark.parametrize(("confidence", "reached"), [(0.67, True), (0.66, False)])
def test_two_hops_within_distance_3_need_a_product_of_two_thirds(confidence, reached):
    result = check([Triple(*AB, 1.0), Triple(*BD, confidence)], {}, ["A"], TableEmbedder())
    assert bool(paths_to(result, "D")) is reached


def test_three_hops_within_distance_3_need_certainty_or_ignored_confidence():
    for confidence, ignore, reached in [(1.0, False, 3), (0.99, False, 2), (0.3, True, 3)]:
        chain = [Triple(a, "r", b, confidence) for a, b in ("AB", "BC", "CD", "DE")]
        result = check(chain, {}, ["A"], TableEmbedder(), ignore_confidence=ignore)
        assert max(len(facts) for _, _, facts, *_ in result.paths) == reached
        assert {stored for _, stored in result.facts} == {confidence}


def test_a_self_loop_is_never_walked():
    triples = [Triple("A", "r", "A", 1.0), Triple(*AB, 0.9), Triple("B", "r", "B", 1.0)]
    assert check(triples, {}, ["A"], TableEmbedder()).facts == [(AB, 0.9)]


def test_a_better_path_found_later_brings_an_entity_nearer():
    # D is first found straight from A (1/0.35), then over B (2/1.0): it becomes nearer.
    triples = [Triple("A", "r", "D", 0.35), Triple(*AB, 1.0), Triple(*BD, 1.0)]
    result = check(triples, {}, ["A"], TableEmbedder(), direction="out")
    assert dict(result.visited[0])["D"] == 2.0
    assert paths_to(result, "D") == [(AB, BD), (("A", "r", "D"),)]


def test_an_entity_stays_near_when_its_nearest_path_is_cut():
    # D is near by A-D (1/0.34), a dull path; A-B-D scores more and pushes it out at K = 1.
    triples = [Triple("A", "r", "D", 0.34), Triple(*AB, 1.0), Triple(*BD, 0.5)]
    cosines = {"A r D": 0.5}
    result = check(triples, {}, ["A"], TableEmbedder(cosines), k=1, direction="out")
    assert dict(result.visited[0])["D"] == 1 / 0.34  # not 4.0, beyond the bound
    assert paths_to(result, "D") == [(AB, BD)]


def test_an_entity_counts_as_near_by_a_path_that_the_cut_drops_at_once():
    # Two facts lead to B, both above E's score, the threshold. K = 1 keeps the farther (1/0.3).
    likes, knows, be = ("A", "likes", "B"), ("A", "knows", "B"), ("A", "r", "E")
    triples = [Triple(*likes, 0.3), Triple(*knows, 0.5), Triple(*be, 0.1)]
    cosines = {"A knows B": 0.5, "A likes B": 0.9}
    result = check(triples, {}, ["A"], TableEmbedder(cosines), k=1)
    assert paths_to(result, "B") == [(likes,)]
    assert result.visited == [[("A", 0.0), ("B", 2.0)]]


def test_one_threshold_holds_for_the_whole_expansion():
    # B's best is 0.9, C's 0.6, so A-knows-B at 0.5 is out although B has room for it.
    triples = [Triple("A", r, t) for r, t in [("likes", "B"), ("knows", "B"), ("r", "C")]]
    cosines = {"A likes B": 0.9, "A knows B": 0.5, "A r C": 0.6}
    result = check(triples, {}, ["A"], TableEmbedder(cosines))
    assert paths_to(result, "B") == [(("A", "likes", "B"),)]


def test_width_ties_fall_to_names_then_ids():
    triples = [Triple("t", "r", end) for end in ("1", "2", "3")]
    names = {"1": "Li Wei", "2": "Li Wei", "3": "Bob"}
    result = check(triples, names, ["t"], TableEmbedder(), width=2)
    assert sorted(entity for entity, _ in result.visited[0]) == ["1", "3", "t"]


def test_ties_between_paths_fall_to_one_fact_text_after_the_other():
    names = {"1": "x", "2": "x y"}  # "A r x" sorts before "A r x y", "A r x, …" would not
    sides = [Triple(a, "r", b) for side in "21" for a, b in [("A", side), (side, "D")]]
    result = check(sides, names, ["A"], TableEmbedder(), k=2)
    assert [facts[0][2] for facts in paths_to(result, "D")] == ["1", "2"]


def test_ties_between_paths_of_one_text_fall_to_ids():
    sides = [Triple(a, "r", b) for side in "21" for a, b in [("A", side), (side, "D")]]
    result = check(sides, {"1": "x", "2": "x"}, ["A"], TableEmbedder(), k=2)
    assert [facts[0][2] for facts in paths_to(result, "D")] == ["1", "2"]


def test_several_topics_are_searched_apart_and_ranked_together():
    triples = [Triple(*AB, 0.9), Triple(*CD, 1.0), Triple("B", "r", "C", 0.2)]
    result = check(triples, {}, ["A", "C"], TableEmbedder())
    assert [(topic, entity) for topic, entity, *_ in result.paths] == [("C", "D"), ("A", "B")]
    assert [key for key, _ in result.facts] == [CD, AB]
    result = check([Triple(*AB, 0.9)], {}, ["B", "A"], TableEmbedder())
    assert [(topic, entity) for topic, entity, *_ in result.paths] == [("B", "A"), ("A", "B")]
    assert result.facts == [(AB, 0.9)]


def test_negative_similarity_scores_zero_and_still_counts():
    result = check([Triple(*AB, 0.9)], {}, ["A"], TableEmbedder({"A r B": -0.5}))
    assert [(score, confidence) for *_, score, confidence, _ in result.paths] == [(0.0, 0.9)]


@pytest.mark.parametrize(
    ("relation", "words"),
    [
        ("competeswith", "competeswith"),
        ("/r/UsedFor", "used for"),
        ("isA", "is a"),
        ("people.person.place_of_birth", "people person place of birth"),
    ],
)
def test_the_reference_puts_relations_in_words(relation, words):
    assert relation_in_words(relation) == words
    assert Triple("a_b", relation, "C").text == f"a b {words} C"
