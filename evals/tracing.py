"""What an evaluation's traces carry, and that nothing is traced unless it was asked for."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

_TRUE = frozenset({"true", "1", "yes"})


def tracing_allowed() -> bool:
    """Return whether runs may be sent to LangSmith: tracing switched on, and a key to do it with.

    LangSmith's client would also try without a key.
    """
    switched_on = any(
        os.environ.get(name, "").strip().casefold() in _TRUE
        for name in ("LANGSMITH_TRACING", "LANGSMITH_TRACING_V2", "LANGCHAIN_TRACING_V2")
    )
    has_key = any(
        os.environ.get(name, "").strip() for name in ("LANGSMITH_API_KEY", "LANGCHAIN_API_KEY")
    )
    return switched_on and has_key


@contextmanager
def tracing_off() -> Iterator[None]:
    """Trace nothing inside, whatever the environment says."""
    from langsmith import tracing_context

    with tracing_context(enabled=False):
        yield


def run_config(
    *,
    label: str,
    method: str,
    dataset: str,
    model: str,
    question_id: str,
    prompts: Mapping[str, Mapping[str, str]],
) -> dict[str, Any]:
    """Return a run's name, tags and metadata for LangChain's config.

    Args:
        label: the configuration's name.
        method: the method it is of.
        dataset: the data set's name.
        model: model specification.
        question_id: the question's id in the set.
        prompts: `Method.prompts`.
    """
    versions = {f"prompt_version.{name}": about["version"] for name, about in prompts.items()}
    return {
        "run_name": f"{label} · {dataset} · {question_id}",
        "tags": ["graphmoot-eval", f"method:{method}", f"dataset:{dataset}"],
        "metadata": {
            "label": label,
            "method": method,
            "dataset": dataset,
            "model": model,
            "question_id": question_id,
            **versions,
        },
    }
