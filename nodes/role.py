"""What all role nodes do around their own words: ask, account, report, fail in a typed way."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from langgraph.config import get_config, get_stream_writer

from nodes.answers import Reply
from nodes.context import MethodContext
from nodes.errors import ModelError, UnusableAnswerError
from nodes.llm import Prompt, ask
from nodes.usage import Call, live_calls

R = TypeVar("R", bound=Reply)


@dataclass
class Consultation(Generic[R]):
    """A role's reply, or why there is none.

    Attributes:
        value: the reply; None when it could not be read or had.
        fault: why the reply could not be read, after the repair; the workflow may go on.
        failure: why the model could not be had; the workflow cannot go on.
        calls: what was paid.
        seconds: how long it took.
    """

    value: R | None = None
    fault: str | None = None
    failure: ModelError | None = None
    calls: list[Call] = field(default_factory=list)
    seconds: float = 0.0

    def update(self, entry: dict[str, Any]) -> dict[str, Any]:
        """Return the state update that every role node gives, with its trace entry."""
        live = live_calls(self.calls)
        entry = {**entry, "seconds": round(self.seconds, 3), "llm_calls": live}
        if cached := len(self.calls) - live:
            entry["cached_calls"] = cached
        if self.fault:
            entry["fault"] = self.fault
        out: dict[str, Any] = {"calls": self.calls, "trace": [entry]}
        if self.failure:
            entry["fault"] = str(self.failure)
            out["error"] = {"type": type(self.failure).__name__, "message": str(self.failure)}
        return out


async def consult(
    role: str,
    prompt: Prompt,
    kind: type[R],
    settings: MethodContext,
    *,
    sample: int = 0,
    **facts: Any,
) -> Consultation[R]:
    """Ask a role's model; failures come back as values.

    `sample` numbers draws of one prompt that are made at once. `facts` go with the `started` event.
    """
    emit({"event": "started", "role": role, **facts})
    started = time.perf_counter()
    out: Consultation[R] = Consultation()
    try:
        answer = await ask(
            role,
            prompt,
            kind,
            settings,
            step=step_of(),
            sample=sample,
            notify=lambda text: emit({"event": "model", "text": text}),
        )
        out.value, out.calls = answer.value, answer.calls
    except UnusableAnswerError as error:
        out.fault, out.calls = str(error), error.calls
    except ModelError as error:
        out.failure, out.calls = error, error.calls
    out.seconds = time.perf_counter() - started
    if out.fault or out.failure:
        emit({"event": "failed", "role": role, "message": out.fault or str(out.failure)})
    return out


def emit(event: dict[str, Any]) -> None:
    """Send a custom event to whoever streams the run; without a run, do nothing."""
    try:
        writer = get_stream_writer()
    except RuntimeError:
        return
    writer(event)


def step_of() -> int:
    """Return the superstep of the node that runs; 0 outside a graph."""
    try:
        metadata = get_config().get("metadata", {})
    except RuntimeError:
        return 0
    return int(metadata.get("langgraph_step", 0))
