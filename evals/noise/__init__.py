"""Versions of a graph with a chosen share of its facts corrupted, for robustness curves."""

from evals.noise.paths import default_pattern
from evals.noise.settings import NoiseError, NoiseSettings
from evals.noise.versions import NoiseRecord, corrupt, corrupt_to_shares

__all__ = [
    "NoiseError",
    "NoiseRecord",
    "NoiseSettings",
    "corrupt",
    "corrupt_to_shares",
    "default_pattern",
]
