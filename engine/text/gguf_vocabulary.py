"""The vocabulary of a GGUF file: which tokens there are, what each is for, and which end a reply.

Used by the thread that opens the file. No torch.
Source of the rules where the file does not say: llama.cpp.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from engine.errors import UnsupportedModel
from engine.formats.base import Checkpoint
from engine.formats.mapped_file import shorten
from engine.text.added_tokens import AddedToken
from engine.text.gguf_fields import GgufFields, TokenKind
from engine.text.gguf_pipelines import (
    HIDDEN_KINDS,
    GgufTokens,
    byte_level_pipeline,
    sentencepiece_pipeline,
    unigram_pipeline,
    wordpiece_pipeline,
)
from engine.text.pieces import PieceStyle
from engine.text.pre_tokenizers import PRE_TOKENIZERS, PreTokenizer
from engine.text.vocabulary import SpecialTokens, Vocabulary, end_of_reply_ids, may_be_control

MAX_TOKENS = 1 << 20
"""The largest vocabularies have some 262,144."""

_LOG = logging.getLogger(__name__)

_END_KEYS = ("eos_token_id", "eot_token_id", "eom_token_id")
_FILL_IN_KEYS = (
    ("fim_pre_token_id", "prefix_token_id"),
    ("fim_suf_token_id", "suffix_token_id"),
    ("fim_mid_token_id", "middle_token_id"),
)
"""Each with its older spelling."""
_NAMED_KEYS = {
    "bos_token": "bos_token_id",
    "eos_token": "eos_token_id",
    "unk_token": "unknown_token_id",
    "sep_token": "seperator_token_id",  # the specification's spelling
    "pad_token": "padding_token_id",
    "cls_token": "cls_token_id",
    "mask_token": "mask_token_id",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Defaults:
    """What holds for a kind of vocabulary where the file does not say."""

    bos_id: int | None = None
    eos_id: int | None = None
    unknown_id: int | None = None
    separator_id: int | None = None
    add_bos: bool = False
    add_eos: bool = False


_SENTENCEPIECE = _Defaults(bos_id=1, eos_id=2, unknown_id=0, add_bos=True)
_UNIGRAM = _Defaults(eos_id=1, unknown_id=2, add_eos=True)
_WORDPIECE = _Defaults(bos_id=101, unknown_id=100, separator_id=102, add_bos=True)


def read_gguf_vocabulary(checkpoint: Checkpoint) -> Vocabulary:
    """The vocabulary and its tokenising pipeline.

    Raises CorruptModel, naming the key, and UnsupportedModel for a kind that is not known.
    """
    fields = GgufFields(checkpoint)
    model = fields.text("model", "")
    style, space = PieceStyle.SENTENCEPIECE, fields.flag("add_space_prefix", default=True)
    match model:
        case "gpt2":
            rules = _pre_tokenizer(fields)
            tokens = _read_tokens(fields)
            special = _special_tokens(fields, tokens, _Defaults(add_bos=rules.add_bos))
            pipeline = byte_level_pipeline(fields, tokens, rules)
            style, space = PieceStyle.BYTE_LEVEL, False
        case "llama":
            tokens = _read_tokens(fields)
            special = _special_tokens(fields, tokens, _SENTENCEPIECE)
            pipeline = sentencepiece_pipeline(fields, tokens, special.unknown_id)
        case "t5":
            tokens = _read_tokens(fields)
            special = _special_tokens(fields, tokens, _UNIGRAM)
            pipeline = unigram_pipeline(fields, tokens, special.unknown_id)
        case "bert":  # the file spells it as SentencePiece does, with a space before each word
            tokens = _read_tokens(fields)
            special = _special_tokens(fields, tokens, _WORDPIECE)
            pipeline, space = wordpiece_pipeline(fields, tokens, special.unknown_id), True
        case _:
            raise UnsupportedModel(
                f"{fields.name}: tokenizer.ggml.model is {shorten(model)}, "
                "supported are gpt2, llama, t5 and bert"
            )
    return Vocabulary(
        pieces=tokens.pieces,
        style=style,
        added=tuple(_added_tokens(tokens)),
        special=special,
        pipeline=pipeline,
        space_before_text=space,
    )


def _pre_tokenizer(fields: GgufFields) -> PreTokenizer:
    name = fields.text("pre", "")
    if not name:
        _LOG.warning(
            "%s: tokenizer.ggml.pre is missing, taking the default; texts may be cut differently "
            "from what the model learned",
            fields.name,
        )
    rules = PRE_TOKENIZERS.get(name or "default")
    if rules is None:
        raise UnsupportedModel(
            f"{fields.name}: tokenizer.ggml.pre is {shorten(name)}, which this version does not "
            "know; a newer one may"
        )
    return rules


def _read_tokens(fields: GgufFields) -> GgufTokens:
    pieces = fields.strings("tokens", limit=MAX_TOKENS)
    if not pieces:
        raise fields.corrupt("tokens", "is empty")
    size = len(pieces)
    kinds = fields.kinds(length=size)
    ids = dict(zip(reversed(pieces), range(size - 1, -1, -1), strict=True))
    if len(ids) != size:
        twice = [piece for place, piece in enumerate(pieces) if ids[piece] != place]
        if any(twice):  # empty pieces are unused places
            raise fields.corrupt("tokens", f"has {shorten(max(twice))} twice")
    # Files often give the tokens that end a turn another kind than CONTROL.
    ends = set(end_of_reply_ids(ids))
    for key in ("bos_token_id", *_END_KEYS):
        token_id = fields.token_id(key, vocab_size=size)
        if token_id is not None and may_be_control(pieces[token_id]):
            ends.add(token_id)
    for token_id in ends:
        kinds[token_id] = TokenKind.CONTROL
    return GgufTokens(pieces=pieces, kinds=kinds, ids=ids)


def _special_tokens(fields: GgufFields, tokens: GgufTokens, defaults: _Defaults) -> SpecialTokens:
    def token_id(key: str, default: int | None = None) -> int | None:
        return fields.token_id(key, vocab_size=len(tokens.pieces), default=default)

    bos_id = token_id("bos_token_id", token_id("cls_token_id", defaults.bos_id))
    eos_id = token_id("eos_token_id", defaults.eos_id)
    separator_id = token_id("seperator_token_id", defaults.separator_id)
    add_bos = fields.flag("add_bos_token", default=defaults.add_bos)
    add_eos = fields.flag("add_eos_token", default=defaults.add_eos)
    add_separator = fields.flag("add_sep_token", default=defaults.separator_id is not None)
    suffix = separator_id if add_separator else eos_id if add_eos else None
    listed = (eos_id, *map(token_id, _END_KEYS))
    before, after, gap = (token_id(key, token_id(older)) for key, older in _FILL_IN_KEYS)
    named = {name: token_id(key) for name, key in _NAMED_KEYS.items()}
    named |= {"bos_token": bos_id, "eos_token": eos_id}
    return SpecialTokens(
        bos_id=bos_id,
        eos_ids=end_of_reply_ids(tokens.ids) | {i for i in listed if i is not None},
        unknown_id=token_id("unknown_token_id", defaults.unknown_id),
        prefix=() if bos_id is None or not add_bos else (bos_id,),
        suffix=() if suffix is None else (suffix,),
        fill_in=(before, after, gap),
        names={name: tokens.pieces[i] for name, i in named.items() if i is not None},
    )


def _added_tokens(tokens: GgufTokens) -> list[AddedToken]:
    """What is matched before tokenising. The unknown token is matched like a control token."""
    return [
        AddedToken(token_id=token_id, content=piece, control=kind in HIDDEN_KINDS)
        for token_id, (piece, kind) in enumerate(zip(tokens.pieces, tokens.kinds, strict=True))
        if piece and (kind in HIDDEN_KINDS or kind == TokenKind.USER_DEFINED)
    ]
