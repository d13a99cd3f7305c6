"""What is measured on our servers, each a process of its own: starting, the three scenarios, gaps at parks.

What is compared is measured by turns, pair by pair. The simulator's bound is that at the step times which the server
itself counted in the very run that is held against it: so it tells what parking and all beside the steps cost, and
nothing of the machine's drift or of other programs, which make steps longer.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field

from engine.bench.bound import Load, bound_tokens_s
from engine.bench.calibrate import fit_counts
from engine.bench.figures import Figure, Goal, ratios
from engine.runs import StepCount
from engine.sim.calibration import Calibration
from studio.bench.gaps import split_gaps
from studio.bench.plan import BenchPlan, Part
from studio.bench.report import Section, pair_of
from studio.bench.scenarios import (
    Scenario,
    ScenarioRun,
    count_equal_texts,
    run_scenario,
    warm_up,
)
from studio.bench.served_steps import read_steps, steps_between
from studio.bench.server_process import Server, layby_server

OnNews = Callable[[str], object]
"""Hears what is being measured."""

_IDLE_S = 10.0
_QUICK_IDLE_S = 1.0
_MIB = 1 << 20
_MOST_FILE_SHARE, _MOST_MORE_BYTES = 1.25, 250e6
"""What a loaded model may take, by its file and beside it; its pool is not there before it is used."""
_FIT_SEED = 500
_ROOM_BYTES = 1 << 40
"""For parked requests, in the simulator's bound: nobody's state is dropped."""


def measure_start(plan: BenchPlan, on_news: OnNews) -> Section:
    """From the command to the first token, memory once the model is loaded, and the cost of being idle."""
    ready: list[float] = []
    first: list[float] = []
    resident: list[float] = []
    idle: list[float] = []
    for index in range(plan.rounds):
        on_news(f"start {index + 1} of {plan.rounds}")
        with layby_server(plan, plan.load.tight_pool_tokens) as server:
            ready.append(time.perf_counter() - server.started_s)
            resident.append(server.resident_bytes / _MIB)
            run = _run(server, plan, Scenario.ONE_BY_ONE, seed=1000 + index, is_short=True)
            first.append(run.replies[0].token_times_s[0] - server.started_s)
            idle.append(100 * server.idle_share(_QUICK_IDLE_S if plan.is_quick else _IDLE_S))
    most_bytes = _MOST_FILE_SHARE * plan.model_bytes + _MOST_MORE_BYTES
    return Section(
        Part.START,
        f"`layby serve`, a pool of {plan.load.tight_pool_tokens} tokens",
        (
            Figure("command to listening", "s", tuple(ready)),
            Figure(
                f"command to first token of {plan.load.prompt_words}",
                "s",
                tuple(first),
                _at_most(2),
            ),
            Figure("resident after loading", "MiB", tuple(resident), _at_most(most_bytes / _MIB)),
            Figure("while nobody asks", "% of a core", tuple(idle), _at_most(0.5)),
        ),
    )


def measure_gaps(plan: BenchPlan, on_news: OnNews) -> Section:
    """Gaps of other chats at parks and restores, by the usual ones, in place and on the copying path in turn."""
    found: dict[str, list[float]] = defaultdict(list)
    with ExitStack() as stack:
        pool = plan.load.tight_pool_tokens
        servers = {
            "in place": stack.enter_context(layby_server(plan, pool)),
            "by copy": stack.enter_context(layby_server(plan, pool, "--test-preempt-copy")),
        }
        for index in range(plan.rounds):
            for name, server in servers.items():
                on_news(f"gaps, parks {name}, {index + 1} of {plan.rounds}")
                run = _run(server, plan, Scenario.OVERFLOW, seed=2000 + index)
                gaps = split_gaps(run.replies)
                if gaps.at_moves_s and gaps.usual_s:
                    found[name].append(gaps.ratio)
    bounds = {"in place": 1.2, "by copy": 2.0}
    figures = tuple(
        Figure(
            f"p99 gap at parks {name}, by the usual",
            "",
            tuple(found[name]),
            _at_most(bound),
        )
        for name, bound in bounds.items()
        if found[name]
    )
    return Section(Part.GAPS, "other chats while one is parked or restored", figures)


def _at_most(bound: float) -> Goal:
    return Goal(bound=bound, is_least=False)


@dataclass(slots=True)
class _Runs:
    """All runs, by scenario, in order of rounds."""

    of: dict[Scenario, list[ScenarioRun]] = field(default_factory=lambda: defaultdict(list))
    bounds: list[float] = field(default_factory=list)
    """Of each round, the simulator's for overflow."""
    step_shares: list[float] = field(default_factory=list)
    """Of each round, the share of the time of overflow that steps took."""

    def speeds(self, scenario: Scenario) -> list[float]:
        return [run.useful_tokens_s for run in self.of[scenario]]


