"""Token ids of one reply to the text its reader sees: whole characters, ended by stop strings.

One object a request, on the engine thread. No torch.
"""

from __future__ import annotations

from collections.abc import Iterable

from engine.text.detokenizer import Detokenizer
from engine.text.stop_strings import StopMatcher, StopResult
from engine.text.tokenizer import Tokenizer


class TextStream:
    """Detokenises and watches for stop strings; after a stop nothing more comes out.

    `continues` as in `Detokenizer`: true for a completion of raw text, false for a reply in a chat.
    """

    def __init__(
        self, tokenizer: Tokenizer, stops: Iterable[str] = (), *, continues: bool = False
    ) -> None:
        self._detokenizer = Detokenizer(tokenizer, continues=continues)
        self._matcher = StopMatcher(stops)

    def push(self, token_id: int) -> StopResult:
        """Take the next token; what may be shown now, and whether a stop string has ended the reply."""
        return self._matcher.push(self._detokenizer.push(token_id))

    @property
    def stop_text(self) -> str:
        """The stop string that has ended the reply."""
        return self._matcher.found

    def finish(self) -> str:
        """The rest of the text, when no more tokens come."""
        return self._matcher.push(self._detokenizer.flush()).text + self._matcher.flush()
