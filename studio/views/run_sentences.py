"""Where a request stands, and why it waits, in words that name the others. Pure functions on the GUI thread.

The plain reasons are `studio.models.run_words`; here they get names and tokens. A park is nothing that went wrong:
no sentence speaks of stalls or failures. Must not import services or widgets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import assert_never

from engine.runs import Holder, Run, RunState, WaitKind, WaitReason
from studio.models.chat import Message, MessageStatus
from studio.models.run_words import expected_wait_words, reason_words, state_words
from studio.views.status_words import Mark, StatusWords, Tone, describe_reply, joined
from studio.views.words import count, elapsed, in_sentence, ordinal, shortened_inside, tokens, tr

_SPOKEN_CHARS = 32
_WAITING = frozenset({MessageStatus.QUEUED, MessageStatus.PARKED})
_INSIDE = frozenset({MessageStatus.READING, MessageStatus.WRITING})
_LISTED = {
    RunState.READING: MessageStatus.READING,
    RunState.WRITING: MessageStatus.WRITING,
    RunState.PARKED: MessageStatus.PARKED,
}
_FOR_ROOM = frozenset({WaitKind.NO_ROOM, WaitKind.WOULD_NOT_LAST})


@dataclass(frozen=True, slots=True, kw_only=True)
class Others:
    """All requests in flight, as far as one of them is told about the others."""

    names: Mapping[str, str] = field(default_factory=dict)
    """What each is called, by its id."""
    titles: frozenset[str] = frozenset()
    """Ids of those whose name is a chat's title."""
    hues: Mapping[str, int] = field(default_factory=dict)
    """The number of each one's hue."""
    page_tokens: int = 0
    can_park: bool = True
    """Whether anybody is ever parked."""

    def hue(self, run: Run | None) -> int | None:
        """None for a request that is not in flight."""
        return self.hues.get(run.request_id) if run is not None else None

    def spoken(self, request_id: str) -> str:
        """Its name within a sentence: a title of several words is shortened and stands in quotation marks."""
        name = self.names.get(request_id, tr("another request"))
        if request_id not in self.titles:
            return shortened_inside(name, _SPOKEN_CHARS)
        return in_sentence(name, _SPOKEN_CHARS)


def describe_run(run: Run) -> StatusWords:
    """What stands beside a request in the list of all: "Parked · 2nd in line · back in 6 to 10 s"."""
    head = _parked(run) if run.state is RunState.PARKED else tr(state_words(run.state))
    match run.state:
        case RunState.QUEUED | RunState.PARKED:
            return _waiting(run, head, _in_line(run))
        case RunState.BEING_PARKED:
            return StatusWords(Mark.BARS, head, Tone.WAITING)
        case RunState.BEING_RESTORED:
            return StatusWords(Mark.TURN, head, Tone.ACTIVE)
        case RunState.READING:
            return _reading(run)
        case RunState.WRITING:
            return StatusWords(Mark.DOT, joined(head, _called(run)), Tone.ACTIVE)
        case RunState.AWAITS_OWNER:
            lent = tr("its room is lent out") if run.wait is not None else ""
            return StatusWords(Mark.HAND, joined(head, lent), Tone.WAITING)
    assert_never(run.state)


def describe_strip(reply: Message, run: Run | None, now_s: float) -> StatusWords:
    """What stands above the composer: "Parked for 8 s · 2nd in line · back in 6 to 10 s", or as in the row."""
    if reply.park is None or _is_coming_back(run) or _standing(reply, run) not in _WAITING:
        words = describe_row(reply, run)
        return replace(words, text=joined(words.text, _called(run)))
    since = _parked_since(run, now_s - reply.park.since_s)
    if run is None:
        return StatusWords(Mark.BARS, since, Tone.WAITING)
    return _waiting(run, since, _in_line(run))


def describe_row(reply: Message, run: Run | None) -> StatusWords:
    """What stands under a chat's title while its reply is alive: "Queued, 3rd · starts in about 20 s"."""
    if run is not None and reply.park is not None and _is_coming_back(run):
        return StatusWords(Mark.TURN, tr("Coming back"), Tone.ACTIVE)
    if reply.is_asking and run is not None and run.wait is not None:
        text = joined(tr("Asks you"), tr("room lent"))  # short, or the list cuts the second half
        return replace(describe_reply(reply), text=text)
    status = _standing(reply, run)
    if run is None or run.wait is None or status not in _WAITING:
        return describe_reply(replace(reply, status=status))
    head = _parked(run) if status is MessageStatus.PARKED else tr("Queued")
    if run.wait.place:
        head = tr("{state}, {place}").format(state=head, place=ordinal(run.wait.place))
    return _waiting(run, head)


