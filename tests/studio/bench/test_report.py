"""The table and the JSON."""

from __future__ import annotations

import json

from engine.bench.figures import Figure, Goal
from studio.bench.plan import Part
from studio.bench.report import Section, Surroundings, report_json, section_text

SURROUNDINGS = Surroundings(
    version="1.0", system="Linux", processor="A CPU", cores=2, memory_bytes=8 << 30, load_before=0.5,
    model="tiny", model_bytes=2_000_000, device="cpu", cpu_variant="native", threads=0,
)  # fmt: skip
SECTION = Section(
    Part.STEPS,
    "steps of some kind",
    (
        Figure("speed", "tokens/s", (1234.5, 1000.0, 2000.25)),
        Figure("share", "", (0.5,), Goal(bound=0.95)),
        Figure("price", "% of a step", (0.5, 0.25), Goal(bound=1, is_least=False)),
    ),
)


def test_the_table_names_units_ranges_and_goals() -> None:
    empty, title, _, speed, share, price = section_text(SECTION).split("\n")[:-1]
    assert (empty, title) == ("", "steps of some kind")
    assert speed.split() == ["speed,", "tokens/s", "1,234", "1,000", "2,000"]
    assert share.endswith("0.5000   missed: at least 0.95")
    assert price.endswith("0.5000   reached: at most 1")
    assert speed.index("1,000") + 5 == share.index("0.5000", 65) + 6


def test_the_machine_is_named_with_what_others_did_to_it() -> None:
    first, second = SURROUNDINGS.lines().splitlines()
    assert first == ("layby 1.0: tiny, 2.0 MB, device cpu, kernels native, a thread for each core")
    assert second == "A CPU, 2 cores, 8 GiB, Linux; load 0.50 before"


def test_the_json_has_every_sample() -> None:
    data = json.loads(report_json(SURROUNDINGS, [SECTION]))
    assert data["format"] == "layby-bench-1"
    assert data["surroundings"]["load_before"] == 0.5
    (part,) = data["parts"]
    assert (part["part"], part["title"]) == ("steps", "steps of some kind")
    assert part["figures"][0] == {
        "name": "speed",
        "unit": "tokens/s",
        "median": 1234.5,
        "low": 1000.0,
        "high": 2000.25,
        "samples": [1234.5, 1000.0, 2000.25],
        "goal": None,
        "is_met": None,
    }
    assert part["figures"][1]["goal"] == {"bound": 0.95, "is_least": True}
    assert [figure["is_met"] for figure in part["figures"]] == [None, False, True]
