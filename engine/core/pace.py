"""How many tokens of prompts a step may hold beside replies, from how long steps have taken. Pure: times are arguments.

A step with prompts in it should take at most `STRETCH` times as long as one with the same replies
alone, so that nobody who reads along notices that somebody else has asked something. Prompts then
have over a quarter of the time, and so take some four times as long as alone, however long they are.

Figures are medians of the last few steps: a step that was held up by another program says nothing.
"""

from __future__ import annotations

import statistics
from collections import deque

STRETCH = 1.4
"""How much longer a step may take for prompts being read in it.

Of gaps between tokens 1.5 is promised: what is done beside the step is more then too, and half of the steps take more
than the middle one (aimed at 1.5 itself, medians of gaps came to 1.4 to 1.6 on two busy cores; at 1.4 to 1.3 to 1.5).
"""

SURE_SHARE = 4
"""A prompt gets at least as many tokens as would take this part of the replies' time if read in large steps."""

MOST_GROWTH = 2
"""A step takes at most so many times as many tokens of prompts as the last few did: one that seems free may be luck."""

REMEMBERED = 5
"""Steps of each kind that count."""

REMEASURE_AFTER = 32
"""After so many steps with prompts beside replies one without is made, to know what that takes by now."""


class StepPace:
    """Learns from steps by `observe`, answers by `beside_replies`."""

    def __init__(self) -> None:
        self._reply_steps_s: dict[int, deque[float]] = {}
        """Seconds of steps without prompts, by the number of replies."""
        self._prompt_token_s: deque[float] = deque(maxlen=REMEMBERED)
        """Seconds of a prompt's token where no reply went on."""
        self._added_token_s: deque[float] = deque(maxlen=REMEMBERED)
        """Seconds that each token of a prompt added to a step with replies."""
        self._added_tokens: deque[int] = deque(maxlen=REMEMBERED)
        """Tokens of prompts in those steps."""
        self._mixed_steps = 0
        """Steps with both since the last one without prompts."""

    def observe(self, *, num_replies: int, prompt_tokens: int, seconds: float) -> None:
        """A step of `num_replies` tokens of replies and `prompt_tokens` of prompts took so long."""
        if not prompt_tokens:
            kept = self._reply_steps_s.get(num_replies)
            if kept is None:
                kept = self._reply_steps_s[num_replies] = deque(maxlen=REMEMBERED)
            kept.append(seconds)
            self._mixed_steps = 0
        elif not num_replies:
            self._prompt_token_s.append(seconds / prompt_tokens)
        else:
            self._mixed_steps += 1
            alone_s = self._replies_alone_s(num_replies)
            if alone_s is not None:
                self._added_token_s.append(max(seconds - alone_s, 0.0) / prompt_tokens)
                self._added_tokens.append(prompt_tokens)

    def beside_replies(self, num_replies: int) -> int | None:
        """Tokens of prompts in a step with so many replies; None: no limit. 0 where such a step has yet to be timed."""
        if not num_replies:
            return None
        alone_s = self._replies_alone_s(num_replies)
        if alone_s is None or self._mixed_steps >= REMEASURE_AFTER:
            return 0
        token_s = _median(self._prompt_token_s)
        sure = max(_tokens_in(alone_s / SURE_SHARE, token_s), 1)
        if not self._added_tokens:
            return max(sure, _tokens_in((STRETCH - 1) * alone_s, token_s))
        most = MOST_GROWTH * max(self._added_tokens)
        # Dearer at once, cheaper when it has come to be the rule.
        added_s = max(_median(self._added_token_s), self._added_token_s[-1])
        wanted = _tokens_in((STRETCH - 1) * alone_s, added_s) if added_s else most
        return max(sure, min(wanted, most))

    def _replies_alone_s(self, num_replies: int) -> float | None:
        """What a step with so many replies takes without prompts; None if that is not known."""
        kept = self._reply_steps_s.get(num_replies)
        return _median(kept) if kept else None


def _median(values: deque[float]) -> float:
    return statistics.median(values) if values else 0.0


def _tokens_in(seconds: float, token_s: float) -> int:
    """Tokens that fit; 0 where their price is not known."""
    return int(seconds / token_s) if token_s else 0