def reason_sentence(reply: Message | None, run: Run | None, others: Others) -> str:
    """Why it is outside the pool, naming who has the room; empty if it is not."""
    if run is None:
        park = reply.park if reply is not None else None
        return tr(reason_words(park.reason)) if park is not None else ""
    wait = run.wait
    if is_held(run):
        return tr("Waits until you bring it back")
    if wait is not None and wait.kind is WaitKind.OWNER:
        return tr(reason_words(wait))
    if wait is None or run.state is RunState.BEING_RESTORED:
        return ""
    if wait.kind in _FOR_ROOM or (wait.kind is WaitKind.BEHIND_OTHERS and wait.ahead_ids):
        return _turn_sentence(run, wait, others)
    return tr(reason_words(wait))


def turns_sentence(run: Run | None, others: Others) -> str:
    """What may become of one that is in the pool and takes turns with others; empty for any other."""
    has_its_turn = run is not None and run.num_parks > 0 and run.state is not RunState.AWAITS_OWNER
    if run is None or not has_its_turn or len(others.names) < 2:
        return ""
    if run.is_called:
        return tr("It keeps its room for some seconds")
    return tr("It takes turns with others; let go first, it keeps its room for longer")


def is_held(run: Run | None) -> bool:
    """Whether it was parked by hand, or kept out of the pool."""
    return run is not None and run.wait is not None and run.wait.kind is WaitKind.HELD_BY_USER


def _parked(run: Run | None) -> str:
    return tr("Parked by you") if is_held(run) else tr("Parked")


def _parked_since(run: Run | None, duration_s: float) -> str:
    """ "Parked for 8 s"; without a time in its first second."""
    if duration_s < 1:
        return _parked(run)
    words = tr("Parked by you for {time}") if is_held(run) else tr("Parked for {time}")
    return words.format(time=elapsed(duration_s))


def _reading(run: Run) -> StatusWords:
    """ "Reading 1,200 of 3,400 tokens"; one that comes back reads what it has written, too."""
    text = tr("Reading {done} of {total} tokens")
    if run.completion_tokens:
        text = tr("Re-reading {done} of {total} tokens")
    words = text.format(done=count(run.computed_tokens), total=count(run.held_tokens))
    share = run.computed_tokens / max(run.held_tokens, 1)
    return StatusWords(Mark.PIE, joined(words, _called(run)), Tone.ACTIVE, share)


def _standing(reply: Message, run: Run | None) -> MessageStatus:
    """How a reply stands: by the engine's list, which the pool panel shows too, where it is in there.

    Events come a moment before or after it, and then two places would contradict each other.
    """
    status = reply.status
    if run is None or status not in _INSIDE | _WAITING:
        return status
    return _LISTED.get(run.state, status)


def _is_coming_back(run: Run | None) -> bool:
    return run is not None and run.state is RunState.BEING_RESTORED


def _in_line(run: Run) -> str:
    place = run.wait.place if run.wait is not None else 0
    in_line = tr("{place} in line").format(place=ordinal(place)) if place else ""
    return joined(in_line, _called(run))


def _called(run: Run | None) -> str:
    """That a person has let it go first, as long as that counts."""
    return tr("let go first") if run is not None and run.is_called else ""


def _waiting(run: Run, *parts: str) -> StatusWords:
    is_queued = run.state is RunState.QUEUED
    expected = ""
    if run.expected_wait_s is not None:
        what = "starts" if is_queued else "back"
        expected = tr(expected_wait_words(run.expected_wait_s, what=what))
    return StatusWords(
        Mark.DOTS if is_queued else Mark.BARS, joined(*parts, expected), Tone.WAITING
    )


def _turn_sentence(run: Run, wait: WaitReason, others: Others) -> str:
    parts = []
    if wait.kind is WaitKind.BEHIND_OTHERS and wait.ahead_ids:
        parts.append(_ahead(wait, others))
    elif wait.kind is WaitKind.NO_ROOM:
        needed = tokens(wait.pages_needed * others.page_tokens)
        parts.append(tr("Needs room for {needed}").format(needed=needed))
    elif wait.kind is WaitKind.WOULD_NOT_LAST:
        parts.append(tr("There is room now, but the others will soon grow into it"))
    if wait.holders:
        parts.append(_holder(run, wait.holders, others))
    return "; ".join(parts)


def _ahead(wait: WaitReason, others: Others) -> str:
    ids, number = wait.ahead_ids, wait.num_ahead
    first = others.spoken(ids[0])
    if number == 1:
        return tr("{first} goes first").format(first=first)
    if number == 2:
        return tr("{first} and {second} go first").format(first=first, second=others.spoken(ids[1]))
    return tr("{first} and {count} more go first").format(first=first, count=count(number - 1))


def _holder(run: Run, holders: tuple[Holder, ...], others: Others) -> str:
    """Who has most pages. Where chats take turns, that may be less than the one has that waits."""
    largest = holders[0]
    text = tr("{name} holds {held}")
    if largest.held_tokens < run.held_tokens:
        text = tr("{name} holds {held} and has its turn")
    elif len(holders) > 1 and largest.held_tokens == max(one.held_tokens for one in holders):
        text = tr("{name} holds {held} and is furthest along")
    return text.format(name=others.spoken(largest.request_id), held=tokens(largest.held_tokens))
