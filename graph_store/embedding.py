"""Text embedding: the models, and the cache that all questions and levels share."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol

import numpy as np
import numpy.typing as npt

from graph_store.errors import MissingExtraError, StoreError

DEFAULT_MODEL = "all-MiniLM-L6-v2"
MEMORY_TEXTS = 40_000
"""Vectors kept in memory: about 60 MB at width 384."""

Vectors = npt.NDArray[np.float32]


class Embedder(Protocol):
    """A model that turns texts into vectors.

    Attributes:
        fingerprint: names model, runtime and version; vectors of equal fingerprints are equal.
    """

    fingerprint: str

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return float32 vectors of shape (len(texts), width), each of unit length.

        A text's vector must not depend on the other texts.
        """
        ...


class CachedEmbedder:
    """An embedder that embeds no text twice while it is remembered; safe to share by threads.

    Attributes:
        embedded: how many texts went through the model so far.
    """

    def __init__(self, embedder: Embedder, capacity: int = MEMORY_TEXTS) -> None:
        self.fingerprint = embedder.fingerprint
        self.embedded = 0
        self._embedder = embedder
        self._capacity = capacity
        self._vectors: OrderedDict[str, npt.NDArray[np.float32]] = OrderedDict()
        self._lock = threading.Lock()

    def encode(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder.encode`."""
        with self._lock:
            missing = [text for text in dict.fromkeys(texts) if text not in self._vectors]
            if missing:
                self._vectors.update(zip(missing, self._embedder.encode(missing), strict=True))
                self.embedded += len(missing)
            found = [self._vectors[text] for text in texts]
            for text in texts:
                self._vectors.move_to_end(text)
            while len(self._vectors) > self._capacity:
                self._vectors.popitem(last=False)
        return np.stack(found) if found else np.zeros((0, 0), dtype=np.float32)


_ending = threading.Event()


def stop_embedding() -> None:
    """Break off what is being embedded: the process ends, and native code must not outlive it."""
    _ending.set()


def raise_if_stopped() -> None:
    """Raise `EmbeddingStoppedError` once the process ends; called between batches."""
    if _ending.is_set():
        raise EmbeddingStoppedError("the process ends")


class EmbeddingStoppedError(RuntimeError):
    """Texts were not embedded, as the process ends."""


class SentenceTransformerEmbedder:
    """Any sentence-transformers model by name or folder, on torch.

    Texts are encoded in batches of equal token length where possible; torch's own kernels may
    still differ in the seventh decimal by batch, which the search's rounding to 6 decimals mostly,
    not always, hides.

    Raises:
        MissingExtraError: the extra `embeddings` is not installed.
        StoreError: the model cannot be loaded.
    """

    def __init__(self, name: str) -> None:
        try:
            from sentence_transformers import SentenceTransformer
        except ModuleNotFoundError as error:
            raise MissingExtraError(f"the embedding model '{name}'", "embeddings") from error
        try:
            self._model = SentenceTransformer(name)
        except Exception as error:  # the hub client raises many kinds
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise StoreError(f"embedding model '{name}' cannot be loaded: {reason}") from error
        self.fingerprint = f"{name}/sentence-transformers"

    def encode(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder.encode`."""
        vectors = self._model.encode(
            list(texts), normalize_embeddings=True, show_progress_bar=False, convert_to_numpy=True
        )
        return np.asarray(vectors, dtype=np.float32)


@lru_cache(maxsize=4)
def load_embedder(name: str = DEFAULT_MODEL) -> CachedEmbedder:
    """Return the cached embedder of a model, loaded once a process.

    Args:
        name: `all-MiniLM-L6-v2` (with or without `sentence-transformers/`), or the name or folder
            of another sentence-transformers model.

    Raises:
        MissingExtraError: the extra `embeddings` is not installed.
        StoreError: the model cannot be loaded.
    """
    if name.removeprefix("sentence-transformers/") == DEFAULT_MODEL:
        from graph_store.minilm_onnx import MiniLM

        return CachedEmbedder(MiniLM())
    return CachedEmbedder(SentenceTransformerEmbedder(name))
