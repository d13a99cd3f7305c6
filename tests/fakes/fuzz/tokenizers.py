"""tokenizer.json files of the kinds that real models have, each of as many tokens as the tiny models."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
)

from fakes.tiny_model import CONTROL_TOKENS, byte_characters, tiny_vocabulary

_SPACE = "▁"
CHARACTER_MAP = struct.pack("<I", 1024) + bytes(1024)
"""A precompiled normalizer of SentencePiece that changes nothing: a trie of 256 empty units."""


def folder_tokenizers() -> Iterator[Tokenizer]:
    """Byte-level BPE as newer models cut it, SentencePiece BPE, Unigram and WordPiece."""
    for tokenizer in (_cut_by_regex(), _sentence_pieces(), _unigram(), _word_pieces()):
        tokenizer.add_special_tokens([AddedToken(token, special=True) for token in CONTROL_TOKENS])
        yield tokenizer


def _letters() -> list[str]:
    return [mark + chr(letter) for mark in (_SPACE, "") for letter in range(0x61, 0x7B)]


def _cut_by_regex() -> Tokenizer:
    tokens, merges = tiny_vocabulary()
    vocabulary = {token: token_id for token_id, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges, ignore_merges=True))
    tokenizer.normalizer = normalizers.NFC()
    words = pre_tokenizers.Split(Regex(r"\p{N}{1,3}|\s?\p{L}+|\s+|[^\s\p{L}\p{N}]+"), "isolated")
    plain = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([words, plain])
    tokenizer.decoder = decoders.ByteLevel()
    start = CONTROL_TOKENS[1]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{start} $A", pair=f"{start} $A {start} $B", special_tokens=[(start, 1)]
    )
    return tokenizer


def _sentence_pieces() -> Tokenizer:
    tokens = [*CONTROL_TOKENS, *(f"<0x{byte:02X}>" for byte in range(256)), _SPACE, *_letters()]
    vocabulary = {token: token_id for token_id, token in enumerate(tokens[:297])}
    merges = [
        (_SPACE, token[1:])
        for token in vocabulary
        if token[0] == _SPACE and token[1:] in vocabulary
    ]
    model = models.BPE(
        vocab=vocabulary,
        merges=merges,
        unk_token=CONTROL_TOKENS[0],
        fuse_unk=True,
        byte_fallback=True,
    )
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend(_SPACE), normalizers.Replace(" ", _SPACE)]
    )
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.Replace(_SPACE, " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    return tokenizer


def _unigram() -> Tokenizer:
    tokens = [*CONTROL_TOKENS, _SPACE, *_letters(), *byte_characters()][:297]
    scores = [(token, -float(index)) for index, token in enumerate(dict.fromkeys(tokens))]
    tokenizer = Tokenizer(models.Unigram(scores, unk_id=0))
    tokenizer.normalizer = normalizers.Precompiled(CHARACTER_MAP)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    return tokenizer


def _word_pieces() -> Tokenizer:
    letters = [chr(letter) for letter in range(0x61, 0x7B)]
    tokens = [*CONTROL_TOKENS, *letters, *(f"##{letter}" for letter in letters)]
    vocabulary = {token: token_id for token_id, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token=CONTROL_TOKENS[0]))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    return tokenizer
