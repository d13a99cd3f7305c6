"""The places of a regular expression and which may come after which, for comparing lexemes. Pure.

Source: Glushkov, "The abstract theory of automata" (1961): each character of the expression is a place, and a text
matches if it leads from a first place to a last one. Counts are taken for "one or more", so there are texts too many
and never too few.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field

from engine.text.gbnf.nodes import Chars, Choice, Node, Repeat, Rule, Rules, Sequence, children

_MOST_PLACES = 2000
_MOST_STEPS = 100_000


class TooManyPositions(Exception):
    """The expression is too large to be compared with others."""


class TooMuchWork(Exception):
    """A grammar has taken as much work as it may."""


@dataclass(slots=True)
class Budget:
    """Work that is left for one grammar."""

    left: int

    def spend(self, steps: int) -> None:
        """Raises TooMuchWork."""
        self.left -= steps
        if self.left < 0:
            raise TooMuchWork


class Alphabet:
    """All characters in classes that no set of the grammar tells apart; a set is a number with a bit a class."""

    def __init__(self, rules: Rules) -> None:
        ends: set[int] = set()
        waiting = list(rules.values())
        while waiting:
            node = waiting.pop()
            waiting += children(node)
            if isinstance(node, Chars):
                ends.update(end for first, last in node.spans for end in (first, last + 1))
        self._ends = sorted(ends)

    def mask(self, chars: Chars) -> int:
        """The classes of a set."""
        whole = 0
        for first, last in chars.spans:
            begin, end = bisect_left(self._ends, first), bisect_left(self._ends, last + 1)
            whole |= (1 << end) - (1 << begin)
        return whole


@dataclass(slots=True)
class Positions:
    """Of one expression; place i stands for one character of `masks[i]`."""

    _budget: Budget
    masks: list[int] = field(default_factory=list)
    follow: list[set[int]] = field(default_factory=list)
    first: tuple[int, ...] = ()
    last: frozenset[int] = frozenset()
    is_empty: bool = False
    """Whether the empty text matches."""
    first_mask: int = 0
    _num_steps: int = 0

    @classmethod
    def of(cls, node: Node, alphabet: Alphabet, rules: Rules, budget: Budget) -> Positions:
        """Raises TooManyPositions, or TooMuchWork for the whole grammar. All rules that are named are regular."""
        made = cls(budget)
        first, last, made.is_empty = made._add(node, alphabet, rules)
        made.first, made.last = first, frozenset(last)
        for place in first:
            made.first_mask |= made.masks[place]
        return made

    def _add(self, node: Node, alphabet: Alphabet, rules: Rules) -> _Ends:
        self._spend(1)  # also rules that say nothing may name one another without end
        match node:
            case Chars():
                return self._place(alphabet.mask(node))
            case Rule(name):
                return self._add(rules[name], alphabet, rules)
            case Sequence(parts):
                ends: _Ends = (), (), True
                for part in parts:
                    ends = self._joined(ends, self._add(part, alphabet, rules))
                return ends
            case Choice(parts):
                found = [self._add(part, alphabet, rules) for part in parts]
                first = tuple(place for one, _, _ in found for place in one)
                last = tuple(place for _, one, _ in found for place in one)
                return first, last, any(is_empty for *_, is_empty in found)
            case Repeat(_, _, 0):
                return (), (), True
            case Repeat(part, least, most):
                first, last, is_empty = self._add(part, alphabet, rules)
                if most != 1:
                    self._link(last, first)
                return first, last, is_empty or least == 0
        raise AssertionError(f"{node} is not regular")

    def _place(self, mask: int) -> _Ends:
        place = len(self.masks)
        if place >= _MOST_PLACES:
            raise TooManyPositions
        self.masks.append(mask)
        self.follow.append(set())
        return (place,), (place,), False

    def _joined(self, before: _Ends, after: _Ends) -> _Ends:
        self._link(before[1], after[0])
        first = before[0] + after[0] if before[2] else before[0]
        last = before[1] + after[1] if after[2] else after[1]
        return first, last, before[2] and after[2]

    def _link(self, last: tuple[int, ...], first: tuple[int, ...]) -> None:
        self._spend(len(last) * len(first))
        for place in last:
            self.follow[place].update(first)

    def _spend(self, steps: int) -> None:
        self._num_steps += steps
        self._budget.spend(steps)
        if self._num_steps > _MOST_STEPS:
            raise TooManyPositions


_Ends = tuple[tuple[int, ...], tuple[int, ...], bool]
"""Places that it may begin with and end with, and whether it may be empty."""
