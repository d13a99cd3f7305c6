"""Sound tiny models of every kind, held in memory: what the fuzzer starts from."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

from tokenizers import Tokenizer

from fakes.fuzz.tokenizers import CHARACTER_MAP, folder_tokenizers
from fakes.gguf_bytes import ARRAY, F32, I32, STRING, U8, U32, RawGguf, RawKey, array, number, text
from fakes.tiny_files import write_tiny_folder, write_tiny_gguf
from fakes.tiny_model import tiny_vocabulary

_ROPE_SCALINGS: tuple[dict[str, object], ...] = (
    {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
     "original_max_position_embeddings": 128},
    {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 128},
    {"rope_type": "linear", "factor": 2.0},
)  # fmt: skip
_SPECIAL_IDS = {"unknown": 0, "bos": 1, "eos": 2, "seperator": 2, "padding": 0}
_NORMAL, _UNKNOWN, _CONTROL, _BYTE = 1, 2, 3, 6


@dataclass(frozen=True, slots=True)
class Model:
    """Files by name, and which of them is opened ("" is their folder)."""

    files: dict[str, bytes]
    opened: str

    def write(self, folder: Path) -> Path:
        """Make `folder` hold exactly these files; returns what to open."""
        folder.mkdir(exist_ok=True)
        for path in folder.iterdir():
            if path.name not in self.files:
                path.unlink()
        for name, content in self.files.items():
            (folder / name).write_bytes(content)
        return folder / self.opened if self.opened else folder


def sound_models(folder: Path) -> list[Model]:
    """One model of each kind; `folder` is scratch space."""
    gguf_model = _gguf(write_tiny_gguf(folder / "0", storage="F16"))
    folder_model = _folder(write_tiny_folder(folder / "1", dtype="F32"))
    return [
        gguf_model,
        folder_model,
        _gguf(write_tiny_gguf(folder / "2", architecture="qwen2", storage="Q8_0", tied=False)),
        _gguf(write_tiny_gguf(folder / "3", architecture="qwen3", storage="Q4_0")),
        _gguf(write_tiny_gguf(folder / "4", storage="BF16", tensors_per_shard=8)),
        _folder(write_tiny_folder(folder / "5", model_type="qwen3", dtype="BF16", shards=3)),
        _folder(write_tiny_folder(folder / "6", model_type="mistral", dtype="F16", tied=False)),
        *(_with_vocabulary(gguf_model, kind) for kind in ("llama", "bert", "t5")),
        *(_with_tokenizer(folder_model, tokenizer) for tokenizer in folder_tokenizers()),
        *(_with_rope_scaling(folder_model, scaling) for scaling in _ROPE_SCALINGS),
        _with_rope_keys(gguf_model),
    ]


def _gguf(path: Path) -> Model:
    return replace(_folder(path.parent), opened=path.name)


def _folder(folder: Path) -> Model:
    return Model({path.name: path.read_bytes() for path in sorted(folder.iterdir())}, "")


def _with_vocabulary(model: Model, kind: str) -> Model:
    """The same GGUF model with a vocabulary of another kind, of as many tokens."""
    tokens, kinds = _pieces(kind, len(tiny_vocabulary()[0]))
    scores = [-float(i) for i in range(len(tokens))]
    raw = RawGguf.parse(model.files[model.opened])
    raw.keys = [key for key in raw.keys if not key.name.startswith(b"tokenizer.ggml.")]
    raw.keys += [
        RawKey(b"tokenizer.ggml.model", STRING, text(kind)),
        RawKey(b"tokenizer.ggml.tokens", ARRAY, array(STRING, [text(token) for token in tokens])),
        RawKey(
            b"tokenizer.ggml.scores", ARRAY, array(F32, [number(F32, score) for score in scores])
        ),
        RawKey(
            b"tokenizer.ggml.token_type", ARRAY, array(I32, [number(I32, kind) for kind in kinds])
        ),
    ]
    if kind == "t5":
        content = array(U8, [bytes([byte]) for byte in CHARACTER_MAP])
        raw.keys.append(RawKey(b"tokenizer.ggml.precompiled_charsmap", ARRAY, content))
    raw.keys += [
        RawKey(f"tokenizer.ggml.{name}_token_id".encode(), U32, number(U32, token_id))
        for name, token_id in _SPECIAL_IDS.items()
    ]
    return Model({model.opened: raw.build()}, model.opened)


def _pieces(kind: str, count: int) -> tuple[list[str], list[int]]:
    """Tokens and token types of a SentencePiece ("llama"), WordPiece or Unigram vocabulary."""
    if kind == "bert":
        tokens, kinds = ["[UNK]", "[CLS]", "[SEP]"], [_UNKNOWN, _CONTROL, _CONTROL]
    else:
        tokens, kinds = ["<unk>", "<s>", "</s>"], [_UNKNOWN, _CONTROL, _CONTROL]
        tokens += [f"<0x{byte:02X}>" for byte in range(256)]
        kinds += [_BYTE] * 256
    letters = [mark + chr(letter) for mark in ("▁", "") for letter in range(0x61, 0x7B)]
    fill = letters + [a + b for a in letters for b in letters[26:]]
    kinds += [_NORMAL] * (count - len(tokens))
    return tokens + fill[: count - len(tokens)], kinds


def _with_tokenizer(model: Model, tokenizer: Tokenizer) -> Model:
    return replace(model, files={**model.files, "tokenizer.json": tokenizer.to_str().encode()})


def _with_rope_scaling(model: Model, scaling: dict[str, object]) -> Model:
    config = {**json.loads(model.files["config.json"]), "rope_scaling": scaling}
    return replace(model, files={**model.files, "config.json": json.dumps(config).encode()})


def _with_rope_keys(model: Model) -> Model:
    """The same GGUF model with YaRN scaling."""
    raw = RawGguf.parse(model.files[model.opened])
    raw.keys += [
        RawKey(b"llama.rope.scaling.type", STRING, text("yarn")),
        RawKey(b"llama.rope.scaling.factor", F32, number(F32, 4)),
        RawKey(b"llama.rope.scaling.original_context_length", U32, number(U32, 128)),
    ]
    return Model({model.opened: raw.build()}, model.opened)
