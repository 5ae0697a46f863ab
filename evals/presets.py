"""The tables and figures of the papers as lists of configurations, under the papers' row names.

Debate-on-Graph (2026): Table 2 (methods), Table 3 (ablations), Table 4 (fixed K), Table 5 (cost),
Fig. 3 (K and rounds at the end), Fig. 4 (alpha and W).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from evals.plan import Configuration, PlanError

_DOG = "debate-on-graph"
_ALL = ("csqa", "csqa2", "obqa", "medqa")


@dataclass(frozen=True)
class Preset:
    """A table or figure of a paper.

    Attributes:
        name: on the command line.
        title: what it is of.
        configurations: its rows.
        datasets: its columns, by data set name.
        note: what cannot be as in the paper.
    """

    name: str
    title: str
    configurations: tuple[Configuration, ...]
    datasets: tuple[str, ...] = _ALL
    note: str = ""


def _dog(label: str, **settings: Any) -> Configuration:
    return Configuration(label, _DOG, settings)


_FULL = _dog("DoG (full)")
_BASELINES = (
    Configuration("Zero-shot", "zero-shot"),
    Configuration("Few-shot", "few-shot"),
    Configuration("CoT", "chain-of-thought"),
    Configuration("SC", "self-consistency"),
)
_ON_GRAPHS = (
    Configuration("ToG", "think-on-graph"),
    Configuration("ODA", "oda"),
    Configuration("MindMap", "mindmap"),
    Configuration("PoG", "paths-over-graph"),
    Configuration("KARPA", "karpa"),
)
_MEDQA = (
    "MedQA-US goes with MedKGent in the paper, which is not at hand: give a medical graph of your "
    "own, or leave the set out with --dataset"
)
ALPHAS = (0.0, 0.5, 1.0, 1.5, 2.0)
WIDTHS = (1, 2, 3, 4, 5)

PRESETS: Mapping[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset(
            "dog-table-2",
            "Accuracy of DoG, DoG-E and the baselines",
            (*_BASELINES, *_ON_GRAPHS, _dog("DoG"), _dog("DoG-E", ignore_confidence=True)),
            note=_MEDQA,
        ),
        Preset(
            "dog-table-3",
            "Ablations of DoG",
            (
                _FULL,
                *(_dog(f"w/o MAD, w/ UKG (K={k})", debate=False, fixed_k=k) for k in (1, 3, 5)),
                _dog("w/ MAD, w/o UKG", use_graph=False),
                _dog("w/ MAD, w/o Info Asymmetry", information_asymmetry=False),
            ),
            note=_MEDQA,
        ),
        Preset(
            "dog-table-4",
            "DoG against a fixed K",
            (_FULL, *(_dog(f"w/ MAD, w/ UKG (K={k})", fixed_k=k) for k in (1, 3, 5))),
            note=_MEDQA,
        ),
        Preset(
            "dog-table-5",
            "Time, calls and tokens a question",
            (*(c for c in _ON_GRAPHS if c.label in ("ToG", "MindMap")), _dog("DoG")),
            ("obqa",),
        ),
        Preset("dog-figure-3", "K and round at the end of the debate", (_dog("DoG"),), note=_MEDQA),
        Preset(
            "dog-figure-4",
            "Accuracy by alpha and by W",
            (
                *(_dog(f"alpha={alpha:g}", alpha=alpha) for alpha in ALPHAS),
                *(_dog(f"W={width}", width=width) for width in WIDTHS),
            ),
            note=f"{_MEDQA}; the paper does not print which values it took",
        ),
    )
}


def get_preset(name: str) -> Preset:
    """Return a preset by name; raises `PlanError` with those there are."""
    if name not in PRESETS:
        raise PlanError(f"no preset '{name}'; there are {', '.join(PRESETS)}")
    return PRESETS[name]


def available(
    configurations: Iterable[Configuration], methods: Iterable[str]
) -> tuple[list[Configuration], list[str]]:
    """Return those whose method there is, and the labels of the others."""
    known = set(methods)
    rows = list(configurations)
    return (
        [row for row in rows if row.method in known],
        [row.label for row in rows if row.method not in known],
    )
