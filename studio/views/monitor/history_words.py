"""What the history of the pool says in sentences, and how many chats fit. Pure functions; must not import widgets.

GUI thread.
"""

from __future__ import annotations

from studio.models.capacity import Capacity, OneMore
from studio.models.timeline import LongestWait, Saving, Tally
from studio.views.words import count, elapsed, in_sentence, tokens, tr

_NAME_CHARS = 32
_WORTH_TELLING_S = 1.0


def longest_words(longest: LongestWait | None) -> str:
    """ "Longest wait: Children, 14 s, for Lisbon"; empty where nobody has waited."""
    if longest is None or longest.seconds < _WORTH_TELLING_S:
        return ""
    name, time = in_sentence(longest.name, _NAME_CHARS), elapsed(longest.seconds)
    if not longest.others:
        return tr("Longest wait: {name}, {time}").format(name=name, time=time)
    others = ", ".join(in_sentence(one, _NAME_CHARS) for one in longest.others)
    text = tr("Longest wait: {name}, {time}, for {others}")
    return text.format(name=name, time=time, others=others)


def tally_words(tally: Tally) -> str:
    """ "Of 12 waits 11 ended within what was said"; empty before the first."""
    if not tally.num_told:
        return ""
    if tally.num_told == 1:
        held = tr("The one wait so far ended within what was said")
        return held if tally.num_held else tr("The one wait so far took longer than was said")
    if tally.num_held == tally.num_told == 2:
        return tr("Both waits so far ended within what was said")
    if tally.num_held == tally.num_told:
        return tr("All {told} waits ended within what was said").format(told=count(tally.num_told))
    text = tr("Of {told} waits {held} ended within what was said")
    return text.format(told=count(tally.num_told), held=count(tally.num_held))


def saving_words(saving: Saving) -> str:
    """What one more GB would have saved of the waits for room; empty where nobody waited for any."""
    if saving.waited_s < _WORTH_TELLING_S:
        return ""
    waited, saved = elapsed(saving.waited_s), elapsed(saving.saved_s)
    if saving.saved_s < _WORTH_TELLING_S:
        return tr(
            "One more GB of pool would have saved none of {waited} of waiting for room"
        ).format(waited=waited)
    if saved == waited:
        text = tr("One more GB of pool would have saved all {waited} of waiting for room")
        return text.format(waited=waited)
    text = tr(
        "One more GB of pool would have saved at least {saved} of {waited} of waiting for room"
    )
    return text.format(saved=saved, waited=waited)


def denser_words(saving: Saving) -> str:
    """What storing keys and values as Q8_0 would have saved; empty where that is nothing."""
    if saving.saved_s < _WORTH_TELLING_S:
        return ""
    text = tr("Keys and values as Q8_0 would have saved at least {saved} of it")
    return text.format(saved=elapsed(saving.saved_s))


def capacity_words(capacity: Capacity) -> str:
    """ "4 chats of 2,000 tokens fit, a fifth would park", or what else than the pool keeps it out."""
    length = tokens(capacity.chat_tokens)
    if not capacity.fit:
        return tr("Not even one chat of {length} fits").format(length=length)
    is_one = capacity.room == 1
    fits = tr("1 chat of {length} fits") if is_one else tr("{count} chats of {length} fit")
    fits = fits.format(count=count(capacity.room), length=length)
    return f"{fits}, {_one_more_words(capacity)}"


def _one_more_words(capacity: Capacity) -> str:
    match capacity.one_more:
        case OneMore.PARKS:
            text = tr("{one_more} would park")
        case OneMore.QUEUES:
            text = tr("“Requests at once” is {number}: {one_more} would wait in line")
        case OneMore.ENDS:
            text = tr("{one_more} would end for want of room")
    return text.format(number=count(capacity.fit), one_more=_nth(capacity.fit + 1))


def _nth(number: int) -> str:
    names = {
        2: tr("a second"), 3: tr("a third"), 4: tr("a fourth"), 5: tr("a fifth"), 6: tr("a sixth"),
        7: tr("a seventh"), 8: tr("an eighth"), 9: tr("a ninth"),
    }  # fmt: skip
    return names.get(number, tr("one more"))