def measure_scenarios(plan: BenchPlan, on_news: OnNews) -> Section:
    """The scenarios by turns, beside the simulator's bound."""
    runs = _Runs()
    load = plan.load
    with (
        layby_server(plan, load.tight_pool_tokens) as tight,
        layby_server(plan, load.wide_pool_tokens) as wide,
    ):
        servers = {load.tight_pool_tokens: tight, load.wide_pool_tokens: wide}
        for server in servers.values():
            warm_up(server.url, plan)
        for index in range(plan.rounds):
            for scenario in Scenario:
                on_news(f"{scenario.value}, {index + 1} of {plan.rounds}")
                # Those that fit are others: nobody else's prompt may be found again where chats have it to themselves.
                seed = index + (_FIT_SEED if scenario is Scenario.FITS else 0)
                server = servers[scenario.pool_tokens(load)]
                before = read_steps(server.url, plan.api_key)
                runs.of[scenario].append(_run(server, plan, scenario, seed=seed))
                if scenario is Scenario.OVERFLOW:
                    after = read_steps(server.url, plan.api_key)
                    _bound_round(plan, runs, steps_between(before, after))
    title = (
        f"{load.num_chats} chats of {load.prompt_words} words and {load.reply_tokens} tokens, pools of "
        f"{load.tight_pool_tokens} and {load.wide_pool_tokens}, over loopback"
    )
    return Section(Part.SCENARIOS, title, tuple(_scenario_figures(runs)))


def _run(
    server: Server, plan: BenchPlan, scenario: Scenario, *, seed: int, is_short: bool = False
) -> ScenarioRun:
    load = plan.load.one_token() if is_short else plan.load
    return run_scenario(server.url, load, scenario, seed=seed, api_key=plan.api_key)


def _bound_round(plan: BenchPlan, runs: _Runs, counts: tuple[StepCount, ...]) -> None:
    """The bound of the latest overflow, at the step times that its server counted meanwhile."""
    run = runs.of[Scenario.OVERFLOW][-1]
    load = Load(
        prompt_tokens=tuple(reply.prompt_tokens for reply in run.replies),
        reply_tokens=plan.load.reply_tokens,
        pool_tokens=plan.load.tight_pool_tokens,
        step_tokens=plan.options.batch_tokens,
        budget_bytes=_ROOM_BYTES,
    )
    fit = fit_counts(counts)
    steps = Calibration(
        step_s=fit.step_s,
        decode_token_s=fit.decode_token_s,
        prefill_token_s=fit.prefill_token_s,
        context_token_s=fit.context_token_s,
    )
    runs.bounds.append(bound_tokens_s(load, steps))
    runs.step_shares.append(100 * sum(one.seconds for one in counts) / run.wall_s)


def _scenario_figures(runs: _Runs) -> Iterator[Figure]:
    overflow, alone = runs.speeds(Scenario.OVERFLOW), runs.speeds(Scenario.ONE_BY_ONE)
    for scenario in Scenario:
        yield from _run_figures(scenario.value, runs.of[scenario])
    texts = [
        count_equal_texts(run, solo)
        for run, solo in zip(runs.of[Scenario.OVERFLOW], runs.of[Scenario.ONE_BY_ONE], strict=True)
    ]
    chats = len(runs.of[Scenario.OVERFLOW][0].replies)
    yield Figure("overflow: texts as alone", f"of {chats}", tuple(texts), Goal(bound=chats))
    yield Figure("overflow: in steps", "% of the time", tuple(runs.step_shares))
    yield Figure(
        "overflow by the simulator's bound",
        "",
        ratios(overflow, runs.bounds),
        Goal(bound=0.95),
        note=pair_of(overflow, runs.bounds, "tokens/s"),
    )
    if all(alone):
        yield Figure(
            "overflow by one after another",
            "",
            ratios(overflow, alone),
            Goal(bound=1.4),
            note=pair_of(overflow, alone, "tokens/s"),
        )


def _run_figures(name: str, runs: list[ScenarioRun]) -> Iterator[Figure]:
    chats = len(runs[0].replies)
    completed = tuple(run.completed for run in runs)
    yield Figure(f"{name}: completed", f"of {chats}", completed, Goal(bound=chats))
    yield Figure(f"{name}: useful", "tokens/s", tuple(run.useful_tokens_s for run in runs))
    first = [run.first_tokens_s for run in runs]
    yield Figure(f"{name}: first token", "s", tuple(one for times in first for one in times))
    for words, share in (("p50", 0.5), ("p99", 0.99), ("max", 1.0)):
        yield Figure(f"{name}: gap {words}", "ms", tuple(run.gap_ms(share) for run in runs))
    if any(run.parks for run in runs):
        yield Figure(f"{name}: parks", "", tuple(run.parks for run in runs))
