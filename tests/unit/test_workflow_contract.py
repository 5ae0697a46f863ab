"""What every exported workflow owes its users: schemas, settings, a drawing, no checkpointer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from workflows import registry

ROOT = Path(__file__).parents[2]
METHODS = registry.names()
SHARED_SETTINGS = ["graph", "model", "role_models", "temperature", "max_tokens", "seed"]


@pytest.fixture(params=METHODS)
def method(request):
    return registry.get(request.param)


def test_input_schema_is_the_shared_question(method):
    schema = method.graph.get_input_jsonschema()
    assert set(schema["properties"]) == {
        "question",
        "choices",
        "question_type",
        "topic_entities",
    }


def test_settings_start_with_the_shared_ones_and_are_described(method):
    settings = method.settings()
    assert list(settings)[: len(SHARED_SETTINGS)] == SHARED_SETTINGS
    assert all(setting["description"] for setting in settings.values())
    json.dumps(settings)


def test_the_server_exports_the_method(method):
    exported = json.loads((ROOT / "langgraph.json").read_text())["graphs"]
    assert exported[method.name]["path"] == f"{method.module.__name__}:graph"
    assert exported[method.name]["description"]
    assert method.graph.checkpointer is None


def test_conditional_edges_are_labelled(method):
    for edge in method.graph.get_graph().edges:
        assert not edge.conditional or edge.data, edge


def test_the_module_names_its_paper(method):
    assert method.module.__doc__
    assert method.paper.split(":")[0].split(",")[0] in method.module.__doc__


def test_an_unknown_method_names_those_there_are():
    with pytest.raises(registry.UnknownMethodError, match="debate-on-graph"):
        registry.get("debate-on-graphs")


def test_settings_from_the_command_line_are_parsed_and_checked(method):
    role = method.roles[0]
    context = method.make_context(
        {"temperature": "0", "seed": "none", "role_models": f'{{"{role}":"b"}}'}
    )
    assert (context.temperature, context.seed, context.role_models) == (0.0, None, {role: "b"})
    with pytest.raises(ValueError, match="temperature=hot"):
        method.make_context({"temperature": "hot"})
    with pytest.raises(ValueError, match="no setting 'temprature'"):
        method.make_context({"temprature": "1"})
