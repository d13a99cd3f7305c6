"""The one way to words on screen: `tr` for sentences, and figures written the way the window writes them.

Pure functions on the GUI thread; the second language is a matter of a translation file. Must not import services.
"""

from __future__ import annotations

from datetime import datetime

from PySide6.QtCore import QCoreApplication

_CONTEXT = "layby"
_MB = 1_000_000
_GB = 1_000_000_000


def tr(text: str) -> str:
    """The sentence in the user's language; figures go in afterwards with `str.format`."""
    return QCoreApplication.translate(_CONTEXT, text)


def count(number: int) -> str:
    """Thousands apart: 1,420."""
    return f"{number:,}"


def tokens(number: int) -> str:
    """ "1 token" or "312 tokens"."""
    return tr("1 token") if number == 1 else tr("{count} tokens").format(count=count(number))


def ordinal(place: int) -> str:
    """1st, 2nd, 3rd, 4th, 11th."""
    ending = "th" if 10 <= place % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(place % 10, "th")
    return f"{place}{ending}"


def rate(tokens_per_s: float) -> str:
    """One decimal below 20, none above: more would be noise."""
    return f"{tokens_per_s:.1f}" if tokens_per_s < 19.95 else f"{tokens_per_s:.0f}"


def seconds(duration_s: float) -> str:
    """0.9 s, 8 s, 3 min 5 s."""
    if duration_s < 9.95:
        return tr("{figure} s").format(figure=f"{duration_s:.1f}")
    if duration_s < 59.5:
        return tr("{figure} s").format(figure=f"{duration_s:.0f}")
    minutes, rest = divmod(round(duration_s), 60)
    return tr("{minutes} min {seconds} s").format(minutes=minutes, seconds=rest)


def shortened(text: str, most_chars: int) -> str:
    """The text, or its beginning with an ellipsis where it is longer."""
    return text if len(text) <= most_chars else text[: most_chars - 1].rstrip() + "…"


def elapsed(duration_s: float) -> str:
    """Whole seconds, for a time that still runs: 0 s, 8 s, 3 min 5 s."""
    minutes, rest = divmod(round(max(0.0, duration_s)), 60)
    if minutes:
        return tr("{minutes} min {seconds} s").format(minutes=minutes, seconds=rest)
    return tr("{figure} s").format(figure=rest)


def memory(num_bytes: int) -> str:
    """26 MB, 8 GB: binary units, as memory is sold and as the settings count it."""
    if num_bytes < 1 << 30:
        return tr("{figure} MB").format(figure=f"{num_bytes / (1 << 20):.0f}")
    figure = f"{num_bytes / (1 << 30):.1f}".removesuffix(".0")
    return tr("{figure} GB").format(figure=figure)


def size(num_bytes: int) -> str:
    """98 MB, 4.1 GB: decimal units, as file managers and download pages use."""
    if num_bytes < _GB - _MB / 2:
        return tr("{figure} MB").format(figure=f"{num_bytes / _MB:.0f}")
    return tr("{figure} GB").format(figure=f"{num_bytes / _GB:.1f}")


def when(moment_s: float, now_s: float) -> str:
    """The time for today, "Yesterday", a date before that. Both arguments are Unix times."""
    moment, now = datetime.fromtimestamp(moment_s), datetime.fromtimestamp(now_s)
    days = (now.date() - moment.date()).days
    if days <= 0:
        return f"{moment:%H:%M}"
    if days == 1:
        return tr("Yesterday")
    if moment.year == now.year:
        return f"{moment.day} {moment:%b}"
    return f"{moment:%Y-%m-%d}"
