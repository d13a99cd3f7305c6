"""`layby serve` with a pool that does not hold its streams: parked, told, steered, brought back to the same bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from fakes.serving import serving
from fakes.streams import MOST_SILENCE_S, Heard, body_of, listen

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("served")]

PROMPTS = tuple(
    f"{name} walks through the town and counts {thing}. What happens on that day? " * 4
    for name, thing in (("Ada", "cats"), ("Ben", "boats"), ("Cem", "lamps"), ("Dora", "doors"))
)


@pytest.fixture(scope="module")
def crowded(starter_model: Path) -> Iterator[str]:
    """A pool for about half of what the four streams hold together."""
    assert starter_model.is_file()
    with serving("-m", "smollm2-135m", "-c", "384", "-np", "4") as address:
        yield address


def together_until_somebody_is_parked(address: str) -> list[Heard]:
    """What each says beside the others. Nothing but their length makes them meet: where one had ended before the next
    began, they are asked again.
    """
    for _ in range(20):
        with ThreadPoolExecutor(len(PROMPTS)) as pool:
            heard = list(pool.map(lambda prompt: listen(address, long_body(prompt)), PROMPTS))
        if any(each.record["parks"] for each in heard):
            return heard
    raise AssertionError("nobody was ever parked")


def long_body(prompt: str) -> dict[str, object]:
    return body_of(prompt, max_tokens=200)


def test_streams_that_do_not_fit_all_end_with_the_bytes_they_have_alone(crowded: str) -> None:
    together = together_until_somebody_is_parked(crowded)
    alone = [listen(crowded, long_body(prompt)) for prompt in PROMPTS]
    assert [heard.text for heard in together] == [heard.text for heard in alone]
    assert [heard.error for heard in together] == [None] * 4
    assert {heard.record["parks"] for heard in alone} == {0}
    for heard in together:
        assert heard.has_legal_lines_only
        assert heard.has_paired_notices
        assert heard.longest_silence_s <= MOST_SILENCE_S


def test_a_stream_is_parked_and_brought_back_by_hand(crowded: str) -> None:
    with (
        httpx.Client(base_url=crowded, timeout=60) as client,
        client.stream("POST", "/v1/completions", json=body_of(PROMPTS[0])) as answer,
    ):
        lines = answer.iter_lines()
        first = next(line for line in lines if line.startswith("data: {"))
        run_id = json.loads(first.removeprefix("data: "))["id"] + "-0"
        assert httpx.post(f"{crowded}/v1/runs/{run_id}/park").status_code == 202
        assert next(line for line in lines if line.startswith(":")) == ": preempted"
        assert next(line for line in lines if line.startswith(":")) == ": preempt-keepalive"
        run = httpx.get(f"{crowded}/v1/runs/{run_id}").json()
        assert (run["state"], run["reason"], run["parks"]) == ("parked", "held_by_user", 1)
        assert "by hand" in run["reason_in_words"]
        slots = httpx.get(f"{crowded}/slots").json()
        assert [slot["is_preempted"] for slot in slots if slot["is_processing"]] == [True]
        assert "layby:requests_preempted 1.0" in httpx.get(f"{crowded}/metrics").text
        assert httpx.post(f"{crowded}/v1/runs/{run_id}/resume").status_code == 202
        assert next(line for line in lines if line.startswith(": r")) == ": resumed"
        rest = list(lines)
    assert "data: [DONE]" in rest
    assert httpx.get(f"{crowded}/v1/runs").json()["data"] == []


def test_a_request_that_will_not_wait_ends_with_503_and_when_to_ask_again(crowded: str) -> None:
    with (
        httpx.Client(base_url=crowded, timeout=60) as client,
        client.stream("POST", "/v1/completions", json=body_of(PROMPTS[0], max_tokens=300)) as busy,
    ):
        lines = busy.iter_lines()  # an iterator that is let go of hangs up
        next(line for line in lines if line.startswith("data: {"))
        words = body_of("", stream=False, stream_options=None, max_wait=0)
        words["prompt"] = [5] * 350  # no room for it beside the other's prompt
        answer = httpx.post(f"{crowded}/v1/completions", json=words, timeout=60)
    assert answer.status_code == 503
    assert answer.json()["error"]["code"] == "waited_too_long"
    assert int(answer.headers["retry-after"]) >= 1


def test_one_bad_prompt_among_several_refuses_all_before_the_stream_opens(crowded: str) -> None:
    prompts = [[5] * 100, [6] * 100, [999_999]]
    answer = httpx.post(
        f"{crowded}/v1/completions", json={**body_of(""), "prompt": prompts}, timeout=60
    )
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "prompt")
    too_long = {**body_of(""), "prompt": [[5] * 100, [6] * 1000]}
    answer = httpx.post(f"{crowded}/v1/completions", json=too_long, timeout=60)
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "context_length_exceeded"


def test_two_choices_under_pressure_end_with_their_own_index(crowded: str) -> None:
    with ThreadPoolExecutor(2) as pool:
        pair = pool.submit(listen, crowded, body_of(PROMPTS[0], n=2))
        other = pool.submit(listen, crowded, body_of(PROMPTS[1]))
    assert pair.result().error is None
    assert other.result().error is None
    choices = pair.result().choices
    assert {index: choice.reason for index, choice in choices.items()} == {0: "length", 1: "length"}
