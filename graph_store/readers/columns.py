"""Which column is what: headers of tables and keys of JSON lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

SYNONYMS: Mapping[str, tuple[str, ...]] = {
    "head": ("head", "subject", "subj", "h", "s", "head_entity", "start", "from"),
    "relation": ("relation", "predicate", "rel", "r", "p", "property", "edge", "label"),
    "tail": ("tail", "object", "obj", "t", "o", "tail_entity", "end", "to"),
    "confidence": ("confidence", "conf", "c", "w", "weight", "score", "probability", "prob"),
    "head_id": ("head_id", "subject_id"),
    "tail_id": ("tail_id", "object_id"),
    "head_name": ("head_name", "subject_name", "head_label"),
    "tail_name": ("tail_name", "object_name", "tail_label"),
    "provenance": ("provenance", "sources", "origin", "evidence"),
    "validity": ("validity", "valid", "time", "period"),
}
REQUIRED = ("head", "relation", "tail")


def column_roles(names: Sequence[str]) -> dict[str, int]:
    """Return role → column position for the names that are known, first match first.

    `source` and `target` are head and tail when both are there (as in edge lists); `source`
    alone is the provenance.
    """
    lowered = [name.strip().strip('"').strip().casefold().replace(" ", "_") for name in names]
    lowered = [name.removeprefix("\ufeff") for name in lowered]
    roles: dict[str, int] = {}
    for role, synonyms in SYNONYMS.items():
        for synonym in synonyms:
            if synonym in lowered:
                roles[role] = lowered.index(synonym)
                break
    if "source" in lowered and "target" in lowered:
        roles.setdefault("head", lowered.index("source"))
        roles.setdefault("tail", lowered.index("target"))
    elif "source" in lowered:
        roles.setdefault("provenance", lowered.index("source"))
    return roles


def is_header(names: Sequence[str]) -> bool:
    """Return whether a first row names a head, a relation and a tail column.

    A row with a number in it is a fact, also when its entities are called `h` and `t`.
    """
    roles = column_roles(names)
    named = all(role in roles or f"{role}_id" in roles for role in REQUIRED)
    return named and ("confidence" in roles or not any(_is_number(name) for name in names))


def _is_number(text: str) -> bool:
    try:
        float(text.strip().strip('"'))
    except ValueError:
        return False
    return True
