"""Token ids to text as they come, whole characters only.

One object a request, on the engine thread. No torch.
"""

from __future__ import annotations

import codecs

from engine.text.tokenizer import Tokenizer


class Detokenizer:
    """Whatever it has returned so far is a prefix of `tokenizer.decode` of all ids.

    `continues` says that the tokens go on a text rather than begin one: then a first space is part of
    the text, also where the model's tokenizer puts one before every text.
    """

    def __init__(self, tokenizer: Tokenizer, *, continues: bool = False) -> None:
        self._tokenizer = tokenizer
        self._begun = b""
        """Of a character that is not complete."""
        self._strip_space = tokenizer.space_before_text and not continues

    def push(self, token_id: int) -> str:
        """The text that is certain now: nothing for control tokens and parts of characters."""
        data = self._tokenizer.token_bytes(token_id)
        if data and self._strip_space:
            self._strip_space = False
            data = data.removeprefix(b" ")
        return self._decode(data, is_last=False)

    def flush(self) -> str:
        """U+FFFD for a character that never was completed; nothing otherwise. Ends the text."""
        return self._decode(b"", is_last=True)

    def _decode(self, data: bytes, *, is_last: bool) -> str:
        if self._begun:
            data = self._begun + data
        text, used = codecs.utf_8_decode(data, "replace", is_last)
        self._begun = data[used:]
        return text
