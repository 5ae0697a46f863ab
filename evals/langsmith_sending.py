"""What an upload to LangSmith needs beside the content: client, ids, times, what has been sent."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evals.records import ResultLine
from evals.tracing import has_key
from graph_store.whole_file import write_whole

if TYPE_CHECKING:
    from langsmith import Client

SENT = "langsmith.json"
WINDOW = timedelta(hours=20)
"""Runs are given times no longer ago than this; LangSmith drops them after 24 hours."""

ATTEMPTS = 6
"""For feedback; a run is there some seconds after it was sent."""


class MissingKeyError(ValueError):
    """There is no key for LangSmith."""


class UploadError(Exception):
    """LangSmith refuses something, or cannot be reached; what was sent before stays."""


def make_client(failures: list[Exception]) -> Client:
    """Return a client that sends at once and in full.

    Args:
        failures: gets the errors of runs, which the client does not raise.

    Raises:
        MissingKeyError: the environment has no key.
    """
    if not has_key():
        raise MissingKeyError(
            "LANGSMITH_API_KEY is not set; make a key in LangSmith's settings and set it to upload"
        )
    from langsmith import Client

    return Client(
        auto_batch_tracing=False,
        tracing_sampling_rate=1.0,  # LANGSMITH_TRACING_SAMPLING_RATE would leave results out
        omit_traced_runtime_info=True,  # of the uploading machine, not of the one that answered
        tracing_error_callback=failures.append,
        disable_prompt_cache=True,
    )


@contextlib.contextmanager
def told_errors() -> Iterator[None]:
    """Turn LangSmith's errors into `UploadError`s of one line; its own log stays silent."""
    import requests
    from langsmith.utils import LangSmithAuthError, LangSmithError

    log = logging.getLogger("langsmith")
    level = log.level
    log.setLevel(logging.CRITICAL + 1)
    try:
        yield
    except LangSmithAuthError as error:
        raise UploadError("LangSmith refuses the key; is LANGSMITH_API_KEY right?") from error
    except (LangSmithError, requests.RequestException) as error:
        lines = str(error).strip().splitlines()
        told = lines[0][:300] if lines else type(error).__name__
        raise UploadError(f"LangSmith did not take the run: {told}; upload again to go on") from (
            error
        )
    finally:
        log.setLevel(level)


class Clock:
    """The times that results are sent with.

    Attributes:
        moved: how far all of them are moved forward, so that none is older than `WINDOW`; zero
            when none is. In a run that took longer than that, the first ones are moved further.
    """

    def __init__(self, lines: Sequence[ResultLine], now: datetime) -> None:
        self._earliest = now - WINDOW
        spans = [_span(line) for line in lines]
        is_old = any(start < self._earliest for start, _ in spans)
        self.moved = now - max(end for _, end in spans) if is_old else timedelta()

    def times(self, line: ResultLine) -> tuple[datetime, datetime]:
        """Return when a result starts and ends, in UTC."""
        start, end = _span(line)
        moved = max(start + self.moved, self._earliest)
        return moved, moved + (end - start)


def _span(line: ResultLine) -> tuple[datetime, datetime]:
    start = datetime.fromisoformat(line["started"]).astimezone(UTC)
    return start, start + timedelta(seconds=line["seconds"])


def run_uuid(start: datetime, project: uuid.UUID, line: ResultLine) -> uuid.UUID:
    """Return a result's run id: a UUID 7 of its time, the rest a hash of what it is a result of.

    LangSmith asks for version 7, whose ids sort by time.
    """
    name = json.dumps([str(project), line["question_id"], line["started"]])
    tail = hashlib.sha256(name.encode("utf-8")).digest()[:10]
    head = int(start.timestamp() * 1000).to_bytes(6, "big")
    number = int.from_bytes(head + tail, "big")
    number = number & ~(0xF << 76) | 7 << 76
    return uuid.UUID(int=number & ~(0b11 << 62) | 0b10 << 62)


@dataclass(frozen=True)
class Feedback:
    """One score, or one value in words, on a run that was sent."""

    run_id: uuid.UUID
    start: datetime
    key: str
    score: float | None = None
    value: str | None = None
    comment: str = ""

    def post(self, client: Client, project: uuid.UUID) -> None:
        """Send it; feedback that is there already is left as it is."""
        from langsmith.utils import LangSmithConflictError

        with contextlib.suppress(LangSmithConflictError):
            client.create_feedback(
                self.run_id,
                self.key,
                score=self.score,
                value=self.value,
                comment=self.comment or None,
                trace_id=self.run_id,
                session_id=project,
                start_time=self.start,
                feedback_id=uuid.uuid5(self.run_id, self.key),
                stop_after_attempt=ATTEMPTS,
            )


class SentResults:
    """Which results of a run LangSmith has, kept in the run's folder by experiment.

    Raises:
        UploadError: the file is there and cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / SENT
        self._experiments: dict[str, dict[str, Any]] = {}
        if self._path.exists():
            try:
                kept = json.loads(self._path.read_text(encoding="utf-8"))
                self._experiments = dict(kept["experiments"])
            except (ValueError, KeyError, TypeError) as error:
                raise UploadError(
                    f"{self._path}: cannot be read ({error}); delete it to send everything again"
                ) from error

    def has(self, project: uuid.UUID, line: ResultLine) -> bool:
        """Return whether a result was sent with all its feedback."""
        known = self._experiments.get(str(project), {}).get("started", {})
        return bool(known.get(line["question_id"]) == line["started"])

    def add(self, project: uuid.UUID, name: str, lines: Sequence[ResultLine]) -> None:
        """Keep on disk that results have been sent."""
        kept = self._experiments.setdefault(str(project), {"name": name, "started": {}})
        kept["started"].update({line["question_id"]: line["started"] for line in lines})
        text = json.dumps({"format": 1, "experiments": self._experiments}, ensure_ascii=False)
        write_whole(self._path, f"{text}\n")
