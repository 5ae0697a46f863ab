"""Where the versions of a graph are written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from evals.noise.settings import NoiseError

RECORD_SUFFIX = ".noise.json"
LIST_SUFFIX = ".corrupted.jsonl.gz"
"""Added to a version's name: its record, and the list of its corrupted facts."""


def default_pattern(location: str) -> str:
    """Return the names of a graph's versions: `DIR/NAME-noise-{share}.graphmoot`, beside it."""
    path = Path(location)
    name = path.name
    for suffix in (".gz", *path.suffixes[-2:]):
        name = name.removesuffix(suffix) or name
    folder = path.parent if path.exists() else Path()
    return str(folder / f"{name}-noise-{{share}}.graphmoot")


def version_paths(pattern: str, shares: Sequence[float], seed: int, source: str) -> list[Path]:
    """Return the store file of each share.

    Args:
        pattern: `{share}` and `{seed}` in it stand for their values.
        shares: each once, 0 to 1.
        seed: of what is drawn.
        source: location of the graph.

    Raises:
        NoiseError: a share is out of range or comes twice; two versions would have one name, or
            one that of the graph.
    """
    if not shares:
        raise NoiseError("no share is given")
    for share in shares:
        if not 0 <= share <= 1:
            raise NoiseError(f"--share {share:g}: is not from 0 to 1")
        if shares.count(share) > 1:
            raise NoiseError(f"--share {share:g}: is given twice")
    if len(shares) > 1 and "{share}" not in pattern:
        raise NoiseError(f"--to {pattern}: several shares need {{share}} in the name")
    paths = [Path(_filled(pattern, share, seed)) for share in shares]
    for path in paths:
        if path.resolve() == Path(source).resolve():
            raise NoiseError(f"--to {path}: is the graph itself; give another name")
    return paths


def _filled(pattern: str, share: float, seed: int) -> str:
    told = repr(float(share)).removesuffix(".0")
    return pattern.replace("{share}", told).replace("{seed}", str(seed))
