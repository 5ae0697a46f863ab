"""Running one question through a method, watched: shared by `ask` and `demo`."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from cli import output
from cli.live_view import LiveView
from cli.options import FAILED, INTERRUPTED, STATUS, CommandError
from cli.results import print_result, spent

if TYPE_CHECKING:
    from workflows.registry import Method


def split_pairs(texts: Sequence[str], option: str, form: str) -> dict[str, str]:
    """Return the parts of `left=right` arguments.

    Raises:
        ValueError: one has no `=`, or nothing before it, or the left side comes twice.
    """
    pairs: dict[str, str] = {}
    for text in texts:
        left, equals, right = text.partition("=")
        left = left.strip()
        if not equals or not left:
            raise ValueError(f"{option} '{text}' is not of the form {form}")
        if left in pairs:
            raise ValueError(f"{option} {left} is given twice")
        pairs[left] = right.strip() if option == "--choice" else right
    return pairs


def run(
    method: Method, question: Mapping[str, Any], context: Any, thread: str | None = None
) -> dict[str, Any]:
    """Run a question with the live view and return the result document.

    Raises:
        CommandError: the run was interrupted, or gave no result.
    """
    latest: dict[str, Any] = {}
    started = time.monotonic()
    config = {"configurable": {"thread_id": thread or uuid.uuid4().hex}}
    try:
        with LiveView() as view, _traced_or_not():
            asyncio.run(_stream(method, question, context, config, view, latest))
    except KeyboardInterrupt:
        seconds = time.monotonic() - started
        raise CommandError(
            f"interrupted after {seconds:.0f} s; {spent(latest.get('calls') or [])}", INTERRUPTED
        ) from None
    result = latest.get("result")
    if not isinstance(result, dict):
        raise CommandError(f"{method.name} ended without a result", FAILED)
    return result


def _traced_or_not() -> AbstractContextManager[None]:
    """Trace nothing where LangSmith has no key, though tracing is switched on."""
    from evals.tracing import tracing_allowed, tracing_off

    return nullcontext() if tracing_allowed() else tracing_off()


async def _stream(
    method: Method,
    question: Mapping[str, Any],
    context: Any,
    config: dict[str, Any],
    view: LiveView,
    latest: dict[str, Any],
) -> None:
    chunks = method.graph.astream(
        dict(question), config=config, context=context, stream_mode=["custom", "values"]
    )
    try:
        async for mode, chunk in chunks:
            if mode == "values":
                latest.clear()
                latest.update(chunk)
            elif isinstance(chunk, Mapping):
                view.on_event(chunk)
    except asyncio.CancelledError:
        view.say("stopping; what runs in the background is let finish …")
        raise


def finish(result: Mapping[str, Any], *, as_json: bool) -> int:
    """Print a result and return its exit status."""
    status = STATUS.get(str(result.get("status")), FAILED)
    if as_json:
        output.print_json(result)
    else:
        print_result(result)
    if error := result.get("error"):
        output.note(f"error: {' '.join(str(error.get('message')).split())}")
    return status
