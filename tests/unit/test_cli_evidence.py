"""`subgraph` and its pictures as their users see them."""

from __future__ import annotations

import itertools
import sys
import time

import pytest

import graph_store.embedding
import graph_store.evidence_search
from graph_store import MissingExtraError, StoreError, Subgraph, Triple, open_store
from graph_store.drawing import draw_subgraph, write_graphml
from graph_store.drawing_layout import Box, Edge, arrange, columns_of
from graph_store.model import Path
from tests.cli_helpers import command_in_process, error_lines
from tests.fake_embedder import FakeEmbedder

FACTS = """A\tto\tB\t0.9
A\tto\tC\t0.9
B\tto\tD\t0.9
C\tto\tD\t0.9
A\tlikes\tB\t0.8
B\tlikes\tA\t0.7
Zed\tparent\tAmy\t0.9
Zed's [b]pet[/b]\tis a\tcat \x1b[31m\t0.9
"""
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(autouse=True)
def _fake_embeddings(monkeypatch):
    monkeypatch.setattr(graph_store.evidence_search, "load_embedder", FakeEmbedder)


@pytest.fixture
def graphmoot(capsys):
    return command_in_process(capsys)


@pytest.fixture
def store(tmp_path):
    file = tmp_path / "facts.tsv"
    file.write_text(FACTS, encoding="utf-8")
    return file


def keys(evidence):
    return {(fact["head"], fact["relation"], fact["tail"]) for fact in evidence}


def test_json_has_the_public_shape(store, graphmoot):
    ran = graphmoot("subgraph", store, "what is B?", "--topic", "A", "--json")
    assert ran.status == 0
    assert set(ran.json) == {"topic_entities", "evidence", "paths", "stats"}
    assert ran.json["topic_entities"] == ["A"]
    path = ran.json["paths"][0]
    assert {"entity", "facts", "score", "confidence", "distance"} <= set(path)
    scores = [path["score"] for path in ran.json["paths"]]
    assert scores == sorted(scores, reverse=True)
    assert {"visited", "texts_embedded", "texts_pruned", "milliseconds", "approximate"} <= set(
        ran.json["stats"]
    )


def test_opposite_and_parallel_facts_are_each_shown_once(store, graphmoot):
    evidence = graphmoot("subgraph", store, "A B", "--topic", "A", "--json").json["evidence"]
    assert {("A", "to", "B"), ("A", "likes", "B"), ("B", "likes", "A")} <= keys(evidence)
    assert len(keys(evidence)) == len(evidence)


def test_a_fact_walked_backwards_is_shown_as_stored(store, graphmoot):
    ran = graphmoot("subgraph", store, "parent", "--topic", "Amy")
    assert "Amy ←parent— Zed" in ran.out
    evidence = graphmoot("subgraph", store, "parent", "--topic", "Amy", "--json").json["evidence"]
    assert keys(evidence) == {("Zed", "parent", "Amy")}


def test_both_ways_round_a_diamond_are_kept(store, graphmoot):
    paths = graphmoot(
        "subgraph", store, "D", "--topic", "A", "--k", "2", "--direction", "out", "--json"
    ).json["paths"]
    to_d = {tuple(f["head"] for f in p["facts"]) for p in paths if p["entity"] == "D"}
    assert to_d == {("A", "B"), ("A", "C")}


@pytest.mark.parametrize(
    "topics", [["--topic", "A", "--topic", "Zed"], ["--topic", "A", "Zed"], ["--topic=A", "Zed"]]
)
def test_topics_may_be_repeated_or_stand_in_a_row(topics, store, graphmoot):
    assert graphmoot("subgraph", store, "who", *topics, "--json").json["topic_entities"] == [
        "A",
        "Zed",
    ]


def test_options_may_stand_before_the_arguments(store, graphmoot):
    ran = graphmoot("subgraph", "--k", "1", "--topic", "A", store, "who", "--json")
    assert ran.json["topic_entities"] == ["A"]


