"""What is measured in this process: the machine's memory, steps, parks, the calibration of them; perplexity.

Loads torch: import it only where something is measured. The caller's thread calls torch.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from importlib import resources

import psutil

from engine.bench.calibrate import ParkCosts, fit_steps, make_calibration
from engine.bench.figures import Figure, Goal
from engine.bench.memory_wall import MemoryWall
from engine.bench.parks import MoveTime, ParkTimes, time_parks_by_copy, time_parks_in_place
from engine.bench.perplexity import measure_perplexity
from engine.bench.planner import time_planner
from engine.bench.reads import weight_bytes_a_step
from engine.bench.step_rig import StepTime, open_rig
from engine.bench.steps import (
    StepPlan,
    StepSurvey,
    plan_for_window,
    survey_options,
    survey_steps,
)
from engine.bench.wall_rounds import WallRound, decode_by_wall
from engine.sim.calibration import Calibration
from studio.bench.plan import BenchPlan, Part
from studio.bench.report import Section

_THOROUGH = StepPlan()
_QUICK = StepPlan(batches=(1, 2, 4), context_tokens=128, steps=10, prompts=2)
_OF_A_LARGE_MODEL = StepPlan(batches=(1, 2, 4), steps=20, prompts=2)
_QUICK_WALL_BYTES = 1 << 27
_QUICK_TEXT_TOKENS = 256
_GIGA = 1e9
_LARGE_BYTES = 500e6
"""Of weights, in whose reading all else of a step should be lost; and whose prompts take long to read."""


class InsideBench:
    """Each part is measured once, when it is first needed."""

    def __init__(self, plan: BenchPlan) -> None:
        """Raises ValueError when the model's window is too short to measure steps."""
        self._plan = plan
        thorough = _OF_A_LARGE_MODEL if plan.model_bytes >= _LARGE_BYTES else _THOROUGH
        self._steps = plan_for_window(_QUICK if plan.is_quick else thorough, plan.window_tokens)
        self._survey: StepSurvey | None = None
        self._wall_rounds: tuple[WallRound, ...] = ()
        self._parks: tuple[ParkTimes, ParkTimes] | None = None

    def machine(self) -> Section:
        tries = 3 if self._plan.is_quick else 9
        with self._open_wall() as wall:
            figures = (
                Figure("memory, read", "GB/s", (wall.read_bytes_s(tries) / _GIGA,)),
                Figure("memory, copied", "GB/s", (wall.copy_bytes_s(tries) / _GIGA,)),
            )
        return Section(Part.MACHINE, f"memory, {self._threads} threads, best of some", figures)

    def steps(self) -> Section:
        survey = self._measure_steps()
        context = survey.context_tokens
        one = survey.decodes[1]
        figures = [Figure(f"prompt of {context}", "tokens/s", survey.prefill_tokens_s)]
        figures += [
            Figure(f"decode, {rows} at once", "tokens/s", survey.decode_tokens_s(rows))
            for rows in survey.decodes
        ]
        outside = tuple(100 - 100 * step.run_s / step.step_s for step in one)
        plans = tuple(100 * step.plan_s / step.step_s for step in one)
        error = 100 * fit_steps(survey.all_steps).worst_error
        figures += [
            self._wall_shares(survey),
            Figure("Python, decode, 1", "% of a step", outside, Goal(bound=5, is_least=False)),
            Figure("of which scheduler", "% of a step", plans),
            self._planner_share(one),
            Figure("cost model, error at worst", "% of a step", (error,)),
        ]
        title = f"steps, {context} tokens of context, with sampling and text"
        return Section(Part.STEPS, title, tuple(figures))

    def parks(self) -> Section:
        in_place, by_copy = self._measure_parks()
        figures: list[Figure] = []
        if not _has_copied(in_place):
            figures += [
                Figure("park in place", "us", tuple(m.seconds * 1e6 for m in in_place.parks)),
                Figure("restore in place", "us", tuple(m.seconds * 1e6 for m in in_place.restores)),
            ]
        for name, moves in (("park", by_copy.parks), ("restore", by_copy.restores)):
            speeds = tuple(speed / _GIGA for speed in _speeds(moves))
            figures.append(Figure(f"{name} by copy", "GB/s", speeds))
            shares = tuple(100 * move.wall_share for move in _settled(moves))
            figures.append(Figure(f"{name} by copy", "% of memory's best", shares, Goal(bound=70)))
        title = f"parks of {by_copy.num_tokens} tokens of {by_copy.token_bytes:,} bytes"
        return Section(Part.PARKS, title, tuple(figures))

    def perplexity(self) -> Section:
        text = resources.files("resources").joinpath("perplexity.txt").read_text("utf-8")
        most = _QUICK_TEXT_TOKENS if self._plan.is_quick else None
        found = measure_perplexity(self._plan.model, self._plan.options, text, most_tokens=most)
        off = 100 * abs(found.difference)
        note = f"{found.served:.4f} : {found.float32:.4f}"
        figures = (
            Figure("perplexity, served", "", (found.served,)),
            Figure("perplexity, float32 on the same weights", "", (found.float32,)),
            Figure("served by float32", "% off", (off,), Goal(bound=0.5, is_least=False), note),
        )
        title = f"perplexity of a text of {found.num_tokens} tokens, resources/perplexity.txt"
        return Section(Part.PERPLEXITY, title, figures)

    def calibration(self) -> Calibration:
        """What the simulator needs, of steps and parks together."""
        in_place, by_copy = self._measure_parks()
        moves = (*in_place.parks, *in_place.restores)
        costs = ParkCosts(
            token_bytes=by_copy.token_bytes,
            copy_out_bytes_s=statistics.median(_speeds(by_copy.parks)),
            copy_in_bytes_s=statistics.median(_speeds(by_copy.restores)),
            park_s=(
                Calibration().park_s
                if _has_copied(in_place)
                else statistics.median(move.seconds for move in moves)
            ),
        )
        return make_calibration(fit_steps(self._measure_steps().all_steps), costs)

    # --- how

    @property
    def _threads(self) -> int:
        return self._plan.options.threads or psutil.cpu_count(logical=False) or 1

    def _open_wall(self) -> MemoryWall:
        if self._plan.is_quick:
            return MemoryWall(self._threads, size=_QUICK_WALL_BYTES)
        return MemoryWall(self._threads)

    def _measure_steps(self) -> StepSurvey:
        if self._survey is None:
            options = survey_options(self._plan.options, self._steps)
            with open_rig(self._plan.model, options) as rig:
                self._survey = survey_steps(rig, self._steps)
                with self._open_wall() as wall:
                    rounds = 2 if self._plan.is_quick else 12
                    self._wall_rounds = decode_by_wall(rig, self._steps, wall, rounds=rounds)
        return self._survey

    def _measure_parks(self) -> tuple[ParkTimes, ParkTimes]:
        if self._parks is None:
            rounds = 2 if self._plan.is_quick else 7
            model, options = self._plan.model, self._plan.options
            in_place = time_parks_in_place(model, options, rounds=rounds)
            with self._open_wall() as wall:
                by_copy = time_parks_by_copy(model, options, wall, rounds=rounds)
            self._parks = in_place, by_copy
        return self._parks

    def _wall_shares(self, survey: StepSurvey) -> Figure:
        """Weights, keys and values that steps of one row read in a second, by what memory gave around them."""
        weights, rounds = weight_bytes_a_step(self._plan.model), self._wall_rounds
        sizes = (weights, survey.token_bytes)
        shares = tuple(100 * one.wall_share(*sizes) for one in rounds)
        goal = Goal(bound=80 if weights >= _LARGE_BYTES else 65)
        step_bytes = statistics.median(one.step_bytes(*sizes) for one in rounds)
        wall = statistics.median(one.wall_bytes_s for one in rounds)
        note = f"{step_bytes / _GIGA:.3g} GB a step, memory reads {wall / _GIGA:.3g} GB/s"
        return Figure(
            "weights and context read, decode, 1", "% of memory's best", shares, goal, note=note
        )

    def _planner_share(self, steps: Iterable[StepTime]) -> Figure:
        step_s = statistics.median(step.step_s for step in steps)
        prices = time_planner(1, turns=5 if self._plan.is_quick else 40)
        shares = tuple(100 * price / step_s for price in prices)
        goal = Goal(bound=1, is_least=False)
        return Figure("of which planner, nothing parked", "% of a step", shares, goal)


def _has_copied(times: ParkTimes) -> bool:
    return any(move.num_bytes for move in times.parks)


def _settled(moves: tuple[MoveTime, ...]) -> tuple[MoveTime, ...]:
    """All but the first, which finds memory that was never touched."""
    return moves[1:]


def _speeds(moves: tuple[MoveTime, ...]) -> tuple[float, ...]:
    """Bytes a second."""
    return tuple(move.bytes_s for move in _settled(moves))
