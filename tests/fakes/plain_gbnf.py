"""GBNF read in the plainest way, to compare with: which texts a grammar generates, and grammars at random."""

from __future__ import annotations

from random import Random

from engine.text.gbnf.nodes import Chars, Choice, Node, Repeat, Rule, Rules, Sequence
from engine.text.gbnf.reader import ROOT

_NAMES = ("root", "x", "y")
_ATOMS = ('"a"', '"ab"', '"b"', '"ba"', "[ab]", "[^a]", '"aab"', '"c"', '"bc"', '""')
_SUFFIXES = ("*", "+", "?", "{2}", "{1,2}", "{,1}", "{2,}")


def generates(rules: Rules, text: str) -> bool:
    """Whether the text is one of the grammar: by growing, for every rule and place, the set of ends until it stays."""
    ends: dict[tuple[str, int], frozenset[int]] = {}
    while True:
        before = dict(ends)
        for name, node in rules.items():
            for place in range(len(text) + 1):
                known = ends.get((name, place), frozenset())
                ends[name, place] = known | _ends(node, ends, text, {place})
        if ends == before:
            return len(text) in ends[ROOT, 0]


def _ends(
    node: Node, ends: dict[tuple[str, int], frozenset[int]], text: str, places: set[int]
) -> set[int]:
    match node:
        case Chars(spans):
            fits = (p for p in places if p < len(text))
            return {p + 1 for p in fits if any(a <= ord(text[p]) <= b for a, b in spans)}
        case Sequence(parts):
            for part in parts:
                places = _ends(part, ends, text, places)
            return places
        case Choice(parts):
            return set().union(*(_ends(part, ends, text, places) for part in parts))
        case Rule(name):
            return set().union(*(ends.get((name, place), ()) for place in places))
        case Repeat(part, least, most):
            for _ in range(least):
                places = _ends(part, ends, text, places)
            found = set(places)
            # each time beyond the first ones either reaches a new place or changes nothing
            for _ in range(len(text) + 1 if most is None else most - least):
                places = _ends(part, ends, text, places)
                found |= places
            return found
    raise AssertionError(f"{node} is no text")


def random_grammar(dice: Random) -> str:
    """Three rules over the letters a, b and c that may name one another."""

    def part(depth: int) -> str:
        kind = dice.random()
        if depth == 0 or kind < 0.4:
            return dice.choice(_ATOMS)
        if kind < 0.55:
            return dice.choice(_NAMES)
        if kind < 0.7:
            return f"({' | '.join(part(depth - 1) for _ in range(dice.randint(2, 3)))})"
        if kind < 0.85:
            return f"({part(depth - 1)}){dice.choice(_SUFFIXES)}"
        return f"({' '.join(part(depth - 1) for _ in range(dice.randint(2, 3)))})"

    def rule() -> str:
        rows = [
            " ".join(part(2) for _ in range(dice.randint(1, 3))) for _ in range(dice.randint(1, 2))
        ]
        return " | ".join(rows)

    return "".join(f"{name} ::= {rule()}\n" for name in _NAMES)
