"""What the system says is told in our words, and in German ones."""

from __future__ import annotations

import errno

import pytest

from engine.system_faults import _WORDS, system_fault
from studio.models.window_settings import Language
from studio.views.translation import read_catalogue


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.EACCES, "the system does not allow it"),
        (errno.EPERM, "the system does not allow it"),
        (errno.ENOSPC, "the disk is full"),
        (errno.EADDRINUSE, "the system calls it EADDRINUSE"),
        (123_456, "the system calls it 123456"),
        (None, "the log has the particulars"),
    ],
)
def test_no_word_of_the_systems_is_passed_on(number: int | None, words: str) -> None:
    error = OSError() if number is None else OSError(number, "Some English of the system")
    assert system_fault(error) == words


def test_every_fault_has_its_german() -> None:
    assert set(_WORDS.values()) <= read_catalogue(Language.GERMAN).keys()
