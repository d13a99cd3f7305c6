"""Reads GBNF, llama.cpp's language for grammars. Pure; any thread.

Source of the syntax: grammars/README.md of llama.cpp. Rules end with the line, except in brackets and after `::=` and
`|`; here a line that begins with `|` goes on with the rule before it, too.
"""

from __future__ import annotations

import re

from engine.text.gbnf.nodes import (
    Chars,
    Choice,
    Node,
    Repeat,
    Rule,
    Rules,
    Sequence,
    Token,
    all_but,
    spans_of,
    text,
)

ROOT = "root"
MAX_REPEATS = 2000
"""As in llama.cpp."""
MAX_RULES = 5000
_NAME = re.compile(r"[A-Za-z0-9_-]+")
_NUMBERS = re.compile(r"\{[ \t]*(\d{0,9})[ \t]*(,)?[ \t]*(\d{0,9})[ \t]*\}")
_TOKEN = re.compile(r"(!?)<(\[\d{1,9}\]|[^\[\]<>\s\"\n][^<>\s\"\n]*)>")
_BLANK = re.compile(r"(?:[ \t]|\#[^\r\n]*)+")
_BLANK_LINES = re.compile(r"(?:[ \t\r\n]|\#[^\r\n]*)+")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", '"': '"', "[": "[", "]": "]"}
_HEX_DIGITS = {"x": 2, "u": 4, "U": 8}
_SUFFIXES: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}


class GbnfError(ValueError):
    """What is wrong, and in which line and column."""


def read_gbnf(source: str) -> Rules:
    """The rules of a grammar, all those that are named among them. Raises GbnfError."""
    rules = _Reader(source).rules()
    if ROOT not in rules:
        raise GbnfError(f"there is no rule {ROOT!r}, with which a grammar begins")
    return rules


