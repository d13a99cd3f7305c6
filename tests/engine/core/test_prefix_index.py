"""The prefix index finds exactly what was registered, and gives up chains from their ends."""

from __future__ import annotations

import pytest

from engine.core.prefix_index import ROOT, PrefixIndex


def make_chain(index: PrefixIndex, token_ids: list[int], pages: list[int]) -> None:
    parent = ROOT
    for place, page in enumerate(pages):
        tokens = tuple(token_ids[2 * place : 2 * place + 2])
        assert index.register(parent, tokens, page) == page
        parent = page


def test_lookup_finds_the_longest_known_beginning() -> None:
    index = PrefixIndex(2)
    make_chain(index, [1, 2, 3, 4, 5, 6], [10, 11, 12])
    assert index.lookup([1, 2, 3, 4, 9, 9, 9]) == [10, 11]
    assert index.lookup([1, 2, 3, 4, 5, 6, 7]) == [10, 11, 12]
    assert index.lookup([2, 1, 3, 4, 5]) == []


@pytest.mark.parametrize(
    ("length", "pages"), [(1, 0), (2, 0), (3, 1), (4, 1), (5, 2), (6, 2), (7, 3)]
)
def test_lookup_always_leaves_a_token_to_compute(length: int, pages: int) -> None:
    index = PrefixIndex(2)
    make_chain(index, [1, 2, 3, 4, 5, 6], [10, 11, 12])
    assert index.lookup([1, 2, 3, 4, 5, 6, 7][:length]) == [10, 11, 12][:pages]


def test_same_tokens_after_another_beginning_are_no_hit() -> None:
    index = PrefixIndex(2)
    make_chain(index, [1, 2, 7, 7], [10, 11])
    make_chain(index, [3, 4], [12])
    assert index.lookup([3, 4, 7, 7, 0]) == [12]
    assert index.lookup([7, 7, 0]) == []


def test_registering_known_content_returns_the_page_that_has_it() -> None:
    index = PrefixIndex(2)
    assert index.register(ROOT, (1, 2), 10) == 10
    assert index.register(ROOT, (1, 2), 11) == 10
    assert index.register(ROOT, (1, 2), 10) == 10
    assert 10 in index
    assert 11 not in index


def test_a_page_that_is_not_full_is_refused() -> None:
    with pytest.raises(ValueError, match="page 3: 1 tokens, a full page has 2"):
        PrefixIndex(2).register(ROOT, (1,), 3)


def test_least_recently_used_page_is_evicted_first_and_forgotten() -> None:
    index = PrefixIndex(2)
    for page, tokens in enumerate([(1, 1), (2, 2), (3, 3)]):
        index.register(ROOT, tokens, page)
        index.retire(page)
    index.revive(0)
    index.retire(0)  # used again just now
    assert [index.evict(), index.evict()] == [1, 2]
    assert index.lookup([2, 2, 0]) == []
    assert index.lookup([1, 1, 0]) == [0]
    assert index.num_reusable == 1


def test_evicting_when_nothing_is_reusable_raises() -> None:
    index = PrefixIndex(2)
    index.register(ROOT, (1, 1), 0)
    with pytest.raises(KeyError):
        index.evict()


def test_check_notices_a_page_in_use_below_one_that_is_not() -> None:
    index = PrefixIndex(2)
    make_chain(index, [1, 2, 3, 4], [0, 1])
    index.retire(0)
    with pytest.raises(AssertionError, match="page 1 is in use, its parent 0 is not"):
        index.check([0, 1])


def test_check_notices_a_child_that_would_outlive_its_parent() -> None:
    index = PrefixIndex(2)
    make_chain(index, [1, 2, 3, 4], [0, 1])
    index.retire(0)
    index.retire(1)
    with pytest.raises(AssertionError, match="page 1 would outlive its parent 0"):
        index.check([0, 0])


def test_check_notices_counts_that_differ_from_the_order() -> None:
    index = PrefixIndex(2)
    index.register(ROOT, (1, 2), 0)
    with pytest.raises(AssertionError, match=r"unused \{0\}, reusable set\(\)"):
        index.check([0])
