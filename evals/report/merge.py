"""From run folders to scored cells: several runs become one, and nothing unlike is mixed.

Lines of the same configuration, data set, model and question: the later folder's counts. A label
that stands for different things in different runs (settings, prompts, data, graph) becomes several
cells, each named after what sets it apart; the report says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evals.records import Outcome, ResultLine, prediction_of
from evals.run_folder import Run, RunFolderError, read_run

if TYPE_CHECKING:
    from evals.records import QuestionScore
    from nodes.question_file import GoldQuestion

Identity = dict[str, str]
"""All that a configuration's answers depend on besides its label, data set and model."""

ORDER: tuple[Outcome, ...] = ("right", "wrong", "no_answer", "failed")


@dataclass(frozen=True)
class Answered:
    """A question's result line, with what it is held against and how it fared."""

    line: ResultLine
    gold: GoldQuestion
    linking: str
    score: QuestionScore
    folder: Path


@dataclass
class ReportCell:
    """One configuration on one data set with one model, merged over runs.

    Attributes:
        label: as the run calls it.
        title: the label, and what sets it apart from others of that label.
        dataset: name.
        model: specification.
        manifest: of the run that it was first met in.
        described: the cell's entry in that manifest.
        identity: see `Identity`.
        asked: ids of the questions that the runs were to ask.
        rows: by question id, in the order of work.
    """

    label: str
    title: str
    dataset: str
    model: str
    manifest: Mapping[str, Any]
    described: Mapping[str, Any]
    identity: Identity
    asked: set[str] = field(default_factory=set)
    rows: dict[str, Answered] = field(default_factory=dict)

    @property
    def scores(self) -> list[QuestionScore]:
        """The scores in the order of work."""
        return [row.score for row in self.rows.values()]

    @property
    def context(self) -> Mapping[str, Any]:
        """All settings."""
        return self.described.get("context") or {}

    @property
    def model_name(self) -> str:
        """The model's specification, with the name that its server gave where that tells more."""
        own_roles = self.context.get("role_models") or {}
        names = {
            str(call["model"])
            for row in self.rows.values()
            for call in row.line["calls"]
            if call["role"] not in own_roles
        }
        told = sorted(name for name in names if name and name not in self.model)
        return f"{self.model} ({', '.join(told)})" if told else self.model

    @property
    def noise(self) -> Mapping[str, Any] | None:
        """How the graph was corrupted; None for a graph as it came."""
        return (self.manifest.get("graph") or {}).get("noise") or None

    @property
    def outcomes(self) -> Counter[Outcome]:
        """How many questions ended how."""
        return Counter(row.score.outcome for row in self.rows.values())


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
    notes = [*_name_apart(cells), *merging.notes(), *_other_versions(runs)]
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
        own = {_key(entry): self._cell(run, entry) for entry in run.manifest.get("cells") or []}
        for cell in own.values():
            cell.asked |= {number for dataset, number in run.questions if dataset == cell.dataset}
        for line in run.lines:
            if _key(line) not in own:
                own[_key(line)] = self._cell(run, {**line, "settings": {}})
            self._add_line(run, own[_key(line)], line)

    def _cell(self, run: Run, entry: Mapping[str, Any]) -> ReportCell:
        identity = identity_of(entry, run.manifest)
        for cell in self.cells:
            if _key(cell.described) == _key(entry) and cell.identity == identity:
                return cell
        label, dataset, model = _key(entry)
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


def _key(entry: Mapping[str, Any] | ResultLine) -> tuple[str, str, str]:
    return str(entry["label"]), str(entry["dataset"]), str(entry["model"])


def identity_of(entry: Mapping[str, Any], manifest: Mapping[str, Any]) -> Identity:
    """Return all that a cell's answers depend on, each part as a text."""
    context = entry.get("context") or entry.get("settings") or {}
    identity = {"method": str(entry.get("method"))}
    identity |= {f"setting {name}": _text(value) for name, value in sorted(context.items())}
    for module, prompts in sorted((entry.get("prompts") or {}).items()):
        identity[f"prompts {module}"] = str(prompts.get("sha256") or prompts.get("version"))
    for dataset in manifest.get("datasets") or []:
        if dataset["name"] == entry["dataset"]:
            identity["data set"] = str(dataset.get("sha256"))
    graph = manifest.get("graph")
    if graph and _uses_graph(entry):
        identity["graph"] = str(graph.get("sha256") or graph.get("location"))
    return identity


def _uses_graph(entry: Mapping[str, Any]) -> bool:
    for place in (entry, entry.get("context") or {}):
        for name in ("uses_graph", "use_graph"):
            if name in place:
                return bool(place[name])
    from workflows import registry

    try:
        settings = registry.get(str(entry.get("method"))).context
    except registry.UnknownMethodError:
        return True
    return bool(getattr(settings, "use_graph", True))


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _name_apart(cells: Iterable[ReportCell]) -> list[str]:
    """Give cells of one label titles that tell them apart; return what to say about it."""
    groups: dict[tuple[str, str, str], list[ReportCell]] = {}
    for cell in cells:
        groups.setdefault(_key(cell.described), []).append(cell)
    notes: dict[str, None] = {}
    for group in groups.values():
        if len(group) < 2:
            continue
        parts = {part for cell in group for part in cell.identity}
        differing = sorted(p for p in parts if len({c.identity.get(p) for c in group}) > 1)
        for number, cell in enumerate(group, 1):
            cell.title = f"{cell.label} [{_distinction(cell, differing)}]"
            if any(other.title == cell.title for other in group if other is not cell):
                cell.title = f"{cell.title[:-1]}, {number}]"
        what = ", ".join(part.removeprefix("setting ") for part in differing)
        notes[
            f"'{group[0].label}' is not the same configuration in these runs ({what} differ); "
            f"shown apart as {', '.join(cell.title for cell in group)}"
        ] = None
    return list(notes)


def _distinction(cell: ReportCell, differing: Sequence[str]) -> str:
    words = []
    for part in differing:
        kind, _, name = part.partition(" ")
        value = cell.identity.get(part, "none")
        if part == "graph":
            words.append(_graph_name(cell))
        elif kind == "setting":
            words.append(f"{name}={value}")
        elif kind == "method":
            words.append(value)
        else:
            words.append(f"{kind} {value[:7]}")
    return ", ".join(dict.fromkeys(words))


def _graph_name(cell: ReportCell) -> str:
    if cell.noise:
        return f"noise {100 * noise_share(cell.noise):g} %{noise_kind(cell.noise)}"
    graph = cell.manifest.get("graph") or {}
    return f"graph {Path(str(graph.get('location', 'none'))).stem}"


def noise_share(noise: Mapping[str, Any]) -> float:
    """Return the share of facts that were corrupted, 0 to 1."""
    names = ("share", "share_reached", "share_asked")
    return float(next((noise[name] for name in names if noise.get(name) is not None), 0))


def noise_kind(noise: Mapping[str, Any]) -> str:
    """Return what else is to be said of a corruption; '' for the usual one."""
    settings = noise.get("settings") or noise
    usual = {"corrupt": "tail", "tails": "same-relation", "confidence": "keep", "seed": 0}
    told = [f"{n} {settings[n]}" for n, value in usual.items() if settings.get(n, value) != value]
    return "".join(f", {text}" for text in told)


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
