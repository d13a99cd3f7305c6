"""Builds the tokenising pipeline of a GGUF vocabulary, one function per kind of vocabulary.

Control and unknown tokens stay out of every model built here, so no text can merge into one. Used
by the thread that opens the file. No torch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import tokenizers
from tokenizers import Regex, models, normalizers, pre_tokenizers

from engine.text.gguf_fields import GgufFields, TokenKind
from engine.text.pieces import WORD_START
from engine.text.pre_tokenizers import PreTokenizer
from engine.text.text_pipeline import (
    MAX_GROWTH,
    MAX_UNKNOWN_CHARS,
    TextPipeline,
    library_errors,
    longest_replacement,
)

HIDDEN_KINDS = (TokenKind.CONTROL, TokenKind.UNKNOWN)
"""Tokens that no ordinary text may become."""
MAX_MERGES = 1 << 21
"""The largest vocabularies have some 600,000."""
MAX_MERGED_CHARS = 256
"""Longer tokens are taken whole or not at all; SentencePiece makes none over 16 by itself."""
_MAX_WORD_CHARS = 100
"""A longer word is one unknown token, as in BERT; WordPiece takes the cube of a word's length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GgufTokens:
    """The token list: piece and kind by id, and the first id of each piece."""

    pieces: Sequence[str]
    kinds: Sequence[int]
    ids: Mapping[str, int]

    def visible(self) -> dict[str, int]:
        """The tokens a text may become."""
        return {
            piece: token_id
            for piece, token_id in self.ids.items()
            if piece and self.kinds[token_id] not in HIDDEN_KINDS
        }


def byte_level_pipeline(
    fields: GgufFields, tokens: GgufTokens, rules: PreTokenizer
) -> TextPipeline:
    """Byte-pair merges over bytes spelled as characters (GPT-2 and most of today's models)."""
    try:
        merges = [
            (a, b)
            for a, b in (
                merge.split(" ", 1) for merge in fields.strings("merges", limit=MAX_MERGES)
            )
        ]
    except ValueError:
        raise fields.corrupt(
            "merges", "has an entry that is not two pieces with a space between"
        ) from None
    with library_errors(f"{fields.name}: tokenizer.ggml.merges"):
        model = models.BPE(tokens.visible(), merges, ignore_merges=rules.ignore_merges)
    library = tokenizers.Tokenizer(model)
    library.pre_tokenizer = rules.build()
    return TextPipeline(fields.name, library, library)


def sentencepiece_pipeline(
    fields: GgufFields, tokens: GgufTokens, unknown_id: int | None
) -> TextPipeline:
    """SentencePiece's byte-pair model: the pair that makes the token of the highest score goes first.

    A text after a control token gets the space of a beginning too, as models of this kind learned it.
    """
    scores = fields.scores(length=len(tokens.pieces))
    vocab = tokens.visible()
    merges = _merges_by_score(vocab, tokens.kinds, scores)
    if len(merges) > MAX_MERGES:
        raise fields.corrupt("tokens", f"fit together in more than {MAX_MERGES} ways")
    unknown = _add_unknown(fields, tokens, vocab, unknown_id)
    with library_errors(f"{fields.name}: tokenizer.ggml.tokens"):
        model = models.BPE(vocab, merges, unk_token=unknown, fuse_unk=True, byte_fallback=True)
    library = tokenizers.Tokenizer(model)
    prefix = fields.flag("add_space_prefix", default=True)
    library.normalizer = normalizers.Sequence(
        [
            *([normalizers.Prepend(WORD_START)] if prefix else []),
            normalizers.Replace(" ", WORD_START),
        ]
    )
    return TextPipeline(fields.name, library, library)


def _merges_by_score(
    vocab: Mapping[str, int], kinds: Sequence[int], scores: Sequence[float]
) -> list[tuple[str, str]]:
    """Every way to put a token together from two, best score first; a little over the limit at most."""
    found: list[tuple[float, int, int, str, str]] = []
    for piece, token_id in vocab.items():
        if kinds[token_id] not in (TokenKind.NORMAL, TokenKind.UNUSED):
            continue
        if len(piece) > MAX_MERGED_CHARS or len(found) > MAX_MERGES:
            continue
        for cut in range(1, len(piece)):
            left, right = piece[:cut], piece[cut:]
            if left in vocab and right in vocab:
                found.append((-scores[token_id], vocab[left], vocab[right], left, right))
    found.sort()
    return [(left, right) for *_, left, right in found]


