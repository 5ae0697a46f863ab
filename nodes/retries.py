"""Waiting and trying again when a model's server is busy, slow or gone for a moment."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

import tenacity

from nodes.errors import ModelError, RequestRefusedError

T = TypeVar("T")

BUSY = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
REFUSED = frozenset({400, 413, 422})
"""What concerns one request and not the model."""
FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0

_sleep = asyncio.sleep


class NoCompletionError(Exception):
    """A server answered 200 with something that is not a chat completion.

    Attributes:
        passing: whether asking again may help.
    """

    def __init__(self, message: str, *, passing: bool) -> None:
        super().__init__(message)
        self.passing = passing


async def with_retries(
    call: Callable[[], Awaitable[T]],
    *,
    attempts: int,
    what: str,
    notify: Callable[[str], None] = lambda _: None,
) -> T:
    """Await a model call, again after passing faults, with exponential waits and jitter.

    A server's `Retry-After` is honoured up to half a minute.

    Args:
        call: makes the call; awaited once an attempt.
        attempts: how many times at most.
        what: names the model and its server in messages.
        notify: told of every wait.

    Raises:
        RequestRefusedError: the server does not take this request (400, 413, 422).
        ModelError: the fault is not a passing one, or it stayed.
    """

    def tell(state: tenacity.RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        wait = state.next_action.sleep if state.next_action else 0.0
        notify(f"{what}: {_reason(error)}; trying again in {wait:.1f} s")

    retrying = tenacity.AsyncRetrying(
        stop=tenacity.stop_after_attempt(attempts),
        wait=_wait,
        retry=tenacity.retry_if_exception(_passing),
        before_sleep=tell,
        sleep=_sleep,
        reraise=True,
    )
    try:
        async for attempt in retrying:
            with attempt:
                return await call()
    except ModelError:
        raise
    except Exception as error:
        tried = f" after {attempts} attempts" if attempts > 1 and _passing(error) else ""
        kind = RequestRefusedError if _status(error) in REFUSED else ModelError
        raise kind(f"{what}: {_reason(error)}{tried}{_mend(error)}") from error
    raise AssertionError("unreachable")


def refused_parameter(error: BaseException | None, sent: Collection[str]) -> str | None:
    """Return which of the parameters sent a server says that it does not take, if that is why."""
    if error is None or _status(error) not in (400, 422, 501):
        return None
    named = getattr(error, "param", None)
    if named in sent:
        return str(named)
    text = _said(error).casefold()
    return next((name for name in sent if any(word in text for word in _SIGNS[name])), None)


_SIGNS: Mapping[str, tuple[str, ...]] = {
    "response_format": (
        "response_format", "json_schema", "json schema", "structured output", "guided", "grammar",
    ),
    "max_tokens": ("max_completion_tokens",),
    "temperature": ("temperature",),
    "seed": ("'seed'", '"seed"', "`seed`", "parameter: seed"),
}  # fmt: skip


def is_lost(error: BaseException) -> bool:
    """Tell whether a server could not be reached, or hung up."""
    import httpx
    import openai

    lost = (ConnectionError, httpx.TransportError, openai.APIConnectionError)
    return isinstance(error, lost) and not _is_late(error)


def _is_late(error: BaseException | None) -> bool:
    import httpx
    import openai

    return isinstance(error, openai.APITimeoutError | httpx.TimeoutException | TimeoutError)


_backoff = tenacity.wait_exponential(FIRST_WAIT, LONGEST_WAIT) + tenacity.wait_random(0, 0.5)


def _wait(state: tenacity.RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    asked = _seconds(headers.get("retry-after", ""))
    return float(_backoff(state)) if asked is None else max(0.0, min(asked, LONGEST_WAIT))


def _seconds(retry_after: str) -> float | None:
    """Read a `Retry-After`, in seconds or as a date; None when it is neither."""
    if re.fullmatch(r"\s*[0-9]{1,9}(\.[0-9]*)?\s*", retry_after):
        return float(retry_after)
    try:
        then = parsedate_to_datetime(retry_after)
    except (ValueError, TypeError):
        return None
    return (then.replace(tzinfo=then.tzinfo or UTC) - datetime.now(UTC)).total_seconds()


def _status(error: BaseException | None) -> int | None:
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else None


def _code(error: BaseException) -> tuple[Any, Any]:
    return getattr(error, "code", None), getattr(error, "type", None)


def _passing(error: BaseException) -> bool:
    if isinstance(error, NoCompletionError):
        return error.passing
    status = _status(error)
    if status is not None:
        return status in BUSY and "insufficient_quota" not in _code(error)
    return _is_late(error) or is_lost(error)


def _reason(error: BaseException | None) -> str:
    if error is None:
        return "no reason given"
    if _is_late(error):
        return "no answer in time"
    if is_lost(error):
        return "cannot be reached"
    status = _status(error)
    text = " ".join(_said(error).split()) or type(error).__name__
    if re.search(r"<(?:!doctype|html|head|body)\b", text, re.I):
        title = re.search(r"<(title|h1)[^>]*>\s*(.{1,100}?)\s*</\1>", text, re.I)
        text = f"an HTML page{f' ({title.group(2)})' if title else ''}, perhaps from a proxy"
    text = without_keys(text if len(text) <= 300 else f"{text[:299]}…")
    return text if status is None else f"HTTP {status}: {text}"


def _said(error: BaseException) -> str:
    """Return the server's own words, else the exception's."""
    body = getattr(error, "body", None)
    if isinstance(body, dict):
        words = body.get("message") or body.get("detail") or body.get("error")
        if words:
            return str(words)
    return body if isinstance(body, str) and body else str(error)


def without_keys(text: str) -> str:
    """Return a message without the API keys that a server may have echoed in it."""
    for name in ("OPENAI_API_KEY", "GRAPHMOOT_API_KEY"):
        key = os.environ.get(name, "").strip()
        if len(key) >= 4:
            text = text.replace(key, "…")
    return re.sub(r"\bsk-[\w*-]{4,}|(?<=Bearer )\S+", "…", text)


def _mend(error: BaseException) -> str:
    status = _status(error)
    if "insufficient_quota" in _code(error):
        return " (the account has no credit left)"
    if status in (401, 403):
        return " (check OPENAI_API_KEY or GRAPHMOOT_API_KEY)"
    if status == 404 or (isinstance(error, NoCompletionError) and not error.passing):
        return " (check the model's name and the URL, which usually ends in /v1)"
    if status in (400, 413) and re.search(r"context|too long|too many tokens", _said(error), re.I):
        return " (lower max_tokens or the evidence in the prompt, or take a larger context)"
    if _is_late(error):
        return " (raise timeout_seconds, or take a faster model)"
    if is_lost(error):
        return " (is the server running, and the URL right?)"
    return ""
