"""Commands that answer: `ask`, `demo`, `methods`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli import output
from cli.method_listing import list_methods, method_json, print_method
from cli.options import Command, Debug, Json, examples
from cli.running import finish, run, split_pairs

if TYPE_CHECKING:
    from workflows.registry import Method

OWN_OPTIONS = {"graph": "--graph", "model": "--model", "role_models": "--role-model"}
"""Settings that have an option of their own."""

Model = Annotated[
    str | None,
    typer.Option(
        metavar="SPEC",
        help="local, local:FILE.gguf, openai:NAME, vllm:NAME@URL or NAME@URL; default: "
        "GRAPHMOOT_MODEL, else openai where OPENAI_API_KEY is set, else local.",
    ),
]


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    app.command(
        "demo", cls=Command, epilog=examples("graphmoot demo", "graphmoot demo --question 3")
    )(demo)
    app.command(
        "ask",
        cls=Command,
        epilog=examples(
            'graphmoot ask "Who built Marrow Light?" --graph sample',
            'graphmoot ask "Where does a cat sleep?" --graph cn15k.graphmoot --topic cat '
            "--choice A=bed --choice B=oven --set max_rounds=2",
        ),
    )(ask)
    app.command(
        "methods",
        cls=Command,
        epilog=examples("graphmoot methods", "graphmoot methods debate-on-graph --mermaid"),
    )(methods)


def ask(
    question: Annotated[
        str, typer.Argument(metavar="QUESTION", help="In any language.", show_default=False)
    ],
    graph: Annotated[
        str | None,
        typer.Option(
            metavar="STORE",
            help="The store; default: GRAPHMOOT_GRAPH, else the bundled sample.",
        ),
    ] = None,
    method: Annotated[
        str, typer.Option(metavar="METHOD", help="See: graphmoot methods.")
    ] = "debate-on-graph",
    topic: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ENTITY...",
            help="What the question is about: id, name or alias; else found in the question.",
        ),
    ] = None,
    choice: Annotated[
        list[str] | None,
        typer.Option(metavar="A=text...", help="An answer to choose from, with its label."),
    ] = None,
    boolean: Annotated[
        bool, typer.Option("--boolean", help="The answer is true or false.")
    ] = False,
    model: Model = None,
    role_model: Annotated[
        list[str] | None,
        typer.Option(metavar="ROLE=SPEC...", help="The model of one role."),
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE...", help="A setting of the method."),
    ] = None,
    thread: Annotated[
        str | None, typer.Option(metavar="ID", help="Files the run's trace under this thread.")
    ] = None,
    as_json: Json = False,
    _debug: Debug = False,
) -> None:
    """Answer a question from a graph, with the evidence, the doubt and the cost."""
    asked = make_question(question, choice or [], boolean=boolean)
    chosen, context = _configured(
        method, graph=graph, model=model, role_models=role_model or [], settings=setting or []
    )
    if getattr(context, "use_graph", True):
        _check_topics(chosen, context.graph, topic or [], as_json=as_json)
    if topic:
        asked["topic_entities"] = topic
    result = run(chosen, asked, context, thread)
    raise typer.Exit(finish(result, as_json=as_json))


def make_question(question: str, choices: list[str], *, boolean: bool) -> dict[str, Any]:
    """Return a method's input.

    Raises:
        ValueError: the question is empty, or the choices are not `label=text` of different texts.
    """
    if not question.strip():
        raise ValueError("the question is empty")
    if boolean and choices:
        raise ValueError("--boolean and --choice exclude each other")
    if boolean:
        return {"question": question, "question_type": "boolean"}
    if not choices:
        return {"question": question, "question_type": "open"}
    pairs = split_pairs(choices, "--choice", "LABEL=TEXT, such as A=forest")
    if empty := [label for label, text in pairs.items() if not text]:
        raise ValueError(f"--choice {empty[0]} has no text")
    by_text: dict[str, str] = {}
    for label, text in pairs.items():
        first = by_text.setdefault(text.casefold(), label)
        if first != label:
            raise ValueError(f"--choice {first} and {label} have the same text")
    if len(pairs) < 2:
        raise ValueError("one --choice leaves nothing to choose; give at least two")
    return {"question": question, "question_type": "choice", "choices": pairs}


def _configured(
    name: str, *, graph: str | None, model: str | None, role_models: list[str], settings: list[str]
) -> tuple[Method, Any]:
    """Return a method and its settings; everything that can be wrong is found here."""
    own = split_pairs(settings, "--set", "NAME=VALUE, such as max_rounds=2")
    for setting, option in OWN_OPTIONS.items():
        if setting in own:
            raise ValueError(f"--set {setting}: use {option} instead")
    models = split_pairs(role_models, "--role-model", "ROLE=SPEC, such as judge=openai:gpt-4o-mini")
    from nodes.model_spec import parse_spec
    from workflows.registry import get

    method = get(name)
    if unknown := [role for role in models if role not in method.roles]:
        raise ValueError(
            f"--role-model {unknown[0]}: {method.name} has the roles {', '.join(method.roles)}"
        )
    for spec in (*models.values(), *([model] if model is not None else [])):
        parse_spec(spec)
    given = {"graph": graph, "model": model, "role_models": models or None}
    values = {key: value for key, value in given.items() if value is not None}
    context = method.make_context({**values, **own})
    method.check(context)
    return method, context


def _check_topics(method: Method, graph: str, topics: list[str], *, as_json: bool) -> None:
    """Open the store and resolve the topics before any model is asked; a fault ends the command."""
    from cli.resolving import resolve_entity
    from graph_store import UnknownEntityError, shared_store
    from nodes.report import empty_result

    store = shared_store(graph)
    for topic in topics:
        try:
            resolve_entity(store, topic)
        except UnknownEntityError as error:
            if as_json:
                output.print_json(empty_result(method.name, "no_answer", error))
            raise


def demo(
    model: Model = None,
    question: Annotated[
        int, typer.Option(metavar="N", min=1, help="Which of the sample's questions.")
    ] = 1,
    only_list: Annotated[
        bool, typer.Option("--list", help="List the sample's questions and stop.")
    ] = False,
    as_json: Json = False,
    _debug: Debug = False,
) -> None:
    """Watch a debate over the bundled sample graph."""
    from cli.demonstration import introduce, list_questions, read_questions, tell_gold

    questions = read_questions()
    if only_list:
        list_questions(questions, as_json=as_json)
        return
    if question > len(questions):
        raise ValueError(f"--question {question}: the sample has {len(questions)} questions")
    sample = questions[question - 1]
    method, context = _configured(
        "debate-on-graph", graph="sample", model=model, role_models=[], settings=[]
    )
    introduce(sample, method.name, context.model)
    keys = ("question", "question_type", "choices", "topic_entities")
    result = run(method, {key: sample[key] for key in keys if sample.get(key)}, context)
    if as_json:
        gold = {"question_id": sample["id"], "question": sample["question"]}
        result = {**result, **gold, "gold": sample["answer"]}
    status = finish(result, as_json=as_json)
    tell_gold(sample, result)
    raise typer.Exit(status)


def methods(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="A method, to see its settings and its drawing."),
    ] = None,
    mermaid: Annotated[
        bool, typer.Option("--mermaid", help="Print only the Mermaid drawing of NAME.")
    ] = False,
    as_json: Json = False,
    _debug: Debug = False,
) -> None:
    """List the methods: paper, roles, settings and defaults."""
    if mermaid and name is None:
        raise ValueError("--mermaid needs a method's NAME")
    from workflows import registry

    found = [registry.get(each) for each in ([name] if name else registry.names())]
    if mermaid:
        print(found[0].graph.get_graph().draw_mermaid())
    elif as_json:
        output.print_json([method_json(method) for method in found])
    elif name:
        print_method(found[0])
    else:
        list_methods(found)
