"""A deterministic embedder without a model: words hashed into a small unit vector."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np


class FakeEmbedder:
    """Texts that share words are similar; a text's vector never depends on the others."""

    fingerprint = "fake/1"

    def __init__(self, width: int = 64) -> None:
        self.width = width
        self.texts: list[str] = []

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        self.texts += texts
        return np.stack([self._vector(text) for text in texts])

    def _vector(self, text: str) -> np.ndarray:
        vector = np.full(self.width, 0.01)
        for word in text.casefold().replace(",", " ").replace("?", " ").split():
            digest = hashlib.blake2b(word.encode(), digest_size=4).digest()
            vector[int.from_bytes(digest, "big") % self.width] += 1.0
        return (vector / np.linalg.norm(vector)).astype(np.float32)
