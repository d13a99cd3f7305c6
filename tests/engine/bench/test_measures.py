"""What measures the engine does what it says: every step is one of the engine's own, on the tiny model."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from engine.api import LoadOptions
from engine.bench.bound import Load, bound_tokens_s
from engine.bench.memory_wall import MemoryWall
from engine.bench.parks import time_parks_by_copy, time_parks_in_place
from engine.bench.planner import time_planner
from engine.bench.reads import weight_bytes_a_step
from engine.bench.step_rig import open_rig
from engine.bench.steps import StepPlan, plan_for_window, survey_options, survey_steps
from engine.bench.wall_rounds import decode_by_wall
from engine.core.cost_model import Calibration
from engine.formats.checkpoint import open_checkpoint
from fakes.tiny_files import CONTEXT_TOKENS, write_tiny_gguf

OPTIONS = LoadOptions(cpu_variant="torch", threads=1)
PLAN = StepPlan(batches=(1, 3), context_tokens=96, steps=4, prompts=2)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_gguf(tmp_path_factory.mktemp("tiny"))


def test_a_survey_times_prompts_and_decoding_of_every_size(tiny: Path) -> None:
    with open_rig(tiny, survey_options(OPTIONS, PLAN)) as rig:
        plan = plan_for_window(PLAN, rig.window_tokens)
        survey_steps(rig, plan)
        survey = survey_steps(rig, plan)  # again, and nothing of the first is found instead of read
        assert not rig.scheduler.live
    assert [sum(s.num_tokens for s in steps) for steps in survey.prompts] == [96, 96]
    for rows, steps in survey.decodes.items():
        assert len(steps) == plan.steps
        assert all(step.is_decode and len(step.rows) == rows for step in steps)
        assert all(start >= plan.context_tokens for step in steps for start, _ in step.rows)
        starts = [step.rows[0][0] for step in steps]
        assert starts == [*range(starts[0], starts[0] + len(steps))], (
            "each step is seen, no plan twice"
        )
    for step in survey.all_steps:
        assert 0 < step.run_s < step.step_s
        assert 0 < step.plan_s < step.step_s
        assert step.run_s + step.plan_s < step.step_s
    assert all(speed > 0 for speed in (*survey.prefill_tokens_s, *survey.decode_tokens_s(3)))


def test_a_plan_is_cut_to_the_models_window() -> None:
    plan = plan_for_window(StepPlan(batches=(1,), steps=4), CONTEXT_TOKENS)
    assert plan.long_tokens + plan.reply_tokens <= CONTEXT_TOKENS
    assert plan_for_window(StepPlan(), 8192) == StepPlan()
    with pytest.raises(ValueError, match="the model's window has 128 tokens, measuring needs"):
        plan_for_window(StepPlan(), 128)


def test_a_park_in_place_copies_nothing_and_one_by_copy_all(tiny: Path) -> None:
    in_place = time_parks_in_place(tiny, OPTIONS, rounds=2)
    assert all(move.num_bytes == 0 for move in (*in_place.parks, *in_place.restores))
    with MemoryWall(1, size=1 << 20) as wall:
        by_copy = time_parks_by_copy(tiny, OPTIONS, wall, rounds=2)
    least = by_copy.num_tokens * by_copy.token_bytes // 2
    assert len(by_copy.parks) == len(by_copy.restores) == 2
    assert all(move.num_bytes > least for move in (*by_copy.parks, *by_copy.restores))
    assert all(move.seconds > 0 for move in (*in_place.parks, *by_copy.restores))
    for move in (*by_copy.parks, *by_copy.restores):
        assert move.wall_share == pytest.approx(move.num_bytes / move.seconds / move.wall_bytes_s)


def test_a_step_reads_all_weights_but_a_table_that_is_only_looked_up_in(tmp_path: Path) -> None:
    tied = weight_bytes_a_step(write_tiny_gguf(tmp_path / "tied", storage="Q8_0"))
    untied = write_tiny_gguf(tmp_path / "untied", storage="Q8_0", tied=False)
    assert weight_bytes_a_step(untied) == tied
    with closing(open_checkpoint(untied)) as checkpoint:
        tensors = checkpoint.tensors
        rest = sum(one.num_bytes for name, one in tensors.items() if name != "token_embd.weight")
    assert tied == rest


def test_the_planner_is_timed_by_turns() -> None:
    assert len(time_planner(2, turns=3)) == 3


def test_the_memory_wall_is_a_speed() -> None:
    with MemoryWall(2, size=1 << 20) as wall:
        assert wall.read_bytes_s(2) > 0
        assert wall.copy_bytes_s(2) > 0


def test_each_round_of_decoding_is_judged_by_its_own_readings_of_memory(tiny: Path) -> None:
    speeds = iter([5.0, 9.0, 3.0, 2.0])

    class Wall(MemoryWall):
        def read_bytes_s(self, tries: int) -> float:
            return next(speeds)

    with (
        Wall(1, size=1 << 20) as wall,
        open_rig(tiny, survey_options(OPTIONS, PLAN)) as rig,
    ):
        plan = plan_for_window(PLAN, rig.window_tokens)
        rounds = decode_by_wall(rig, plan, wall, rounds=3)
        assert not rig.scheduler.live
    assert [one.wall_bytes_s for one in rounds] == [9.0, 9.0, 3.0]
    for one in rounds:
        assert all(step.is_decode and len(step.rows) == 1 for step in one.steps)
        context = sum(step.rows[0][0] for step in one.steps) / len(one.steps)
        assert one.step_bytes(1000, 10) == pytest.approx(1000 + 10 * context)
        step_s = sorted(step.step_s for step in one.steps)
        middle = (step_s[3] + step_s[4]) / 2
        share = one.step_bytes(1000, 10) / middle / one.wall_bytes_s
        assert one.wall_share(1000, 10) == pytest.approx(share)


def test_the_bound_is_that_of_the_machine_where_nothing_has_to_wait() -> None:
    """One chat: its prompt in two steps, a token in the last of them and one in each further step."""
    calibration = Calibration(
        step_s=0.01, decode_token_s=0.01, prefill_token_s=0.001, context_token_s=1e-9
    )
    load = Load(
        prompt_tokens=(400,),
        reply_tokens=101,
        pool_tokens=1024,
        step_tokens=200,
        budget_bytes=1 << 30,
    )
    assert bound_tokens_s(load, calibration) == pytest.approx(
        101 / (2 * 0.21 + 100 * 0.02), rel=1e-3
    )


def test_parks_cost_the_bound_nothing_but_the_order_of_things() -> None:
    load = Load(
        prompt_tokens=(340,) * 4,
        reply_tokens=200,
        pool_tokens=1024,
        step_tokens=256,
        budget_bytes=1 << 30,
    )
    dear = Calibration(park_s=10.0)
    assert bound_tokens_s(load, dear) == bound_tokens_s(load, Calibration())
