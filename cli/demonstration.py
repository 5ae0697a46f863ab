"""The demonstration: a question of the bundled sample, what will happen, what to try next."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

from cli import output


def read_questions() -> list[dict[str, Any]]:
    """Return the sample's questions."""
    file = resources.files("graph_store") / "sample" / "questions.jsonl"
    lines = file.read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line.strip()]


def list_questions(questions: Sequence[Mapping[str, Any]], *, as_json: bool) -> None:
    """Print the sample's questions."""
    if as_json:
        output.print_json(list(questions))
        return
    rows = [[number, q["id"], q["question"]] for number, q in enumerate(questions, 1)]
    output.print_table(["number", "id", "question"], rows, numbers=("number",))


def introduce(sample: Mapping[str, Any], method: str, model: str) -> None:
    """Say on stderr what is going to happen."""
    from graph_store import open_store

    info = open_store("sample").info()
    output.note(
        f"graph:    the bundled sample, an invented harbour town: {info.facts:,} facts with "
        f"confidences about {info.entities:,} entities"
    )
    output.note(f"method:   {method}")
    output.note(f"model:    {_described(model)}")
    output.note(f"question: {sample['question']}")
    for label, text in (sample.get("choices") or {}).items():
        output.note(f"          {label}: {text}")
    output.note("")


def _described(model: str) -> str:
    if model != "local":
        return model
    from graph_store.cache_folder import cache_folder
    from nodes.embedded_model import FILE_NAME, NAME, SIZE

    folder = cache_folder()
    if (folder / FILE_NAME).exists():
        return f"{NAME} on this machine (kept in {folder})"
    return (
        f"{NAME} on this machine; first it is put together from its Python packages, once, "
        f"{output.size(SIZE)} in {folder}"
    )


def tell_gold(sample: Mapping[str, Any], result: Mapping[str, Any]) -> None:
    """Say on stderr what the right answer is, and how to go on with an own graph."""
    gold = str(sample["answer"])
    text = (sample.get("choices") or {}).get(gold)
    given = result.get("choice") or result.get("answer")
    output.note("")
    if given is not None:
        accepted = {
            name.casefold() for name in (gold, text or gold, *(sample.get("aliases") or []))
        }
        right = str(given).casefold() in accepted
        output.note(
            f"gold answer: {gold}{f': {text}' if text else ''} — "
            f"{'the same' if right else 'not the same'}"
        )
    else:
        output.note(f"gold answer: {gold}{f': {text}' if text else ''}")
    output.note("next, with a graph of your own (lines of head, relation, tail, confidence):")
    output.note("  graphmoot ingest facts.tsv --to facts.graphmoot")
    output.note('  graphmoot link facts.graphmoot "a name"')
    output.note('  graphmoot ask "a question?" --graph facts.graphmoot')
