"""Replies kept by prompt, model and parameters, in an SQLite file that runs can share.

The import is heavy; the model door makes it only where a cache is set.
"""

from __future__ import annotations

import asyncio
import json
import threading
import warnings
from pathlib import Path
from typing import Any

from langchain_core.outputs import Generation
from sqlalchemy import URL, NullPool, create_engine, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from nodes.errors import ModelError

with warnings.catch_warnings():  # it says that it is being split up
    warnings.simplefilter("ignore", DeprecationWarning)
    from langchain_community.cache import SQLAlchemyCache

Key = tuple[str, str]
BUSY_SECONDS = 30.0

_open: dict[str, _ReplyCache] = {}
_opening = threading.Lock()


class _ReplyCache(SQLAlchemyCache):  # type: ignore[misc]
    """`SQLAlchemyCache` whose generations' texts are records; they are read as plain JSON."""

    def lookup(self, prompt: str, llm_string: str) -> list[Generation] | None:
        wanted = (
            select(self.cache_schema.response)
            .where(self.cache_schema.prompt == prompt, self.cache_schema.llm == llm_string)
            .order_by(self.cache_schema.idx)
        )
        with Session(self.engine) as session:
            row = session.execute(wanted).first()
        try:
            return [Generation(text=json.loads(row[0])["kwargs"]["text"])] if row else None
        except (ValueError, KeyError, TypeError):
            return None


async def cached_reply(path: str, key: Key) -> dict[str, Any] | None:
    """Return the record kept under a key; one that cannot be read back counts as absent."""
    found = await asyncio.to_thread(_lookup, path, key)
    try:
        record = json.loads(found[0].text) if found else None
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


async def keep_reply(path: str, key: Key, record: dict[str, Any]) -> None:
    """Keep a record under a key, in place of an earlier one."""
    await asyncio.to_thread(_update, path, key, [Generation(text=json.dumps(record))])


def _lookup(path: str, key: Key) -> list[Generation] | None:
    try:
        return _cache(path).lookup(*key)
    except Exception as error:
        raise _unusable(path, error) from error


def _update(path: str, key: Key, value: list[Generation]) -> None:
    try:
        _cache(path).update(*key, value)
    except IntegrityError:
        return  # somebody else has just kept a reply to the same question
    except Exception as error:
        raise _unusable(path, error) from error


def _cache(path: str) -> _ReplyCache:
    with _opening:
        if path not in _open or not Path(path).expanduser().exists():
            url = URL.create("sqlite", database=str(Path(path).expanduser()))
            # No pool: connections are closed after use, in whichever thread that was.
            engine = create_engine(url, poolclass=NullPool, connect_args={"timeout": BUSY_SECONDS})
            _open[path] = _ReplyCache(engine)
        return _open[path]


def _unusable(path: str, error: Exception) -> ModelError:
    reason = str(getattr(error, "orig", None) or error).partition("\n")[0]
    return ModelError(f"response_cache '{path}' cannot be used: {reason}")
