"""One step's tokens: replies first, then prompts in line order, and nobody stands still for ever."""

from __future__ import annotations

import pytest

from engine.core.budget import StepBudget, share_step, tokens_for_entrant
from engine.core.types import Sequence
from fakes.builders import make_sequence


def computed(
    prompt: int, done: int, arrival: int = 0, max_new: int = 8, *, arrival_s: float = 0.0
) -> Sequence:
    seq = make_sequence(prompt, arrival=arrival, max_new=max_new, arrival_s=arrival_s)
    seq.num_computed = done
    return seq


def reply(arrival: int, first_token_s: float) -> Sequence:
    seq = computed(5, 4, arrival)
    seq.first_token_s = first_token_s
    return seq


def budget(tokens: int, beside_replies: int = 1 << 30) -> StepBudget:
    return StepBudget(tokens, beside_replies)


def counts(running: list[Sequence], tokens: int, beside_replies: int = 1 << 30) -> dict[str, int]:
    rows = share_step(running, budget(tokens, beside_replies))
    return {row.seq.request_id: row.count for row in rows}


def test_replies_get_their_token_before_an_older_prompt() -> None:
    running = [computed(100, 0, 0), computed(5, 4, 1), computed(6, 5, 2)]
    assert counts(running, 10) == {"r0": 8, "r1": 1, "r2": 1}


def test_what_is_left_goes_to_prompts_in_line_order() -> None:
    running = [computed(6, 0, 0), computed(9, 2, 1), computed(50, 0, 2)]
    assert counts(running, 12) == {"r0": 6, "r1": 6}


def test_the_first_prompt_moves_though_replies_fill_all_other_tokens() -> None:
    running = [*(computed(5, 4, i) for i in range(7)), computed(100, 0, 7)]
    assert counts(running, 8)["r7"] == 1


def test_beside_a_reply_prompts_get_no_more_than_that_allows() -> None:
    running = [reply(0, 1.0), computed(100, 0, 1, arrival_s=2.0), computed(50, 0, 2, arrival_s=3.0)]
    assert counts(running, 64, beside_replies=6) == {"r0": 1, "r1": 6}
    assert counts(running, 64, beside_replies=0) == {"r0": 1}
    entrant = make_sequence(arrival=3, arrival_s=3.0)
    assert tokens_for_entrant(running, entrant, budget(64, beside_replies=6)) <= 0
    assert tokens_for_entrant(running[:1], entrant, budget(64, beside_replies=6)) == 6


def test_a_prompt_that_was_asked_before_any_reply_began_has_the_whole_step() -> None:
    running = [reply(0, 1.0), computed(40, 0, 1, arrival_s=0.5), computed(50, 0, 2, arrival_s=3.0)]
    assert counts(running, 64, beside_replies=6) == {"r0": 1, "r1": 40}
    assert counts([*running, reply(3, 0.2)], 64, beside_replies=6) == {"r0": 1, "r1": 6, "r3": 1}
    entrant = make_sequence(arrival=3, arrival_s=0.5)
    assert tokens_for_entrant(running[:1], entrant, budget(64, beside_replies=6)) == 63


def test_who_reads_again_what_was_dropped_is_considerate_of_every_reply() -> None:
    again = computed(100, 0, 1)
    again.first_token_s = 0.7
    assert counts([reply(0, 1.0), again], 64, beside_replies=6) == {"r0": 1, "r1": 6}
    assert counts([again], 64, beside_replies=6) == {"r1": 64}


def test_with_no_reply_going_on_prompts_have_the_whole_step() -> None:
    running = [computed(100, 0, 0), computed(50, 0, 1)]
    assert counts(running, 128, beside_replies=6) == {"r0": 100, "r1": 28}
    assert tokens_for_entrant([], make_sequence(), budget(128, beside_replies=0)) == 128


def test_a_row_starts_where_the_sequence_stands() -> None:
    (row,) = share_step([computed(20, 8)], budget(5))
    assert (row.start, row.count, row.samples) == (8, 5, False)


def test_only_the_row_with_the_last_token_samples_and_goes_on_saying_so() -> None:
    seq = computed(20, 16)
    (row,) = share_step([seq], budget(5))
    assert row.samples
    seq.token_ids.append(7)
    assert row.samples


def test_a_request_for_no_token_never_samples() -> None:
    (row,) = share_step([computed(5, 0, max_new=0)], budget(8))
    assert not row.samples


@pytest.mark.parametrize(("arrival", "left"), [(5, 10 - 1 - 4), (1, 10 - 1)])
def test_an_entrant_sees_what_replies_and_prompts_before_it_leave(arrival: int, left: int) -> None:
    running = [computed(5, 4, 2), computed(6, 2, 3)]
    assert tokens_for_entrant(running, make_sequence(arrival=arrival), budget(10)) == left
