"""The only door to a language model: structured questions, repair, retries, cache, accounting."""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from nodes.answers import Reply, read_reply
from nodes.errors import ModelError, UnusableAnswerError
from nodes.model_call import Request, Said, ask_model, sendable
from nodes.model_spec import parse_spec
from nodes.usage import Call
from prompts.shared import REPAIR

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

    from nodes.context import MethodContext

R = TypeVar("R", bound=Reply)


@dataclass(frozen=True)
class Prompt:
    """What a model is asked: a system text all roles share, then parts, the shared ones first."""

    system: str
    parts: Sequence[str]

    @property
    def user(self) -> str:
        """The user message: the parts, a blank line between them."""
        return "\n\n".join(part for part in self.parts if part)


@dataclass
class Answer(Generic[R]):
    """A usable reply with what it cost."""

    value: R
    calls: list[Call] = field(default_factory=list)


async def ask(
    role: str,
    prompt: Prompt,
    kind: type[R],
    settings: MethodContext,
    *,
    step: int = 0,
    sample: int = 0,
    notify: Callable[[str], None] = lambda _: None,
) -> Answer[R]:
    """Ask the model of a role for a structured reply.

    A reply that cannot be read is asked for once more, with the fault named. Waits and retries on
    429, 5xx, timeouts and lost connections.

    Args:
        role: names the role in the accounting and picks its model and sampling settings.
        prompt: the messages.
        kind: the form of the reply; its JSON schema goes to the server, which may enforce it.
        settings: the run's settings.
        step: the graph's superstep, for counting sequential steps.
        sample: number of this draw among several of one prompt: each has a seed and a place in
            the response cache of its own.
        notify: told what takes long (the embedded model's assembly and start).

    Raises:
        UnusableAnswerError: the reply is not of the form, also after the repair.
        ModelError: the model cannot be had or does not answer.
    """
    from langchain_core.messages import HumanMessage, SystemMessage

    temperature, max_tokens, seed = settings.sampling_of(role)
    seed = _seed_of(seed, sample)
    spec = parse_spec(settings.model_of(role))
    schema = json_schema_of(kind)
    request = Request(role, spec, temperature, max_tokens, seed, schema, sample)
    messages: list[BaseMessage] = [
        SystemMessage(sendable(prompt.system)),
        HumanMessage(sendable(prompt.user)),
    ]
    key = request.cache_key(messages)
    if settings.response_cache is None:
        return await _asked(request, messages, key, kind, settings, step, notify)
    async with _flight(settings.response_cache, key):
        kept = await _kept(request, key, kind, settings.response_cache, step)
        if kept is not None:
            return kept
        return await _asked(request, messages, key, kind, settings, step, notify)


_flights: weakref.WeakValueDictionary[Any, asyncio.Lock] = weakref.WeakValueDictionary()


def _flight(cache: str, key: tuple[str, str]) -> asyncio.Lock:
    """Return the lock of a question: who asks the same meanwhile waits for the kept reply."""
    place = asyncio.get_running_loop(), cache, key
    return _flights.setdefault(place, asyncio.Lock())


async def _asked(
    request: Request,
    messages: list[BaseMessage],
    key: tuple[str, str],
    kind: type[R],
    settings: MethodContext,
    step: int,
    notify: Callable[[str], None],
) -> Answer[R]:
    """Ask the server, and once more when the reply cannot be read."""
    from langchain_core.messages import AIMessage, HumanMessage

    role = request.role
    calls: list[Call] = []
    text, fault = "", ""
    for repair in (False, True):
        if repair:
            messages += [
                AIMessage(text[:1000] or "(empty)"),
                HumanMessage(REPAIR.format(fault=fault, form=request.form)),
            ]
        started = time.perf_counter()
        try:
            said = await ask_model(request, messages, settings, notify)
        except ModelError as error:
            error.calls = calls
            raise
        seconds = time.perf_counter() - started
        said = replace(said, seconds=round(seconds, 3))
        calls.append(_account(request, said, seconds, step=step, repair=repair))
        text = said.text
        try:
            value = read_reply(text, kind, truncated=said.truncated)
        except UnusableAnswerError as error:
            fault = str(error)
            continue
        await _keep(said, key, settings.response_cache, calls)
        return Answer(value, calls)
    raise UnusableAnswerError(f"the {role}'s reply cannot be read: {fault}", text, calls)


def _seed_of(seed: int | None, sample: int) -> int | None:
    """Return a sample's seed: runs with neighbouring seeds share no sample."""
    if seed is None or sample == 0:
        return seed
    digest = hashlib.blake2b(f"{seed}/{sample}".encode(), digest_size=4).digest()
    return int.from_bytes(digest, "big") >> 1


def json_schema_of(kind: type[Reply]) -> dict[str, Any]:
    """Return the JSON schema sent to servers: closed objects, all fields required, no titles."""
    schema = kind.model_json_schema()
    schema.pop("description", None)
    schema.pop("title", None)
    for name, field_schema in schema.get("properties", {}).items():
        kept = {k: v for k, v in field_schema.items() if v is not None}
        schema["properties"][name] = {
            k: v for k, v in kept.items() if k not in ("title", "default")
        }
    schema["required"] = list(schema.get("properties", {}))
    schema["additionalProperties"] = False
    return schema


def _account(
    request: Request,
    said: Said,
    seconds: float,
    *,
    step: int,
    cached: bool = False,
    repair: bool = False,
) -> Call:
    return {
        "role": request.role,
        "step": step,
        "sample": request.sample,
        "model": said.model,
        "input_tokens": said.input_tokens,
        "prefix_cached_tokens": said.prefix_cached_tokens,
        "output_tokens": said.output_tokens,
        "seconds": round(seconds, 3),
        "asked_seconds": said.seconds,
        "cached": cached,
        "repair": repair,
        "truncated": said.truncated,
    }


async def _kept(
    request: Request, key: tuple[str, str], kind: type[R], cache: str, step: int
) -> Answer[R] | None:
    """Return the answer that the response cache has for a question, if it can still be read."""
    started = time.perf_counter()
    # In a thread: the import is heavy.
    module = await asyncio.to_thread(importlib.import_module, "nodes.response_cache")
    record = await module.cached_reply(cache, key)
    try:
        said = Said(**record) if record else None
        value = read_reply(said.text, kind, truncated=said.truncated) if said else None
    except (TypeError, AttributeError, UnusableAnswerError):
        return None
    if said is None or value is None:
        return None
    seconds = time.perf_counter() - started
    return Answer(value, [_account(request, said, seconds, step=step, cached=True)])


async def _keep(said: Said, key: tuple[str, str], cache: str | None, calls: list[Call]) -> None:
    """Keep a reply that could be read (after a repair too: it is what the question yields)."""
    if cache is None:
        return
    from nodes.response_cache import keep_reply

    try:
        await keep_reply(cache, key, asdict(said))
    except ModelError as error:
        error.calls = calls
        raise
