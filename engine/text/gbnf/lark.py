"""From GBNF to the dialect of Lark that llguidance reads. Pure; any thread.

Rules become rules; what can be read in one go (see `lexemes`) becomes terminals. Characters are written as numbers,
so that nothing of the grammar's own text is left that Lark could read in another way.
"""

from __future__ import annotations

import itertools
from enum import IntEnum
from typing import NamedTuple

from engine.text.gbnf.cuts import Cut, Either, Lexeme, Row, Times, lexemes_of
from engine.text.gbnf.lexemes import cut_rules
from engine.text.gbnf.nodes import (
    Chars,
    Choice,
    Node,
    Repeat,
    Rule,
    Rules,
    Sequence,
    Token,
    children,
)
from engine.text.gbnf.reader import ROOT, read_gbnf


def gbnf_to_lark(source: str) -> str:
    """The same language. Raises GbnfError, naming line and column."""
    rules = read_gbnf(source)
    return _Writer(rules).write()


class _Writer:
    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._places = {name: place for place, name in enumerate(rules)}
        self._cut = cut_rules(rules, ROOT)
        self._lexemes = {lexeme: f"L{place}" for place, lexeme in enumerate(lexemes_of(self._cut))}

    def write(self) -> str:
        lines = [f"start: {self._rule_name(ROOT)}"]
        lines += [
            f"{self._rule_name(name)}: {self._text(cut).text}" for name, cut in self._cut.items()
        ]
        lines += [
            f"{name}: {self._terminal(lexeme.node).text}" for lexeme, name in self._lexemes.items()
        ]
        lines += [
            f"{self._terminal_name(name)}: {self._terminal(self._rules[name]).text}"
            for name in self._named_in_lexemes()
        ]
        return "\n".join(lines) + "\n"

    def _rule_name(self, name: str) -> str:
        return f"r{self._places[name]}"

    def _terminal_name(self, name: str) -> str:
        return f"T{self._places[name]}"

    def _named_in_lexemes(self) -> list[str]:
        """Rules that lexemes are made of."""
        found: dict[str, None] = {}
        waiting: list[Node] = [lexeme.node for lexeme in self._lexemes]
        while waiting:
            node = waiting.pop()
            waiting += children(node)
            if isinstance(node, Rule) and node.name not in found:
                found[node.name] = None
                waiting.append(self._rules[node.name])
        return list(found)

    def _text(self, cut: Cut) -> _Text:
        match cut:
            case Lexeme():
                return _Text(self._lexemes[cut])
            case Rule(name):
                return _Text(self._rule_name(name))
            case Token(text):
                return _Text(text)
            case Row(parts):
                return _row([self._text(part) for part in parts])
            case Either(parts):
                return _either([self._text(part) for part in parts])
            case Times(part, least, most):
                return _times(self._text(part), least, most)

    def _terminal(self, node: Node) -> _Text:
        match node:
            case Chars():
                return _Text(f"/{_set(node)}/")
            case Rule(name):
                return _Text(self._terminal_name(name))
            case Sequence(parts):
                return self._terminal_row(parts)
            case Choice(parts):
                return _either([self._terminal(part) for part in parts])
            case Repeat(part, least, most):
                return _times(self._terminal(part), least, most)
        raise AssertionError(f"{node} is in no lexeme")

    def _terminal_row(self, parts: tuple[Node, ...]) -> _Text:
        """Characters beside one another are one regular expression."""
        texts: list[_Text] = []
        for is_char, run in itertools.groupby(parts, lambda part: isinstance(part, Chars)):
            if is_char:
                sets = "".join(_set(part) for part in run if isinstance(part, Chars))
                texts.append(_Text(f"/{sets}/"))
            else:
                texts += map(self._terminal, run)
        return _row(texts)


class _Binding(IntEnum):
    """How tightly the parts of a text hold together."""

    CHOICE = 0
    ROW = 1
    ONE = 2


class _Text(NamedTuple):
    text: str
    binding: _Binding = _Binding.ONE

    def within(self, least: _Binding) -> str:
        """In brackets where they are needed: the library takes some thirty in one another."""
        return self.text if self.binding >= least else f"({self.text})"


def _row(parts: list[_Text]) -> _Text:
    if len(parts) == 1:
        return parts[0]
    return _Text(" ".join(part.within(_Binding.ROW) for part in parts) or '""', _Binding.ROW)


def _either(parts: list[_Text]) -> _Text:
    return _Text(" | ".join(part.text for part in parts), _Binding.CHOICE)


def _times(part: _Text, least: int, most: int | None) -> _Text:
    if most == 0:
        return _Text('""')
    suffix = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get((least, most))
    if suffix is None:
        suffix = f"{{{least},{'' if most is None else most}}}"
    # a second suffix needs brackets around what the first one belongs to
    return _Text(part.within(_Binding.ONE) + suffix, _Binding.ROW)


def _set(chars: Chars) -> str:
    """One character, as a regular expression."""
    (first, last), *others = chars.spans
    if first == last and not others:
        return _code(first)
    spans = (_code(a) if a == b else f"{_code(a)}-{_code(b)}" for a, b in chars.spans)
    return f"[{''.join(spans)}]"


def _code(code: int) -> str:
    char = chr(code)
    return char if char.isascii() and char.isalnum() else f"\\x{{{code:X}}}"
