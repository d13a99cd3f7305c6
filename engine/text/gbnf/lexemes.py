"""Cuts a grammar into lexemes, each a regular expression, so that reading them greedily changes nothing. Pure.

llguidance reads a text lexeme by lexeme and always takes the longest; GBNF means every way to read it. Both are the
same where, after a lexeme that is complete, no character that may follow it could go on with any lexeme that began
like it. Where one could, both lexemes are cut into their parts, at last into single characters: those are never too
long.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

from engine.text.gbnf.cuts import (
    Cut,
    CutRules,
    Either,
    Lexeme,
    Row,
    Times,
    leaves,
    lexemes_of,
)
from engine.text.gbnf.followers import Followers
from engine.text.gbnf.nodes import (
    Chars,
    Choice,
    Node,
    Repeat,
    Rule,
    Rules,
    Sequence,
    Token,
    regular_rules,
)
from engine.text.gbnf.positions import (
    Alphabet,
    Budget,
    Positions,
    TooManyPositions,
    TooMuchWork,
)

_MOST_LEXEMES = 400
"""So many are compared; where there are more, all are cut up."""
_MOST_PAIRS = 200_000
"""Pairs of places that are looked at in all; beyond, what is left counts as ambiguous."""
_MOST_STEPS = 500_000
"""Of looking at parts of a grammar, in all: about a second. Beyond, it is cut up whole."""


def cut_rules(rules: Rules, root: str) -> CutRules:
    """Those that can be reached from the root, cut so that no lexeme is ambiguous."""
    cutter, judge = _Cutter(rules), _Judge(rules)
    while True:
        cut = cutter.cut_from(root)
        try:
            ambiguous = judge.ambiguous(cut)
        except TooMuchWork:
            cutter.cuts_all = True
            return cutter.cut_from(root)
        if not ambiguous:
            return cut
        cutter.cut_up |= ambiguous


class _Cutter:
    """Whatever is regular is one lexeme, unless it is to be cut up: then its parts are."""

    def __init__(self, rules: Rules) -> None:
        self.cut_up: set[Lexeme] = set()
        self.cuts_all = False
        """Down to single characters."""
        self._rules = rules
        self._regular = regular_rules(rules)

    def cut_from(self, root: str) -> CutRules:
        found: CutRules = {}
        waiting = [root]
        while waiting:
            name = waiting.pop()
            if name not in found:
                found[name] = self._cut(self._rules[name])
                waiting += [leaf.name for leaf in leaves(found[name]) if isinstance(leaf, Rule)]
        return found

    def _cut(self, node: Node) -> Cut:
        lexeme = Lexeme(node)
        is_whole = not self.cuts_all and lexeme not in self.cut_up
        if is_whole and self._is_regular(node):
            return Row(()) if node == Sequence(()) else lexeme
        match node:
            case Sequence(parts) if self._is_regular(node):
                return Row(tuple(map(self._cut, parts)))
            case Sequence(parts):
                return Row(tuple(map(self._cut, self._joined(parts))))
            case Choice(parts):
                return Either(tuple(map(self._cut, parts)))
            case Repeat(part, least, most):
                return Times(self._cut(part), least, most)
            case Rule() | Token():
                return node
            case Chars():
                return lexeme

    def _joined(self, parts: tuple[Node, ...]) -> Iterator[Node]:
        """Neighbours that are regular become one."""
        for is_regular, run in itertools.groupby(parts, self._is_regular):
            nodes = tuple(run)
            if is_regular and len(nodes) > 1:
                yield Sequence(nodes)
            else:
                yield from nodes

    def _is_regular(self, node: Node) -> bool:
        match node:
            case Chars():
                return True
            case Token():
                return False
            case Rule(name):
                return name in self._regular
            case Sequence(parts) | Choice(parts):
                return all(map(self._is_regular, parts))
            case Repeat(part):
                return self._is_regular(part)


# --- which of them are ambiguous


class _Judge:
    """Finds lexemes for which the longest may be the wrong one. Single characters never are."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._alphabet = Alphabet(rules)
        self._pairs_left = _MOST_PAIRS
        self._budget = Budget(_MOST_STEPS)

    def ambiguous(self, cut: CutRules) -> set[Lexeme]:
        """Raises TooMuchWork where finding out takes too long: then all may be."""
        lexemes = lexemes_of(cut)
        self._budget.spend(len(cut) + len(lexemes))
        longer = {one for one in lexemes if not isinstance(one.node, Chars)}
        if not longer or len(lexemes) > _MOST_LEXEMES:
            return longer
        places: dict[Lexeme, Positions] = {}
        too_large: set[Lexeme] = set()
        for one in lexemes:
            try:
                places[one] = Positions.of(one.node, self._alphabet, self._rules, self._budget)
            except TooManyPositions:
                too_large.add(one)
        if too_large:
            return too_large
        after = Followers(cut, places, self._budget).after
        found = {
            each
            for one in lexemes
            for other in lexemes
            if after[one] and self._goes_on(places[one], places[other], after[one])
            for each in (one, other)
        }
        return found & longer

    def _goes_on(self, one: Positions, other: Positions, after: int) -> bool:
        """Whether a whole text of `one` is the beginning of one of `other` that goes on with a character of `after`."""
        seen = set(_alike(one, one.first, other, other.first))
        waiting = list(seen)
        while waiting:
            place, beside = waiting.pop()
            following = other.follow[beside]
            if place in one.last and any(other.masks[next_] & after for next_ in following):
                return True
            self._pairs_left -= 1
            if self._pairs_left < 0:
                return True
            new = set(_alike(one, one.follow[place], other, following)) - seen
            seen |= new
            waiting += new
        return False


def _alike(
    one: Positions, places: Iterable[int], other: Positions, beside: Iterable[int]
) -> Iterator[tuple[int, int]]:
    return (
        (place, next_)
        for place in places
        for next_ in beside
        if one.masks[place] & other.masks[next_]
    )
