"""A run's results as LangSmith data sets and experiments.

Uploading again sends what is new and changes nothing else: data sets and experiments are found by
name, examples, runs and feedback have ids that follow from what they are of, and `langsmith.json`
in the run's folder keeps which results have been sent.

LangSmith takes only runs of the last 24 hours, and drops others without an error. Results that are
older are moved forward in time together; `started` in a run's metadata is the true time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from evals.langsmith_content import (
    comparison_url,
    example_of,
    experiment_metadata,
    feedback_of,
    run_of,
)
from evals.langsmith_sending import Clock, SentResults, make_client, told_errors
from evals.records import ResultLine
from evals.run_folder import Run, RunFolderError, read_run
from evals.tracing import tags_of
from nodes.question_file import GoldQuestion

if TYPE_CHECKING:
    from pathlib import Path

    from langsmith import Client
    from langsmith.schemas import Dataset, TracerSession

BATCH = 50
"""Results sent together; after each batch `langsmith.json` tells that they have been."""

AT_ONCE = 8
"""Feedback posted at the same time."""

Progress = Callable[[str, int, int], None]
"""Told (step, done, total)."""


@dataclass(frozen=True)
class UploadedDataset:
    """A data set at LangSmith: its name there, its page, its examples, how many of them are new."""

    dataset: str
    name: str
    url: str
    examples: int
    new: int


@dataclass(frozen=True)
class UploadedExperiment:
    """A cell at LangSmith: its name there, its page, its results, how many of them were sent now.

    `moved_hours` is how far the results sent now were moved forward in time.
    """

    label: str
    dataset: str
    model: str
    name: str
    url: str
    results: int
    new: int
    moved_hours: float


@dataclass(frozen=True)
class UploadSummary:
    """What an upload did."""

    datasets: tuple[UploadedDataset, ...]
    experiments: tuple[UploadedExperiment, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the document that `graphmoot eval upload --json` prints."""
        return asdict(self)


def upload(
    run_folder: str | Path, client: Client | None = None, *, progress: Progress | None = None
) -> UploadSummary:
    """Send a run to LangSmith: a data set for each of its own, an experiment for each cell.

    Gold answers are sent as reference outputs of examples, never as inputs. An unfinished run can
    be sent too; after `--resume` another upload adds the rest. A question that was asked again
    (`--retry-failed`) is a further run of its example.

    Args:
        run_folder: a folder that `graphmoot eval run` made.
        client: sends; default one by LangSmith's environment variables. Runs that a given client
            fails to send are told to its own `tracing_error_callback` only.
        progress: told how far it is.

    Raises:
        MissingKeyError: no client is given and the environment has no key.
        RunFolderError: the folder holds no run, or one without results.
        UploadError: LangSmith refuses something or cannot be reached.
    """
    run = read_run(run_folder)
    if not run.lines:
        raise RunFolderError(f"{run.path}: has no results to upload yet")
    with told_errors():
        failures: list[Exception] = []
        sender = client or make_client(failures)
        return _Upload(run, sender, failures, progress or (lambda *_: None)).everything()


