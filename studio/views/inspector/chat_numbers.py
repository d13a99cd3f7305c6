"""The numbers of a chat's settings as data: words, scale, and how each is read and written. GUI thread.

Must not import services or widgets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from engine.api import SamplingParams
from studio.models.chat_settings import ChatSettings
from studio.views.words import tr


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """The values of a number. The slider goes from `low` to `high`, the field as far as `most`."""

    default: float
    low: float
    high: float
    most: float
    step: float
    decimals: int = 2
    low_is_off: bool = False
    """The smallest value turns it off, which is written in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatNumber:
    """One number."""

    title: str
    about: str
    scale: Scale
    read: Callable[[ChatSettings], float]
    write: Callable[[ChatSettings, float], ChatSettings]


def chat_numbers() -> tuple[ChatNumber, ...]:
    """All of them, in the order they are shown."""
    usual = SamplingParams()
    share = Scale(default=0.0, low=0.0, high=1.0, most=1.0, step=0.01)
    many = Scale(default=0, low=0, high=200, most=1 << 30, step=1, decimals=0, low_is_off=True)
    factor = Scale(default=1.0, low=1.0, high=2.0, most=100.0, step=0.01, low_is_off=True)
    return (
        _sampled(
            tr("Temperature"),
            tr("0 always takes the likeliest token; more is more varied"),
            Scale(default=usual.temperature, low=0.0, high=2.0, most=100.0, step=0.05),
            read=lambda sampling: sampling.temperature,
            write=lambda sampling, value: replace(sampling, temperature=value),
        ),
        _sampled(
            tr("Top-p"),
            tr("Keeps the likeliest tokens that have this probability together; 1 keeps all"),
            replace(share, default=usual.top_p),
            read=lambda sampling: sampling.top_p,
            write=lambda sampling, value: replace(sampling, top_p=value),
        ),
        _sampled(
            tr("Top-k"),
            tr("Keeps so many of the likeliest tokens; off keeps all"),
            replace(many, default=usual.top_k),
            read=lambda sampling: sampling.top_k,
            write=lambda sampling, value: replace(sampling, top_k=round(value)),
        ),
        _sampled(
            tr("Min-p"),
            tr("Keeps tokens with at least this share of the likeliest one's probability"),
            replace(share, default=usual.min_p, low_is_off=True),
            read=lambda sampling: sampling.min_p,
            write=lambda sampling, value: replace(sampling, min_p=value),
        ),
        _sampled(
            tr("Repeat penalty"),
            tr("Makes tokens that were there lately less likely"),
            replace(factor, default=usual.repetition_penalty),
            read=lambda sampling: sampling.repetition_penalty,
            write=lambda sampling, value: replace(sampling, repetition_penalty=value),
        ),
        ChatNumber(
            title=tr("Most tokens of a reply"),
            about=tr("A reply ends after so many tokens; off: as many as there is room for"),
            scale=replace(many, high=4096, step=32),
            read=lambda settings: settings.max_tokens or 0,
            write=lambda settings, value: replace(settings, max_tokens=round(value) or None),
        ),
    )


def _sampled(
    title: str,
    about: str,
    scale: Scale,
    *,
    read: Callable[[SamplingParams], float],
    write: Callable[[SamplingParams, float], SamplingParams],
) -> ChatNumber:
    """A number of the sampling."""
    return ChatNumber(
        title=title,
        about=about,
        scale=scale,
        read=lambda settings: read(settings.sampling),
        write=lambda settings, value: replace(settings, sampling=write(settings.sampling, value)),
    )
