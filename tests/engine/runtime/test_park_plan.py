"""How parks are made on which device, with how much memory, and what tests may not twist."""

import logging

import pytest

from engine.api import Device, LoadOptions
from engine.core.config import ParkConfig, ParkMemory, ResumeOrder
from engine.core.victim_policies import VICTIM_POLICIES
from engine.errors import InvalidRequest
from engine.runs import POLICY_NAMES, RESUME_NAMES
from engine.runtime import cuda_lane
from engine.runtime.park_plan import lowered_budget, make_knobs, mib_of, plan_parks

MIB = 1 << 20


def _plan(free: int = 64 << 30, device: str = "cpu", **options: object) -> ParkConfig:
    return plan_parks(
        LoadOptions(**options),  # type: ignore[arg-type]
        Device(device),
        page_bytes=MIB,
        num_pages=100,
        free=free,
    )


def test_names_at_the_door_are_those_of_the_core() -> None:
    assert set(POLICY_NAMES) == set(VICTIM_POLICIES)
    assert set(RESUME_NAMES) == {order.value for order in ResumeOrder}


def test_host_memory_parks_in_place_and_a_device_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (_plan().memory, _plan().is_async) == (ParkMemory.IN_PLACE, False)
    metal = _plan(device="mps")
    assert (metal.memory, metal.is_async) == (ParkMemory.COPIED, False)
    monkeypatch.setattr(cuda_lane, "can_pin", lambda device: True)
    cuda = _plan(device="cuda")
    assert (cuda.memory, cuda.is_async) == (ParkMemory.COPIED, True)
    assert not _plan(device="cuda", preempt_async=False).is_async
    copied = _plan(test_preempt_copy=True)
    assert (copied.memory, copied.is_async) == (ParkMemory.COPIED, True)
    assert not _plan(test_preempt_copy=True, preempt_async=False).is_async


def test_where_host_memory_cannot_be_pinned_parks_land_within_the_step_and_the_log_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(cuda_lane, "can_pin", lambda device: False)
    assert not _plan(device="cuda", preempt_async=False).is_async
    assert not caplog.records
    assert not _plan(device="cuda").is_async
    (warning,) = caplog.records
    assert warning.levelno == logging.WARNING
    assert "cannot be pinned" in warning.getMessage()


def test_the_arena_has_room_for_every_seat_within_what_is_free() -> None:
    assert _plan(parallel=3).arena_pages == 100 + 2 * 3 * 100
    assert _plan(parallel=3, preempt_ram_mib=0).arena_pages == 700, "the budget may be raised later"
    assert _plan(free=50 * MIB).arena_pages == 100 + 50
    assert _plan(free=-5).arena_pages == 100
    assert _plan(test_preempt_copy=True).arena_pages == 100


def test_the_budget_is_at_most_half_of_what_is_free(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    assert _plan(preempt_ram_mib=8192).budget_bytes == 8192 * MIB
    assert _plan(preempt_ram_mib=0).budget_bytes == 0
    assert _plan(preempt_ram_mib=-1, free=0).budget_bytes == -1
    assert not caplog.records
    assert _plan(preempt_ram_mib=8192, free=1000 * MIB).budget_bytes == 500 * MIB
    (notice,) = caplog.records
    assert "500 MiB instead of 8192 MiB" in notice.getMessage()
    assert lowered_budget(-1, 10) == -1
    assert _plan(free=-5).budget_bytes == 1, "not 0, which would park nobody"


def test_a_budget_in_whole_mib_is_off_only_when_it_is() -> None:
    assert [mib_of(size) for size in (-1, 0, 1, MIB, MIB + 1)] == [-1, 0, 1, 1, 2]


def test_a_granularity_is_in_whole_pages() -> None:
    assert make_knobs(LoadOptions(test_preempt_granularity=64)).granularity_tokens == 64
    with pytest.raises(InvalidRequest, match="granularity is 48, allowed are multiples of 32"):
        make_knobs(LoadOptions(test_preempt_granularity=48))


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("preempt_policy", "nicest", "fcfs, cost, smallest, largest, youngest, oldest"),
        ("test_preempt_resume", "garbage", "head, pass"),
        ("preempt_ram_mib", -2, "allowed is -1"),
        ("test_preempt_every", -1, "allowed is 0"),
    ],
)
def test_unknown_values_refuse_the_load(field: str, value: object, said: str) -> None:
    with pytest.raises(InvalidRequest, match=said) as caught:
        LoadOptions(**{field: value})  # type: ignore[arg-type]
    assert caught.value.param == field
