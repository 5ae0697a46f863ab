"""JSON lines: one object (or array of 3 to 5) a line, with the keys of a table's header."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from graph_store.errors import RowError, shorten
from graph_store.readers.columns import REQUIRED, column_roles
from graph_store.readers.rows import RawFact


def read_jsonl(lines: Iterable[str]) -> Iterator[RawFact | tuple[int, RowError]]:
    """Yield the facts of JSON lines, or a line number with what is wrong there."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield _fact(number, json.loads(line.removeprefix("\ufeff")))
        except (ValueError, RecursionError) as error:  # RowError is a ValueError
            yield (number, error if isinstance(error, RowError) else _malformed(line, error))


def _malformed(line: str, error: Exception) -> RowError:
    reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
    shown = line.strip()
    hint = "; each line is one whole object or array" if shown in ("[", "{", "]", "}") else ""
    return RowError("malformed JSON", f"not JSON ({reason}): {shorten(shown, 60)}{hint}")


def _fact(line: int, value: Any) -> RawFact:
    if isinstance(value, list) and value and isinstance(value[0], dict):
        raise RowError("not an object", "an array of objects; write one object a line")
    if isinstance(value, list) and 3 <= len(value) <= 5:
        head, relation, tail, confidence, provenance = (*value, None, None)[:5]
        return RawFact(line, head, relation, tail, confidence, provenance=provenance)
    if not isinstance(value, dict):
        raise RowError("not an object", "neither an object nor an array of 3 to 5")
    names = list(value)
    roles = {role: names[position] for role, position in column_roles(names).items()}
    missing = [role for role in REQUIRED if role not in roles and f"{role}_id" not in roles]
    if missing:
        raise RowError(f"{missing[0]} missing", f"no key '{missing[0]}'")

    def get(role: str) -> Any:
        return value[roles[role]] if role in roles else None

    head_id, tail_id = get("head_id"), get("tail_id")
    return RawFact(
        line=line,
        head=get("head") if head_id is None else head_id,
        relation=get("relation"),
        tail=get("tail") if tail_id is None else tail_id,
        confidence=get("confidence"),
        head_name=get("head_name") if head_id is None or get("head") is None else get("head"),
        tail_name=get("tail_name") if tail_id is None or get("tail") is None else get("tail"),
        provenance=get("provenance"),
        validity=get("validity"),
    )