def unigram_pipeline(
    fields: GgufFields, tokens: GgufTokens, unknown_id: int | None
) -> TextPipeline:
    """SentencePiece's unigram model: the cut with the highest sum of scores."""
    scores = fields.scores(length=len(tokens.pieces))
    # The library's ids are places in the list. A piece with a space in it is out of reach: all
    # spaces of the text have become WORD_START.
    pieces = [
        (f" {piece}" if kind in HIDDEN_KINDS or not piece else piece, float(score))
        for piece, kind, score in zip(tokens.pieces, tokens.kinds, scores, strict=True)
    ]
    with library_errors(f"{fields.name}: tokenizer.ggml.tokens"):
        model = models.Unigram(pieces, unknown_id, byte_fallback=TokenKind.BYTE in tokens.kinds)
    library = tokenizers.Tokenizer(model)
    library.normalizer = normalizers.Sequence(_unigram_normalizers(fields))
    prefix = fields.flag("add_space_prefix", default=True)
    library.pre_tokenizer = pre_tokenizers.Metaspace(
        WORD_START, prepend_scheme="always" if prefix else "never"
    )
    return TextPipeline(fields.name, library, library)


def _unigram_normalizers(fields: GgufFields) -> list[normalizers.Normalizer]:
    steps: list[normalizers.Normalizer] = []
    if table := fields.raw_bytes("precompiled_charsmap"):
        field = f"{fields.name}: tokenizer.ggml.precompiled_charsmap"
        try:
            growth = longest_replacement(table)
        except ValueError as error:
            raise fields.corrupt("precompiled_charsmap", f"is no table ({error})") from None
        if growth > MAX_GROWTH:
            raise fields.corrupt(
                "precompiled_charsmap", f"makes more than {MAX_GROWTH} bytes of one character"
            )
        with library_errors(field):
            steps.append(normalizers.Precompiled(table))
    if fields.flag("remove_extra_whitespaces", default=False):
        steps += [normalizers.Strip(), normalizers.Replace(Regex(" {2,}"), " ")]
    return steps


def wordpiece_pipeline(
    fields: GgufFields, tokens: GgufTokens, unknown_id: int | None
) -> TextPipeline:
    """BERT's longest-match model. In the file a piece that begins a word has WORD_START before it."""
    vocab = {
        piece[1:] if piece.startswith(WORD_START) else f"##{piece}": token_id
        for piece, token_id in tokens.visible().items()
    }
    unknown = _add_unknown(fields, tokens, vocab, unknown_id)
    lowercase = fields.flag("normalizer.lowercase", default=True)
    with library_errors(f"{fields.name}: tokenizer.ggml.tokens"):
        model = models.WordPiece(
            vocab, unk_token=unknown or "[UNK]", max_input_chars_per_word=_MAX_WORD_CHARS
        )
    library = tokenizers.Tokenizer(model)
    library.normalizer = normalizers.BertNormalizer(
        lowercase=lowercase,
        strip_accents=fields.flag("normalizer.strip_accents", default=lowercase),
    )
    library.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return TextPipeline(fields.name, library, library)


def _add_unknown(
    fields: GgufFields, tokens: GgufTokens, vocab: dict[str, int], unknown_id: int | None
) -> str | None:
    """Make the unknown token known to a model's `vocab`; returns its piece."""
    if unknown_id is None:
        return None
    piece = tokens.pieces[unknown_id]
    if len(piece) > MAX_UNKNOWN_CHARS:
        raise fields.corrupt(
            "tokens",
            f"spells the unknown token with {len(piece)} characters, the limit is {MAX_UNKNOWN_CHARS}",
        )
    vocab[piece] = unknown_id
    return piece
