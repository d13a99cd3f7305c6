"""LaTeX becomes SVG in a process of its own: typesetting takes 5 to 300 ms, holds Python's lock all the while, and is
given whatever a model writes.

`Typesetter` belongs to one worker thread; `typeset` and `serve` run in the child, which rests after a while without
work. What the child says is JSON, not pickled objects. Must not import Qt.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import re
import threading
import warnings
from dataclasses import asdict, dataclass
from enum import Enum
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

_UNIT_PX = 20
"""The size of type that formulas are typeset at; they are vectors, and scaled to the text's."""
_MARGIN = 1.0
_PATIENCE_S = 30.0
"""For one formula, and the start of the child."""
_REST_S = 60.0
"""After so long without work the child ends."""
_TAG = re.compile(r"\\tag\*?\{[^}]*\}|\\label\{[^}]*\}")
_VIEW_BOX = re.compile(r'viewBox="\S+ (\S+) (\S+) (\S+)"')
_UNKNOWN = re.compile(r"<m(?:i|o|text)>\\[A-Za-z]")


@dataclass(frozen=True, slots=True)
class Formula:
    """Typeset; lengths in units of the size of type. `depth` is what lies below the line."""

    svg: str
    width: float
    height: float
    depth: float


class Unready(Enum):
    """Why there is no formula to draw: its source is shown instead."""

    TYPESETTING = "typesetting"
    BAD = "bad"


class Typesetter:
    """The child, started with the first formula. `close` may be called by any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_closed = False
        self._child: tuple[BaseProcess, Connection] | None = None

    def typeset(self, latex: str, *, is_display: bool) -> Formula | Unready:
        """One formula; BAD also where the child broke down over it. Waits for it."""
        asked = json.dumps([latex, is_display]).encode()
        for _ in range(2):  # a child that has gone to rest is found out only by asking it
            try:
                if (pipe := self._pipe()) is None:
                    break
                pipe.send_bytes(asked)
                if pipe.poll(_PATIENCE_S):
                    answer = json.loads(pipe.recv_bytes())
                    return Formula(**answer) if answer is not None else Unready.BAD
                self._end_child()
                break
            except (EOFError, OSError):
                self._end_child()
        return Unready.BAD

    def close(self) -> None:
        """End the child; what it works on is BAD, and there will be no other."""
        self._is_closed = True
        self._end_child()

    def _pipe(self) -> Connection | None:
        with self._lock:
            if self._child is None and not self._is_closed:
                context = multiprocessing.get_context("spawn")
                ours, theirs = context.Pipe()
                process = context.Process(
                    target=serve, args=(theirs,), name="layby-formulas", daemon=True
                )
                process.start()
                theirs.close()
                self._child = process, ours
            return self._child[1] if self._child is not None else None

    def _end_child(self) -> None:
        with self._lock:
            if self._child is not None:
                process, _ = self._child  # whoever waits at the pipe hears of its end
                self._child = None
                process.kill()
                process.join()


def serve(pipe: Connection) -> None:
    """In the child: answer until nobody asks any more."""
    with contextlib.suppress(AttributeError, OSError):  # not on every system
        os.nice(5)
    with contextlib.suppress(EOFError, OSError, KeyboardInterrupt):
        while pipe.poll(_REST_S):
            latex, is_display = json.loads(pipe.recv_bytes())
            made = typeset(latex, is_display=is_display)
            answer = asdict(made) if isinstance(made, Formula) else None
            pipe.send_bytes(json.dumps(answer).encode())


def typeset(latex: str, *, is_display: bool) -> Formula | Unready:
    """Set one formula. BAD for what is no LaTeX, or uses what the typesetter does not know."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a way to find a data file
        from latex2mathml.converter import convert
        from ziamath import zmath  # 100 ms, paid with the first formula
        from ziamath.config import config

    source = _TAG.sub("", latex)
    try:
        if _UNKNOWN.search(convert(source)):
            return Unready.BAD
        config.svg2 = False  # Qt's SVG knows no symbols
        made = zmath.Latex(source, size=_UNIT_PX, inline=not is_display, margin=_MARGIN)
        svg = made.svg()
        box = _VIEW_BOX.search(svg)
    except Exception:  # noqa: BLE001 - the typesetter raises anything, and a model writes anything
        return Unready.BAD
    if box is None:
        return Unready.BAD
    top, width, height = (float(figure) / _UNIT_PX for figure in box.groups())
    return Formula(svg, width, height, depth=max(0.0, top + height))
