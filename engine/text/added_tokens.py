"""Tokens that are matched in a text before it is tokenised: control tokens and a model's own additions.

A `Splitter` finds them with the `tokenizers` library's own matcher (leftmost, then longest; linear
in the text). Immutable; used on the intake thread. No torch.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import tokenizers
from tokenizers import models

_TEXT = ""
"""Stands for a stretch of text in the splitter's own vocabulary; no added token is empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedToken:
    """One token that is matched as a whole.

    `control` tokens steer the model (turn borders, BOS, EOS): they come from templates alone, never
    from what a user wrote, and show as nothing. `lstrip` and `rstrip` swallow the white space beside
    them, `single_word` asks for no letter there. All are matched in the text as it is, also those
    that a file wants matched after normalisation: user text must not reach one by a detour.
    """

    token_id: int
    content: str
    control: bool
    lstrip: bool = False
    rstrip: bool = False
    single_word: bool = False


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of a text from character `start`; `token_id` is None for ordinary text."""

    text: str
    start: int
    token_id: int | None = None


class Splitter:
    """Cuts a text at some added tokens."""

    def __init__(self, tokens: Iterable[AddedToken]) -> None:
        self._matcher = tokenizers.Tokenizer(models.WordLevel({_TEXT: 0}, unk_token=_TEXT))
        self._ids: dict[int, int] = {}
        """The matcher's ids to the model's."""
        by_content = {token.content: token for token in reversed(list(tokens)) if token.content}
        self._matcher.add_special_tokens(
            [
                tokenizers.AddedToken(
                    token.content,
                    lstrip=token.lstrip,
                    rstrip=token.rstrip,
                    single_word=token.single_word,
                    normalized=False,
                )
                for token in by_content.values()
            ]
        )
        for content, matched in self._matcher.get_vocab().items():
            if content != _TEXT:
                self._ids[matched] = by_content[content].token_id

    def split(self, text: str) -> list[Segment]:
        """The text in order, as tokens and the ordinary text between them; nothing for an empty text."""
        if not self._ids:
            return [Segment(text, 0)] if text else []
        (found,) = self._matcher.encode_batch([text], add_special_tokens=False)
        return [
            Segment(text[start:end], start, self._ids.get(matched))
            for matched, (start, end) in zip(found.ids, found.offsets, strict=True)
        ]
