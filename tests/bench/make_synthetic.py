"""Writes a model of random weights in 4 bits: what a real one of its size would read in a step, without its sense.

Run: python tests/bench/make_synthetic.py FOLDER [--storage Q4_0]. The usual shape is a Llama of 1.5 billion parameters
that reads 1.19 GB a step. Not collected by pytest.
"""
# ruff: noqa: T201 - the path is the point

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np

_BLOCK_VALUES = 32
_BYTES_A_SCALE = 2
_HEAD_STORAGE = "Q8_0"
_BLOCK_BYTES = {"Q4_0": 18, "Q4_1": 20, "Q8_0": 34}
_MIDDLE = {"Q4_0": 0.0, "Q4_1": 7.5, "Q8_0": 0.0}
"""The code that stands for 0 where blocks have a minimum."""
_SPREAD = {"Q4_0": 4.6, "Q4_1": 4.6, "Q8_0": 74.0}
"""The standard deviation of random codes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Of a model of the Llama family; widths are multiples of 32, the vocabulary's first 256 entries are bytes."""

    layers: int = 24
    width: int = 2048
    hidden: int = 8192
    heads: int = 32
    kv_heads: int = 8
    vocabulary: int = 128_000
    context_tokens: int = 4096

    @property
    def head_dim(self) -> int:
        return self.width // self.heads

    def matrices(self) -> dict[str, tuple[int, int]]:
        """Those of a layer, as [outputs, inputs]."""
        keys = self.kv_heads * self.head_dim
        return {
            "attn_q": (self.width, self.width),
            "attn_k": (keys, self.width),
            "attn_v": (keys, self.width),
            "attn_output": (self.width, self.width),
            "ffn_gate": (self.hidden, self.width),
            "ffn_up": (self.hidden, self.width),
            "ffn_down": (self.width, self.hidden),
        }


def random_matrix(storage: str, shape: tuple[int, int], seed: int) -> np.ndarray:
    """Blocks of any codes, with scales that keep a row of unit size about that: bytes [outputs, bytes of a row]."""
    dice = np.random.default_rng(seed)
    size = _BLOCK_BYTES[storage]
    num_blocks = shape[0] * shape[1] // _BLOCK_VALUES
    blocks = np.frombuffer(dice.bytes(num_blocks * size), np.uint8).reshape(-1, size).copy()
    usual = 1 / (_SPREAD[storage] * np.sqrt(shape[1]))
    scales = dice.uniform(0.5 * usual, 1.5 * usual, num_blocks)
    parts = [scales, -_MIDDLE[storage] * scales] if _MIDDLE[storage] else [scales]
    for place, values in enumerate(parts):
        at = place * _BYTES_A_SCALE
        as_bytes = values.astype("<f2").view(np.uint8).reshape(-1, _BYTES_A_SCALE)
        blocks[:, at : at + _BYTES_A_SCALE] = as_bytes
    return blocks.reshape(shape[0], -1)


def write_model(folder: Path, shape: Shape, storage: str = "Q4_1") -> Path:
    """Write the file and return its path. The head is the embedding, in 8 bits."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"random-{shape.layers}x{shape.width}.{storage}.gguf"
    writer = gguf.GGUFWriter(path, "llama", use_temp_file=True)
    _add_facts(writer, shape)
    head = (shape.vocabulary, shape.width)
    _add(writer, "token_embd", random_matrix(_HEAD_STORAGE, head, seed=0), _HEAD_STORAGE)
    ones = np.ones(shape.width, np.float32)
    writer.add_tensor("output_norm.weight", ones)
    for layer in range(shape.layers):
        for place, (name, size) in enumerate(shape.matrices().items()):
            blocks = random_matrix(storage, size, seed=100 * layer + place + 1)
            _add(writer, f"blk.{layer}.{name}", blocks, storage)
        for name in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{layer}.{name}.weight", ones)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add(writer: gguf.GGUFWriter, name: str, blocks: np.ndarray, storage: str) -> None:
    writer.add_tensor(f"{name}.weight", blocks, raw_dtype=gguf.GGMLQuantizationType[storage])


def _add_facts(writer: gguf.GGUFWriter, shape: Shape) -> None:
    letters = _byte_letters()
    tokens = letters + [f"{letters[ord('a')]}{one}" for one in range(shape.vocabulary - 256)]
    writer.add_block_count(shape.layers)
    writer.add_context_length(shape.context_tokens)
    writer.add_embedding_length(shape.width)
    writer.add_feed_forward_length(shape.hidden)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_rope_dimension_count(shape.head_dim)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(shape.vocabulary)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([gguf.TokenType.NORMAL] * shape.vocabulary)
    writer.add_token_merges(["a 0"])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(0)


def _byte_letters() -> list[str]:
    """The letter that stands for each byte in vocabularies of bytes: itself where it can be printed."""
    printed = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(byte) if byte in printed else chr(next(others)) for byte in range(256)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--storage", choices=("Q4_0", "Q4_1"), default="Q4_1")
    given = parser.parse_args()
    print(write_model(given.folder, Shape(), given.storage))


if __name__ == "__main__":
    main()
