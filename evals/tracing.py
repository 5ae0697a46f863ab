"""What an evaluation's traces carry, and that nothing is traced unless it was asked for."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

_SWITCHES = (
    "LANGSMITH_TRACING",
    "LANGSMITH_TRACING_V2",
    "LANGCHAIN_TRACING",
    "LANGCHAIN_TRACING_V2",
)
_KEYS = ("LANGSMITH_API_KEY", "LANGCHAIN_API_KEY")


def has_key() -> bool:
    """Return whether the environment has a key for LangSmith."""
    return any(os.environ.get(name, "").strip() for name in _KEYS)


def tracing_allowed() -> bool:
    """Return whether runs may be sent to LangSmith: tracing switched on, and a key to do it with.

    LangSmith's client would also send without a key, and it remembers the environment of its first
    look (`langsmith.utils.get_env_var` is cached); here the environment as it is now decides.
    """
    on = any(os.environ.get(name, "").strip().casefold() == "true" for name in _SWITCHES)
    return on and has_key()


@contextmanager
def tracing_off() -> Iterator[None]:
    """Trace nothing inside, whatever the environment and the code around it say."""
    from langchain_core.tracers.context import tracing_v2_callback_var
    from langsmith import tracing_context

    # A tracer that was set by `tracing_v2_enabled` would outweigh the context.
    token = tracing_v2_callback_var.set(None)
    try:
        with tracing_context(enabled=False, parent=False):
            yield
    finally:
        tracing_v2_callback_var.reset(token)


def prompt_version(prompts: Mapping[str, Mapping[str, str]]) -> str:
    """Return the versions of a method's prompts as one text: `debate_on_graph@2, shared@1`.

    Args:
        prompts: `Method.prompts`, or `prompts` of a manifest's cell.
    """
    return ", ".join(f"{name}@{about['version']}" for name, about in sorted(prompts.items()))


def run_config(
    *,
    label: str,
    method: str,
    dataset: str,
    model: str,
    question_id: str,
    prompts: Mapping[str, Mapping[str, str]],
) -> dict[str, Any]:
    """Return a run's `run_name`, `tags` and `metadata` for LangChain's config.

    All values are texts. Nothing of the gold answer is in them.

    Args:
        label: the configuration's name.
        method: the method it is of.
        dataset: the data set's name.
        model: model specification.
        question_id: the question's id in the set.
        prompts: `Method.prompts`.
    """
    metadata = {
        "label": label,
        "method": method,
        "dataset": dataset,
        "model": model,
        "prompt_version": prompt_version(prompts),
        "question_id": question_id,
    }
    return {
        "run_name": f"{label} · {dataset} · {question_id}",
        "tags": ["graphmoot-eval", *tags_of(metadata)],
        "metadata": metadata,
    }


def tags_of(metadata: Mapping[str, str]) -> list[str]:
    """Return the tags that a run and an experiment have: `method:…`, `dataset:…`, `model:…`."""
    return [f"{name}:{metadata[name]}" for name in ("label", "method", "dataset", "model")]
