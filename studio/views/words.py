"""The one way to words on screen: `tr` for sentences, and figures written the way the window writes them.

Pure functions on the GUI thread; language and locale are those that `translation.speak` gave Qt. A sentence is given to
`tr` as a literal, so that the test of the catalogues finds it. Must not import services.
"""

from __future__ import annotations

import unicodedata
from datetime import datetime
from functools import lru_cache

from PySide6.QtCore import QCoreApplication, QDate, QLocale, QTime

from studio.models.one_line import one_line

_CONTEXT = "layby"
_MB = 1_000_000
_GB = 1_000_000_000


def tr(text: str) -> str:
    """The sentence in the user's language; figures go in afterwards with `str.format`."""
    return QCoreApplication.translate(_CONTEXT, text)


def plural(number: int, one: str, many: str) -> str:
    """`one` or `many`, translated, with the number in place of `{count}`: plural(2, "1 chat", "{count} chats")."""
    return (tr(one) if number == 1 else tr(many)).format(count=count(number))


def locale() -> QLocale:
    """How figures are written. Nothing is without grouping but the C locale, which is no language's."""
    return _locale(QLocale().name())


@lru_cache(maxsize=4)
def _locale(name: str) -> QLocale:
    """Made once: asking for the language of one takes longer than writing a figure."""
    if name == "C":
        return QLocale(QLocale.Language.English, QLocale.Country.UnitedKingdom)
    return QLocale(name)


def count(number: int) -> str:
    """Thousands apart: 1,420."""
    return locale().toString(number)


def decimal(number: float, places: int) -> str:
    """With so many decimals: 4.1."""
    return locale().toString(float(number), "f", places)


def percent(share: float) -> str:
    """A share of 1 in whole percent: 42%."""
    return tr("{figure}%").format(figure=count(round(100 * share)))


def tokens(number: int) -> str:
    """ "1 token" or "312 tokens"."""
    return plural(number, "1 token", "{count} tokens")


def ordinal(place: int) -> str:
    """1st, 2nd, 3rd, 4th, 11th."""
    ending = "th" if 10 <= place % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(place % 10, "th")
    endings = {
        "st": tr("{place}st"),
        "nd": tr("{place}nd"),
        "rd": tr("{place}rd"),
        "th": tr("{place}th"),
    }
    return endings[ending].format(place=place)


def rate(tokens_per_s: float) -> str:
    """One decimal below 20, none above: more would be noise."""
    return decimal(tokens_per_s, 1 if tokens_per_s < 19.95 else 0)


def seconds(duration_s: float) -> str:
    """under 0.1 s, 0.9 s, 8 s, 3 min, 3 min 5 s."""
    if duration_s < 0.05:
        return tr("under {figure} s").format(figure=decimal(0.1, 1))
    if duration_s < 9.95:
        return tr("{figure} s").format(figure=decimal(duration_s, 1))
    if duration_s < 59.5:
        return tr("{figure} s").format(figure=decimal(duration_s, 0))
    return _minutes(*divmod(round(duration_s), 60))


def _minutes(minutes: int, rest_s: int) -> str:
    text = tr("{minutes} min {seconds} s") if rest_s else tr("{minutes} min")
    return text.format(minutes=minutes, seconds=rest_s)


def shortened(text: str, most_chars: int) -> str:
    """The text, or its beginning with an ellipsis where it is longer."""
    return text if len(text) <= most_chars else text[: most_chars - 1].rstrip() + "…"


def shortened_inside(text: str, most_chars: int) -> str:
    """The text, or both its ends where it is longer: names of chats often begin alike."""
    if len(text) <= most_chars:
        return text
    tail = (most_chars - 1) // 2
    return f"{text[: most_chars - 1 - tail].rstrip()}…{text[-tail:].lstrip()}"


def in_sentence(name: str, most_chars: int) -> str:
    """A name within a sentence: one of several words stands in quotation marks; none turns the words around it."""
    name = one_line(name)
    short = shortened_inside(name, most_chars)
    if any(unicodedata.bidirectional(char) in ("R", "AL") for char in short):
        short = f"\u2068{short}\u2069"
    return tr("“{title}”").format(title=short) if " " in name else short


def elapsed(duration_s: float) -> str:
    """Whole seconds, for a time that still runs: 0 s, 8 s, 3 min, 3 min 5 s."""
    minutes, rest = divmod(round(max(0.0, duration_s)), 60)
    if minutes:
        return _minutes(minutes, rest)
    return tr("{figure} s").format(figure=rest)


def memory(num_bytes: int) -> str:
    """48 kB, 26 MB, 8 GB: binary units, as memory is sold and as the settings count it."""
    if 0 < num_bytes < 1 << 20:
        return tr("{figure} kB").format(figure=count(max(1, round(num_bytes / 1024))))
    if num_bytes < 1 << 30:
        return tr("{figure} MB").format(figure=decimal(num_bytes / (1 << 20), 0))
    tenths = round(10 * num_bytes / (1 << 30))
    return tr("{figure} GB").format(figure=decimal(tenths / 10, 1 if tenths % 10 else 0))


def size(num_bytes: int) -> str:
    """12 kB, 98 MB, 4.1 GB: decimal units, as file managers and download pages use."""
    if 0 < num_bytes < _MB:
        return tr("{figure} kB").format(figure=count(max(1, round(num_bytes / 1000))))
    if num_bytes < _GB - _MB / 2:
        return tr("{figure} MB").format(figure=decimal(num_bytes / _MB, 0))
    return tr("{figure} GB").format(figure=decimal(num_bytes / _GB, 1))


def when(moment_s: float, now_s: float) -> str:
    """The time for today, "Yesterday", a date before that, or after. Both arguments are Unix times."""
    moment, now = datetime.fromtimestamp(moment_s), datetime.fromtimestamp(now_s)
    days = (now.date() - moment.date()).days
    if -1 <= days <= 0:  # tomorrow: of another zone
        return locale().toString(QTime(moment.hour, moment.minute), QLocale.FormatType.ShortFormat)
    if days == 1:
        return tr("Yesterday")
    date = QDate(moment.year, moment.month, moment.day)
    if moment.year == now.year:
        return locale().toString(date, tr("d MMM"))
    return locale().toString(date, tr("yyyy-MM-dd"))
