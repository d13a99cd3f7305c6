"""A model's tokens as llguidance wants them. Made and used on the threads of grammars; imports no torch.

The library holds a token for special where its bytes begin with a byte that no text has. Special are the control
tokens, the tokens that end a reply and those that a grammar names: text of a grammar, like that of a JSON string,
never lets one of them through, and a grammar gets exactly those that it asks for.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from llguidance import LLTokenizer

_KEPT = 4
"""Sets of special tokens that are remembered; each takes some hundred bytes a token of the vocabulary."""

_LARK = re.compile(
    r""""(?:\\.|[^"\\])*" | /(?:\\.|[^/\\\n])+/ | (?://|\#)[^\n]* | <(?P<named>[^<>\s"]+)>""",
    re.VERBOSE,
)
"""What may hold an angle bracket in a Lark grammar: strings, regular expressions, comments, and names of tokens."""

_IDS = re.compile(r"\^?([0-9,\-]+)")


class GrammarVocabulary:
    """Of one model; nothing is made before the first grammar comes."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._lock = threading.Lock()
        self._made: dict[frozenset[int], LLTokenizer] = {}
        self._steering = frozenset(token.token_id for token in tokenizer.control_tokens)

    @property
    def vocab_size(self) -> int:
        return self._tokenizer.vocab_size

    @property
    def eos_ids(self) -> frozenset[int]:
        return self._tokenizer.eos_ids

    def named_in(self, lark: str) -> frozenset[int]:
        """The tokens of the model's own additions, control tokens apart, that a Lark grammar names."""
        named = {found["named"] for found in _LARK.finditer(lark) if found["named"]}
        plain = {token.content: token.token_id for token in self._tokenizer.plain_added_tokens}
        ids = {plain[f"<{name}>"] for name in named if f"<{name}>" in plain}
        ranges = [
            span for name in named if name[0] + name[-1] == "[]" for span in _spans(name[1:-1])
        ]
        return frozenset(ids | {i for i in plain.values() if any(i in span for span in ranges)})

    def special(self, named: frozenset[int] = frozenset()) -> frozenset[int]:
        """These tokens, and those that are always special."""
        return self._steering | self._tokenizer.eos_ids | named

    def spelled(self) -> SpelledTokens:
        """Each token as bytes."""
        words = self._tokenizer
        tokens = tuple(words.token_bytes(i, show_control=True) for i in range(words.vocab_size))
        return SpelledTokens(tokens, words.eos_ids, words.bos_id)

    def library_tokenizer(self, special: frozenset[int]) -> LLTokenizer:
        """The vocabulary with these tokens special."""
        with self._lock:
            made = self._made.pop(special, None)
            if made is None:
                exact = _ExactWords(self._tokenizer, special)
                made = library_tokenizer(self.spelled(), special, exact)
            self._made[special] = made
            while len(self._made) > _KEPT:
                del self._made[next(iter(self._made))]
            return made


def _spans(ids: str) -> list[range]:
    """`7,100-200` -> [7, 8), [100, 201); what is no list of ids, the library refuses."""
    if not (listed := _IDS.fullmatch(ids)):
        return []
    ends = [part.partition("-") for part in listed[1].split(",")]
    return [
        range(int(first), int(last or first) + 1)
        for first, _, last in ends
        if first.isdecimal() and (not last or last.isdecimal())
    ]


@dataclass(frozen=True, slots=True)
class SpelledTokens:
    """A vocabulary; other processes can be given it."""

    tokens: tuple[bytes, ...]
    eos_ids: frozenset[int]
    bos_id: int | None


@dataclass(frozen=True, slots=True)
class _ExactWords:
    """The model's own tokens of a text, where they are that text and none is special."""

    tokenizer: Tokenizer
    special: frozenset[int]

    def __call__(self, text: str) -> list[int] | None:
        ids = self.tokenizer.encode(text)
        spelled = b"".join(map(self.tokenizer.token_bytes, ids))
        return ids if spelled == text.encode() and self.special.isdisjoint(ids) else None


def _no_words(text: str) -> None:
    """Nothing is known of how the model would spell it."""


def library_tokenizer(
    spelled: SpelledTokens,
    special: frozenset[int],
    words_of: Callable[[str], list[int] | None] = _no_words,
) -> LLTokenizer:
    """The library's own. `words_of` gives the model's tokens of a text; None: take the longest, one after another."""
    # Here and not above: it takes 50 ms, and most never need it.
    from llguidance import LLTokenizer

    speller = _Speller(spelled, special, words_of)
    speller.library = LLTokenizer(speller, eos_token=sorted(spelled.eos_ids))  # type: ignore[arg-type]
    speller.tokens = ()  # which it has copied
    return speller.library


class _Speller:
    """What the library asks of a tokenizer, by the names that it uses."""

    is_tokenizer_wrapper = True

    def __init__(
        self,
        spelled: SpelledTokens,
        special: frozenset[int],
        words_of: Callable[[str], list[int] | None],
    ) -> None:
        self.tokens = spelled.tokens
        self.eos_token_id = min(spelled.eos_ids)
        self.bos_token_id = spelled.bos_id
        self.special_token_ids = sorted(special)
        self.library: LLTokenizer | None = None
        self._words_of = words_of

    def __call__(self, text: str) -> list[int]:
        """The tokens of a text that a grammar leaves no choice about."""
        ids = self._words_of(text)
        if ids is not None:
            return ids
        assert self.library is not None
        return self.library.greedy_tokenize(text)
