"""A model's tokens as llguidance wants them. Made and used on the thread of grammars; imports no torch.

The library holds a token for special where its bytes begin with a byte that no text has. Special are the control
tokens, the tokens that end a reply and those that a grammar names: text of a grammar, like that of a JSON string,
never lets one of them through, and a grammar gets exactly those that it asks for.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from engine.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from collections.abc import Sequence

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

    def library_tokenizer(self, named: frozenset[int] = frozenset()) -> LLTokenizer:
        """The vocabulary with these tokens special beside those that always are."""
        made = self._made.pop(named, None)
        if made is None:
            made = _make(self._tokenizer, self._steering | self._tokenizer.eos_ids | named)
        self._made[named] = made
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


def _make(tokenizer: Tokenizer, special: frozenset[int]) -> LLTokenizer:
    # Here and not above: it takes 50 ms, and most never need it.
    from llguidance import LLTokenizer

    speller = _Speller(tokenizer, special)
    speller.library = LLTokenizer(speller, eos_token=sorted(tokenizer.eos_ids))  # type: ignore[arg-type]
    speller.tokens = ()  # which it has copied
    return speller.library


class _Speller:
    """What the library asks of a tokenizer, by the names that it uses."""

    is_tokenizer_wrapper = True

    def __init__(self, tokenizer: Tokenizer, special: frozenset[int]) -> None:
        self.tokens: Sequence[bytes] = [
            tokenizer.token_bytes(token_id, show_control=True)
            for token_id in range(tokenizer.vocab_size)
        ]
        self.eos_token_id = min(tokenizer.eos_ids)
        self.bos_token_id = tokenizer.bos_id
        self.special_token_ids = sorted(special)
        self.library: LLTokenizer | None = None
        self._tokenizer = tokenizer
        self._special = special

    def __call__(self, text: str) -> list[int]:
        """The tokens of a text that a grammar leaves no choice about: the model's own, where they are that text."""
        ids = self._tokenizer.encode(text)
        spelled = b"".join(map(self._tokenizer.token_bytes, ids))
        if spelled == text.encode() and self._special.isdisjoint(ids):
            return ids
        assert self.library is not None
        return self.library.greedy_tokenize(text)
