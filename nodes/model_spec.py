"""From a model specification to a chat model."""

from __future__ import annotations

import asyncio
import os
import re
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from graph_store.errors import shorten
from nodes.errors import ModelError, ModelSpecError
from nodes.retries import without_keys

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

FORMS = "local, local:FILE.gguf, openai:NAME, vllm:NAME@URL, NAME@URL, chat:NAME"
EMBEDDED_CONTEXT_TOKENS = 8192
CONNECT_SECONDS = 15.0
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
"""Hosts that are never asked through a proxy."""

Notify = Callable[[str], None]


@dataclass(frozen=True)
class ModelSpec:
    """A parsed specification.

    Attributes:
        kind: `local`, `openai`, `server` or `chat` (registered from Python).
        name: model name, or the file of a local one ('' for the embedded model).
        url: base URL of a server.
    """

    kind: str
    name: str
    url: str = ""


def parse_spec(text: str) -> ModelSpec:
    """Parse a model specification; raises `ModelSpecError` with the forms that are known."""
    spec = text.strip()
    if spec == "local":
        return ModelSpec("local", "")
    kind, _, rest = spec.partition(":")
    if kind == "local" and rest.strip():
        return ModelSpec("local", rest.strip())
    if kind in ("openai", "chat") and rest.strip() and "@" not in rest:
        return ModelSpec(kind, rest.strip())
    named = re.sub(r"^(?:vllm|openai):", "", spec)
    name, _, url = named.rpartition("@")
    if name.strip() and _is_web_address(url):
        return ModelSpec("server", name.strip(), url.rstrip("/"))
    shown = shorten(re.sub(r"(?<=//)[^/@]+(?=@)", "…", text))
    raise ModelSpecError(f"model '{shown}' is not of a known form: {FORMS}")


def _is_web_address(url: str) -> bool:
    if not re.fullmatch(r"https?://[^\s@]+", url):
        return False
    try:
        parts = urlsplit(url)
        return bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


_registered: dict[str, BaseChatModel] = {}


def register_chat_model(name: str, model: BaseChatModel) -> str:
    """Make a LangChain chat model of this process usable as `chat:NAME`; returns that."""
    _registered[name] = model
    return f"chat:{name}"


async def build_chat_model(spec: ModelSpec, seconds: float, notify: Notify) -> BaseChatModel:
    """Return the chat model of a specification; its own retries are off, the door has them.

    Args:
        spec: which model.
        seconds: longest wait for one reply.
        notify: told what takes long.

    Raises:
        ModelError: it cannot be had (no key, no file, extra not installed).
    """
    if spec.kind == "chat":
        if spec.name not in _registered:
            raise ModelError(f"no chat model '{spec.name}' was registered in this process")
        return _registered[spec.name]
    if spec.kind == "openai":
        if not os.environ.get("OPENAI_API_KEY", "").strip():
            raise ModelError(f"openai:{spec.name} needs OPENAI_API_KEY in the environment")
        return await asyncio.to_thread(_openai, model=spec.name, timeout=seconds)
    if spec.kind == "server":
        key = os.environ.get("GRAPHMOOT_API_KEY") or _openai_key_for(spec.url) or "none"
        return await asyncio.to_thread(
            _openai,
            model=spec.name,
            base_url=spec.url,
            api_key=key,
            timeout=seconds,
            trust_env=urlsplit(spec.url).hostname not in LOOPBACK,
        )
    return await asyncio.to_thread(_embedded, spec.name, seconds, notify)


def _openai_key_for(url: str) -> str | None:
    """Return OpenAI's key for OpenAI's own hosts; nobody else is to see it."""
    host = urlsplit(url).hostname or ""
    openais = url.startswith("https:") and (host == "openai.com" or host.endswith(".openai.com"))
    return os.environ.get("OPENAI_API_KEY") if openais else None


def _openai(*, timeout: float, trust_env: bool = True, **settings: Any) -> BaseChatModel:
    import httpx

    from nodes.openai_model import PlainChatOpenAI

    limits = httpx.Timeout(timeout, connect=min(timeout, CONNECT_SECONDS))
    try:
        # A client of its own: the shared one of the library outlives the event loop it belongs to.
        shared: Any = {"trust_env": trust_env, "timeout": limits, "verify": _certificates()}
        return PlainChatOpenAI(
            max_retries=0,
            http_async_client=httpx.AsyncClient(**shared),
            http_client=httpx.Client(**shared),  # not used; the library's own is slow to make
            timeout=limits,
            disable_streaming=True,  # streamed replies carry no usage on many servers
            **settings,
        )
    except Exception as error:  # a proxy variable or a base URL that cannot be read
        raise ModelError(f"model '{settings['model']}': {without_keys(str(error))}") from error


@lru_cache(maxsize=1)
def _certificates() -> ssl.SSLContext:
    import httpx

    return httpx.create_ssl_context()


def _embedded(file: str, timeout: float, notify: Notify) -> BaseChatModel:
    from nodes.embedded_model import ModelUnavailableError, ensure_model
    from nodes.embedded_server import connect

    try:
        path = Path(file).expanduser() if file else ensure_model(_teller(notify))
        server = connect(path, context_tokens=EMBEDDED_CONTEXT_TOKENS, progress=_teller(notify))
    except ModelUnavailableError as error:
        raise ModelError(str(error)) from error
    return _openai(
        model=server.model,
        base_url=server.base_url,
        api_key=server.api_key,
        timeout=timeout,
        trust_env=False,
    )


def _teller(notify: Notify) -> Callable[[str, int, int], None]:
    last = [-1]

    def tell(label: str, done: int, total: int) -> None:
        tenth = 10 * done // total if total else 0
        if tenth != last[0]:
            last[0] = tenth
            share = f" {done / 1e6:,.0f} of {total / 1e6:,.0f} MB" if total > 1000 else ""
            notify(f"{label}{share}")

    return tell
