"""A run's questions and results in the form in which LangSmith takes them."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from evals.langsmith_sending import Clock, Feedback, run_uuid
from evals.records import ResultLine, prediction_of
from evals.tracing import prompt_version, run_config
from nodes.question_file import GoldQuestion

if TYPE_CHECKING:
    from langsmith.schemas import Dataset, TracerSession

_COUNTS = ("llm_calls", "cached_calls", "input_tokens", "output_tokens", "sequential_llm_steps")


def example_of(question: GoldQuestion, dataset: uuid.UUID) -> dict[str, Any]:
    """Return a question as an example: what is right is in the reference outputs only."""
    gold = {
        "answers": list(question.answers),
        "aliases": {answer: list(names) for answer, names in question.aliases.items()},
        "reasoning": question.reasoning,
    }
    return {
        "id": example_id(question.id, dataset),
        "inputs": dict(question.asked()),
        "reference_outputs": {name: value for name, value in gold.items() if value},
        "metadata": {"question_id": question.id, "type": question.type},
    }


def example_id(question_id: str, dataset: uuid.UUID) -> uuid.UUID:
    """Return the id of a question's example in a data set of LangSmith's."""
    return uuid.uuid5(dataset, question_id)


def experiment_metadata(manifest: Mapping[str, Any], cell: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an experiment's numbers depend on; of the graph its hash, not its place."""
    graph = manifest.get("graph") or {}
    return {
        "label": cell["label"],
        "method": cell["method"],
        "dataset": cell["dataset"],
        "model": cell["model"],
        "prompt_version": prompt_version(cell.get("prompts") or {}),
        "settings": cell["settings"],
        "seed": (cell.get("context") or {}).get("seed"),
        "graph_sha256": graph.get("sha256"),
        "preset": manifest.get("preset"),
        "run_id": manifest["run_id"],
        "graphmoot": manifest.get("graphmoot"),
    }


def run_of(
    line: ResultLine,
    question: GoldQuestion,
    cell: Mapping[str, Any],
    project: TracerSession,
    dataset: uuid.UUID,
    clock: Clock,
) -> dict[str, Any]:
    """Return a result as a run of an experiment.

    Args:
        line: the result.
        question: what was asked.
        cell: the manifest's cell that the line is of.
        project: the experiment.
        dataset: id of the data set that has the question's example.
        clock: tells when the run is said to have been.
    """
    config = run_config(
        label=line["label"],
        method=line["method"],
        dataset=line["dataset"],
        model=line["model"],
        question_id=line["question_id"],
        prompts=cell.get("prompts") or {},
    )
    start, end = clock.times(line)
    run_id = run_uuid(start, project.id, line)
    error = line["result"].get("error")
    usage = line["result"].get("usage") or {}
    return {
        "id": run_id,
        "trace_id": run_id,
        "dotted_order": f"{start:%Y%m%dT%H%M%S%f}Z{run_id}",
        "session_name": project.name,
        "reference_example_id": example_id(question.id, dataset),
        "name": config["run_name"],
        "run_type": "chain",
        "inputs": dict(question.asked()),
        "outputs": line["result"],
        "error": f"{error['type']}: {error['message']}" if error else None,
        "start_time": start,
        "end_time": end,
        "tags": config["tags"],
        "extra": {
            "metadata": {
                **config["metadata"],
                "outcome": line["outcome"],
                "started": line["started"],
                "thread": line["thread"],
                **{name: usage[name] for name in _COUNTS if name in usage},
            }
        },
    }


def feedback_of(line: ResultLine, question: GoldQuestion, run: Mapping[str, Any]) -> list[Feedback]:
    """Return what a result scores, by metric, and its outcome with the reason."""
    from evals.metrics import score_question

    score = score_question(question, prediction_of(line["result"], line["question_id"]))
    about = run["id"], run["start_time"]
    scores = [Feedback(*about, key, score=value) for key, value in score.values.items()]
    return [Feedback(*about, "outcome", value=score.outcome, comment=score.why), *scores]


def comparison_url(project: TracerSession, dataset: Dataset) -> str:
    """Return the page that shows an experiment beside others of its data set."""
    base = (project.url or "").split("/projects/p/")[0]
    return f"{base}/datasets/{dataset.id}/compare?selectedSessions={project.id}" if base else ""
