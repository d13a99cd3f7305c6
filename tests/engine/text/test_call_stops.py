"""Stop strings in the arguments of calls: found however these are cut, and nothing of them is lost on the way."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest

from engine.api import ToolCallDelta
from engine.text.call_stops import CallStops


def begun(index: int) -> ToolCallDelta:
    return ToolCallDelta(index=index, call_id=f"c{index}", name="f")


def told(stops: tuple[str, ...], calls: Iterable[list[str]]) -> tuple[list[str], str]:
    """The arguments of each call as its reader puts them together, and the stop string that was found."""
    watch, heard = CallStops(stops), list[str]()
    for index, pieces in enumerate(calls):
        deltas = [
            begun(index),
            *(ToolCallDelta(index=index, arguments=each) for each in pieces if each),
        ]
        for place, delta in enumerate(deltas):
            is_last = place == len(deltas) - 1
            for shown in watch.push([delta], num_ended=index + is_last):
                assert shown.name or shown.arguments
                if shown.name:
                    heard.append("")
                assert shown.index == len(heard) - 1, "of a call that is over nothing more comes"
                heard[shown.index] += shown.arguments
    assert watch.flush() == (), "every call has ended"
    return heard, watch.found


@pytest.mark.parametrize(
    ("stops", "calls", "heard", "found"),
    [
        ((), [["{}"]], ["{}"], ""),
        (("b",), [["{a", "b", "c}"]], ["{a"], "b"),
        (("}x",), [["{", "}"], ["{", "}"]], ["{}", "{}"], ""),
        (("ab",), [["a"], ["b"]], ["a", "b"], ""),
        (("}",), [["{", "}"], ["{}"]], ["{"], "}"),
        (("f", "c0"), [["{}"]], ["{}"], ""),
    ],
)
def test_each_call_is_looked_through_by_itself(
    stops: tuple[str, ...], calls: list[list[str]], heard: list[str], found: str
) -> None:
    assert told(stops, calls) == (heard, found)


def test_wherever_arguments_are_cut_the_same_is_told() -> None:
    dice = random.Random(3)
    for _ in range(500):
        texts = ["".join(dice.choices("ab{}", k=dice.randrange(1, 9))) for _ in range(3)]
        stop = "".join(dice.choices("ab{}", k=dice.randrange(1, 4)))
        cut = [list(text) if dice.random() < 0.5 else [text] for text in texts]
        expected: list[str] = []
        found = ""
        for text in texts:
            expected.append(text.split(stop)[0])
            if stop in text:
                found = stop
                break
        assert told((stop,), cut) == (expected, found)
