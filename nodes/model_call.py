"""One call of a model: its parameters as the server takes them, its reply as it is accounted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nodes.errors import ModelError
from nodes.model_spec import ModelSpec
from nodes.open_models import chat_model, forget
from nodes.retries import is_lost, refused_parameter, with_retries
from prompts.shared import FORM

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, BaseMessage
    from langchain_core.runnables import Runnable, RunnableConfig

    from nodes.context import MethodContext


@dataclass(frozen=True)
class Request:
    """All that determines a reply, and so keys the response cache."""

    role: str
    spec: ModelSpec
    temperature: float
    max_tokens: int
    seed: int | None
    schema: dict[str, Any]
    sample: int = 0

    @property
    def form(self) -> str:
        """The reply's fields as prompts tell them."""
        return json.dumps(self.schema.get("properties", {}), ensure_ascii=False)

    def cache_key(self, messages: Sequence[BaseMessage]) -> tuple[str, str]:
        """Return the key of a question in the response cache: prompt, then model and the rest."""
        prompt = json.dumps([[m.type, m.content] for m in messages])
        model = [self.spec.kind, self.spec.name, self.spec.url]
        rest: list[Any] = [self.temperature, self.max_tokens, self.seed, self.schema]
        if self.seed is None and self.sample:
            rest.append(self.sample)  # else the seed tells the samples apart
        return prompt, json.dumps([*model, *rest])  # the order of fields counts


@dataclass(frozen=True)
class Said:
    """A model's reply as it is accounted and kept; `seconds` is what it took when it was asked."""

    text: str
    model: str
    input_tokens: int
    prefix_cached_tokens: int
    output_tokens: int
    truncated: bool
    seconds: float = 0.0

    @classmethod
    def of(cls, message: AIMessage, spec: ModelSpec) -> Said:
        """Return what a message says and cost."""
        usage: Any = message.usage_metadata or {}
        details = usage.get("input_token_details") or {}
        text: str = message.text
        if not text.strip():
            text = str(message.additional_kwargs.get("reasoning_content") or "")
        return cls(
            text=sendable(text),
            model=sendable(str(message.response_metadata.get("model_name") or spec.name)),
            input_tokens=int(usage.get("input_tokens") or 0),
            prefix_cached_tokens=int(details.get("cache_read") or 0),
            output_tokens=int(usage.get("output_tokens") or 0),
            truncated=message.response_metadata.get("finish_reason") in ("length", "max_tokens"),
        )


def sendable(text: str) -> str:
    """Replace halves of surrogate pairs, which neither HTTP nor SQLite takes."""
    return text.encode("utf-8", "replace").decode("utf-8")


async def ask_model(
    request: Request,
    messages: Sequence[BaseMessage],
    settings: MethodContext,
    notify: Callable[[str], None],
) -> Said:
    """Ask over the network; a parameter that the server refuses is left out from then on."""
    spec = request.spec
    while True:
        left_out = frozenset(_refused.get(spec, ()))
        try:
            message = await with_retries(
                lambda without=left_out: _attempt(  # type: ignore[misc]
                    request, messages, without, settings.timeout_seconds, notify
                ),
                attempts=settings.max_retries + 1,
                what=_describe(spec),
                notify=notify,
            )
        except ModelError as error:
            name = refused_parameter(error.__cause__, _REFUSABLE - left_out)
            if name is None or spec.kind == "chat":
                raise
            _refused.setdefault(spec, set()).add(name)
            notify(f"{_describe(spec)} does not take {name}; asking without it")
        else:
            return Said.of(message, spec)


async def _attempt(
    request: Request,
    messages: Sequence[BaseMessage],
    left_out: frozenset[str],
    seconds: float,
    notify: Callable[[str], None],
) -> AIMessage:
    model = await chat_model(request.spec, seconds, notify)
    sent = list(messages)
    if "response_format" in left_out and len(sent) == 2:  # a repair tells the form itself
        told = FORM.format(form=request.form)
        sent[1] = type(sent[1])(content=f"{sent[1].content}\n\n{told}")
    named: RunnableConfig = {"run_name": request.role, "tags": [request.role]}
    try:
        async with asyncio.timeout(seconds):
            return await _bind(model, request, left_out).ainvoke(sent, config=named)
    except Exception as error:
        if request.spec.kind == "local" and is_lost(error):
            forget(request.spec, seconds)  # its process died: the next attempt starts another
        raise


_REFUSABLE = frozenset({"response_format", "max_tokens", "temperature", "seed"})
_refused: dict[ModelSpec, set[str]] = {}


def _bind(
    model: BaseChatModel, request: Request, left_out: frozenset[str]
) -> Runnable[Any, AIMessage]:
    """Bind a request's parameters in the way that its kind of server takes them."""
    parameters: dict[str, Any] = {
        "temperature": request.temperature,
        "max_tokens": request.max_tokens,
        "seed": request.seed,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": request.role, "schema": request.schema},
        },
    }
    if request.spec.kind == "chat":
        return model.bind(**parameters)
    if request.seed is None:
        del parameters["seed"]
    # Through `extra_body`: bound to the model, `max_tokens` goes out under OpenAI's new name
    # (`max_completion_tokens`), which only OpenAI's newer models insist on.
    body: dict[str, Any] = {}
    if "response_format" not in left_out:
        body["response_format"] = parameters["response_format"]
    if request.spec.kind != "openai" and "max_tokens" not in left_out:
        body["max_tokens"] = parameters.pop("max_tokens")
    sent = {name: value for name, value in parameters.items() if name != "response_format"}
    for name in left_out & {"temperature", "seed"}:
        sent.pop(name, None)
    return model.bind(extra_body=body, **sent)


def _describe(spec: ModelSpec) -> str:
    where = f" at {spec.url}" if spec.url else ""
    name = "the embedded model" if spec.kind == "local" else f"model '{spec.name}'"
    return f"{name}{where}"