def test_without_topics_the_question_is_linked_and_told(store, graphmoot):
    ran = graphmoot("subgraph", store, "whose child is Amy?", "--json")
    assert ran.json["topic_entities"] == ["Amy"]
    assert "linked 'Amy' to Amy" in ran.err


def test_a_question_that_names_nothing_has_status_3(store, graphmoot):
    ran = graphmoot("subgraph", store, "qqqq wwww?")
    assert ran.status == 3
    assert "--topic" in error_lines(ran)[0]


def test_an_unknown_topic_is_told_before_the_model_loads(store, graphmoot, monkeypatch):
    def refuse():
        raise AssertionError("the model was loaded")

    monkeypatch.setattr(graph_store.evidence_search, "load_embedder", refuse)
    ran = graphmoot("subgraph", store, "x", "--topic", "Zedd")
    assert ran.status == 3
    assert "'Zed" in error_lines(ran)[0]


def test_nothing_within_reach_is_told_with_the_mend(tmp_path, graphmoot):
    file = tmp_path / "weak.tsv"
    file.write_text("A\tto\tB\t0.1\n", encoding="utf-8")
    ran = graphmoot("subgraph", file, "B", "--topic", "A")
    assert (ran.status, ran.out) == (0, "")
    assert "--max-distance" in ran.err
    ran = graphmoot("subgraph", file, "B", "--topic", "A", "--ignore-confidence", "--json")
    assert len(ran.json["evidence"]) == 1


def test_escapes_and_markup_are_shown_not_obeyed(store, graphmoot):
    ran = graphmoot("subgraph", store, "pet", "--topic", "Zed's [b]pet[/b]")
    assert "Zed's [b]pet[/b]" in ran.out
    assert "\x1b" not in ran.out + ran.err


def test_a_hub_stays_within_its_budget_and_says_so(tmp_path, graphmoot):
    file = tmp_path / "hub.tsv"
    file.write_text("".join(f"hub\tto\tn{i}\t0.9\n" for i in range(3000)), encoding="utf-8")
    started = time.monotonic()
    ran = graphmoot("subgraph", file, "n7", "--topic", "hub", "--max-candidates", "50", "--json")
    assert time.monotonic() - started < 20
    assert ran.json["stats"]["approximate"] is True
    assert ran.json["stats"]["texts_embedded"] <= 50
    assert "approximate" in ran.err


@pytest.mark.parametrize("option", [("--k", "0"), ("--width", "0"), ("--alpha", "nan")])
def test_settings_out_of_range_are_bad_usage(option, store, graphmoot):
    ran = graphmoot("subgraph", store, "x", "--topic", "A", *option)
    assert ran.status == 2
    assert option[0] in error_lines(ran)[0]


def test_another_similarity_is_loaded_by_name(store, graphmoot, monkeypatch):
    asked = []
    monkeypatch.setattr(
        graph_store.embedding, "load_embedder", lambda name: asked.append(name) or FakeEmbedder()
    )
    assert graphmoot("subgraph", store, "x", "--topic", "A", "--similarity", "mine").status == 0
    assert asked == ["mine"]


def test_picture_and_graphml_are_written_and_read_back(store, tmp_path, graphmoot):
    png, graphml = tmp_path / "a.png", tmp_path / "a.graphml"
    ran = graphmoot(
        "subgraph", store, "B", "--topic", "A", "--png", png, "--graphml", graphml, "--json"
    )
    assert ran.status == 0
    assert png.read_bytes().startswith(PNG)
    again = {fact.key for fact in open_store(graphml).facts()}
    assert again == keys(ran.json["evidence"])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.graphml", "a.png", "facts.tsv"]


def test_a_picture_that_cannot_be_written_is_one_line(store, tmp_path, graphmoot):
    target = tmp_path / "no" / "such.png"
    ran = graphmoot("subgraph", store, "B", "--topic", "A", "--png", target)
    assert ran.status == 2
    assert error_lines(ran) == [f"error: {target}: cannot be written: No such file or directory"]


