"""What a check of `layby doctor` finds: a level, a subject and a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Level(Enum):
    """How a check came out; only FAIL keeps Layby from working."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the doctor's answer. A text that is not OK ends with the remedy."""

    level: Level
    subject: str
    text: str


def ok(subject: str, text: str) -> Check:
    return Check(Level.OK, subject, text)


def warn(subject: str, text: str) -> Check:
    return Check(Level.WARN, subject, text)


def fail(subject: str, text: str) -> Check:
    return Check(Level.FAIL, subject, text)
