"""The only door to a language model: structured questions, repair, retries, cache, accounting."""

from __future__ import annotations

import asyncio
import json
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from nodes.answers import Reply, read_reply
from nodes.errors import ModelError, UnusableAnswerError
from nodes.model_spec import ModelSpec, build_chat_model, parse_spec
from nodes.retries import with_retries
from nodes.usage import Call
from prompts.shared import REPAIR

if TYPE_CHECKING:
    from langchain_core.caches import BaseCache
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, BaseMessage
    from langchain_core.runnables import Runnable, RunnableConfig

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


@dataclass(frozen=True)
class _Request:
    """All that determines a reply, and so keys the response cache."""

    role: str
    spec: ModelSpec
    temperature: float
    max_tokens: int
    seed: int | None
    schema: dict[str, Any]

    def cache_key(self, messages: Sequence[BaseMessage]) -> tuple[str, str]:
        prompt = json.dumps([[m.type, m.content] for m in messages], ensure_ascii=False)
        model = [self.spec.kind, self.spec.name, self.spec.url]
        rest = [self.temperature, self.max_tokens, self.seed, self.schema]
        return prompt, json.dumps([*model, *rest], sort_keys=True)


async def ask(
    role: str,
    prompt: Prompt,
    kind: type[R],
    settings: MethodContext,
    *,
    step: int = 0,
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
        notify: told what takes long (the embedded model's assembly and start).

    Raises:
        UnusableAnswerError: the reply is not of the form, also after the repair.
        ModelError: the model cannot be had or does not answer.
    """
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

    temperature, max_tokens, seed = settings.sampling_of(role)
    spec = parse_spec(settings.model_of(role))
    schema = json_schema_of(kind)
    request = _Request(role, spec, temperature, max_tokens, seed, schema)
    messages: list[BaseMessage] = [SystemMessage(prompt.system), HumanMessage(prompt.user)]
    calls: list[Call] = []
    reply, fault = "", ""
    for repair in (False, True):
        if repair:
            form = json.dumps(schema.get("properties", {}), ensure_ascii=False)
            messages += [
                AIMessage(reply[:1000] or "(empty)"),
                HumanMessage(REPAIR.format(fault=fault, form=form)),
            ]
        try:
            reply, call = await _reply(request, messages, settings, notify)
        except ModelError as error:
            error.calls = calls
            raise
        calls.append({**call, "step": step, "repair": repair})
        try:
            return Answer(read_reply(reply, kind, truncated=call["truncated"]), calls)
        except UnusableAnswerError as error:
            fault = str(error)
    raise UnusableAnswerError(f"the {role}'s reply cannot be read: {fault}", reply, calls)


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


async def _reply(
    request: _Request,
    messages: Sequence[BaseMessage],
    settings: MethodContext,
    notify: Callable[[str], None],
) -> tuple[str, Call]:
    started = time.perf_counter()
    cache = await _response_cache(settings.response_cache)
    key = request.cache_key(messages)
    message = await _from_cache(cache, key)
    cached = message is not None
    if message is None:
        model = await _chat_model(request.spec, settings.timeout_seconds, notify)
        bound = _bind(model, request)
        named: RunnableConfig = {"run_name": request.role, "tags": [request.role]}
        message = await with_retries(
            lambda: bound.ainvoke(list(messages), config=named),
            attempts=settings.max_retries + 1,
            what=_describe(request.spec),
            notify=notify,
        )
        await _to_cache(cache, key, message)
    text = message.text if isinstance(message.text, str) else str(message.content)
    return text, _account(request, message, cached, time.perf_counter() - started)


def _account(request: _Request, message: AIMessage, cached: bool, seconds: float) -> Call:
    usage: Any = message.usage_metadata or {}
    details = usage.get("input_token_details") or {}
    finish = message.response_metadata.get("finish_reason")
    return {
        "role": request.role,
        "step": 0,
        "model": str(message.response_metadata.get("model_name") or request.spec.name),
        "input_tokens": int(usage.get("input_tokens", 0)),
        "prefix_cached_tokens": int(details.get("cache_read", 0) or 0),
        "output_tokens": int(usage.get("output_tokens", 0)),
        "seconds": round(seconds, 3),
        "cached": cached,
        "repair": False,
        "truncated": finish in ("length", "max_tokens"),
    }


def _bind(model: BaseChatModel, request: _Request) -> Runnable[Any, AIMessage]:
    """Bind a request's parameters in the way that its kind of server takes them."""
    wanted = {
        "type": "json_schema",
        "json_schema": {"name": request.role, "schema": request.schema},
    }
    if request.spec.kind == "chat":
        return model.bind(
            temperature=request.temperature,
            max_tokens=request.max_tokens,
            seed=request.seed,
            response_format=wanted,
        )
    # Through `extra_body`, so that the client does not parse the reply itself: its parser raises
    # on a reply cut off at the token limit, ours can still use it.
    body: dict[str, Any] = {"response_format": wanted}
    parameters: dict[str, Any] = {"temperature": request.temperature}
    if request.seed is not None:
        parameters["seed"] = request.seed
    if request.spec.kind == "openai":
        parameters["max_tokens"] = request.max_tokens
    else:
        body["max_tokens"] = request.max_tokens
    return model.bind(extra_body=body, **parameters)


def _describe(spec: ModelSpec) -> str:
    where = f" at {spec.url}" if spec.url else ""
    name = "the embedded model" if spec.kind == "local" else f"model '{spec.name}'"
    return f"{name}{where}"


_Loop = asyncio.AbstractEventLoop
_models: weakref.WeakKeyDictionary[_Loop, dict[Any, asyncio.Task[BaseChatModel]]] = (
    weakref.WeakKeyDictionary()
)


async def _chat_model(
    spec: ModelSpec, seconds: float, notify: Callable[[str], None]
) -> BaseChatModel:
    """Return a specification's model, built once an event loop however many ask at once."""
    known = _models.setdefault(asyncio.get_running_loop(), {})
    key = (spec, seconds)
    if spec.kind == "chat":
        return await build_chat_model(spec, seconds, notify)
    if key not in known or (known[key].done() and known[key].exception() is not None):
        known[key] = asyncio.ensure_future(build_chat_model(spec, seconds, notify))
    # Shielded: one caller's cancellation must not end the building for the others.
    return await asyncio.shield(known[key])


_caches: dict[str, BaseCache] = {}


async def _response_cache(path: str | None) -> BaseCache | None:
    if path is None:
        return None
    if path not in _caches:
        from langchain_community.cache import SQLiteCache

        _caches[path] = await asyncio.to_thread(SQLiteCache, database_path=path)
    return _caches[path]


async def _from_cache(cache: BaseCache | None, key: tuple[str, str]) -> AIMessage | None:
    if cache is None:
        return None
    found = await asyncio.to_thread(cache.lookup, *key)
    return found[0].message if found else None  # type: ignore[attr-defined]


async def _to_cache(cache: BaseCache | None, key: tuple[str, str], message: AIMessage) -> None:
    if cache is not None:
        from langchain_core.outputs import ChatGeneration

        await asyncio.to_thread(cache.update, *key, [ChatGeneration(message=message)])
