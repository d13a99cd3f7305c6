"""The tokens by which a model is asked to fill a gap in a text. Pure; used by the thread that opens the file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from engine.text.added_tokens import AddedToken

_BEFORE = (
    "<|fim_prefix|>", "<fim_prefix>", "<fim-prefix>", "<\uff5cfim\u2581begin\uff5c>", "<PRE>", "\u2581<PRE>",
    "<|code_prefix|>",
)  # fmt: skip
_AFTER = (
    "<|fim_suffix|>", "<fim_suffix>", "<fim-suffix>", "<\uff5cfim\u2581hole\uff5c>", "<SUF>", "\u2581<SUF>",
    "<|code_suffix|>",
)  # fmt: skip
_GAP = (
    "<|fim_middle|>", "<fim_middle>", "<fim-middle>", "<\uff5cfim\u2581end\uff5c>", "<MID>", "\u2581<MID>",
    "<|code_middle|>",
)  # fmt: skip
"""Names that model families give to the three."""


@dataclass(frozen=True, slots=True)
class FillIn:
    """A prompt is BEFORE text AFTER text GAP, and the reply is what stands between the two texts."""

    before_id: int
    after_id: int
    gap_id: int


def find_fill_in(
    added: Iterable[AddedToken], listed: tuple[int | None, int | None, int | None]
) -> FillIn | None:
    """The tokens as the file lists them, else by their names; None where one is missing."""
    ids = {token.content: token.token_id for token in added}

    def find(given: int | None, names: tuple[str, ...]) -> int | None:
        return given if given is not None else next((ids[n] for n in names if n in ids), None)

    before, after, gap = map(find, listed, (_BEFORE, _AFTER, _GAP))
    if before is None or after is None or gap is None:
        return None
    return FillIn(before, after, gap)
