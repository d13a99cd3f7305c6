"""The program starts again as it was started: the same Python, the same way in, the same flags, no errand twice."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import ModuleType

import pytest

from studio.__main__ import main
from studio.cli import commands
from studio.cli.argument_values import arguments_of
from studio.cli.parser import parse_arguments
from studio.restart import command_of

FLAGS = (
    ("--model", "a b"),
    ("-c", "4096"),
    ("-ctk", "q8_0", "-ctv", "q8_0"),
    ("--context-shift",),
    ("--no-preempt-async",),
    ("--preempt-ram", "-1"),
    ("--seed", "-5"),
    ("--device", "cpu"),
    ("--api-key=--odd",),
    ("--cors-origins", "https://a.example,https://b.example"),
    ("--log-level", "debug"),
)


@pytest.mark.parametrize(
    ("program", "is_frozen", "start"),
    [
        (["python", "-m", "studio"], False, ["-m", "studio"]),
        (["python3.11", "-X", "dev", "-m", "studio"], False, ["-X", "dev", "-m", "studio"]),
        (["/usr/bin/python3", "/home/me/bin/layby"], False, ["/home/me/bin/layby"]),
        (["layby"], True, []),
    ],
)
def test_it_is_started_as_it_was(
    program: Sequence[str], start: list[str], *, is_frozen: bool
) -> None:
    command = command_of(program, ["--model", "a b"], is_frozen=is_frozen)
    assert command == [sys.executable, *start, "--model", "a b"]


def test_flags_become_arguments_that_mean_the_same() -> None:
    options = parse_arguments([part for flag in FLAGS for part in flag])
    assert len(options.flags) == len(FLAGS)
    assert parse_arguments(arguments_of(options.flags)).flags == options.flags


@pytest.mark.parametrize("is_wanted", [False, True])
def test_the_window_is_opened_again_with_its_flags_and_without_its_errand(
    monkeypatch: pytest.MonkeyPatch, *, is_wanted: bool
) -> None:
    program, started = ModuleType("studio.app"), []
    program.run_window = lambda *_: is_wanted  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "studio.app", program)
    monkeypatch.setattr(commands, "has_display", lambda: True)
    monkeypatch.setattr(commands, "log_to_file", lambda *_: None)
    monkeypatch.setattr(commands, "start_again", lambda arguments: started.append(arguments) or 0)
    assert main(["--ctx-size", "512", "chat", "Hello?"]) == 0
    assert started == ([["--ctx-size=512"]] if is_wanted else [])
