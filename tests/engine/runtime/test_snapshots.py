"""How often the list of requests is made: at once for a few, and for many in a bounded share of the thread."""

from __future__ import annotations

from engine.runtime.snapshots import ListPace


def test_the_first_list_is_due_at_once() -> None:
    assert ListPace().is_due(0.0, num_requests=1000, has_news=False)


def test_while_only_tokens_come_a_list_is_made_ten_times_a_second_counted_from_its_end() -> None:
    pace = ListPace()
    pace.note(1.0, 1.001)
    assert not pace.is_due(1.1, num_requests=2, has_news=False)
    assert pace.is_due(1.102, num_requests=2, has_news=False)


def test_news_of_a_few_are_listed_at_once() -> None:
    pace = ListPace()
    pace.note(1.0, 1.5)
    assert pace.is_due(1.5, num_requests=64, has_news=True)
    assert not pace.is_due(1.5, num_requests=64, has_news=False)


def test_news_of_many_wait_until_the_list_has_taken_a_twentieth_of_the_time() -> None:
    pace = ListPace()
    pace.note(1.0, 1.5)
    assert not pace.is_due(11.4, num_requests=65, has_news=True)
    assert pace.is_due(11.5, num_requests=65, has_news=True)


def test_however_slow_a_list_of_many_its_share_of_the_thread_is_bounded() -> None:
    for took_s in (0.001, 0.05, 0.4, 3.0):
        pace, now_s, listing_s = ListPace(), 0.0, 0.0
        while now_s < 100 * took_s:
            if pace.is_due(now_s, num_requests=5000, has_news=True):
                pace.note(now_s, now_s + took_s)
                listing_s += took_s
                now_s += took_s
            now_s += 0.002
        assert listing_s <= 0.06 * now_s, f"lists of {took_s} s each took {listing_s} of {now_s} s"
