"""Topic entities of a data set's questions, and how many of them the graph has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from graph_store import UnknownEntityError
from graph_store.linking import find_mentions, resolve_entity
from graph_store.protocol import GraphStore
from nodes.link_topics import MEANINGS
from nodes.question_file import GoldQuestion

How = Literal["given", "mention", "question", "none"]


@dataclass(frozen=True)
class Linked:
    """A question's topic entities in a graph.

    Attributes:
        topics: entity ids; empty when the method is to find them in the question.
        how: `given` the data set names entities of the graph; `mention` its words were linked;
            `question` the question itself names entities; `none` nothing was found.
    """

    topics: tuple[str, ...]
    how: How


def link_question(store: GraphStore, question: GoldQuestion) -> Linked:
    """Link what a data set names as a question's topics; else look into the question.

    A topic that the graph does not have is left out rather than failing the question.
    """
    topics: dict[str, None] = {}
    exact = True
    for text in question.topic_entities:
        try:
            meanings = resolve_entity(store, text)
        except UnknownEntityError:
            continue
        exact = exact and meanings[0].entity == text.strip()
        topics.update(dict.fromkeys(candidate.entity for candidate in meanings[:MEANINGS]))
    if topics:
        return Linked(tuple(topics), "given" if exact else "mention")
    found = find_mentions(store, question.question, limit=1)
    return Linked((), "question" if found else "none")


def coverage(linked: Iterable[Linked]) -> dict[str, int]:
    """Return how many questions were linked in which way; every way is there."""
    counts = Counter(one.how for one in linked)
    return {how: counts[how] for how in ("given", "mention", "question", "none")}
