"""Control tokens that a reply's format needs to see, as characters that no text can contain.

Where a vocabulary has a format's tag as a control token, only that token is the tag: it comes into the reader's text as
a lone surrogate, which no decoded UTF-8 has, so that the same tag spelled out by ordinary tokens stays text. Where it
has not, the tag is looked for as it is spelled. Nothing that is seen from outside ever changes. No torch.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from engine.text.replies.reader import Needles
from engine.text.tokenizer import Tokenizer

_FIRST = 0xDC00
MAX_MARKS = 0x400
_MARK = re.compile("[\udc00-\udfff]")


class Marks:
    """The control tokens in `tags`, as one or as part of one; none without a tokenizer: then everything is text."""

    def __init__(self, tags: Iterable[str] = (), tokenizer: Tokenizer | None = None) -> None:
        everything = "\0".join(tags)
        tokens = tokenizer.control_tokens if tokenizer is not None else ()
        found = [
            token for token in tokens if len(token.content) > 1 and token.content in everything
        ]
        self._chars = {token.content: chr(_FIRST + n) for n, token in enumerate(found[:MAX_MARKS])}
        self._spelled = {char: content for content, char in self._chars.items()}
        self.by_id: Mapping[int, str] = {
            token.token_id: self._chars[token.content] for token in found[:MAX_MARKS]
        }
        """Token id -> its character in the reader's text."""
        self._needles: dict[tuple[str, ...], Needles] = {}
        """Made so far: the same few for every reply."""
        longest_first = sorted(self._chars, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first)) or "(?!)")

    def pattern(self, spelled: str) -> str:
        """What to look for in the reader's text for a tag, as templates spell it."""
        return self._pattern.sub(lambda match: self._chars[match[0]], spelled)

    def needles(self, *spelled: str) -> Needles:
        """What to look for for any of some tags."""
        known = self._needles.get(spelled)
        if known is None:
            known = self._needles[spelled] = Needles(self.pattern(each) for each in spelled)
        return known

    def plain(self, text: str) -> str:
        """The reader's text with its marks spelled out."""
        if text.isascii():
            return text
        return _MARK.sub(lambda match: self._spelled.get(match[0], ""), text)
