"""The methods on paper: one line each, or one with its settings and its drawing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cli import output

if TYPE_CHECKING:
    from workflows.registry import Method


def method_json(method: Method) -> dict[str, Any]:
    """Return the public JSON form of a method."""
    return {
        "name": method.name,
        "paper": method.paper,
        "summary": method.summary,
        "roles": method.roles,
        "reads_confidence": method.reads_confidence,
        "typical_calls": method.typical_calls,
        "settings": method.settings(),
    }


def list_methods(methods: Sequence[Method]) -> None:
    """Print a table of methods."""
    columns = ["name", "paper", "roles", "reads confidences", "typical calls"]
    rows = [
        [
            method.name,
            method.paper,
            ", ".join(role.replace("_", "-") for role in method.roles),
            "yes" if method.reads_confidence else "no",
            method.typical_calls,
        ]
        for method in methods
    ]
    output.print_table(columns, rows)


def print_method(method: Method) -> None:
    """Print a method with its settings and its Mermaid drawing."""
    output.print_pairs(
        [
            ("name", method.name),
            ("paper", method.paper),
            ("what it does", method.summary),
            ("roles", ", ".join(method.roles)),
            ("reads confidences", "yes" if method.reads_confidence else "no"),
            ("typical calls", method.typical_calls),
        ]
    )
    print()
    rows = [
        [name, value.get("type"), _default(value.get("default")), _meaning(value)]
        for name, value in method.settings().items()
    ]
    title = "Settings (graphmoot ask … --set name=value)"
    output.print_table(["name", "type", "default", "meaning"], rows, title=title)
    print("\nDrawing (Mermaid)\n")
    print(method.graph.get_graph().draw_mermaid())


def _default(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(value)


def _meaning(setting: Mapping[str, Any]) -> str:
    low, high = setting.get("minimum"), setting.get("maximum")
    bounds = {
        (True, True): f"{low} to {high}",
        (True, False): f"at least {low}",
        (False, True): f"at most {high}",
    }.get((low is not None, high is not None), "")
    text = str(setting.get("description") or "")
    return f"{text} [{bounds}]" if bounds else text
