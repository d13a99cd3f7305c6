"""What stands beside other text is one line of what can be seen."""

from __future__ import annotations

import pytest

from studio.models.one_line import one_line


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("  Plan\tthree\r\n days\u2028in\x85Lisbon ", "Plan three days in Lisbon"),
        ("evil \u202egpj.exe", "evil gpj.exe"),
        ("\u2067a\u2069 \u202bb\u202c", "a b"),
        ("bell\x07 and \x1b[31mred\x00", "bell and [31mred"),
        ("\ufeffname\u200b", "name"),
        ("\u200b \u202e", ""),
        ("שלום \u200fעולם", "שלום \u200fעולם"),  # noqa: RUF001 - Hebrew
        ("👩\u200d💻 नमस्\u200dते", "👩\u200d💻 नमस्\u200dते"),
    ],
)
def test_what_is_not_seen_does_nothing(text: str, line: str) -> None:
    assert one_line(text) == line
    assert one_line(line) == line
