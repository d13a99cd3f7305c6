"""Traces are the same for the same seed, survive being written, and bad files are refused with a reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.sim.traces import Arrival, Shape, Trace, make_trace, read_trace, write_trace

STORED = Path(__file__).resolve().parents[3] / "resources" / "traces"


@pytest.mark.parametrize("shape", Shape)
def test_a_seed_makes_one_trace(shape: Shape) -> None:
    first = make_trace(shape, 8, window_tokens=8192, seed=3)
    assert make_trace(shape, 8, window_tokens=8192, seed=3) == first
    assert make_trace(shape, 8, window_tokens=8192, seed=4) != first
    assert all(a.prompt_tokens + a.reply_tokens <= 8192 for a in first.arrivals)


def test_the_shapes_differ_as_they_say() -> None:
    def lengths(shape: Shape) -> list[int]:
        traces = [make_trace(shape, 8, window_tokens=16384, seed=seed) for seed in range(50)]
        return sorted(a.reply_tokens for trace in traces for a in trace.arrivals)

    uniform, measured, heavy = map(lengths, Shape)
    assert (uniform[0], uniform[-1]) > (199, 2900)
    assert measured[200] > 2 * heavy[200]
    assert heavy[-1] > 10 * heavy[200]


@pytest.mark.parametrize("path", sorted(STORED.glob("*.json")), ids=lambda path: path.stem)
def test_stored_traces_are_what_their_names_say(path: Path) -> None:
    shape, chats = path.stem.split("-")
    trace = read_trace(path.read_text(encoding="utf-8"))
    assert trace == make_trace(Shape(shape), int(chats), window_tokens=8192, seed=0)
    assert read_trace(write_trace(trace)) == trace


def test_there_are_stored_traces_of_all_shapes() -> None:
    assert len(list(STORED.glob("*.json"))) == 2 * len(Shape)


def test_a_trace_is_read_in_order_of_arrival() -> None:
    late, early = (
        Arrival(at_s=at_s, prompt_tokens=5, reply_tokens=5, is_limited=True) for at_s in (9, 2)
    )
    text = write_trace(Trace(name="two", arrivals=(late, early)))
    assert read_trace(text) == Trace(name="two", arrivals=(early, late))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the trace is not JSON"),
        ("[]", "does not say that its format is layby-trace-1"),
        ('{"format": "other"}', "does not say that its format is layby-trace-1"),
        ('{"format": "layby-trace-1", "name": "x"}', "lacks or mistakes a field: 'chats'"),
        ('{"format": "layby-trace-1", "name": "x", "chats": [3]}', "lacks or mistakes a field"),
        ('{"format": "layby-trace-1", "name": "x", "chats": [{"at_s": 0}]}', "'prompt_tokens'"),
        (
            '{"format": "layby-trace-1", "name": "x", "chats": '
            '[{"at_s": 0, "prompt_tokens": 0, "reply_tokens": 4}]}',
            "prompt_tokens is 0, allowed is a number from 1",
        ),
        (
            '{"format": "layby-trace-1", "name": "x", "chats": '
            '[{"at_s": "soon", "prompt_tokens": 4, "reply_tokens": 4}]}',
            "at_s is 'soon', allowed is a number from 0",
        ),
    ],
)
def test_a_text_that_is_no_trace_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_trace(text)
