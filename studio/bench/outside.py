"""What is measured on our servers, each a process of its own: starting, the three scenarios, gaps at parks.

What is compared is measured by turns, pair by pair. Loads a model for the simulator's bound, which needs step times of
this moment: import it only where something is measured.
"""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field

from engine.bench.bound import Load, bound_tokens_s, stretched
from engine.bench.calibrate import ParkCosts, fit_steps, make_calibration
from engine.bench.figures import Figure, Goal, ratios
from engine.bench.step_rig import StepRig, open_rig
from engine.bench.steps import StepPlan, plan_for_window, survey_options, survey_steps
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
from studio.bench.server_process import Server, layby_server

OnNews = Callable[[str], object]
"""Hears what is being measured."""

_BOUND_PLAN = StepPlan(batches=(1, 2, 3, 4), steps=25, prompts=2)
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
    """All runs, by scenario, in order of rounds; and of each round the simulator's bounds for overflow."""

    of: dict[Scenario, list[ScenarioRun]] = field(default_factory=lambda: defaultdict(list))
    bounds: list[float] = field(default_factory=list)
    """At the step times of an engine that has the machine to itself."""
    served_bounds: list[float] = field(default_factory=list)
    """At those of the server: so much longer, beside connections and clients, as chats that fit show."""

    def speeds(self, scenario: Scenario) -> list[float]:
        return [run.useful_tokens_s for run in self.of[scenario]]


def measure_scenarios(plan: BenchPlan, on_news: OnNews) -> Section:
    """The scenarios by turns, beside the simulator's bound."""
    runs = _Runs()
    steps = plan_for_window(_BOUND_PLAN, plan.window_tokens)
    load = plan.load
    with (
        layby_server(plan, load.tight_pool_tokens) as tight,
        layby_server(plan, load.wide_pool_tokens) as wide,
        open_rig(plan.model, survey_options(plan.options, steps)) as rig,
    ):
        servers = {load.tight_pool_tokens: tight, load.wide_pool_tokens: wide}
        for server in servers.values():
            warm_up(server.url, plan)
        for index in range(plan.rounds):
            # Step times on both sides of the overflow, which comes first: a machine's speed drifts.
            fits = [_fit(rig, steps)]
            for scenario in Scenario:
                on_news(f"{scenario.value}, {index + 1} of {plan.rounds}")
                # Those that fit are others: nobody else's prompt may be found again where chats have it to themselves.
                seed = index + (_FIT_SEED if scenario is Scenario.FITS else 0)
                run = _run(servers[scenario.pool_tokens(load)], plan, scenario, seed=seed)
                runs.of[scenario].append(run)
                if scenario is Scenario.OVERFLOW:
                    fits.append(_fit(rig, steps))
            _bound_round(plan, runs, fits)
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


def _fit(rig: StepRig, steps: StepPlan) -> Calibration:
    """What steps take at this moment."""
    parks = ParkCosts(
        token_bytes=rig.token_bytes, copy_out_bytes_s=1.0, copy_in_bytes_s=1.0, park_s=1.0
    )  # whatever parks cost: the bound makes them free
    return make_calibration(fit_steps(survey_steps(rig, steps).all_steps), parks)


def _bound_round(plan: BenchPlan, runs: _Runs, fits: list[Calibration]) -> None:
    """The bounds of the latest round, each the mean of those at the step times found before and after."""
    overflow, fitting = runs.of[Scenario.OVERFLOW][-1], runs.of[Scenario.FITS][-1]
    tight, wide = plan.load.tight_pool_tokens, plan.load.wide_pool_tokens
    runs.bounds.append(statistics.mean(_bound(plan, fit, overflow, tight) for fit in fits))
    if not fitting.useful_tokens_s:
        return
    served = [
        stretched(fit, _bound(plan, fit, fitting, wide) / fitting.useful_tokens_s) for fit in fits
    ]
    runs.served_bounds.append(statistics.mean(_bound(plan, fit, overflow, tight) for fit in served))


def _bound(plan: BenchPlan, calibration: Calibration, run: ScenarioRun, pool_tokens: int) -> float:
    """What the simulator gives for the load of this run at these step times, with free parks."""
    load = Load(
        prompt_tokens=tuple(reply.prompt_tokens for reply in run.replies),
        reply_tokens=plan.load.reply_tokens,
        pool_tokens=pool_tokens,
        step_tokens=plan.options.batch_tokens,
        budget_bytes=_ROOM_BYTES,
    )
    return bound_tokens_s(load, calibration)


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
    yield Figure(
        "overflow by the simulator's bound without server and clients",
        "",
        ratios(overflow, runs.bounds),
        note=pair_of(overflow, runs.bounds, "tokens/s"),
    )
    if len(runs.served_bounds) == len(overflow):
        yield Figure(
            "overflow by the simulator's bound",
            "",
            ratios(overflow, runs.served_bounds),
            Goal(bound=0.95),
            note=pair_of(overflow, runs.served_bounds, "tokens/s"),
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
