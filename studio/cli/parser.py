"""The command line's grammar: flags come from the settings, commands are listed here.

Importing this loads neither Qt nor torch, so that `layby --help` answers at once.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TypeAlias

from engine.runs import POLICY_NAMES, RESUME_NAMES
from studio import __version__
from studio.bench.plan import PART_NAMES, BenchWishes
from studio.cli.argument_values import (
    Agreeing,
    Names,
    Reader,
    metavar_of,
    positive,
    read_model_wish,
    read_opponent,
)
from studio.models.setting_field import SettingKind, SettingValue
from studio.models.settings import all_settings
from studio.models.what_ran import WhatRan

_DESCRIPTION = "Several chats on one local model, in a window or as an OpenAI-compatible server."
_EPILOG = "Without a command the window opens. Every flag has a LAYBY_ variable and a place in the settings."


AS_IT_WAS = "--as-it-was"
"""Given only by Layby itself, when it starts again."""
_MODEL_KEYS = ("engine.model", "engine.device", "engine.cpu_variant", "engine.kv_type")
_Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


class Command(Enum):
    """What the program was asked to do."""

    WINDOW = "window"
    CHAT = "chat"
    OPEN = "open"
    SERVE = "serve"
    MODELS_LIST = "models list"
    MODELS_GET = "models get"
    MODELS_ADD = "models add"
    MODELS_REMOVE = "models remove"
    MODELS_VERIFY = "models verify"
    DOCTOR = "doctor"
    SIMULATE = "simulate"
    BENCH = "bench"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The parsed command line. `flags` holds only the settings that were given, by key."""

    command: Command
    flags: dict[str, SettingValue] = field(default_factory=dict)
    name: str = ""
    """Model that `models get`, `remove` and `verify` are about; empty for all of them."""
    path: Path = Path()
    """What `models add` adds."""
    text: str = ""
    """What `chat` begins with."""
    files: tuple[Path, ...] = ()
    """What `open` opens."""
    what_ran: WhatRan | None = None
    """Of the program that has started itself again as this one."""
    as_json: bool = False
    is_sure: bool = False
    """`--yes`: ask nothing."""
    is_deep: bool = False
    policies: tuple[str, ...] = ()
    """What `simulate` compares, with `orders`."""
    orders: tuple[str, ...] = ()
    num_seeds: int = 1
    plot: Path | None = None
    is_calibrated: bool = False
    """`simulate --calibrated`: only with step times measured here."""
    bench: BenchWishes = field(default_factory=BenchWishes)


def parse_arguments(arguments: Sequence[str]) -> Options:
    """What the arguments ask for. Raises SystemExit, as argparse does: 2 for wrong usage, 0 for `--help`."""
    values = vars(_build_parser().parse_args(arguments))
    return Options(
        command=values["command"],
        flags={entry.key: values[entry.key] for entry in all_settings() if entry.key in values},
        name=values.get("name") or "",
        path=values.get("path", Path()),
        text=values.get("text") or "",
        files=tuple(path.absolute() for path in values.get("files", ())),
        what_ran=values.get("what_ran"),
        as_json=values.get("as_json", False),
        is_sure=values.get("is_sure", False),
        is_deep=values.get("is_deep", False),
        policies=values.get("policies", ()),
        orders=values.get("orders", ()),
        num_seeds=values.get("num_seeds", 1),
        plot=values.get("plot"),
        is_calibrated=values.get("is_calibrated", False),
        bench=BenchWishes(
            models=tuple(values.get("models", ())),
            parts=values.get("parts", ()),
            rounds=values.get("num_rounds", 1),
            is_quick=values.get("is_quick", False),
            is_calibrating=values.get("is_calibrating", False),
            as_json=values.get("as_json", False),
            as_markdown=values.get("as_markdown", False),
            llama_server=values.get("against"),
        ),
    )


def _build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="layby", description=_DESCRIPTION, epilog=_EPILOG, allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=f"layby {__version__}")
    parser.set_defaults(command=Command.WINDOW)
    parser.add_argument(AS_IT_WAS, dest="what_ran", type=WhatRan.from_text, help=argparse.SUPPRESS)
    _add_settings(parser)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    chat = _add_command(commands, Command.CHAT, "open the window, or the open one, on a new chat")
    chat.add_argument("text", metavar="TEXT", nargs="?", help="what to write; it is not sent yet")
    opening = _add_command(commands, Command.OPEN, "open files in the window, or in the open one")
    opening.add_argument(
        "files",
        metavar="FILE",
        nargs="+",
        type=Path,
        help="a model, exported chats, or attachments",
    )
    serve = _add_command(commands, Command.SERVE, "run the server without a window")
    _add_settings(serve)
    models = commands.add_parser("models", help="look after the models on this machine")
    _add_models_commands(models.add_subparsers(title="commands", metavar="COMMAND", required=True))
    doctor = _add_command(
        commands, Command.DOCTOR, "check whether everything that Layby needs is there"
    )
    doctor.add_argument(
        "--deep", dest="is_deep", action="store_true", help="also ask torch for devices"
    )
    _add_simulate_command(commands)
    _add_bench_command(commands)
    return parser


