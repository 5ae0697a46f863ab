"""Facts and paths in words: what is embedded, matched and shown to a model."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graph_store.model import Triple

VERBALISER_VERSION = 1
"""Raised whenever the words of a fact change, so that kept embeddings are not mixed."""

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SEPARATORS = re.compile(r"[_./]+")


def entity_words(name: str) -> str:
    """Return an entity's name with `_` as blanks; nothing else is touched."""
    return name.replace("_", " ")


@lru_cache(maxsize=65536)
def relation_words(relation: str) -> str:
    """Return a relation id in words.

    `_`, `.`, `/` and camel case split and the words are lower-cased; an id that starts with `/`
    keeps only its last part (`/r/UsedFor` gives `used for`). `competeswith` stays one word.
    """
    last = relation.rstrip("/").rsplit("/", 1)[-1] if relation.startswith("/") else relation
    words = _CAMEL.sub(" ", _SEPARATORS.sub(" ", last)).split()
    return " ".join(words).lower() or relation


def fact_words(triple: Triple) -> str:
    """Return one fact as `{head} {relation} {tail}` in its stored orientation."""
    relation = triple.relation_label or relation_words(triple.relation)
    return f"{entity_words(triple.head_name)} {relation} {entity_words(triple.tail_name)}"


def path_words(facts: Iterable[Triple]) -> str:
    """Return a path's facts in walking order, joined with `, `."""
    return ", ".join(fact.text for fact in facts)
