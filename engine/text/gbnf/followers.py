"""Which characters may come right after each lexeme of a grammar. Pure.

Source: the sets FIRST and FOLLOW of Aho, Lam, Sethi and Ullman, "Compilers" (2006), section 4.4.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from engine.text.gbnf.cuts import Cut, CutRules, Either, Lexeme, Row, Times, leaves
from engine.text.gbnf.nodes import Rule, Token
from engine.text.gbnf.positions import Budget, Positions


class Followers:
    """Of one grammar: `after`, as classes of its alphabet."""

    def __init__(self, cut: CutRules, places: Mapping[Lexeme, Positions], budget: Budget) -> None:
        """Raises TooMuchWork."""
        self._cut = cut
        self._budget = budget
        self._places = places
        self._first = dict.fromkeys(cut, 0)
        self._is_empty = dict.fromkeys(cut, False)
        self._after_rule = dict.fromkeys(cut, 0)
        self._waiting: dict[str, None] = {}
        self.after: dict[Lexeme, int] = dict.fromkeys(places, 0)
        self._find_beginnings()
        self._find_after()

    def _find_beginnings(self) -> None:
        """Rules whose own have changed are looked at again, until nothing changes."""
        users: dict[str, set[str]] = {name: set() for name in self._cut}
        for name, node in self._cut.items():
            for leaf in leaves(node):
                if isinstance(leaf, Rule):
                    users[leaf.name].add(name)
        waiting = dict.fromkeys(self._cut)
        while waiting:
            name, _ = waiting.popitem()
            found = self._beginning(self._cut[name])
            if found != (self._first[name], self._is_empty[name]):
                self._first[name], self._is_empty[name] = found
                waiting.update(dict.fromkeys(users[name]))

    def _find_after(self) -> None:
        self._waiting = dict.fromkeys(self._cut)
        while self._waiting:
            name, _ = self._waiting.popitem()
            self._walk(self._cut[name], self._after_rule[name])

    def _beginning(self, cut: Cut) -> tuple[int, bool]:
        """The characters that it may begin with, and whether it may be empty."""
        self._budget.spend(1)
        match cut:
            case Lexeme():
                return self._places[cut].first_mask, self._places[cut].is_empty
            case Rule(name):
                return self._first[name], self._is_empty[name]
            case Token():
                return 0, False
            case Row(parts):
                mask = 0
                for part in parts:
                    first, is_empty = self._beginning(part)
                    mask |= first
                    if not is_empty:
                        return mask, False
                return mask, True
            case Either(parts):
                found = [self._beginning(part) for part in parts]
                return _union(first for first, _ in found), any(empty for _, empty in found)
            case Times(part, least, most):
                first, is_empty = self._beginning(part)
                return (0 if most == 0 else first), is_empty or least == 0

    def _walk(self, cut: Cut, after: int) -> None:
        self._budget.spend(1)
        match cut:
            case Lexeme():
                self.after[cut] |= after
            case Rule(name):
                if after & ~self._after_rule[name]:
                    self._after_rule[name] |= after
                    self._waiting[name] = None
            case Token():
                pass
            case Row(parts):
                for part in reversed(parts):
                    self._walk(part, after)
                    first, is_empty = self._beginning(part)
                    after = first | (after if is_empty else 0)
            case Either(parts):
                for part in parts:
                    self._walk(part, after)
            case Times(part, _, most):
                again = self._beginning(part)[0] if most is None or most > 1 else 0
                self._walk(part, after | again)


def _union(masks: Iterable[int]) -> int:
    whole = 0
    for mask in masks:
        whole |= mask
    return whole
