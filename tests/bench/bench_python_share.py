"""What Python costs in a step of the engine: microseconds by part, beside the native call, on the engine's thread.

Run: python tests/bench/bench_python_share.py MODEL [--tokens N]. Not collected by pytest; prints a table. Replies of
random prompts at 1 and 4 rows, greedy and at temperature 0.8; medians over the steps. To compare two checkouts run it
with PYTHONPATH set to the one and the other, in turn.
"""
# ruff: noqa: T201 - the table is the point

from __future__ import annotations

import argparse
import statistics
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from engine.api import (
    EngineEvent,
    EngineState,
    Finished,
    LoadModel,
    LoadOptions,
    ModelChanged,
    Origin,
    Request,
    SamplingParams,
    TokenIds,
)
from engine.core.scheduler import Scheduler
from engine.runtime.engine import Engine
from engine.runtime.model_runner import ModelRunner
from engine.runtime.sampler import Sampler
from engine.runtime.stepper import Stepper

PARTS = (
    (Engine, "_handle_messages"),
    (Engine, "_publish"),
    (Stepper, "_plan"),
    (Scheduler, "schedule"),
    (ModelRunner, "commit"),
    (ModelRunner, "execute"),
    (Sampler, "wish"),
    (Sampler, "sample"),
    (Scheduler, "update"),
    (Stepper, "_report_update"),
)
"""Methods that are timed; some lie within others."""
WARM_STEPS = 20


class Stopwatch:
    """Seconds by part of the step under way, and of all steps before."""

    def __init__(self) -> None:
        self.steps: list[dict[str, float]] = []
        self._step: dict[str, float] = defaultdict(float)
        self._began_s = time.perf_counter()

    def watch(self, owner: Any, name: str) -> None:
        """Add the time of a function to its part from now on."""
        function = getattr(owner, name)

        def timed(*args: Any, **kwargs: Any) -> Any:
            start = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                self._step[name] += time.perf_counter() - start

        setattr(owner, name, timed)

    def watch_native(self, functions: Any) -> None:
        """The native call: each one ends a step where it begins."""
        run = functions.layby_program_run

        def timed(*args: Any) -> int:
            start = time.perf_counter()
            self._step["period"] = start - self._began_s
            self.steps.append(dict(self._step))
            self._step.clear()
            self._began_s = start
            result: int = run(*args)
            self._step["native"] = time.perf_counter() - start
            return result

        functions.layby_program_run = timed


def ask(engine: Engine, rows: int, tokens: int, temperature: float) -> None:
    """Let so many replies be written together, and wait for them."""
    left, is_done = {f"{temperature}-{rows}-{i}" for i in range(rows)}, threading.Event()

    def hear(events: tuple[EngineEvent, ...]) -> None:
        for event in events:
            if isinstance(event, Finished):
                left.discard(event.request_id)
                if not left:
                    is_done.set()

    unsubscribe = engine.subscribe(hear)
    for index, name in enumerate(sorted(left)):
        dice = Random(index)
        prompt = TokenIds(ids=tuple(dice.randrange(1000, 20000) for _ in range(64)))
        sampling = SamplingParams(temperature=temperature, seed=index)
        engine.submit(
            Request(
                request_id=name,
                origin=Origin.API,
                prompt=prompt,
                sampling=sampling,
                max_tokens=tokens,
                ignore_eos=True,
            )
        )
    assert is_done.wait(600)
    unsubscribe()


def load(engine: Engine, path: Path, *, parallel: int = 4) -> None:
    is_ready = threading.Event()

    def hear(events: tuple[EngineEvent, ...]) -> None:
        if any(isinstance(e, ModelChanged) and e.state is EngineState.READY for e in events):
            is_ready.set()

    unsubscribe = engine.subscribe(hear)
    options = LoadOptions(pool_tokens=2048 * parallel, parallel=parallel, threads=2)
    engine.control(LoadModel(path=path, name=path.stem, options=options))
    assert is_ready.wait(120)
    unsubscribe()


def report(title: str, steps: list[dict[str, float]]) -> None:
    def median(value: Callable[[dict[str, float]], float]) -> float:
        return statistics.median(value(step) for step in steps) * 1e6

    python = median(lambda step: step["period"] - step["native"])
    native = median(lambda step: step["native"])
    parts = [f"{name} {median(lambda s, n=name: s.get(n, 0.0)):.0f}" for _, name in PARTS]
    print(
        f"{title}: Python {python:.0f} us, native {native:.0f}: "
        f"{python / (python + native):.1%} ({len(steps)} steps)\n    " + ", ".join(parts)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--tokens", type=int, default=300)
    parser.add_argument("--total-only", action="store_true", help="without a watch on each part")
    arguments = parser.parse_args()
    watch = Stopwatch()
    if not arguments.total_only:
        for owner, name in PARTS:
            if hasattr(owner, name):  # an older checkout may lack one
                watch.watch(owner, name)
    engine = Engine()
    load(engine, arguments.model)
    runner: Any = engine._model.runner  # type: ignore[union-attr]
    watch.watch_native(runner._compute._program._library.functions)
    for temperature in (0.0, 0.8):
        for rows in (1, 4):
            watch.steps.clear()
            ask(engine, rows, arguments.tokens, temperature)
            report(f"{rows} at {temperature}", watch.steps[WARM_STEPS : -1 - WARM_STEPS])
    engine.shutdown()


if __name__ == "__main__":
    main()
