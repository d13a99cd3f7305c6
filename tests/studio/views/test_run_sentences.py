"""Where a request stands, in words that name the others; a park is never told as something that went wrong."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace

import pytest

from engine.runs import ParkCause, ParkReason, Run, RunState, WaitKind
from fakes.runs import make_run, make_wait
from studio.models.chat import Message, MessageStatus, Park, ReplyStats, Role
from studio.views.run_sentences import (
    Others,
    describe_row,
    describe_run,
    describe_strip,
    reason_sentence,
    turns_sentence,
)
from studio.views.status_words import Mark

OTHERS = Others(names={"l": "Lisbon", "r": "Recipes", "m": "Mail"}, page_tokens=32)
HOLDERS = (("l", 1420), ("r", 480))
TROUBLE = re.compile(r"stall|stuck|fail|error|wrong|hang|frozen|lost|retry", re.IGNORECASE)


def parked_reply(since_s: float = 100.0) -> Message:
    park = Park(since_s=since_s, reason=ParkReason(cause=ParkCause.PAGES_SHORT))
    return Message(2, 1, Role.ASSISTANT, "text", 0.0, MessageStatus.PARKED, park=park)


def reply(status: MessageStatus) -> Message:
    return Message(2, 1, Role.ASSISTANT, "text", 0.0, status, stats=ReplyStats(tokens_per_s=42.0))


def outside(state: RunState, kind: WaitKind = WaitKind.NO_ROOM, place: int = 2) -> Run:
    wait = make_wait(kind, place=place, ahead=("m",), pages_needed=36, holders=HOLDERS)
    return make_run("c", state, wait=wait, expected_wait_s=(6.0, 10.0))


def test_a_parked_chat_says_since_when_its_place_and_the_expected_wait() -> None:
    message, run = parked_reply(), outside(RunState.PARKED)
    strip = describe_strip(message, run, now_s=108.2)
    assert strip.text == "Parked for 8 s · 2nd in line · back in 6 to 10 s"
    assert describe_row(message, run).text == "Parked, 2nd · back in 6 to 10 s"
    assert strip.mark is Mark.BARS
    assert describe_strip(message, None, now_s=285.0).text == "Parked for 3 min 5 s"
    assert describe_strip(message, None, now_s=100.4).text == "Parked", "no time yet"


def test_one_parked_by_hand_says_by_whom_and_that_it_waits_for_that_hand() -> None:
    wait = replace(make_wait(WaitKind.HELD_BY_USER), place=0)
    message, run = parked_reply(), make_run("c", RunState.PARKED, wait=wait)
    assert describe_row(message, run).text == "Parked by you"
    assert describe_run(run).text == "Parked by you"
    assert describe_strip(message, run, now_s=108.2).text == "Parked by you for 8 s"
    assert reason_sentence(message, run, OTHERS) == "Waits until you bring it back"


def test_one_that_was_let_go_first_says_so_in_line_and_in_the_pool() -> None:
    run = replace(outside(RunState.PARKED), is_called=True)
    words = "Parked for 8 s · 2nd in line · let go first · back in 6 to 10 s"
    assert describe_strip(parked_reply(), run, now_s=108.2).text == words
    run = make_run("c", is_called=True)
    assert describe_run(run).text == "Writing · let go first"
    words = "Writing · 42 tok/s · let go first"
    assert describe_strip(reply(MessageStatus.WRITING), run, now_s=0.0).text == words


def test_one_that_takes_turns_says_what_letting_it_go_first_would_do() -> None:
    others = Others(names={"c": "C", "d": "D"})
    turns = make_run("c", num_parks=2)
    assert "keeps its room for longer" in turns_sentence(turns, others)
    called = replace(turns, is_called=True)
    assert turns_sentence(called, others) == "It keeps its room for some seconds"
    assert turns_sentence(turns, Others(names={"c": "C"})) == "", "it is alone"
    assert turns_sentence(make_run("c"), others) == "", "it was never parked"
    over = make_run("c", RunState.AWAITS_OWNER, num_parks=2)
    assert turns_sentence(over, others) == turns_sentence(None, others) == ""


def test_a_queued_chat_says_its_place_and_when_it_starts() -> None:
    run = outside(RunState.QUEUED, place=3)
    words = describe_strip(reply(MessageStatus.QUEUED), run, now_s=0.0)
    assert (words.mark, words.text) == (Mark.DOTS, "Queued, 3rd · starts in 6 to 10 s")
    assert describe_row(reply(MessageStatus.QUEUED), None).text == "Queued"


def test_a_chat_in_the_pool_says_what_it_does() -> None:
    run = make_run("c")
    assert describe_row(reply(MessageStatus.WRITING), run).text == "Writing · 42 tok/s"
    again = reply(MessageStatus.READING)
    again.reread_tokens = 900
    reads = make_run("c", RunState.READING)
    assert describe_strip(again, reads, now_s=0.0).text == "Re-reading 900 tokens"


@pytest.mark.parametrize("state", [RunState.READING, RunState.WRITING])
@pytest.mark.parametrize("status", [MessageStatus.READING, MessageStatus.WRITING])
def test_strip_and_row_say_what_the_pool_panel_says(status: MessageStatus, state: RunState) -> None:
    run = make_run("c", state, held_tokens=519, computed_tokens=256)
    mark = describe_run(run).mark
    assert describe_strip(reply(status), run, now_s=0.0).mark is mark
    assert describe_row(reply(status), run).mark is mark


def test_a_request_that_reads_says_how_far_it_is() -> None:
    run = make_run(
        "chatcmpl-1", RunState.READING, held_tokens=3400, prompt_tokens=3400, computed_tokens=1200
    )
    words = describe_run(run)
    assert words.text == "Reading 1,200 of 3,400 tokens"
    assert words.progress == pytest.approx(1200 / 3400)
    again = make_run("chatcmpl-1", RunState.READING, held_tokens=640, computed_tokens=320)
    assert describe_run(again).text == "Re-reading 320 of 640 tokens"


def test_a_chat_being_restored_is_coming_back() -> None:
    run = make_run("c", RunState.BEING_RESTORED)
    words = describe_strip(parked_reply(), run, now_s=108.0)
    assert (words.mark, words.text) == (Mark.TURN, "Coming back")


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        (
            WaitKind.NO_ROOM,
            "Needs room for 1,152 tokens; Lisbon holds 1,420 tokens and is furthest along",
        ),
        (
            WaitKind.BEHIND_OTHERS,
            "Mail goes first; Lisbon holds 1,420 tokens and is furthest along",
        ),
        (
            WaitKind.WOULD_NOT_LAST,
            "There is room now, but the others will soon grow into it; "
            "Lisbon holds 1,420 tokens and is furthest along",
        ),
    ],
)
def test_the_reason_names_who_has_the_room(kind: WaitKind, sentence: str) -> None:
    assert reason_sentence(parked_reply(), outside(RunState.PARKED, kind), OTHERS) == sentence


def test_the_only_holder_is_not_compared_and_an_unknown_one_is_another_request() -> None:
    wait = make_wait(holders=(("gone", 1),))
    run = make_run("c", RunState.PARKED, held_tokens=1, wait=wait)
    text = reason_sentence(None, run, OTHERS)
    assert text == "Needs room for 1,280 tokens; another request holds 1 token"


def test_nobody_is_furthest_along_who_holds_less_than_the_one_that_waits() -> None:
    run = replace(outside(RunState.PARKED), held_tokens=1500)
    text = reason_sentence(None, run, OTHERS)
    assert text == "Needs room for 1,152 tokens; Lisbon holds 1,420 tokens and has its turn"


@pytest.mark.parametrize(
    ("title", "said"),
    [
        ("Lisbon", "Lisbon"),
        ("Write a story.", "“Write a story.”"),
        ("Tell me a long story about a dragon", "“Tell me a long s…about a dragon”"),
        ("x" * 200, "x" * 16 + "…" + "x" * 15),
    ],
)
def test_titles_in_sentences_are_short_and_set_apart(title: str, said: str) -> None:
    others = Others(names={"a": title}, titles=frozenset({"a"}), page_tokens=32)
    assert others.spoken("a") == said


@pytest.mark.parametrize(
    ("ahead", "text"),
    [
        (("m",), "Mail goes first"),
        (("m", "r"), "Mail and Recipes go first"),
        (("m", "r", "l"), "Mail and 2 more go first"),
    ],
)
def test_those_ahead_are_named(ahead: tuple[str, ...], text: str) -> None:
    run = make_run("c", RunState.PARKED, wait=make_wait(WaitKind.BEHIND_OTHERS, ahead=ahead))
    assert reason_sentence(None, run, OTHERS) == text


def test_before_the_first_snapshot_the_event_has_the_reason() -> None:
    assert reason_sentence(parked_reply(), None, OTHERS) == "Parked to make room for other requests"
    assert reason_sentence(reply(MessageStatus.WRITING), make_run("c"), OTHERS) == ""


def test_the_engines_list_says_whether_one_is_parked_though_its_events_come_later_or_earlier() -> (
    None
):
    """The pool panel shows that list: in one picture both say the same."""
    writing, run = reply(MessageStatus.WRITING), outside(RunState.PARKED)
    assert describe_row(writing, run).text == "Parked, 2nd · back in 6 to 10 s"
    assert describe_strip(writing, run, now_s=0.0).mark is Mark.BARS
    assert "Lisbon holds" in reason_sentence(writing, run, OTHERS)
    for words in (
        describe_row(parked_reply(), make_run("c")),
        describe_strip(parked_reply(), make_run("c"), now_s=108.0),
    ):
        assert (words.mark, words.text) == (Mark.DOT, "Writing")


def test_no_words_of_trouble_for_any_state_reason_or_wait() -> None:
    waits: list[tuple[float, float] | None] = [None, (0.0, 0.0), (0.0, 9.0), (6.0, 400.0)]
    for state, kind, expected in itertools.product(RunState, WaitKind, waits):
        wait = make_wait(kind, ahead=("m",), holders=HOLDERS)
        run = make_run("c", state, wait=wait, expected_wait_s=expected)
        for message in (parked_reply(), reply(MessageStatus.QUEUED)):
            said = (
                describe_row(message, run).text,
                describe_strip(message, run, 1e6).text,
                describe_run(run).text,
                reason_sentence(message, run, OTHERS),
            )
            assert not [text for text in said if TROUBLE.search(text)]
            assert all(said[:3])
