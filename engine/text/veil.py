"""Keeps what people wrote from becoming control tokens on its way through a chat template.

A control token is broken at its first character that is no letter, digit or space (the < of <|im_end|>), and at all
others of its kind, or a template that writes < before what somebody wrote would lend the rest of a token its
beginning. Before rendering, each of those characters in a message is exchanged for a private one; they are changed
back once the rendered text has been cut at its control tokens. So neither a control token spelled out in a message,
nor one that a template puts together from pieces of a message, becomes one; and all other text has the tokens it
always has. Used on the intake thread. No torch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

_LAST_PRIVATE = 0x10FFFD
"""The last character of the last private-use plane; veils are taken from here downwards."""


class Veil:
    """What to exchange in the messages of one model's chats.

    `controls` are its control tokens. Of `literals`, the texts that its template looks for in
    messages, those are left alone that share nothing with a control token, such as </think>.
    """

    def __init__(self, controls: Sequence[str], literals: Iterable[str]) -> None:
        firsts = {_break_character(control) for control in controls}
        breaks = firsts.union(*(filter(_is_break, control) for control in controls))
        keep = [
            literal
            for literal in literals
            if literal[:1] in breaks
            and len(literal) > 1
            and firsts.isdisjoint(literal[1:])
            and not any(literal in control or control in literal for control in controls)
        ]
        self._pattern = re.compile(f"(?P<keep>{_any_of(keep)})|(?P<veil>{_any_of(breaks)})")

    def private_characters(self, texts: Sequence[str]) -> dict[str, str]:
        """For each character to exchange in `texts` one that occurs nowhere in them.

        "Nowhere" counts escapes too: a template may write a message as JSON, or print a list of it as Python does.
        """
        matches = chain.from_iterable(map(self._pattern.finditer, texts))
        found = sorted({match["veil"] for match in matches if match["veil"]})
        everything = "\0".join(texts)
        free = (
            chr(code)
            for code in range(_LAST_PRIVATE, 0, -1)
            if not any(spelled in everything for spelled in _spellings(chr(code)))
        )
        return dict(zip(found, free, strict=False))

    def put_on(self, text: str, private: Mapping[str, str]) -> str:
        """The text with its dangerous characters exchanged."""
        return self._pattern.sub(lambda match: private.get(match["veil"], match[0]), text)


def taking_off(private: Mapping[str, str]) -> dict[str, str]:
    """What to replace by what to get the original characters back, also where they became escapes."""
    return {spelled: original for original, char in private.items() for spelled in _spellings(char)}


def _spellings(char: str) -> tuple[str, str, str]:
    """As it is, as JSON's escape, as Python's."""
    return char, json.dumps(char)[1:-1], repr(char)[1:-1]


def _break_character(control: str) -> str:
    """The first that is no letter, digit or space; of a token without one, the first of all."""
    return next((char for char in control if not char.isalnum() and not char.isspace()), control[0])


def _is_break(char: str) -> bool:
    """Names and words are left whole: templates look for them."""
    return not char.isalnum() and not char.isspace() and char not in "_-."


def _any_of(texts: Iterable[str]) -> str:
    """A pattern for any of the texts, the longest first; for none, one that never matches."""
    return "|".join(map(re.escape, sorted(texts, key=len, reverse=True))) or "(?!)"
