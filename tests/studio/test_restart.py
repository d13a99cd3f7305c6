"""The program starts again as it was started: the same Python, the same way in, the same flags, no errand twice."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import ModuleType

import pytest

from studio.__main__ import main
from studio.cli import commands
from studio.cli.argument_values import arguments_of
from studio.cli.parser import AS_IT_WAS, parse_arguments
from studio.models.errand import Errand
from studio.models.what_ran import WhatRan
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


RAN = WhatRan(model="/m/a b.gguf", has_server=True, chat_ids=(3, 1), download_ids=("ab",))


@pytest.mark.parametrize("what_ran", [None, WhatRan(), RAN])
def test_the_window_is_opened_again_with_its_flags_and_what_ran_and_without_its_errand(
    monkeypatch: pytest.MonkeyPatch, what_ran: WhatRan | None
) -> None:
    program, started, seen = ModuleType("studio.app"), [], []

    def run_window(*given: object) -> WhatRan | None:
        seen.append(given[2:])
        return what_ran

    program.run_window = run_window  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "studio.app", program)
    monkeypatch.setattr(commands, "has_display", lambda: True)
    monkeypatch.setattr(commands, "log_to_file", lambda *_: None)
    monkeypatch.setattr(commands, "start_again", lambda arguments: started.append(arguments) or 0)
    assert main(["--ctx-size", "512", "chat", "Hello?"]) == 0
    assert seen == [(Errand(text="Hello?"), None)]
    if what_ran is None:
        assert started == []
        return
    (arguments,) = started
    assert arguments[0] == "--ctx-size=512"
    assert main(arguments) == 0
    assert seen[1] == (Errand(), what_ran)


def test_what_ran_is_told_to_nobody_but_itself(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse_arguments(["--help"])
    assert AS_IT_WAS not in capsys.readouterr().out
    for text in (
        "",
        "7",
        "{",
        '{"model": ""}',
        '{"model": "", "has_server": 1, "chat_ids": ["x"]}',
    ):
        with pytest.raises(SystemExit):
            parse_arguments([f"{AS_IT_WAS}={text}"])
        assert AS_IT_WAS in capsys.readouterr().err
