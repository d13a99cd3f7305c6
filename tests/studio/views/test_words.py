"""Figures are written with their unit and an honest precision."""

from __future__ import annotations

from datetime import datetime

import pytest

from studio.views import words
from studio.views.models.model_words import license_words, parameters_words


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (1, "1st"),
        (2, "2nd"),
        (3, "3rd"),
        (4, "4th"),
        (11, "11th"),
        (12, "12th"),
        (21, "21st"),
        (112, "112th"),
    ],
)
def test_ordinals(place: int, text: str) -> None:
    assert words.ordinal(place) == text


def test_tokens_have_a_singular() -> None:
    assert (words.tokens(1), words.tokens(0), words.tokens(1420)) == (
        "1 token",
        "0 tokens",
        "1,420 tokens",
    )


@pytest.mark.parametrize(
    ("duration_s", "text"),
    [
        (0.04, "under 0.1 s"),
        (0.93, "0.9 s"),
        (9.96, "10 s"),
        (10.4, "10 s"),
        (59.7, "1 min"),
        (185, "3 min 5 s"),
    ],
)
def test_seconds(duration_s: float, text: str) -> None:
    assert words.seconds(duration_s) == text


@pytest.mark.parametrize(
    ("num_bytes", "text"),
    [
        (0, "0 MB"),
        (1, "1 kB"),
        (12_300, "12 kB"),
        (999_999, "1,000 kB"),
        (2_000_000, "2 MB"),
        (98_362_432, "98 MB"),
        (999_600_000, "1.0 GB"),
        (4_100_000_000, "4.1 GB"),
    ],
)
def test_sizes(num_bytes: int, text: str) -> None:
    assert words.size(num_bytes) == text


def test_rates_lose_their_decimal_when_it_says_nothing() -> None:
    assert (words.rate(3.14), words.rate(11.8), words.rate(41.8)) == ("3.1", "11.8", "42")


def test_times_become_coarser_with_distance() -> None:
    now = datetime(2026, 11, 29, 12, 0)
    moments = [
        datetime(2026, 11, 29, 9, 5),
        datetime(2026, 11, 28, 23, 59),
        datetime(2026, 3, 1),
        datetime(2025, 12, 31),
        datetime(5138, 11, 16, 9, 46),
    ]
    said = [words.when(moment.timestamp(), now.timestamp()) for moment in moments]
    assert said == ["09:05", "Yesterday", "1 Mar", "2025-12-31", "5138-11-16"]


@pytest.mark.parametrize(
    ("duration_s", "text"),
    [(-1, "0 s"), (0.4, "0 s"), (8.2, "8 s"), (59.6, "1 min"), (185, "3 min 5 s")],
)
def test_running_times_are_whole_seconds(duration_s: float, text: str) -> None:
    assert words.elapsed(duration_s) == text


@pytest.mark.parametrize(
    ("num_bytes", "text"),
    [(0, "0 MB"), (48 << 10, "48 kB"), (26 << 20, "26 MB"), (8 << 30, "8 GB"), (3 << 29, "1.5 GB")],
)
def test_memory_is_counted_as_it_is_sold(num_bytes: int, text: str) -> None:
    assert words.memory(num_bytes) == text


def test_a_name_does_not_turn_the_sentence_around_it() -> None:
    assert words.in_sentence("Lisbon", 32) == "Lisbon"
    assert words.in_sentence("Trip to Lisbon", 8) == "“Trip…bon”"
    assert words.in_sentence("قصة طويلة", 32) == "“\u2068قصة طويلة\u2069”"


@pytest.mark.parametrize(
    ("number", "text"),
    [(94_720, "94,720"), (135_000_000, "135 M"), (7_600_000_000, "7.6 B")],
)
def test_a_tiny_model_does_not_have_0_m_parameters(number: int, text: str) -> None:
    assert parameters_words(number) == text


@pytest.mark.parametrize(
    ("name", "text"),
    [("mit", "MIT"), ("apache-2.0", "Apache-2.0"), ("llama3.1", "llama3.1")],
)
def test_a_license_reads_as_its_name(name: str, text: str) -> None:
    assert license_words(name) == text
