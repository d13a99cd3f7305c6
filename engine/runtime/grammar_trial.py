"""Compiles a grammar in a process that can be ended, to know whether it can be done at all. Threads of grammars.

Nothing can stop the library once it compiles, and some short grammars take it minutes, or all memory. What it does in
time here it does in time again. Imports no torch.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING, Protocol

import psutil

from engine.runtime.grammar_vocabulary import SpelledTokens, library_tokenizer

if TYPE_CHECKING:
    from llguidance import LLParserLimits

PATIENCE_S = 5.0
"""Of computing, however much of the machine others take."""
_MOST_WAITED = 4
"""So many times that by the clock."""
STACK_BYTES = 192 << 20
"""The compiler calls itself for each rule that names another. The largest grammar that is allowed (see
`grammar_compiler`) may take some 100 MiB so, and a stack that is too small ends the whole program. Memory that is not
used is not taken."""
_START_S = 60.0
_TICK_S = 0.02
"""Systems count what a process has computed no more finely."""
_REST_S = 60.0
"""A process that has nothing to do for so long ends."""
_MOST_MEMORY = 2 << 30


def parser_limits() -> LLParserLimits:
    """Some tenth of the library's own: the worst token then holds up the others for some 10 ms."""
    from llguidance import LLParserLimits

    return LLParserLimits(
        max_items_in_row=1000,
        step_max_items=10_000,
        step_lexer_fuel=50_000,
        max_lexer_states=50_000,
        max_grammar_size=100_000,
        verbose_errors=False,
    )


class TooCostly(Exception):
    """It takes too long or too much memory."""


class Trials(Protocol):
    """What tries grammars. Any thread."""

    def check(self, source: str, special: frozenset[int]) -> None:
        """Returns once it is known that the grammar can be compiled, or is wrong, in time. Raises TooCostly."""

    def close(self) -> None:
        """End what is being tried; whoever waits for it hears TooCostly."""


class GrammarTrials:
    """Of one model: a process for each grammar that is being tried, of which one is kept for the next."""

    def __init__(
        self, spelled: Callable[[], SpelledTokens], *, patience_s: float = PATIENCE_S
    ) -> None:
        self._spelled = spelled
        self._patience_s = patience_s
        self._lock = threading.Lock()
        self._idle: _Child | None = None
        self._children: set[_Child] = set()
        self._is_closed = False

    def check(self, source: str, special: frozenset[int]) -> None:
        for child in (self._kept(), None):
            child, is_new = (child, False) if child is not None else (self._start(), True)
            try:
                is_done = child.compiles(source, special, self._patience_s)
            except (EOFError, OSError):  # it has broken down, or gone to rest
                self._end(child)
                if is_new:
                    raise TooCostly("it takes too much memory") from None
                continue
            if not is_done:
                self._end(child)
                raise TooCostly(f"preparing it takes longer than {self._patience_s:g} s")
            self._keep(child)
            return

    def close(self) -> None:
        with self._lock:
            self._is_closed, self._idle = True, None
            children, self._children = self._children, set()
        for child in children:
            child.end()

    def _kept(self) -> _Child | None:
        with self._lock:
            child, self._idle = self._idle, None
            return child

    def _start(self) -> _Child:
        child = _Child(self._spelled())
        with self._lock:
            self._children.add(child)
            is_closed = self._is_closed
        if is_closed:
            self._end(child)
            raise TooCostly("its model has been unloaded")
        return child

    def _keep(self, child: _Child) -> None:
        with self._lock:
            if self._idle is None and not self._is_closed:
                self._idle = child
                return
        self._end(child)

    def _end(self, child: _Child) -> None:
        with self._lock:
            self._children.discard(child)
        child.end()


class _Child:
    """One process."""

    def __init__(self, spelled: SpelledTokens) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process: BaseProcess = context.Process(
            target=serve, args=(theirs,), name="layby-grammar", daemon=True
        )
        self._process.start()
        theirs.close()
        self._vocabulary: SpelledTokens | None = spelled

    def compiles(self, source: str, special: frozenset[int], patience_s: float) -> bool:
        """Whether it is done in time. Raises EOFError or OSError where the process has ended."""
        if self._vocabulary is not None:
            self._pipe.send(self._vocabulary)
            self._vocabulary = None
            if not self._pipe.poll(_START_S):
                return False
            self._pipe.recv_bytes()
        self._pipe.send((source, special))
        begun_s, computed_s = time.monotonic(), self._computed_s()
        left_s = patience_s
        while not self._pipe.poll(left_s):
            left_s = patience_s - (self._computed_s() - computed_s)
            is_late = time.monotonic() - begun_s > _MOST_WAITED * patience_s
            if is_late or left_s < _TICK_S:
                return False
        self._pipe.recv_bytes()
        return True

    def _computed_s(self) -> float:
        """What the process has computed so far. Raises EOFError where it has ended."""
        try:
            times = psutil.Process(self._process.pid).cpu_times()
        except psutil.Error:
            raise EOFError from None
        return float(times.user + times.system)

    def end(self) -> None:
        """Any thread; whoever waits at the pipe hears of it."""
        self._process.kill()
        self._process.join()


def serve(pipe: Connection) -> None:
    """In the process: try what comes until nothing does."""
    with contextlib.suppress(AttributeError, OSError):  # not on every system
        os.nice(5)
    _bound_memory()
    threading.stack_size(STACK_BYTES)
    worker = threading.Thread(target=_serve, args=(pipe,))
    worker.start()
    with contextlib.suppress(KeyboardInterrupt):
        worker.join()


def _serve(pipe: Connection) -> None:
    from llguidance import LLMatcher

    with contextlib.suppress(EOFError, OSError):
        spelled: SpelledTokens = pipe.recv()
        pipe.send_bytes(b"ready")
        while pipe.poll(_REST_S):
            source, special = pipe.recv()
            matcher = LLMatcher(
                library_tokenizer(spelled, special), source, log_level=0, limits=parser_limits()
            )
            if not matcher.is_error():
                matcher.compute_bitmask()  # the first one takes the longest
            pipe.send_bytes(b"done")


def _bound_memory() -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):  # not on every system
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
