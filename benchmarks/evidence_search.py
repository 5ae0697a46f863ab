"""Evidence search against the slow reference, on CN15k and CommonsenseQA, in one run.

Run from the project's root: python -m benchmarks.evidence_search STORE QUESTIONS.jsonl[.gz] [N]

Each question starts with empty caches (the model is loaded). Printed: median milliseconds and texts
at K = 1, what raising K to 3 and 5 costs afterwards, and the ratio to the reference, which encodes
one path at a time with the same model and whose evidence must be identical.
"""

from __future__ import annotations

import gzip
import json
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from graph_store import EvidenceSearcher, GraphStore, open_store
from graph_store.embedding import CachedEmbedder
from graph_store.minilm_onnx import MiniLM
from tests.reference_evidence_search import reference_evidence


def main(store_file: str, questions: str, count: int) -> None:
    store = open_store(store_file)
    triples = list(store.facts())
    model = MiniLM()
    rows = []
    for question, topic in _questions(Path(questions), store, count):
        searcher_model = CachedEmbedder(model)
        started = time.perf_counter()
        searcher = EvidenceSearcher(store, question, embedder=searcher_model)
        found = searcher.evidence([topic], 1)
        fast = time.perf_counter() - started
        raised = []
        for k in (3, 5):
            started = time.perf_counter()
            grown = searcher.evidence([topic], k)
            raised.append((time.perf_counter() - started, grown.stats.texts_embedded))
        calls = 0

        def encode(text: str) -> object:
            nonlocal calls
            calls += 1
            return model.encode([text])[0]

        started = time.perf_counter()
        reference = reference_evidence(
            triples, {}, question, [topic], encode, k=1, width=3, max_distance=3.0, alpha=1.0,
            direction="both", ignore_confidence=False,
        )  # fmt: skip
        slow = time.perf_counter() - started
        same = [(f.key, f.confidence) for f in found.facts] == reference.facts
        rows.append((fast, found.stats.texts_embedded, raised, slow, calls, same, slow / fast))
        print(
            f"degree {store.degree(topic, 10**6):4}  {fast * 1e3:7.0f} ms {rows[-1][1]:5} texts   "
            f"reference {slow * 1e3:7.0f} ms {calls:5} texts   ratio {slow / fast:5.1f}   "
            f"K=3 +{raised[0][0] * 1e3:.0f} ms +{raised[0][1]}  K=5 +{raised[1][0] * 1e3:.0f} ms "
            f"+{raised[1][1]}   {'identical' if same else 'DIFFERENT'}",
            flush=True,
        )
    median = statistics.median
    ours = f"{median(r[0] for r in rows) * 1e3:.0f} ms, {median(r[1] for r in rows):.0f} texts"
    theirs = f"{median(r[3] for r in rows) * 1e3:.0f} ms, {median(r[4] for r in rows):.0f} texts"
    print(
        f"median: {ours}; reference {theirs}; ratio {median(r[6] for r in rows):.1f}; "
        f"K=3 +{median(r[2][0][0] for r in rows) * 1e3:.1f} ms, "
        f"K=5 +{median(r[2][1][0] for r in rows) * 1e3:.1f} ms; "
        f"identical {sum(r[5] for r in rows)} of {len(rows)}"
    )


def _questions(file: Path, store: GraphStore, count: int) -> Iterator[tuple[str, str]]:
    data = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    for line in data.decode().splitlines():
        row = json.loads(line)
        best = store.link(row["question_concept"], top=1)
        if best and best[0].score >= 0.9:
            yield row["question"], best[0].entity
            count -= 1
        if count == 0:
            return


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 20)
