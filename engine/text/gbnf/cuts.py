"""A grammar that is cut into what is read in one go, as a tree. Pure, immutable; any thread."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from engine.text.gbnf.nodes import Node, Rule, Token


@dataclass(frozen=True, slots=True)
class Lexeme:
    """A stretch that is read in one go."""

    node: Node


@dataclass(frozen=True, slots=True)
class Row:
    """One after the other."""

    parts: tuple[Cut, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """One of several."""

    parts: tuple[Cut, ...]


@dataclass(frozen=True, slots=True)
class Times:
    """So many times; `most` None: without end."""

    part: Cut
    least: int
    most: int | None


Cut = Lexeme | Rule | Token | Row | Either | Times
CutRules = dict[str, Cut]
"""The rules that are read part by part, the one that the grammar begins with first."""


def leaves(cut: Cut) -> Iterator[Lexeme | Rule | Token]:
    """What stands at the ends of the tree, in order."""
    match cut:
        case Row(parts) | Either(parts):
            for part in parts:
                yield from leaves(part)
        case Times(part):
            yield from leaves(part)
        case _:
            yield cut


def lexemes_of(cut: CutRules) -> list[Lexeme]:
    """Each once, in order."""
    found = (leaf for node in cut.values() for leaf in leaves(node) if isinstance(leaf, Lexeme))
    return list(dict.fromkeys(found))
