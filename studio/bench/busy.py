"""Decoding beside a program that keeps a core busy, by decoding alone. The caller's thread."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import psutil

from engine.bench.figures import Figure, Goal, ratios
from studio.bench.plan import BenchPlan, Part
from studio.bench.report import Section, pair_of
from studio.bench.scenarios import Scenario, run_scenario
from studio.bench.server_process import OURS, Server, all_servers

_BUSY_S = 0.1
_POLL_S = 0.02


def measure_busy(plan: BenchPlan, on_news: Callable[[str], object]) -> Section:
    """One chat, alone and beside the busy program by turns; ours and, where there is one, the other's."""
    alone: dict[str, list[float]] = defaultdict(list)
    beside: dict[str, list[float]] = defaultdict(list)
    with all_servers(plan, plan.load.tight_pool_tokens) as servers:
        for index in range(plan.rounds):
            for name, server in servers.items():
                on_news(f"{name}, decoding beside a busy program, {index + 1} of {plan.rounds}")
                alone[name].append(_speed(server, plan, seed=4000 + index))
                with _busy_program():
                    beside[name].append(_speed(server, plan, seed=4500 + index))
    figures = tuple(
        Figure(
            f"{name}, beside a program that spins",
            "% of its idle speed",
            tuple(100 * share for share in ratios(beside[name], alone[name])),
            Goal(bound=40) if name == OURS else None,
            note=pair_of(beside[name], alone[name], "tokens/s"),
        )
        for name in servers
    )
    return Section(Part.BUSY, "decoding of one chat beside another program", figures)


def _speed(server: Server, plan: BenchPlan, *, seed: int) -> float:
    load = replace(plan.load, num_chats=1, reply_tokens=plan.lengths.busy_reply_tokens)
    run = run_scenario(server.url, load, Scenario.ONE_BY_ONE, seed=seed, api_key=plan.api_key)
    return run.replies[0].decode_tokens_s


@contextmanager
def _busy_program() -> Iterator[None]:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        try:
            while psutil.Process(process.pid).cpu_times().user < _BUSY_S:
                time.sleep(_POLL_S)
            yield
        finally:
            process.kill()
