"""The command line as other programs see it: arguments, output, exit codes. The window and the engine are stand-ins."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from engine.api import Device, KvType
from engine.errors import NotEnoughMemory
from fakes.tiny_files import write_tiny_gguf
from studio.__main__ import main
from studio.app import inspect_for_command_line
from studio.models.errand import Errand
from studio.models.errors import StoreBusy
from studio.models.park_settings import OnOff, ParkPolicy
from studio.models.settings import Settings
from studio.models.what_ran import WhatRan
from studio.paths import Paths, find_paths
from studio.services.settings_service import SettingsService

ROOT = Path(__file__).resolve().parents[2]


class Program(ModuleType):
    """Stands in for `studio.app`: notes what it was started with."""

    def __init__(self) -> None:
        super().__init__("studio.app")
        self.served: list[Settings] = []
        self.windows: list[Settings] = []
        self.errands: list[Errand] = []
        self.error: Exception | None = None
        self.inspect_for_command_line = inspect_for_command_line

    def run_server(self, settings: SettingsService, paths: Paths) -> int:
        self.served.append(settings.settings)
        assert paths == find_paths()
        if self.error is not None:
            raise self.error
        return 0

    def run_window(
        self, settings: SettingsService, paths: Paths, errand: Errand, what_ran: WhatRan | None
    ) -> WhatRan | None:
        self.windows.append(settings.settings)
        self.errands.append(errand)
        if self.error is not None:
            raise self.error
        return what_ran


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Program:
    stand_in = Program()
    monkeypatch.setitem(sys.modules, "studio.app", stand_in)
    return stand_in


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    logging.captureWarnings(capture=False)
    for handler in [handler for handler in root.handlers if handler not in handlers]:
        root.removeHandler(handler)
        handler.close()
    root.setLevel(level)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_tiny_gguf(tmp_path).rename(tmp_path / "Tiny.gguf")


def test_serve_takes_every_flag_other_programs_rely_on(program: Program, model: Path) -> None:
    flags = (
        "--host 0.0.0.0 --port 0 -c 4096 -np 2 -b 64 --threads 1 --device cpu --api-key k --seed -5"
    )
    assert main(["serve", "-m", str(model), *flags.split()]) == 0
    (settings,) = program.served
    engine, server = settings.engine, settings.server
    assert (engine.model, engine.ctx_size, engine.parallel, engine.batch_size) == (
        str(model),
        4096,
        2,
        64,
    )
    assert (engine.threads, engine.device, engine.seed) == (1, Device.CPU, -5)
    assert (server.host, server.port, server.api_key) == ("0.0.0.0", 0, "k")


@pytest.mark.parametrize(
    "flags",
    [
        ["--kv-type", "q8_0"],
        ["-ctk", "q8_0", "-ctv", "q8_0"],
        ["--cache-type-k", "q8_0", "--cache-type-v", "q8_0"],
    ],
)
def test_serve_takes_how_keys_and_values_are_stored(
    program: Program, model: Path, flags: list[str]
) -> None:
    assert main(["serve", "-m", str(model), *flags]) == 0
    assert program.served[0].load_options().kv_type is KvType.Q8_0


def test_keys_stored_otherwise_than_values_are_refused(
    program: Program, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["serve", "-m", str(model), "-ctk", "q8_0", "-ctv", "f16"])
    assert "f16 after q8_0; there is one value for all of these flags" in capsys.readouterr().err
    assert not program.served


def test_serve_takes_the_flags_of_parking(program: Program, model: Path) -> None:
    flags = (
        "--preempt-ram -1 --preempt-policy cost --no-preempt-async --preempt-disk parked --sse-ping-interval 5 "
        "--context-shift --test-preempt-every 8 --test-preempt-planner off --test-preempt-copy"
    )
    assert main(["serve", "-m", str(model), *flags.split()]) == 0
    (settings,) = program.served
    assert (settings.park.ram_mib, settings.park.policy) == (-1, ParkPolicy.COST)
    assert not settings.park.is_async
    assert settings.load_options().preempt_disk == Path("parked").absolute()
    assert settings.server.server_settings().sse_ping_interval_s == 5
    assert settings.engine.context_shift
    test = settings.park_test
    assert (test.every_tokens, test.planner, test.copies) == (8, OnOff.OFF, True)


@pytest.mark.parametrize(
    ("flag", "value", "allowed"),
    [
        ("--preempt-policy", "fair", "fcfs, cost, smallest, largest, youngest, oldest"),
        ("--test-preempt-resume", "tail", "head, pass"),
        ("--test-preempt-planner", "maybe", "on, off"),
        ("--preempt-ram", "-2", "-1 to 1073741824"),
        ("--preempt-ram", "much", "-1 to 1073741824"),
    ],
)
def test_an_unknown_value_refuses_the_start_and_names_what_is_allowed(
    flag: str, value: str, allowed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_code:
        main(["serve", flag, value])
    assert exit_code.value.code == 2
    words = capsys.readouterr().err
    assert value in words
    assert allowed in words


def test_variables_of_another_server_mean_the_same_and_ours_win(
    program: Program,
    model: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("LLAMA_ARG_PREEMPT_RAM", "100")
    monkeypatch.setenv("LLAMA_ARG_PREEMPT_ASYNC", "off")
    assert main(["serve", "-m", str(model)]) == 0
    assert (program.served[0].park.ram_mib, program.served[0].park.is_async) == (100, False)
    monkeypatch.setenv("LAYBY_PREEMPT_RAM", "200")
    assert main(["serve", "-m", str(model)]) == 0
    assert program.served[1].park.ram_mib == 200
    monkeypatch.setenv("LLAMA_ARG_PREEMPT_POLICY", "fair")
    assert main(["serve", "-m", str(model)]) == 2
    assert "LLAMA_ARG_PREEMPT_POLICY is 'fair'; give one of fcfs, cost" in capsys.readouterr().err


def test_knobs_of_tests_are_not_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["serve", "--help"])
    words = capsys.readouterr().out
    assert "--preempt-ram" in words
    assert "--test-" not in words


def test_long_names_and_variables_mean_the_same_and_flags_win(
    program: Program, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAYBY_MODEL", str(model))
    monkeypatch.setenv("LAYBY_PARALLEL", "7")
    monkeypatch.setenv("LAYBY_PORT", "1234")
    assert main(["serve", "--ctx-size", "512", "--port", "99"]) == 0
    (settings,) = program.served
    assert (settings.engine.ctx_size, settings.engine.parallel, settings.server.port) == (
        512,
        7,
        99,
    )


def test_without_a_command_the_window_opens_and_logs_to_its_file(
    program: Program, model: Path
) -> None:
    assert main(["--model", "Tiny", "-c", "100", "--log-level", "debug"]) == 0
    assert program.windows[0].engine.ctx_size == 100
    assert find_paths().log_file.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is always a display")
def test_a_window_without_a_display_is_refused_in_one_line(
    program: Program, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    assert main([]) == 1
    said = capsys.readouterr().err
    assert said.startswith("layby: no display")
    assert said.endswith("use `layby serve`\n")
    assert said.count("\n") == 1
    assert program.windows == []
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")
    assert main([]) == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["serve", "-m", "x", "--port", "70000"],
            "the value is 70000; give a whole number from 0 to 65535",
        ),
        (["serve", "-m", "x", "--device", "tpu"], "give one of auto, cpu, cuda, mps"),
        (["serve", "-m", "x", "--para", "3"], "unrecognized arguments"),
        (["models"], "required"),
        (["models", "get"], "required"),
        (["dance"], "invalid choice"),
    ],
)
def test_wrong_usage_is_told_with_code_2(
    program: Program, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert words in capsys.readouterr().err
    assert program.served == []


def test_serving_without_a_model_and_bad_variables_are_wrong_usage(
    program: Program, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["serve"]) == 2
    assert "layby: no model to serve; name one with -m" in capsys.readouterr().err
    monkeypatch.setenv("LAYBY_THREADS", "two")
    assert main(["models", "list"]) == 2
    assert (
        capsys.readouterr().err
        == "layby: LAYBY_THREADS is 'two'; give a whole number from 0 to 1024\n"
    )


def test_an_unknown_model_is_one_clear_line_before_anything_is_loaded(
    program: Program, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", "-m", "nope"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("layby: there is no model 'nope'")
    assert captured.err.count("\n") == 1
    assert program.served == []


@pytest.mark.parametrize(
    "error", [NotEnoughMemory("needs 90 GiB"), StoreBusy("open elsewhere"), OSError(28, "No room")]
)
def test_what_goes_wrong_later_is_one_line_too(
    program: Program, model: Path, capsys: pytest.CaptureFixture[str], error: Exception
) -> None:
    program.error = error
    for arguments in (["serve", "-m", str(model)], []):
        assert main(arguments) == 1
        captured = capsys.readouterr()
        assert captured.err.startswith("layby: ")
        assert captured.err.count("\n") == 1


def test_ctrl_c_is_no_traceback(program: Program, capsys: pytest.CaptureFixture[str]) -> None:
    program.error = KeyboardInterrupt()  # type: ignore[assignment]
    assert main([]) == 130
    assert capsys.readouterr().err == "layby: stopped\n"


def test_ctrl_c_while_modules_load_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Interrupted(ModuleType):
        def __getattr__(self, name: str) -> object:
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "studio.cli.commands", Interrupted("studio.cli.commands"))
    assert main(["models", "list"]) == 130
    assert capsys.readouterr().err == "layby: stopped\n"


def test_help_and_lists_load_neither_torch_nor_qt() -> None:
    code = (
        "import sys; from studio.__main__ import main; main(['models', 'list']); "
        "sys.exit(any(name in sys.modules for name in ('torch', 'PySide6', 'fastapi', 'numpy')))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stderr


def test_a_reader_that_stops_early_is_no_error_on_screen() -> None:
    code = "import sys; from studio.__main__ import main; sys.stdin.read(); sys.exit(main(['models', 'list']))"
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin
    assert process.stdout
    assert process.stderr
    process.stdout.close()
    process.stdin.close()
    with process:
        assert process.stderr.read() == ""
    assert process.returncode == 1


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("layby ")


def test_a_text_and_files_go_to_the_window(
    program: Program, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DISPLAY", ":1")
    monkeypatch.chdir(tmp_path)
    assert main(["chat", "Why is the sky blue?"]) == 0
    assert main(["open", "a.gguf", "/b/c.json"]) == 0
    assert main(["chat"]) == 0
    assert program.errands == [
        Errand(text="Why is the sky blue?"),
        Errand(files=(tmp_path / "a.gguf", Path("/b/c.json").absolute())),
        Errand(),
    ]