def one(*facts, topics=("A",)):
    paths = [Path(topics[0], fact.tail, (fact,), 0.5, fact.confidence) for fact in facts]
    return Subgraph(topics, facts, tuple(paths))


ODD = one(
    Triple("A", "likes", "B", 0.9),
    Triple("B", "likes", "A", 0.5),
    Triple("A", "self", "A", 0.5),
    Triple("A", "costs $x$ \\frac", "東京", 0.5),
    Triple("Q1", "born", "B", 1.0, "Li Wei"),
    Triple("Q2", "born", "B", 0.01, "Li Wei"),
    Triple("B", "is", "x" * 10_000, 0.3),
    Triple("B", "is", "bad \x1b[31m \ud800 name", 0.3),
)


@pytest.mark.parametrize("subgraph", [ODD, one(), Subgraph((), (), ())])
def test_odd_graphs_are_drawn_the_same_each_time(subgraph, tmp_path):
    for name in ("1.png", "2.png"):
        draw_subgraph(subgraph, tmp_path / name)
    assert (tmp_path / "1.png").read_bytes() == (tmp_path / "2.png").read_bytes()


def test_graphml_leaves_out_only_what_xml_cannot_hold(tmp_path):
    write_graphml(ODD, tmp_path / "odd.graphml")
    store = open_store(tmp_path / "odd.graphml")
    assert store.info().facts == len(ODD.facts)
    assert store.entity("Q1").name == "Li Wei"
    assert store.entity("bad \ufffd[31m \ufffd name")


def test_many_facts_are_drawn_as_the_best_of_them_within_bounds(tmp_path):
    many = one(*(Triple("A", "to", f"n{i}", 0.5) for i in range(2000)))
    draw_subgraph(many, tmp_path / "many.png")
    size = (tmp_path / "many.png").read_bytes()[16:24]
    assert max(int.from_bytes(size[:4]), int.from_bytes(size[4:])) <= 12_000


def test_a_folder_that_is_missing_is_a_store_error(tmp_path):
    with pytest.raises(StoreError, match="cannot be written"):
        draw_subgraph(ODD, tmp_path / "no" / "x.png")
    with pytest.raises(StoreError, match="cannot be written"):
        write_graphml(ODD, tmp_path / "no" / "x.graphml")


def test_without_matplotlib_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"graphmoot\[plot\]"):
        draw_subgraph(ODD, tmp_path / "x.png")


def test_layout_keeps_boxes_apart_and_columns_by_hops():
    facts = [Triple("A", "r", f"b{i}") for i in range(9)]
    facts += [Triple(f"b{i}", "r", f"c{i % 4}") for i in range(9)]
    columns = columns_of(["A"], facts)
    assert (columns["A"], columns["b3"], columns["c3"]) == (0, 1, 2)
    boxes = {e: Box(e, 1.0, 0.4, column=c) for e, c in columns.items()}
    layout = arrange(boxes, [Edge(fact, Box("r", 0.5, 0.15)) for fact in facts])
    placed = list(layout.boxes.values())
    assert all(a.overlap(b) == 0 for i, a in enumerate(placed) for b in placed[:i])
    assert all(0 <= b.x <= layout.width and 0 <= b.y <= layout.height for b in placed)


def test_parallel_and_opposite_edges_do_not_lie_on_each_other():
    facts = [Triple("A", "r", "B"), Triple("B", "r", "A"), Triple("A", "s", "B")]
    boxes = {e: Box(e, 1.0, 0.4, column=c) for e, c in columns_of(["A"], facts).items()}
    layout = arrange(boxes, [Edge(fact, Box("r", 0.5, 0.15)) for fact in facts])
    heights = sorted(edge.points[len(edge.points) // 2][1] for edge in layout.edges)
    assert all(high - low > 0.2 for low, high in itertools.pairwise(heights))
