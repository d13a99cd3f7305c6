"""The table and the JSON."""

from __future__ import annotations

import json
from dataclasses import replace

from engine.bench.figures import Figure, Goal
from studio.bench.plan import Part
from studio.bench.report import (
    Report,
    Section,
    Surroundings,
    pair_of,
    report_json,
    report_markdown,
    section_text,
)

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
    assert share.endswith("0.5   missed: at least 0.95")
    assert price.endswith("0.5   reached: at most 1")
    assert speed.index("1,000") + 5 == share.index("0.5", 80) + 3


def test_the_machine_is_named_with_what_others_did_to_it() -> None:
    first, second = SURROUNDINGS.lines().splitlines()
    assert first == ("layby 1.0: tiny, 2.0 MB, device cpu, kernels native, a thread for each core")
    assert second == "A CPU, 2 cores, 8 GiB, Linux; load 0.50 before"


def test_the_json_has_every_sample() -> None:
    data = json.loads(report_json([Report(SURROUNDINGS, (SECTION,))]))
    assert data["format"] == "layby-bench-2"
    (model,) = data["models"]
    assert model["surroundings"]["load_before"] == 0.5
    (part,) = model["parts"]
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
        "note": "",
    }
    assert part["figures"][1]["goal"] == {"bound": 0.95, "is_least": True}
    assert [figure["is_met"] for figure in part["figures"]] == [None, False, True]


def test_the_markdown_has_models_side_by_side_and_only_what_has_a_goal_or_a_note() -> None:
    ratio = Figure("ours by theirs", "", (2.0,), Goal(bound=2), note="300 : 150 tokens/s")
    noted = Figure("ours by theirs", "", (3.0,), note="600 : 200 tokens/s")
    machine = Section(Part.MACHINE, "memory", (Figure("all", "GB", (1.0,), note="all of it"),))
    reports = [
        Report(SURROUNDINGS, (SECTION, Section(Part.AGAINST, "against", (ratio,)))),
        Report(
            replace(SURROUNDINGS, model="other"),
            (Section(Part.AGAINST, "against", (noted,)), machine),
        ),
    ]
    assert report_markdown(reports) == (
        "A CPU, 2 cores, 8 GiB, Linux; load 0.50 before\n"
        "\n"
        "|  | tiny | other |\n"
        "| --- | ---: | ---: |\n"
        "| all, GB |  | 1 (all of it) |\n"
        "| share | **0.5 < 0.95** |  |\n"
        "| price, % of a step | 0.375 ≤ 1 |  |\n"
        "| ours by theirs | 2 ≥ 2 (300 : 150 tokens/s) | 3 (600 : 200 tokens/s) |\n"
    )


def test_what_is_compared_is_noted_by_its_medians() -> None:
    assert pair_of([1.0, 3.0, 2.0], [100.5], "s") == "2 : 100.5 s"
