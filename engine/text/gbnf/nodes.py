"""What a GBNF grammar says, as a tree. Pure, immutable; any thread.

Characters are code points; a set of them is a tuple of spans [first, last], ascending and apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

Spans = tuple[tuple[int, int], ...]

_LAST = 0x10FFFF
_SURROGATES = (0xD800, 0xDFFF)
"""Halves of pairs: no characters, and in no text."""


@dataclass(frozen=True, slots=True)
class Chars:
    """One character of a set; of an empty one, none."""

    spans: Spans


@dataclass(frozen=True, slots=True)
class Rule:
    """What the rule of this name says."""

    name: str


@dataclass(frozen=True, slots=True)
class Token:
    """One token of the model: `<name>`, `<[7]>`, or any but those `<[^7]>`."""

    text: str


@dataclass(frozen=True, slots=True)
class Sequence:
    """One after the other; the empty text if there are none."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """So many times; `most` None: without end."""

    part: Node
    least: int
    most: int | None


Node = Chars | Rule | Token | Sequence | Choice | Repeat
Rules = Mapping[str, Node]
"""In the order of the grammar; all that are named are there."""


def spans_of(spans: Iterable[tuple[int, int]]) -> Spans:
    """A set from spans in any order that may overlap."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(joined[-1][1], last))
        else:
            joined.append((first, last))
    return tuple(joined)


def all_but(spans: Spans) -> Spans:
    """Every other character."""
    found, begin = [], 0
    for first, last in spans_of([*spans, _SURROGATES]):
        if first > begin:
            found.append((begin, first - 1))
        begin = last + 1
    if begin <= _LAST:
        found.append((begin, _LAST))
    return tuple(found)


def text(characters: str) -> Node:
    """A fixed text."""
    return Sequence(tuple(Chars(((ord(char), ord(char)),)) for char in characters))


def children(node: Node) -> tuple[Node, ...]:
    """The nodes directly below."""
    match node:
        case Sequence(parts) | Choice(parts):
            return parts
        case Repeat(part):
            return (part,)
        case _:
            return ()


def regular_rules(rules: Rules) -> frozenset[str]:
    """Names of the rules that are regular expressions: without tokens, and without a way back to themselves."""
    needed = {name: set(_leaves(node)) for name, node in rules.items()}
    needed_by: dict[str, list[str]] = {name: [] for name in rules}
    for name, leaves in needed.items():
        for leaf in leaves:
            if isinstance(leaf, Rule):
                needed_by[leaf.name].append(name)
    regular = [name for name, leaves in needed.items() if not leaves]
    for done in regular:  # which grows
        for name in needed_by[done]:
            needed[name].discard(Rule(done))
            if not needed[name]:
                regular.append(name)
    return frozenset(regular)


def _leaves(node: Node) -> list[Rule | Token]:
    if isinstance(node, Rule | Token):
        return [node]
    return [leaf for child in children(node) for leaf in _leaves(child)]
