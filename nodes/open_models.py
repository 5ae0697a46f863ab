"""The chat models in use: built once an event loop, their connections closed when that ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nodes.errors import ModelError
from nodes.model_spec import ModelSpec, build_chat_model

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

_Loop = asyncio.AbstractEventLoop
_Key = tuple[ModelSpec, float]


@dataclass
class _Models:
    """The models of one event loop."""

    built: dict[_Key, asyncio.Task[BaseChatModel]] = field(default_factory=dict)
    closer: AsyncGenerator[None] | None = None


_of_loop: dict[_Loop, _Models] = {}


async def chat_model(
    spec: ModelSpec, seconds: float, notify: Callable[[str], None]
) -> BaseChatModel:
    """Return a specification's model, built once an event loop however many ask at once."""
    if spec.kind == "chat":
        return await build_chat_model(spec, seconds, notify)
    built = (await _of_this_loop()).built
    key = (spec, seconds)
    task = built.get(key)
    if task is None or (task.done() and (task.cancelled() or task.exception() is not None)):
        task = built[key] = asyncio.ensure_future(build_chat_model(spec, seconds, notify))
    try:
        # Shielded: one caller's cancellation must not end the building for the others.
        return await asyncio.shield(task)
    except ModelError as error:  # each caller gets its own, to hang its calls on
        raise ModelError(str(error)) from error


def forget(spec: ModelSpec, seconds: float) -> None:
    """Build a specification's model anew when it is next asked for."""
    models = _of_loop.get(asyncio.get_running_loop())
    task = models.built.get((spec, seconds)) if models else None
    if models and task and task.done():
        del models.built[(spec, seconds)]


async def _of_this_loop() -> _Models:
    loop = asyncio.get_running_loop()
    for known in list(_of_loop):
        if known.is_closed():
            _of_loop.pop(known, None)
    models = _of_loop.get(loop)
    if models is None:
        models = _of_loop[loop] = _Models()
        # What ends an event loop (`asyncio.run` and its like) closes its asynchronous generators.
        models.closer = _close_at_end(loop, models)
        await anext(models.closer)
    return models


async def _close_at_end(loop: _Loop, models: _Models) -> AsyncGenerator[None]:
    try:
        yield
    finally:
        _of_loop.pop(loop, None)
        for task in models.built.values():
            if task.done() and not task.cancelled() and task.exception() is None:
                client = getattr(task.result(), "http_async_client", None)
                if client is not None:
                    await client.aclose()
