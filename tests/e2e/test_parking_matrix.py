"""Nobody's chat ends because another one exists: the acceptance of parking on a real `layby serve`, as a matrix.

Every variant overflows the pool of a server with streams that are sent together, and compares each reply with its solo
run, bit for bit. The default run takes short variants; all of it, with a table at the end: `pytest -m full
tests/e2e/test_parking_matrix.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import pytest

from fakes.native_rig import needs_kernels
from fakes.parking_matrix import Load, Outcome, Solos, Variant, run
from fakes.streams import MOST_SILENCE_S

pytestmark = pytest.mark.xdist_group("matrix")

COPIED = ("--test-preempt-copy",)
COPIED_IN_STEP = (*COPIED, "--no-preempt-async")
RECOMPUTED = ("--preempt-ram", "1")
PLANNER_OFF = ("--test-preempt-planner", "off")
EVERY_8 = ("--test-preempt-every", "8")
POLICIES = ("fcfs", "cost", "smallest", "largest", "youngest", "oldest")

SAMPLED = Load(sampling={"temperature": 0.8, "seed": 1234})
EIGHT = Load(num_streams=8)
MANY = Load(num_streams=32, sentences=18, tokens=100)
PAIRS = Load(num_pairs=2)
SAMPLED_PAIRS = replace(SAMPLED, num_pairs=2)
LEAVING = Load(num_streams=12, leaving_seed=7)
LONG = Load(tokens=3000)

PROMISED = (
    Variant(name="four streams"),
    Variant(name="four streams, torch", cpu_variant="torch"),
    Variant(name="eight streams", load=EIGHT),
    Variant(name="32 where two fit", load=MANY, pool_tokens=672, seats=32),
    Variant(name="recomputed", flags=RECOMPUTED),
    Variant(name="copied", flags=COPIED),
    Variant(name="copied in step", flags=COPIED_IN_STEP),
    *(Variant(name=policy, flags=("--preempt-policy", policy)) for policy in POLICIES),
    Variant(name="planner off", flags=PLANNER_OFF),
    Variant(name="shifted", load=LONG, shifts=True),
    Variant(name="every 8", flags=EVERY_8),
    Variant(name="pairs", load=PAIRS),
    Variant(name="clients vanish", load=LEAVING),
    Variant(name="sampled", load=SAMPLED),
)

MIXED = tuple(
    variant
    if variant.shifts
    else replace(variant, load=replace(variant.load, tokens=300), pool_tokens=1280)
    for variant in (
        Variant(name="every 8, copied", flags=(*EVERY_8, *COPIED)),
        Variant(name="every 8, copied in step", flags=(*EVERY_8, *COPIED_IN_STEP)),
        Variant(name="every 8, recomputed", flags=(*EVERY_8, *RECOMPUTED)),
        Variant(name="planner off, copied", flags=(*PLANNER_OFF, *COPIED)),
        Variant(name="planner off, recomputed", flags=(*PLANNER_OFF, *RECOMPUTED)),
        Variant(name="pairs, sampled", load=SAMPLED_PAIRS),
        Variant(name="pairs, copied", load=PAIRS, flags=COPIED),
        Variant(name="pairs, recomputed", load=SAMPLED_PAIRS, flags=RECOMPUTED),
        Variant(name="pairs, every 8", load=PAIRS, flags=EVERY_8),
        Variant(name="vanish, copied", load=replace(LEAVING, leaving_seed=8), flags=COPIED),
        Variant(name="vanish, recomputed", load=replace(LEAVING, leaving_seed=9), flags=RECOMPUTED),
        Variant(name="vanish, eight seats", load=replace(LEAVING, leaving_seed=10), seats=8),
        Variant(name="eight seats", load=EIGHT, seats=8),
        Variant(name="cost, eight seats", load=EIGHT, seats=8, flags=("--preempt-policy", "cost")),
        Variant(name="shifted, copied", load=LONG, shifts=True, flags=COPIED),
        Variant(name="shifted, recomputed", load=LONG, shifts=True, flags=RECOMPUTED),
    )
)
"""Where two of them meet, at less length."""

SHORT = tuple(
    replace(variant, load=replace(variant.load, sentences=8, tokens=90), pool_tokens=384)
    for variant in (
        Variant(name="short, recomputed", flags=RECOMPUTED),
        Variant(name="short, copied, every 8", flags=(*COPIED, *EVERY_8)),
        Variant(name="short, pairs, sampled", load=SAMPLED_PAIRS),
        Variant(name="short, vanish", load=replace(LEAVING, leaving_seed=11)),
    )
)

Record = Callable[[str, object], None]


def named(*variants: Variant) -> list[object]:
    """As parameters of a test; without native kernels those that need them are skipped."""
    return [
        pytest.param(
            variant,
            id=variant.name.replace(", ", "-").replace(" ", "_"),
            marks=[needs_kernels] if variant.cpu_variant == "native" else [],
        )
        for variant in variants
    ]


@pytest.fixture(scope="module")
def solos() -> Iterator[Solos]:
    made = Solos()
    yield made
    made.close()


@pytest.mark.slow
@pytest.mark.parametrize("variant", named(*SHORT))
def test_a_short_load_that_overflows_the_pool(
    variant: Variant, solos: Solos, record_property: Record
) -> None:
    check(run(variant), solos, record_property)


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("variant", named(*PROMISED, *MIXED))
def test_the_whole_load(variant: Variant, solos: Solos, record_property: Record) -> None:
    check(run(variant), solos, record_property)


def check(outcome: Outcome, solos: Solos, record_property: Record) -> None:
    """Put the outcome's row on the report, and judge it."""
    replies = solos.replies(outcome)
    num_whole = sum(reply.reason == "length" for reply, _ in replies)
    num_equal = sum(reply == alone for reply, alone in replies)
    silence_s = outcome.most_silent.longest_silence_s
    figures, load = outcome.figures, outcome.variant.load
    num_tokens = sum(
        len(reply.logprobs) for heard in outcome.heard for reply in heard.choices.values()
    )
    row = {
        "variant": outcome.variant.name,
        "whole": f"{num_whole}/{len(replies)}",
        "equal": f"{num_equal}/{len(replies)}",
        "silence_s": round(silence_s, 2),
        "parks": figures["n_preempt_total"],
        "rotations": figures["preempt_rotation_total"],
        "recomputes": figures["preempt_recompute_total"],
        "last_resorts": figures["preempt_last_resort_total"],
        "tokens": num_tokens,
        "tokens_per_s": round(num_tokens / outcome.took_s),
    }
    record_property("matrix", row)
    assert [heard.error for heard in outcome.heard] == [None] * load.num_streams
    assert num_whole == num_equal == len(replies)
    assert silence_s <= MOST_SILENCE_S, outcome.most_silent.silence_ended_with
    assert all(heard.has_legal_lines_only for heard in outcome.heard)
    for heard in outcome.stayed:
        assert heard.has_paired_notices
        assert heard.usage["completion_tokens"] == load.tokens * len(heard.choices)
    assert_parked_as_meant(outcome)
    assert_nothing_is_held(figures)


def assert_parked_as_meant(outcome: Outcome) -> None:
    """The load did overflow the pool, and what was to happen to the parked did, and only that."""
    figures, flags = outcome.figures, outcome.variant.flags
    assert figures["n_preempt_total"] > 0
    assert (figures["preempt_recompute_total"] > 0) == ("--preempt-ram" in flags)
    assert (figures["preempt_last_resort_total"] > 0) == ("--test-preempt-planner" in flags)
    if outcome.variant.load.leaving_seed is None:
        told = sum(heard.record["parks"] for heard in outcome.heard)
        assert figures["n_preempt_total"] == figures["n_resume_total"] == told
    else:
        assert 0 < len(outcome.stayed) < len(outcome.heard)


def assert_nothing_is_held(figures: Mapping[str, int]) -> None:
    """No page is anybody's, no host memory is held, nobody is parked, in line or in a seat."""
    assert figures["pool_pages_free"] + figures["pool_pages_reusable"] == figures["pool_pages"]
    for name in ("preempt_ram_bytes", "requests_preempted", "requests_processing"):
        assert figures[name] == 0
    assert figures["requests_deferred"] == 0