class _Reader:
    def __init__(self, source: str) -> None:
        self._source = source
        self._at = 0
        self._depth = 0
        """Of brackets: inside them lines do not matter."""
        self._named: dict[str, int] = {}
        """Where each rule is named first."""

    def rules(self) -> Rules:
        rules: dict[str, Node] = {}
        self._skip(_BLANK_LINES)
        while self._at < len(self._source):
            begin, name = self._at, self._name()
            if name in rules:
                raise self._wrong(f"the rule {name!r} is there twice", begin)
            self._skip(_BLANK)
            self._expect("::=")
            self._skip(_BLANK_LINES)
            rules[name] = self._choice()
            if self._peek() not in ("", "\r", "\n"):
                raise self._wrong("here a rule should end")
            self._skip(_BLANK_LINES)
            if len(rules) > MAX_RULES:
                raise GbnfError(f"there are more than {MAX_RULES} rules")
        for name, place in self._named.items():
            if name not in rules:
                raise self._wrong(f"there is no rule {name!r}", place)
        return rules

    def _choice(self) -> Node:
        parts = [self._sequence()]
        while self._has_alternative():
            self._at += 1
            self._skip(_BLANK_LINES)
            parts.append(self._sequence())
        return parts[0] if len(parts) == 1 else Choice(tuple(parts))

    def _has_alternative(self) -> bool:
        """Whether `|` comes next, in this line or at the beginning of another."""
        blank = _BLANK_LINES.match(self._source, self._at)
        if blank is not None and self._source.startswith("|", blank.end()):
            self._at = blank.end()
        return self._peek() == "|"

    def _sequence(self) -> Node:
        parts: list[Node] = []
        while (part := self._part()) is not None:
            self._skip_inside()
            while (counts := self._counts()) is not None:
                part = Repeat(part, *counts)
                self._skip_inside()
            parts.append(part)
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _part(self) -> Node | None:
        char, begin = self._peek(), self._at
        if char == '"':
            return text(self._quoted())
        if char == "[":
            return self._set()
        if char == "(":
            return self._group()
        if char == ".":
            self._at += 1
            return Chars(all_but(()))
        if found := _TOKEN.match(self._source, begin):
            self._at = found.end()
            return self._token(is_negated=bool(found[1]), name=found[2], begin=begin)
        if _NAME.match(self._source, begin):
            name = self._name()
            self._named.setdefault(name, begin)
            return Rule(name)
        return None

    def _group(self) -> Node:
        begin = self._at
        self._at += 1
        self._depth += 1
        self._skip(_BLANK_LINES)
        node = self._choice()
        self._skip(_BLANK_LINES)
        if self._peek() != ")":
            raise self._wrong("the bracket that opens here is not closed", begin)
        self._at += 1
        self._depth -= 1
        return node

    def _token(self, *, is_negated: bool, name: str, begin: int) -> Token:
        if not is_negated:
            return Token(f"<{name}>")
        if name[0] != "[":
            raise self._wrong(
                f"any token but <{name}> can only be asked for by its id, as !<[7]>", begin
            )
        return Token(f"<[^{name[1:-1]}]>")

    def _counts(self) -> tuple[int, int | None] | None:
        if suffix := _SUFFIXES.get(self._peek()):
            self._at += 1
            return suffix
        if self._peek() != "{":
            return None
        found = _NUMBERS.match(self._source, self._at)
        if found is None or not (found[1] or found[3]):
            raise self._wrong("a count is {3}, {3,}, {,5} or {3,5}")
        least, most = int(found[1] or 0), None
        if not found[2]:
            most = least
        elif found[3]:
            most = int(found[3])
        if max(least, most or 0) > MAX_REPEATS or (most is not None and most < least):
            raise self._wrong(
                f"{found[0]} is no count from lower to higher, of {MAX_REPEATS} at most"
            )
        self._at = found.end()
        return least, most

    def _quoted(self) -> str:
        begin, characters = self._at, []
        self._at += 1
        while self._peek() != '"':
            characters.append(self._character(begin))
        self._at += 1
        return "".join(characters)

    def _set(self) -> Node:
        begin = self._at
        self._at += 1
        if is_negated := self._peek() == "^":
            self._at += 1
        spans = []
        while self._peek() != "]":
            first = last = ord(self._character(begin))
            if self._peek() == "-" and self._source[self._at + 1 : self._at + 2] not in ("", "]"):
                self._at += 1
                last = ord(self._character(begin))
            if last < first:
                raise self._wrong("a range in this set ends before it begins", begin)
            spans.append((first, last))
        self._at += 1
        found = all_but(spans_of(spans)) if is_negated else all_but(all_but(spans_of(spans)))
        if not found:
            raise self._wrong("no character is in this set, so nothing could ever match it", begin)
        return Chars(found)

    def _character(self, begin: int) -> str:
        """One character of what began at `begin`, escapes undone."""
        char = self._peek()
        if char in ("", "\r", "\n"):
            raise self._wrong(
                f"what {self._source[begin]} opens here does not end in its line", begin
            )
        self._at += 1
        if char != "\\":
            return char
        kind = self._peek()
        self._at += 1
        if kind in _ESCAPES:
            return _ESCAPES[kind]
        digits = self._source[self._at : self._at + _HEX_DIGITS.get(kind, 0)]
        if len(digits) != _HEX_DIGITS.get(kind, -1) or not re.fullmatch("[0-9A-Fa-f]+", digits):
            raise self._wrong(f"\\{kind}{digits} is no character", self._at - 2)
        self._at += len(digits)
        code = int(digits, 16)
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            raise self._wrong(f"\\{kind}{digits} is no character", self._at - 2 - len(digits))
        return chr(code)

    def _name(self) -> str:
        found = _NAME.match(self._source, self._at)
        if found is None:
            raise self._wrong("the name of a rule should stand here")
        self._at = found.end()
        return found[0]

    def _expect(self, what: str) -> None:
        if not self._source.startswith(what, self._at):
            raise self._wrong(f"{what} should stand here")
        self._at += len(what)

    def _peek(self) -> str:
        return self._source[self._at : self._at + 1]

    def _skip(self, blank: re.Pattern[str]) -> None:
        if found := blank.match(self._source, self._at):
            self._at = found.end()

    def _skip_inside(self) -> None:
        self._skip(_BLANK_LINES if self._depth else _BLANK)

    def _wrong(self, what: str, place: int | None = None) -> GbnfError:
        before = self._source[: self._at if place is None else place]
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        return GbnfError(f"line {line}, column {column}: {what}")
