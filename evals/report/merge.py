"""From run folders to scored cells: several runs become one, and nothing unlike is mixed.

Lines of the same configuration, data set, model and question: the later folder's counts. A label
that stands for different things in different runs (settings, prompts, data, graph) becomes several
cells, each named after what sets it apart; the report says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evals.records import ResultLine, prediction_of
from evals.report.cells import Answered, ReportCell
from evals.report.identity import identity_of, key_of_cell, name_apart
from evals.run_folder import Run, RunFolderError, read_run


@dataclass
class Merged:
    """Runs as one.

    Attributes:
        runs: as read.
        cells: in the order of the manifests.
        notes: what a reader has to know about the merging.
    """

    runs: list[Run]
    cells: list[ReportCell]
    notes: list[str] = field(default_factory=list)


def read_runs(folders: Sequence[str | Path]) -> Merged:
    """Read, score and merge runs.

    Raises:
        RunFolderError: a folder holds no run, is given twice, or no question was answered in any.
        QuestionFileError: a file in one cannot be read.
    """
    paths = [Path(folder) for folder in folders]
    if len({path.resolve() for path in paths}) < len(paths):
        raise RunFolderError("a folder is given twice; name each run once")
    return merge([read_run(path) for path in paths])


def merge(runs: Sequence[Run]) -> Merged:
    """Score and merge runs, the later one counting where two answer the same."""
    if not any(run.lines for run in runs):
        names = ", ".join(str(run.path) for run in runs)
        raise RunFolderError(
            f"{names}: no question has been answered yet; `graphmoot eval run --resume --out DIR` "
            "goes on with a run"
        )
    merging = _Merging()
    for run in runs:
        merging.add(run)
    cells = [cell for cell in merging.cells if cell.rows]
    if not cells:
        raise RunFolderError("; ".join(merging.notes()))
    notes = [*name_apart(cells), *merging.notes(), *_other_versions(runs)]
    return Merged(list(runs), _in_order(cells), notes)


@dataclass
class _Merging:
    """Cells so far, and what happened on the way."""

    cells: list[ReportCell] = field(default_factory=list)
    replaced: Counter[tuple[Path, Path]] = field(default_factory=Counter)
    unknown: Counter[Path] = field(default_factory=Counter)
    rescored: Counter[Path] = field(default_factory=Counter)

    def add(self, run: Run) -> None:
        """Take a run in."""
        own = {
            key_of_cell(entry): self._cell(run, entry) for entry in run.manifest.get("cells") or []
        }
        for cell in own.values():
            cell.asked |= {number for dataset, number in run.questions if dataset == cell.dataset}
        for line in run.lines:
            if key_of_cell(line) not in own:
                told = {part: line.get(part) for part in ("label", "method", "dataset", "model")}
                own[key_of_cell(line)] = self._cell(run, told)
            self._add_line(run, own[key_of_cell(line)], line)

    def _cell(self, run: Run, entry: Mapping[str, Any]) -> ReportCell:
        identity = identity_of(entry, run.manifest)
        for cell in self.cells:
            if key_of_cell(cell.described) == key_of_cell(entry) and cell.identity == identity:
                return cell
        label, dataset, model = key_of_cell(entry)
        cell = ReportCell(label, label, dataset, model, run.manifest, dict(entry), identity)
        self.cells.append(cell)
        return cell

    def _add_line(self, run: Run, cell: ReportCell, line: ResultLine) -> None:
        from evals.metrics import score_question

        question = line["question_id"]
        gold = run.questions.get((cell.dataset, question))
        if gold is None:
            self.unknown[run.path] += 1
            return
        score = score_question(gold, prediction_of(line["result"], question))
        self.rescored[run.path] += score.outcome != line["outcome"]
        if (earlier := cell.rows.pop(question, None)) is not None:
            self.replaced[earlier.folder, run.path] += 1
        linking = run.linking.get((cell.dataset, question), "none")
        cell.rows[question] = Answered(line, gold, linking, score, run.path)

    def notes(self) -> list[str]:
        """Return what happened, in sentences."""
        notes = [
            f"{count} answers are in {first} and in {later}: those of {later} count"
            for (first, later), count in self.replaced.items()
        ]
        notes += [
            f"{path}: {count} result lines are of questions that questions.jsonl does not have; "
            "they are left out"
            for path, count in self.unknown.items()
        ]
        notes += [
            f"{path}: {count} outcomes differ from those that the run wrote down, as the scoring "
            "has changed since; the new ones count"
            for path, count in self.rescored.items()
            if count
        ]
        return notes


def _other_versions(runs: Sequence[Run]) -> list[str]:
    versions = {str(run.path): str(run.manifest.get("graphmoot")) for run in runs}
    if len(set(versions.values())) < 2:
        return []
    told = ", ".join(f"{path}: {version}" for path, version in versions.items())
    return [f"these runs are of different versions of graphmoot ({told})"]


def _in_order(cells: Sequence[ReportCell]) -> list[ReportCell]:
    """Put cells of one data set and model together; the manifests' order else stays."""
    datasets = list(dict.fromkeys(cell.dataset for cell in cells))
    models = list(dict.fromkeys(cell.model for cell in cells))
    return sorted(cells, key=lambda c: (datasets.index(c.dataset), models.index(c.model)))