class _Upload:
    """One upload of one run."""

    def __init__(self, run: Run, client: Client, failures: list[Exception], tell: Progress) -> None:
        self._run = run
        self._client = client
        self._failures = failures
        self._tell = tell
        self._sent = SentResults(run.path)

    def everything(self) -> UploadSummary:
        """Send all data sets and experiments that have results."""
        used = {line["dataset"] for line in self._run.lines}
        described = [d for d in self._run.manifest["datasets"] if d["name"] in used]
        datasets: dict[str, Dataset] = {}
        told = []
        for one in described:
            datasets[one["name"]], uploaded = self._dataset(one)
            told.append(uploaded)
        cells = [cell for cell in self._run.manifest["cells"] if self._lines_of(cell)]
        experiments = [self._experiment(cell, datasets[cell["dataset"]]) for cell in cells]
        return UploadSummary(tuple(told), tuple(experiments))

    # Data sets

    def _dataset(self, described: Mapping[str, Any]) -> tuple[Dataset, UploadedDataset]:
        from langsmith.utils import LangSmithNotFoundError

        # The hash is part of the name: a changed file is another data set, not a mixture.
        name = f"{described['name']} {str(described.get('sha256') or '')[:8]}".strip()
        try:
            dataset = self._client.read_dataset(dataset_name=name)
        except LangSmithNotFoundError:
            dataset = self._client.create_dataset(
                name,
                description=f"Questions of '{described['name']}', asked by graphmoot eval.",
                metadata={"sha256": described.get("sha256"), "reader": described.get("reader")},
            )
        questions = self._questions_of(described["name"])
        self._tell(f"examples of {name}", 0, len(questions))
        known = {example.id for example in self._client.list_examples(dataset_id=dataset.id)}
        examples = [example_of(question, dataset.id) for question in questions]
        new = [example for example in examples if example["id"] not in known]
        if new:
            self._client.create_examples(dataset_id=dataset.id, examples=new)
        self._tell(f"examples of {name}", len(questions), len(questions))
        url = dataset.url or ""
        return dataset, UploadedDataset(described["name"], name, url, len(examples), len(new))

    def _questions_of(self, dataset: str) -> list[GoldQuestion]:
        return [question for (name, _), question in self._run.questions.items() if name == dataset]

    # Experiments

    def _lines_of(self, cell: Mapping[str, Any]) -> list[ResultLine]:
        key = cell["label"], cell["dataset"], cell["model"]
        lines = self._run.lines
        return [line for line in lines if (line["label"], line["dataset"], line["model"]) == key]

    def _experiment(self, cell: Mapping[str, Any], dataset: Dataset) -> UploadedExperiment:
        lines = self._lines_of(cell)
        names = cell["label"], cell["dataset"], cell["model"]
        name = " · ".join((*names, str(self._run.manifest["run_id"])))
        project = self._project(name, cell, dataset)
        new = [line for line in lines if not self._sent.has(project.id, line)]
        clock = Clock(new, datetime.now(UTC))
        self._tell(name, len(lines) - len(new), len(lines))
        for start in range(0, len(new), BATCH):
            batch = new[start : start + BATCH]
            self._send(batch, cell, project, dataset, clock)
            self._sent.add(project.id, name, batch)
            self._tell(name, len(lines) - len(new) + start + len(batch), len(lines))
        moved = round(clock.moved / timedelta(hours=1), 1)
        url = comparison_url(project, dataset)
        return UploadedExperiment(*names, name, url, len(lines), len(new), moved)

    def _project(self, name: str, cell: Mapping[str, Any], dataset: Dataset) -> TracerSession:
        from langsmith.utils import LangSmithNotFoundError

        try:
            found: TracerSession = self._client.read_project(project_name=name)
        except LangSmithNotFoundError:
            metadata = experiment_metadata(self._run.manifest, cell)
            found = self._client.create_project(
                name,
                description=f"{cell['method']} as '{cell['label']}'",
                reference_dataset_id=dataset.id,
                metadata=metadata,
                project_extra={"tags": tags_of(metadata)},
                num_examples=len(self._questions_of(cell["dataset"])),
            )
        return found

    def _send(
        self,
        lines: Sequence[ResultLine],
        cell: Mapping[str, Any],
        project: TracerSession,
        dataset: Dataset,
        clock: Clock,
    ) -> None:
        """Send results as runs, then what they score as feedback on these runs."""
        runs, feedback = [], []
        for line in lines:
            question = self._question(line)
            run = run_of(line, question, cell, project, dataset.id, clock)
            runs.append(run)
            feedback += feedback_of(line, question, run)
        self._client.batch_ingest_runs(create=runs)
        if self._failures:
            raise self._failures[0]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            # list() brings the first error here.
            list(pool.map(lambda one: one.post(self._client, project.id), feedback))

    def _question(self, line: ResultLine) -> GoldQuestion:
        question = self._run.questions.get((line["dataset"], line["question_id"]))
        if question is None:
            raise RunFolderError(
                f"{self._run.path}: the result of '{line['question_id']}' has no question in "
                "questions.jsonl"
            )
        return question