def _add_simulate_command(commands: _Commands) -> None:
    simulate = _add_command(
        commands, Command.SIMULATE, "compare parking policies on chats that are made up"
    )
    simulate.add_argument(
        "--policies",
        type=Names(POLICY_NAMES),
        default=("fcfs", "cost"),
        metavar="NAME,...",
        help=f"all, or some of {', '.join(POLICY_NAMES)}",
    )
    simulate.add_argument(
        "--orders",
        type=Names(RESUME_NAMES),
        default=("head",),
        metavar="NAME,...",
        help="whether the head of the line may be passed: head, pass or both",
    )
    simulate.add_argument(
        "--seeds",
        dest="num_seeds",
        type=positive,
        default=3,
        metavar="N",
        help="traces of each kind; figures are their means",
    )
    simulate.add_argument(
        "--plot", type=Path, metavar="FILE.png", help="draw the longest waits into this file"
    )
    simulate.add_argument(
        "--calibrated",
        dest="is_calibrated",
        action="store_true",
        help="fail where the model's step times were not measured here (`layby bench --calibrate`)",
    )
    _add_settings(simulate, keys=_MODEL_KEYS)


def _add_bench_command(commands: _Commands) -> None:
    bench = _add_command(commands, Command.BENCH, "measure this machine with models")
    bench.add_argument(
        "models",
        nargs="*",
        type=read_model_wish,
        metavar="MODEL[=NAME,...]",
        help="models instead of the one of -m, each with the parts to measure of it, or with those of --parts",
    )
    bench.add_argument(
        "--parts",
        type=Names(PART_NAMES),
        default=(),
        metavar="NAME,...",
        help=f"all, or some of {', '.join(PART_NAMES)}",
    )
    bench.add_argument(
        "--rounds",
        dest="num_rounds",
        type=positive,
        default=3,
        metavar="N",
        help="how often servers are measured, by turns; figures are medians",
    )
    for flag, dest, words in (
        ("--quick", "is_quick", "short runs: does everything work, and roughly how fast"),
        ("--calibrate", "is_calibrating", "keep what steps and parks take, for `layby simulate`"),
        ("--json", "as_json", "for other programs, every sample included"),
        ("--markdown", "as_markdown", "figures with goals, the models side by side"),
    ):
        bench.add_argument(flag, dest=dest, action="store_true", help=words)
    bench.add_argument(
        "--against",
        type=read_opponent,
        metavar="llama-server=PATH",
        help="ask this llama-server too, by turns, on the same file",
    )
    _add_settings(bench, keys=(*_MODEL_KEYS, "engine.threads", "engine.batch_size"))


def _add_models_commands(commands: _Commands) -> None:
    listing = _add_command(commands, Command.MODELS_LIST, "the models there are")
    listing.add_argument("--json", dest="as_json", action="store_true", help="for other programs")
    get = _add_command(commands, Command.MODELS_GET, "fetch a model of the catalogue")
    get.add_argument("name", metavar="NAME", help="a name in the catalogue, as smollm2-135m")
    add = _add_command(
        commands, Command.MODELS_ADD, "add a model elsewhere on this machine, without copying it"
    )
    add.add_argument("path", metavar="PATH", type=Path, help="a GGUF file or a Hugging Face folder")
    remove = _add_command(
        commands, Command.MODELS_REMOVE, "forget a model; a fetched one is deleted"
    )
    remove.add_argument("name", metavar="NAME")
    remove.add_argument(
        "-y", "--yes", dest="is_sure", action="store_true", help="delete without asking"
    )
    verify = _add_command(
        commands,
        Command.MODELS_VERIFY,
        "check models by their SHA-256, or by opening them",
    )
    verify.add_argument(
        "name", metavar="NAME", nargs="?", help="one model; all of them without a name"
    )


def _add_command(commands: _Commands, command: Command, words: str) -> argparse.ArgumentParser:
    name = command.value.rsplit(" ", 1)[-1]
    parser = commands.add_parser(
        name, help=words, description=f"{words[0].upper()}{words[1:]}.", allow_abbrev=False
    )
    parser.set_defaults(command=command)
    return parser


def _add_settings(parser: argparse.ArgumentParser, keys: Sequence[str] = ()) -> None:
    """Flags of the settings with these keys; of all of them without."""
    group = parser.add_argument_group("settings")
    for entry in all_settings():
        if keys and entry.key not in keys:
            continue
        info = entry.info
        words = argparse.SUPPRESS if info.is_hidden else f"{info.help} [{info.env}]"
        if info.flags and entry.kind is SettingKind.SWITCH:
            group.add_argument(
                *reversed(info.flags),
                dest=entry.key,
                default=argparse.SUPPRESS,
                action=argparse.BooleanOptionalAction,
                help=words,
            )
        elif info.flags:
            group.add_argument(
                *reversed(info.flags),
                dest=entry.key,
                default=argparse.SUPPRESS,
                action=Agreeing if info.flags_agree else "store",
                type=Reader(entry),
                metavar=metavar_of(entry),
                help=words,
            )
