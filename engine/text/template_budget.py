"""What one rendering of a chat template may use: time, loop rounds and characters made.

jinja2's sandbox keeps a template away from Python's inside, but lets it loop for ever and build
gigabytes. `Budget` counts what is made, and is asked before an operation that makes more than it is
given. One object a rendering, on one thread. No torch, no jinja2.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized

MAX_COST = 1 << 26
"""Characters and list entries made and loop rounds, together. A long chat costs some millions."""
MAX_SECONDS = 2.0
"""Of processor time: a busy machine is not the template's fault."""
MAX_INTEGER_BITS = 1 << 16

_PADDING = frozenset({"center", "ljust", "rjust", "zfill", "batch", "slice"})
"""Operations that make something as long as a number among their arguments."""
_PER_CHARACTER = frozenset({"indent", "expandtabs", "wordwrap"})
"""Operations that may put as much beside every character."""
_WIDE_FORMAT = re.compile(r"\d{4}|\*|\{[^{}]*\{")
"""A width or precision of four digits or more, or one that is computed."""
_LONGEST_PLACE = 1000 + MAX_INTEGER_BITS // 3
"""What a format makes of something that is no text: the widest width, or an integer's digits."""


class TemplateTooCostlyError(Exception):
    """The template used up its time or its budget."""


class Budget:
    """What is left. Every method takes something away and raises TemplateTooCostlyError at the end."""

    def __init__(self, clock: Callable[[], float] = time.thread_time) -> None:
        self._clock = clock
        self._deadline_s = clock() + MAX_SECONDS
        self._left = MAX_COST

    def spend(self, cost: int = 1) -> None:
        self._left -= cost
        if self._left < 0:
            raise TemplateTooCostlyError(f"makes more than {MAX_COST} characters or loop rounds")
        if self._clock() > self._deadline_s:
            raise TemplateTooCostlyError(f"takes more than {MAX_SECONDS} seconds")

    def spend_print(self, value: object) -> None:
        """For printing a value, nested lists and mappings included."""
        waiting = [value]
        while waiting:
            item = waiting.pop()
            self.spend(len(item) if isinstance(item, str | Mapping | list | tuple | set) else 1)
            if isinstance(item, Mapping):
                waiting += (*item, *item.values())
            elif isinstance(item, list | tuple | set):
                waiting += item

    def spend_join(self, texts: Sequence[object], separator: str) -> None:
        """For putting texts together."""
        lengths = sum(len(text) for text in texts if isinstance(text, str))
        self.spend(lengths + len(separator) * len(texts))

    def spend_replace(self, text: str, old: object, new: object) -> None:
        """For text.replace(old, new)."""
        if isinstance(old, str) and isinstance(new, str):
            self.spend(len(text) + text.count(old) * len(new))

    def spend_format(self, template: str, values: Iterable[object]) -> None:
        """For filling the places of a %- or {}-format."""
        if _WIDE_FORMAT.search(template):
            raise TemplateTooCostlyError("formats with a width that is computed or over 999")
        longest = _LONGEST_PLACE
        for value in values:
            before = self._left
            self.spend_print(value)
            longest = max(longest, before - self._left)
        self.spend(len(template) + longest * (template.count("%") + template.count("{")))

    def spend_operation(self, name: str, subject: object, arguments: Iterable[object]) -> None:
        """For a filter or method that pads or indents: its arguments say by how much."""
        if name in _PADDING or name in _PER_CHARACTER:
            sizes = (
                a if isinstance(a, int) else len(a) for a in arguments if isinstance(a, int | str)
            )
            times = len(subject) if name in _PER_CHARACTER and isinstance(subject, Sized) else 1
            self.spend(max(0, *sizes, 0) * times)

    def spend_sum(self, left: object, right: object) -> None:
        """For left + right."""
        if isinstance(left, Sized) and isinstance(right, Sized):
            self.spend(len(left) + len(right))

    def spend_product(self, left: object, right: object) -> None:
        """For left * right, of numbers or of a text or list and a number."""
        for many, times in ((left, right), (right, left)):
            if isinstance(many, Sized) and isinstance(times, int):
                self.spend(len(many) * max(0, times))
        if isinstance(left, int) and isinstance(right, int):
            self._spend_integer(left.bit_length() + right.bit_length())

    def spend_power(self, left: object, right: object) -> None:
        """For left ** right."""
        if isinstance(left, int) and isinstance(right, int):
            self._spend_integer(left.bit_length() * max(0, right))

    def _spend_integer(self, bits: int) -> None:
        if bits > MAX_INTEGER_BITS:
            raise TemplateTooCostlyError(f"makes an integer of over {MAX_INTEGER_BITS} bits")
        self.spend(bits // 64)
