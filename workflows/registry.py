"""Methods by name, with what a reader and a command line want to know of them."""

from __future__ import annotations

import hashlib
import importlib
import json
from dataclasses import dataclass
from functools import cache
from types import ModuleType, NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from nodes.context import MethodContext

_MODULES = {
    "debate-on-graph": "workflows.debate_on_graph",
    "zero-shot": "workflows.zero_shot",
    "few-shot": "workflows.few_shot",
    "chain-of-thought": "workflows.chain_of_thought",
    "self-consistency": "workflows.self_consistency",
}


class UnknownMethodError(ValueError):
    """There is no method of this name; the message lists those there are."""


@dataclass(frozen=True)
class Method:
    """A method: its paper, its roles, its settings and its compiled graph."""

    module: ModuleType

    @property
    def name(self) -> str:
        """The method's name on the command line."""
        return str(self.module.NAME)

    @property
    def paper(self) -> str:
        """Authors, year and title."""
        return str(self.module.PAPER)

    @property
    def summary(self) -> str:
        """One sentence on how it works."""
        return str(self.module.SUMMARY)

    @property
    def roles(self) -> list[str]:
        """Names of the roles that call a model."""
        return list(self.module.ROLES)

    @property
    def reads_confidence(self) -> bool:
        """Whether the method uses the facts' confidences."""
        return bool(self.module.READS_CONFIDENCE)

    @property
    def typical_calls(self) -> str:
        """How many model calls a question takes."""
        return str(self.module.TYPICAL_CALLS)

    @property
    def prompts(self) -> dict[str, dict[str, str]]:
        """The prompt modules it uses: the `version` of each, and the `sha256` of its texts.

        The hash tells that a text has changed also where somebody forgot to raise the version.
        """
        return {name: _prompt_version(name) for name in self.module.PROMPTS}

    @property
    def context(self) -> type[MethodContext]:
        """The class of its settings."""
        return self.module.Context  # type: ignore[no-any-return]

    @property
    def graph(self) -> Any:
        """The compiled LangGraph graph."""
        return self.module.graph

    def settings(self) -> dict[str, dict[str, Any]]:
        """Return every setting's `type`, `default`, `description` and bounds."""
        return {name: _setting(self.context, name) for name in self.context.model_fields}

    def make_context(self, values: dict[str, Any]) -> MethodContext:
        """Validate settings, also given as texts of the command line.

        Raises:
            ValueError: one line that names the setting, the fault and what is allowed.
        """
        fields = self.context.model_fields
        unknown = sorted(set(values) - set(fields))
        if unknown:
            raise ValueError(
                f"{self.name} has no setting '{unknown[0]}'; it has {', '.join(fields)}"
            )
        parsed = {name: _parse(value, fields[name].annotation) for name, value in values.items()}
        try:
            return self.context.model_validate(parsed)
        except ValidationError as error:
            fault = error.errors(include_url=False)[0]
            name = ".".join(map(str, fault["loc"])) or "settings"
            message = fault["msg"].removeprefix("Value error, ")
            raise ValueError(
                f"setting {name}={values.get(str(fault['loc'][0]))}: {message}"
            ) from error

    def check(self, context: MethodContext) -> None:
        """Look at what settings name outside of them (files), where a method has such.

        Raises:
            ValueError: it cannot be used; the message names it.
        """
        check = getattr(self.module, "check_settings", None)
        if check is not None:
            check(context)


def names() -> list[str]:
    """Return the names of all methods."""
    return list(_MODULES)


@cache
def get(method: str) -> Method:
    """Return a method by name; raises `UnknownMethodError`."""
    if method not in _MODULES:
        raise UnknownMethodError(f"no method '{method}'; there are {', '.join(_MODULES)}")
    return Method(importlib.import_module(_MODULES[method]))


def _prompt_version(name: str) -> dict[str, str]:
    module = importlib.import_module(f"prompts.{name}")
    texts = {k: v for k, v in vars(module).items() if k.isupper() and k != "VERSION"}
    content = json.dumps(texts, sort_keys=True, default=str)
    return {
        "version": str(module.VERSION),
        "sha256": hashlib.sha256(content.encode("utf-8")).hexdigest(),
    }


def _parse(value: Any, annotation: Any) -> Any:
    if not isinstance(value, str):
        return value
    options = (
        get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    )
    if NoneType in options and value.strip().casefold() in ("", "none", "null"):
        return None
    if str in options:
        return value
    inner = next(option for option in options if option is not NoneType)
    if get_origin(inner) in (tuple, list) and not value.lstrip().startswith("["):
        return [item.strip() for item in value.split(",") if item.strip()]
    if get_origin(inner) in (tuple, list, dict):
        try:
            return json.loads(value)
        except ValueError as error:
            raise ValueError(f"'{value}' is not JSON: {error}") from error
    return value


def _setting(context: type[BaseModel], name: str) -> dict[str, Any]:
    field = context.model_fields[name]
    schema = context.model_json_schema()["properties"][name]
    flat = {**schema, **next((s for s in schema.get("anyOf", []) if s.get("type") != "null"), {})}
    out: dict[str, Any] = {
        "type": _type_name(field.annotation),
        "default": field.get_default(call_default_factory=True),
        "description": field.description or "",
    }
    bounds = {
        "minimum": flat.get("minimum", flat.get("exclusiveMinimum")),
        "maximum": flat.get("maximum", flat.get("exclusiveMaximum")),
        "choices": flat.get("enum"),
    }
    return out | {key: value for key, value in bounds.items() if value is not None}


def _type_name(annotation: Any) -> str:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        inner = [_type_name(a) for a in arguments if a is not NoneType]
        return " or ".join(inner) + (" or none" if NoneType in arguments else "")
    if origin is Literal:
        return "one of " + ", ".join(map(str, arguments))
    if origin is not None:
        items = ", ".join(_type_name(a) for a in arguments if a is not Ellipsis)
        return f"{origin.__name__} of {items}"
    return str(getattr(annotation, "__name__", annotation))
