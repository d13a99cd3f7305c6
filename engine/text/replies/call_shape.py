"""How a family spells a call that must be made: the pieces between which a grammar puts names and arguments.

Immutable, any thread. No torch.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterShape:
    """One argument: `before_name`NAME`after_name`VALUE`after_value`; strings without quotes, all else as JSON."""

    before_name: str
    after_name: str
    after_value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallShape:
    """`section` (`before_name`NAME`after_name` ARGUMENTS `end`) … `section_end`, with `between` between calls.

    Tags are spelled as in templates; where the vocabulary has one as a control token, that token is meant.
    """

    section: str = ""
    before_name: str = ""
    after_name: str
    parameters: ParameterShape | None = None
    """None: the arguments are one JSON object."""
    end: str = ""
    between: str = ""
    section_end: str = ""
    text_begins: str = ""
    """What a reply without calls begins with."""
    most: int | None = None
    """Calls that one reply may have; None: any number."""
