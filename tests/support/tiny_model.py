"""A real model for onnxruntime, of some kilobytes: each word has a vector, a text has their mean.

Written as ONNX's own wire format (protocol buffers), so that no package is needed to build it.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

WORDS = (
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "tea",
    "kayak",
    "river",
    "red",
    "green",
    "query",
    "passage",
    "plumber",
    "boiler",
    "number",
    "text",
    "one",
    "two",
    "three",
    ".",
    ":",
    ",",
    "hums",
    "floods",
    "mends",
)
READS = 40


def build(
    folder: Path,
    *,
    dimensions: int = 384,
    seed: int = 7,
    file: str = "model.onnx",
    times: float = 1.0,
) -> Path:
    """Write the model's files; its numbers are multiplied by ``times``."""
    folder.mkdir(parents=True, exist_ok=True)
    table = np.random.default_rng(seed).normal(size=(len(WORDS), dimensions)).astype("<f4")
    table *= np.float32(times)
    (folder / file).parent.mkdir(exist_ok=True)
    (folder / file).write_bytes(_onnx(table))
    tokenizer = Tokenizer(WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    limits = {"model_max_length": READS, "pad_token": "[PAD]"}
    (folder / "tokenizer_config.json").write_text(json.dumps(limits))
    config = {"hidden_size": dimensions, "pad_token_id": 0}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def _onnx(table: np.ndarray) -> bytes:
    """Gather(table, input_ids), the mask being read and not needed: the pooling is fastembed's."""
    rows, width = table.shape
    weights = _number(1, rows) + _number(1, width) + _number(2, 1)  # dims, float32
    weights += _bytes(8, b"table") + _bytes(9, table.tobytes())
    node = _bytes(1, b"table") + _bytes(1, b"input_ids") + _bytes(2, b"found")
    node += _bytes(4, b"Gather")
    same = _bytes(1, b"attention_mask") + _bytes(2, b"mask") + _bytes(4, b"Identity")
    graph = _bytes(1, node) + _bytes(1, same) + _bytes(2, b"tiny") + _bytes(5, weights)
    for name in (b"input_ids", b"attention_mask"):
        graph += _bytes(11, _value(name, 7, [b"batch", b"length"]))
    graph += _bytes(12, _value(b"found", 1, [b"batch", b"length", width]))
    graph += _bytes(12, _value(b"mask", 7, [b"batch", b"length"]))
    return _number(1, 8) + _bytes(7, graph) + _bytes(8, _number(2, 13))


def _value(name: bytes, kind: int, shape: list[bytes | int]) -> bytes:
    sizes = b"".join(
        _bytes(1, _number(1, size) if isinstance(size, int) else _bytes(2, size)) for size in shape
    )
    return _bytes(1, name) + _bytes(2, _bytes(1, _number(1, kind) + _bytes(2, sizes)))


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])
