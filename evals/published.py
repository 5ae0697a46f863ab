"""Numbers that papers print, to stand beside one's own: by preset, row, data set and model.

Yu, Chen, Wu 2026: "Debate-on-Graph", Tables 1 to 5; for Fig. 3 and 4 the paper's text gives
findings but no numbers. Another paper's table is added as one more block and its rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Metric = Literal["accuracy", "seconds", "calls", "tokens"]
"""What is printed: `accuracy` in percent, the others as means a question."""


@dataclass(frozen=True)
class PublishedNumber:
    """One printed number.

    Attributes:
        preset: the preset of `evals.presets` that reproduces its table.
        label: the row, as the preset calls it.
        dataset: the column, by data set name.
        model: the model the paper asked.
        metric: what it is.
        value: as printed: percent for accuracy, else seconds, calls or tokens a question.
        n: questions it is over.
        source: paper and table.
    """

    preset: str
    label: str
    dataset: str
    model: str
    metric: Metric
    value: float
    n: int
    source: str


QWEN, GPT = "Qwen3-8B", "GPT-4o-mini"
_SIZES: Mapping[str, int] = {"csqa": 500, "csqa2": 500, "obqa": 500, "medqa": 200}
"""Questions of each data set (Table 1)."""

_TABLE_2: Mapping[str, Sequence[float]] = {
    "Zero-shot": (81.4, 83.4, 69.6, 79.2, 85.4, 91.4, 69.5, 74.0),
    "Few-shot": (77.0, 82.6, 66.8, 78.2, 89.8, 93.2, 72.5, 74.5),
    "CoT": (78.0, 83.6, 73.4, 74.6, 89.2, 93.8, 72.5, 74.5),
    "SC": (82.2, 84.4, 67.4, 74.6, 89.8, 93.8, 72.5, 74.0),
    "ToG": (71.2, 75.8, 47.2, 77.0, 83.4, 83.6, 69.0, 76.0),
    "ODA": (78.2, 85.4, 64.6, 76.2, 85.4, 91.0, 66.5, 69.5),
    "MindMap": (80.9, 81.2, 65.7, 75.6, 85.8, 91.4, 63.5, 73.5),
    "PoG": (70.4, 80.6, 66.2, 74.6, 71.2, 89.0, 64.0, 73.5),
    "KARPA": (72.6, 71.2, 69.0, 72.4, 87.2, 84.4, 71.5, 76.0),
    "DoG": (84.6, 86.0, 77.4, 81.2, 96.2, 96.2, 80.0, 81.5),
    "DoG-E": (84.0, 83.8, 77.4, 80.0, 94.6, 93.6, 79.0, 78.0),
}
"""Qwen3-8B and GPT-4o-mini in turn, for each data set."""

_TABLE_3: Mapping[str, Sequence[float]] = {
    "DoG (full)": (86.0, 81.2, 96.2, 81.5),
    "w/o MAD, w/ UKG (K=1)": (82.8, 72.6, 89.6, 77.0),
    "w/o MAD, w/ UKG (K=3)": (80.8, 72.2, 88.2, 74.5),
    "w/o MAD, w/ UKG (K=5)": (82.4, 72.6, 88.6, 74.0),
    "w/ MAD, w/o UKG": (83.8, 79.0, 93.8, 78.5),
    "w/ MAD, w/o Info Asymmetry": (82.8, 79.0, 93.2, 78.0),
}
_TABLE_4: Mapping[str, Sequence[float]] = {
    "DoG (full)": (86.0, 81.2, 96.2, 81.5),
    "w/ MAD, w/ UKG (K=1)": (83.6, 78.0, 94.4, 77.5),
    "w/ MAD, w/ UKG (K=3)": (84.6, 79.2, 94.4, 79.0),
    "w/ MAD, w/ UKG (K=5)": (84.2, 79.4, 94.6, 80.5),
}
_TABLE_5: Mapping[str, Sequence[float]] = {
    "ToG": (51.89, 18.3, 7190),
    "MindMap": (37.03, 2.8, 2638),
    "DoG": (14.87, 9.0, 3542),
}
_COSTS: tuple[Metric, ...] = ("seconds", "calls", "tokens")

_FIGURE_3 = (
    "Debate-on-Graph, Fig. 3 (no numbers in the text): on CSQA, CSQA 2.0 and OBQA the evidence is "
    "mostly not expanded; on MedQA K shifts to larger values. On all data sets most questions take "
    "the maximum of three rounds."
)
_FIGURE_4 = (
    "Debate-on-Graph, Fig. 4 (Qwen3-8B; no numbers in the text): accuracy peaks at alpha = 1.0 and "
    "at W = 3 on all data sets, and mostly declines for larger W."
)
FINDINGS: Mapping[str, str] = {"dog-figure-3": _FIGURE_3, "dog-figure-4": _FIGURE_4}
"""What a paper says of a figure whose numbers it does not print."""


def _table_2() -> Iterator[PublishedNumber]:
    columns = [(dataset, model) for dataset in _SIZES for model in (QWEN, GPT)]
    for label, values in _TABLE_2.items():
        for (dataset, model), value in zip(columns, values, strict=True):
            yield _accuracy(2, label, dataset, model, value)


def _by_dataset(table: int, rows: Mapping[str, Sequence[float]]) -> Iterator[PublishedNumber]:
    for label, values in rows.items():
        for dataset, value in zip(_SIZES, values, strict=True):
            yield _accuracy(table, label, dataset, GPT, value)


def _accuracy(table: int, label: str, dataset: str, model: str, value: float) -> PublishedNumber:
    preset, source = f"dog-table-{table}", f"Debate-on-Graph, Table {table}"
    return PublishedNumber(
        preset, label, dataset, model, "accuracy", value, _SIZES[dataset], source
    )


def _table_5() -> Iterator[PublishedNumber]:
    for label, values in _TABLE_5.items():
        for metric, value in zip(_COSTS, values, strict=True):
            yield PublishedNumber(
                "dog-table-5",
                label,
                "obqa",
                GPT,
                metric,
                value,
                _SIZES["obqa"],
                "Debate-on-Graph, Table 5",
            )


PUBLISHED: tuple[PublishedNumber, ...] = (
    *_table_2(),
    *_by_dataset(3, _TABLE_3),
    *_by_dataset(4, _TABLE_4),
    *_table_5(),
)


def published(
    label: str, dataset: str, *, metric: Metric = "accuracy", preset: str | None = None
) -> list[PublishedNumber]:
    """Return what is printed for a row and data set, one number a model.

    Args:
        label: the row's name.
        dataset: the data set's name.
        metric: what is asked for.
        preset: the table that is preferred where several have such a row; else the first.
    """
    found = [
        number
        for number in PUBLISHED
        if (number.label, number.dataset, number.metric) == (label, dataset, metric)
    ]
    presets = [number.preset for number in found]
    wanted = preset if preset in presets else next(iter(presets), None)
    return [number for number in found if number.preset == wanted]
