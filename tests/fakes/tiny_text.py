"""Small vocabularies for the tests of engine.text, and a stand-in for an open model file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import tokenizers

from engine.api import Chat, ChatMessage
from engine.formats.base import FileFormat, FolderText, TensorInfo
from engine.text.chat_prompt import encode_chat
from engine.text.chat_template import ChatTemplate
from engine.text.pieces import byte_alphabet
from engine.text.tokenizer import Tokenizer, load_tokenizer

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)

CHATML_CONTROLS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")


@dataclass
class StandIn:
    """The part of a `Checkpoint` that engine.text reads."""

    metadata: Mapping[str, object]
    path: Path = Path("tiny.gguf")
    format: FileFormat = FileFormat.GGUF
    architecture: str = "llama"
    chat_template: str | None = None
    folder_text: FolderText | None = None
    tensors: Mapping[str, TensorInfo] = field(default_factory=dict)
    weight_files: tuple[Path, ...] = ()

    def read_float32(self, name: str) -> np.ndarray:
        raise KeyError(name)

    def close(self) -> None:
        pass


def ggml(**fields: object) -> dict[str, object]:
    return {f"tokenizer.ggml.{key}": value for key, value in fields.items()}


def byte_level_metadata(
    *,
    controls: tuple[str, ...] = CHATML_CONTROLS,
    user_defined: tuple[str, ...] = (),
    **more: object,
) -> dict[str, object]:
    """All 256 bytes, a few merges, then the added tokens."""
    alphabet = list(byte_alphabet().values())
    merges = ["h e", "l l", "he ll", "hell o", "Ġ w", "i m", "< |", "| >"]
    words = [merge.replace(" ", "") for merge in merges]
    tokens = [*alphabet, *words, *user_defined, *controls]
    kinds = [NORMAL] * (len(alphabet) + len(words)) + [USER_DEFINED] * len(user_defined)
    kinds += [CONTROL] * len(controls)
    return ggml(model="gpt2", pre="gpt-2", tokens=tokens, token_type=kinds, merges=merges) | ggml(
        **more
    )


def byte_level(**more: object) -> Tokenizer:
    return load_tokenizer(StandIn(byte_level_metadata(**more)))  # type: ignore[arg-type]


SENTENCEPIECE_WORDS = (
    *"▁helowrds<>/", "he", "ll", "hell", "hello", "▁hello", "<s", "wo", "▁wo",
)  # fmt: skip


def sentencepiece_metadata(*, controls: tuple[str, ...] = (), **more: object) -> dict[str, object]:
    """<unk>, <s>, </s>, all bytes, a few words; the piece "<s" invites to make "<s>"."""
    tokens = ["<unk>", "<s>", "</s>", *controls]
    kinds = [UNKNOWN, CONTROL, CONTROL] + [CONTROL] * len(controls)
    tokens += [f"<0x{byte:02X}>" for byte in range(256)]
    kinds += [BYTE] * 256
    tokens += SENTENCEPIECE_WORDS
    kinds += [NORMAL] * len(SENTENCEPIECE_WORDS)
    scores = [-float(place) for place in range(len(tokens))]
    return ggml(
        model="llama",
        tokens=tokens,
        token_type=kinds,
        scores=scores,
        bos_token_id=1,
        eos_token_id=2,
    ) | ggml(**more)


def sentencepiece(**more: object) -> Tokenizer:
    return load_tokenizer(StandIn(sentencepiece_metadata(**more)))  # type: ignore[arg-type]


def folder_stand_in(
    folder: Path,
    library: tokenizers.Tokenizer | str,
    *,
    tokenizer_config: Mapping[str, object] | None = None,
    generation_config: Mapping[str, object] | None = None,
    config: Mapping[str, object] | None = None,
) -> StandIn:
    """A Hugging Face folder with this tokenizer.json and these files beside it."""
    file = folder / "tokenizer.json"
    file.write_text(library if isinstance(library, str) else library.to_str(), encoding="utf-8")
    return StandIn(
        config or {},
        path=folder,
        format=FileFormat.SAFETENSORS,
        folder_text=FolderText(
            tokenizer_json=file,
            tokenizer_config=tokenizer_config or {},
            special_tokens={},
            generation_config=generation_config or {},
        ),
    )


def changed_json(library: tokenizers.Tokenizer, **changes: object) -> str:
    """Its tokenizer.json with some top-level entries exchanged."""
    return json.dumps({**json.loads(library.to_str()), **changes})


def chat_ids(
    tokenizer: Tokenizer,
    template: ChatTemplate,
    messages: Sequence[ChatMessage],
    *,
    continues: bool = False,
) -> list[int]:
    """The tokens of a conversation without tools."""
    chat = Chat(messages=tuple(messages), continues=continues)
    return list(encode_chat(tokenizer, template, chat))
