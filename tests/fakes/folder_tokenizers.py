"""Small tokenizers of every kind as the library makes them, and ours read from their files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers

from engine.text.pieces import byte_alphabet
from engine.text.tokenizer import Tokenizer, load_tokenizer
from fakes.tiny_text import SENTENCEPIECE_WORDS, folder_stand_in

CONTROLS = ["<|im_start|>", "<|im_end|>", "<s>", "</s>"]
ORDINARY = ["<think>", "[tool]"]


def finish(library: tokenizers.Tokenizer) -> tokenizers.Tokenizer:
    """With control tokens, and some that are not special."""
    library.add_special_tokens(
        [tokenizers.AddedToken(c, normalized=False, special=True) for c in CONTROLS]
    )
    library.add_tokens([tokenizers.AddedToken(c, normalized=False) for c in ORDINARY])
    return library


def byte_level_library() -> tokenizers.Tokenizer:
    alphabet = list(byte_alphabet().values())
    merges = [("h", "e"), ("l", "l"), ("he", "ll"), ("hell", "o"), ("Ġ", "w")]
    vocab = {p: i for i, p in enumerate([*alphabet, *(a + b for a, b in merges)])}
    library = tokenizers.Tokenizer(models.BPE(vocab, merges))
    library.normalizer = normalizers.NFC()
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    library.decoder = decoders.ByteLevel()
    return finish(library)


def sentencepiece_model() -> models.BPE:
    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{i:02X}>" for i in range(256)), *SENTENCEPIECE_WORDS]
    vocab = {piece: place for place, piece in enumerate(pieces)}
    merges = [
        ("h", "e"), ("l", "l"), ("he", "ll"), ("hell", "o"), ("▁", "hello"), ("w", "o"), ("▁", "wo"),
        ("<", "s"), ("<s", ">"),
    ]  # fmt: skip
    return models.BPE(vocab, merges, unk_token="<unk>", byte_fallback=True, fuse_unk=True)


def sentencepiece_decoder() -> decoders.Decoder:
    return decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )


def legacy_library() -> tokenizers.Tokenizer:
    library = tokenizers.Tokenizer(sentencepiece_model())
    library.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    library.decoder = sentencepiece_decoder()
    return finish(library)


def metaspace_library() -> tokenizers.Tokenizer:
    library = tokenizers.Tokenizer(sentencepiece_model())
    library.pre_tokenizer = pre_tokenizers.Metaspace("▁", prepend_scheme="first", split=False)
    library.decoder = sentencepiece_decoder()
    return finish(library)


def unigram_library() -> tokenizers.Tokenizer:
    pieces = [("<unk>", 0.0), ("<s>", 0.0), ("</s>", 0.0)]
    pieces += [(p, -1.0 - i / 7) for i, p in enumerate(["▁", *"helowrds<>/H|_im", "▁hello", "lo"])]
    library = tokenizers.Tokenizer(models.Unigram(pieces, 0, byte_fallback=False))
    library.pre_tokenizer = pre_tokenizers.Metaspace("▁", prepend_scheme="always")
    library.decoder = decoders.Metaspace("▁", prepend_scheme="always")
    return finish(library)


def wordpiece_library() -> tokenizers.Tokenizer:
    words = ["[UNK]", "[CLS]", "[SEP]", *"helowrds<>/|", "##e", "##l", "##o", "hell", "##s", "s"]
    vocab = {piece: place for place, piece in enumerate(dict.fromkeys(words))}
    library = tokenizers.Tokenizer(models.WordPiece(vocab, unk_token="[UNK]"))
    library.normalizer = normalizers.BertNormalizer(lowercase=True)
    library.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    library.decoder = decoders.WordPiece(cleanup=False)
    return finish(library)


LIBRARIES: dict[str, Callable[[], tokenizers.Tokenizer]] = {
    "byte_level": byte_level_library,
    "legacy": legacy_library,
    "metaspace": metaspace_library,
    "unigram": unigram_library,
    "wordpiece": wordpiece_library,
}


def load(
    folder: Path, library: tokenizers.Tokenizer | str, **files: dict[str, object]
) -> Tokenizer:
    return load_tokenizer(folder_stand_in(folder, library, **files))  # type: ignore[arg-type]
