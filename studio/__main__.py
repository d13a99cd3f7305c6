"""The program's entry: `layby` opens the window, `layby serve | models | doctor` do without one.

Exit codes: 0 done, 1 failed with one line on standard error, 2 wrong usage, 130 stopped by Ctrl+C.
"""

from __future__ import annotations

import io
import multiprocessing
import os
import sys
from collections.abc import Sequence

from engine.errors import EngineError, ModelNotFound
from studio.models.errors import FetchUnavailable, SettingError, StudioError

_WRONG_USAGE = 2
_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code. Raises SystemExit for wrong usage, `--help` and `--version`."""
    multiprocessing.freeze_support()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a console that cannot show a letter shows a mark
            stream.reconfigure(errors="replace")
    try:
        # Here and not above: Ctrl+C while they load is no traceback either.
        from studio.cli.commands import run_command
        from studio.cli.parser import parse_arguments

        code = run_command(parse_arguments(sys.argv[1:] if arguments is None else arguments))
        sys.stdout.flush()
        return code
    except SettingError as error:
        sys.stderr.write(f"layby: {error}\n")
        return _WRONG_USAGE
    except (
        BrokenPipeError
    ):  # the reader of a list has enough; Python would complain once more at its own end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (EngineError, StudioError) as error:
        sys.stderr.write(f"layby: {error}{command_for(error)}\n")
        return 1
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        sys.stderr.write(f"layby: {where}{error.strerror or error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("layby: stopped\n")
        return _INTERRUPTED


def command_for(error: Exception) -> str:
    """What somebody at a terminal can type about an error, whose own words serve the window too; "" for nothing."""
    is_about_library = isinstance(error, ModelNotFound | FetchUnavailable)
    return " (see: layby models --help)" if is_about_library else ""


if __name__ == "__main__":
    sys.exit(main())
