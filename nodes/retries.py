"""Waiting and trying again when a model's server is busy, slow or gone for a moment."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import tenacity

from nodes.errors import ModelError

T = TypeVar("T")

BUSY = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0


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
        sleep=asyncio.sleep,
        reraise=True,
    )
    try:
        async for attempt in retrying:
            with attempt:
                return await call()
    except (asyncio.CancelledError, KeyboardInterrupt):
        raise
    except Exception as error:
        tried = f" after {attempts} attempts" if attempts > 1 and _passing(error) else ""
        raise ModelError(f"{what}: {_reason(error)}{tried}{_mend(error)}") from error
    raise AssertionError("unreachable")


_backoff = tenacity.wait_exponential_jitter(multiplier=FIRST_WAIT, max=LONGEST_WAIT, jitter=0.5)


def _wait(state: tenacity.RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    try:
        asked = float(headers.get("retry-after", ""))
    except ValueError:
        return float(_backoff(state))
    return max(0.0, min(asked, LONGEST_WAIT))


def _status(error: BaseException | None) -> int | None:
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else None


def _passing(error: BaseException) -> bool:
    import httpx
    import openai

    status = _status(error)
    if status is not None:
        code = getattr(error, "code", None)
        return status in BUSY and code != "insufficient_quota"
    lost = (TimeoutError, ConnectionError, httpx.TransportError, openai.APIConnectionError)
    return isinstance(error, lost)


def _reason(error: BaseException | None) -> str:
    import httpx
    import openai

    if isinstance(error, openai.APITimeoutError | httpx.TimeoutException | TimeoutError):
        return "no answer in time"
    if isinstance(error, openai.APIConnectionError | httpx.TransportError | ConnectionError):
        return "cannot be reached"
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 300 else f"{text[:299]}…"


def _mend(error: BaseException) -> str:
    status = _status(error)
    if status in (401, 403):
        return " (check OPENAI_API_KEY or GRAPHMOOT_API_KEY)"
    if status == 404:
        return " (check the model's name and the URL, which usually ends in /v1)"
    if _status(error) is None and _reason(error) == "cannot be reached":
        return " (is the server running, and the URL right?)"
    return ""
