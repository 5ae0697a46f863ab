"""Retrieval as LangChain tools: the same for our workflows, other agents and MCP clients."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import threading
from collections import OrderedDict
from typing import Any, Literal

from langchain_core.tools import tool

from graph_store import EvidenceSearcher, shared_store
from graph_store.embedding import load_embedder, stop_embedding

_SEARCHERS_KEPT = 32
_searchers: OrderedDict[tuple[Any, ...], EvidenceSearcher] = OrderedDict()
_lock = threading.Lock()
_ahead: set[threading.Thread] = set()


@tool
async def find_evidence(
    question: str,
    topic_entities: list[str],
    graph: str = "sample",
    k: int = 3,
    width: int = 3,
    max_distance: float = 3.0,
    alpha: float = 1.0,
    direction: Literal["both", "out"] = "both",
    ignore_confidence: bool = False,
    similarity: str = "all-MiniLM-L6-v2",
    max_candidates: int = 4_000,
    max_texts: int = 20_000,
) -> dict[str, Any]:
    """Search an uncertain knowledge graph for facts that bear on a question.

    Starts at the topic entities (ids) and walks best first by semantic relevance and confidence
    (Debate-on-Graph). Returns topic_entities, evidence (facts with confidences), paths and stats.
    A higher k keeps more paths to each entity, so more facts.
    """

    def search() -> dict[str, Any]:
        searcher = _searcher(
            graph,
            question,
            width=width,
            max_distance=max_distance,
            alpha=alpha,
            direction=direction,
            ignore_confidence=ignore_confidence,
            similarity=similarity,
            max_candidates=max_candidates,
            max_texts=max_texts,
        )
        return searcher.evidence(topic_entities, k).to_dict()

    return await asyncio.to_thread(search)


def search_ahead(arguments: dict[str, Any]) -> None:
    """Run a search in the background, so that asking for the same later finds it ready.

    Takes the arguments of `find_evidence`. While debaters speak the processor is idle, at least
    where the model is another machine's: a higher K then costs milliseconds when it is wanted.
    """
    settings = {key: value for key, value in arguments.items() if key not in _OF_THE_CALL}
    call = {key: arguments[key] for key in _OF_THE_CALL}

    def search() -> None:
        # Whatever is wrong here will be met, and told, by the search itself.
        with contextlib.suppress(Exception):
            searcher = _searcher(call["graph"], call["question"], **settings)
            searcher.evidence(call["topic_entities"], call["k"])
        with _lock:
            _ahead.discard(threading.current_thread())

    thread = threading.Thread(target=search, name="search-ahead", daemon=True)
    with _lock:
        _ahead.add(thread)
    thread.start()


@atexit.register
def _end_searches() -> None:
    """Break searches off before the interpreter goes: inside native code they would abort it."""
    with _lock:
        threads = list(_ahead)
    if threads:
        stop_embedding()
    for thread in threads:
        thread.join()


_OF_THE_CALL = ("graph", "question", "topic_entities", "k")


def _searcher(graph: str, question: str, *, similarity: str, **settings: Any) -> EvidenceSearcher:
    """Return the searcher of a question, kept so that a higher K embeds nothing again."""
    store = shared_store(graph)
    key = (id(store), question, similarity, *settings.values())
    with _lock:
        found = _searchers.get(key)
        if found is not None:
            _searchers.move_to_end(key)
            return found
    made = EvidenceSearcher(store, question, embedder=load_embedder(similarity), **settings)
    with _lock:
        _searchers[key] = made
        while len(_searchers) > _SEARCHERS_KEPT:
            _searchers.popitem(last=False)
    return made
