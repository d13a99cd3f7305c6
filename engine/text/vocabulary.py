"""What a model file says about its tokens, in one form for every kind of file. Immutable. No torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from engine.text.added_tokens import AddedToken
from engine.text.pieces import PieceStyle
from engine.text.text_pipeline import TextPipeline


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecialTokens:
    """The tokens with a role."""

    bos_id: int | None
    eos_ids: frozenset[int]
    """Every token that ends a reply."""
    unknown_id: int | None = None
    prefix: tuple[int, ...] = ()
    """What a prompt begins with (BOS, or nothing)."""
    suffix: tuple[int, ...] = ()
    """What a prompt ends with; nothing for models that write."""
    fill_in: tuple[int | None, int | None, int | None] = (None, None, None)
    """What a file lists as the tokens before a gap, after it, and where the filling begins."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Texts for chat templates: "bos_token" -> "<s>"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """All of it. `pieces[i]` is token i as the file spells it."""

    pieces: Sequence[str]
    style: PieceStyle
    added: tuple[AddedToken, ...]
    special: SpecialTokens
    pipeline: TextPipeline
    space_before_text: bool
    """A space is put before a text when it is tokenised, so one is taken away again when decoding."""


_END_OF_REPLY = frozenset(
    {
        "<|eot_id|>", "<|eom_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|endoftext|>",
        "<|end_of_text|>", "<end_of_turn>", "<turn|>", "<end_of_utterance>", "<EOT>", "[EOT]", "[EOS]",
        "<\uff5cend\u2581of\u2581sentence\uff5c>",
    }
)  # fmt: skip
"""Names that model families give to the end of a turn; files often list only one of theirs as EOS."""

_HARMONY = ("<|return|>", "<|call|>")
"""Where both exist, <|end|> ends a message and not the reply (gpt-oss)."""


def end_of_reply_ids(pieces: Mapping[str, int]) -> frozenset[int]:
    """The tokens among `pieces` (those that may be control tokens) that by name end a reply."""
    names = _END_OF_REPLY - ({"<|end|>"} if all(name in pieces for name in _HARMONY) else set())
    return frozenset(pieces[name] for name in names if name in pieces)


def may_be_control(piece: str) -> bool:
    """Whether a token that a file names as BOS or EOS may be kept from ordinary text.

    Base models end with a line feed or the like now and then; such a token stays text.
    """
    return len(piece) > 2
