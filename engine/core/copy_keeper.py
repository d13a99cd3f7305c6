"""Keeps parked states in host buffers: orders the copies, and knows what lies where until it is back.

Pages that a party alone holds are copied out and freed; a table is then cut where the saved pages
begin. Pages that others use as well stay in the pool and in the table, always as its beginning,
since sharing begins at the beginning. A state comes back from what the pool still has, then from
the buffers. Engine thread; imports no tensor library, clock or thread.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from engine.core.config import SchedulerConfig
from engine.core.host_pool import HostPool
from engine.core.keepers import Transfer
from engine.core.kv_pool import KVPool
from engine.core.owned_buffers import OwnedBuffers, Owner
from engine.core.parked import CopyWay, PageCopy, ParkedState, SavedPage
from engine.core.types import Family, Party, SeqStatus, Sequence


@dataclass(frozen=True, slots=True)
class _Kept:
    """What was kept of a sequence before a restore, in case it fails."""

    num_pages: int
    """Pages at the beginning of the table, which had stayed in the pool."""
    saved: list[SavedPage]
    num_computed: int


@dataclass(frozen=True, slots=True)
class _Flight:
    """A copy under way. `held` pages have one more user until it lands, so that an abort cannot free them.

    Out of the pool these are all pages of the tables: who uses a page uses those before it too.
    """

    order: PageCopy
    party: Party
    parked: tuple[ParkedState, ...]
    held: tuple[int, ...]
    before: tuple[_Kept, ...] = ()

    @property
    def transfer(self) -> Transfer:
        return Transfer(self.order.way, self.party, self.parked, self.order.must_land)


class CopyKeeper:
    """See `Keeper`. The first of an owner's buffers is kept between its parks."""

    def __init__(self, pool: KVPool, config: SchedulerConfig) -> None:
        self._pool = pool
        self._is_async = config.park.is_async
        self.host = HostPool(config.park.budget_bytes)
        self._buffers = OwnedBuffers(self.host, config.park.page_bytes)
        self._flights: dict[int, _Flight] = {}
        self._orders: list[PageCopy] = []
        self._last_copy = 0

    @property
    def used_bytes(self) -> int:
        return self.host.used_bytes

    @property
    def is_over_budget(self) -> bool:
        return self.host.is_over_budget

    @property
    def holds_pages(self) -> bool:
        return any(flight.held for flight in self._flights.values())

    @property
    def is_quiet(self) -> bool:
        return not (self._flights or self._orders or self.host.has_dropped)

    @property
    def pages_coming(self) -> int:
        return sum(
            len(flight.order.pages)
            for flight in self._flights.values()
            if flight.order.way is CopyWay.OUT and not flight.order.must_land
        )

    def can_keep(self, party: Party) -> bool:
        if not any(seq.num_computed for seq in party):
            return False
        num_pages = self.pages_freed(party)
        return not num_pages or self._buffers.can_hold(_owner(party[0]), num_pages)

    def pages_freed(self, party: Party) -> int:
        return len(self._own_pages(party))

    def keep(self, party: Party) -> bool:
        pages = self._own_pages(party)
        if not pages:
            self._move_out(party, {})
            return True
        buffer_id = self._buffers.reserve(_owner(party[0]), len(pages))
        assert buffer_id is not None, "can_keep was not asked"
        places = _places(buffer_id, pages)
        if not self._order(CopyWay.OUT, party, places, places.values()):
            return False
        self._move_out(party, places)
        return True

    def pages_to_return(self, party: Party) -> int:
        known: set[int] = set()
        saved: set[SavedPage] = set()
        growth = 0
        for seq in party:
            found, left = self._pool.find(seq.findable_ids), len(seq.page_table)
            known.update(found[left:])
            saved.update(seq.saved[max(len(found) - left, 0) :])
            held = max(len(found), left + len(seq.saved))
            growth += self._pool.pages_for(len(seq.token_ids)) - held
        return self._pool.cost(known) + len(saved) + growth

    def bring_back(self, party: Party) -> bool:
        page_of: dict[SavedPage, int] = {}
        before = tuple(_Kept(len(s.page_table), s.saved, s.num_computed) for s in party)
        for seq in party:
            found, left = self._pool.find(seq.findable_ids), len(seq.page_table)
            full = min(seq.num_published, left)  # the last of one that follows another may not be
            assert found[:full] == seq.page_table[:full], f"{found}, {seq.page_table}"
            table = found if len(found) >= left else seq.page_table
            self._pool.share(table)
            self._pool.forget(seq.page_table)
            seq.saved = seq.saved[len(table) - left :]
            seq.page_table = table + [self._filled_page(one, page_of) for one in seq.saved]
            seq.num_published = len(found)
            seq.num_computed = max(seq.num_computed, len(found) * self._pool.page_tokens)
        if not page_of:
            self._tidy(_owner(party[0]))
            return True
        return self._order(CopyWay.IN, party, page_of.values(), page_of, before=before)

    def take_along(self, party: Party) -> bool:
        listed = dict.fromkeys(page for seq in party for page in seq.page_table)
        pages = [page for page in listed if self._pool.is_stranded(page)]
        if not pages:
            return False
        buffer_id = self._buffers.reserve(_owner(party[0]), len(pages))
        if buffer_id is None:
            return False
        places = _places(buffer_id, pages)
        self._order(CopyWay.OUT, party, places, places.values(), in_step=True)
        for seq in party:
            left, moved = _split(seq.page_table, places)
            self._pool.forget(moved)
            seq.page_table, seq.saved = left, [places[page] for page in moved] + seq.saved
        return True

    def hand_over(self, old: Sequence, new: Sequence, num_pages: int) -> None:
        new.page_table, left = old.page_table[:num_pages], old.page_table[num_pages:]
        new.saved = old.saved[: max(num_pages - len(new.page_table), 0)]
        self._pool.forget(left)
        old.page_table, old.saved = [], []
        self._buffers.hand_over(old, new)
        self._tidy(new)

    def drop(self, party: Party) -> None:
        for seq in party:
            self._forget(seq)
        owner = _owner(party[0])
        if not self._is_needed(owner):
            self._buffers.release_all(owner)

    def end(self, seq: Sequence) -> None:
        seq.saved = []
        self._tidy(_owner(seq))

    def take_orders(self) -> tuple[PageCopy, ...]:
        orders, self._orders = tuple(self._orders), []
        return orders

    def take_dropped(self) -> tuple[int, ...]:
        return self.host.take_dropped()

    def land_step(self) -> None:
        for flight in tuple(self._flights.values()):
            if flight.order.must_land:
                self.land(flight.order.copy_id)

    def land(self, copy_id: int) -> Transfer | None:
        flight = self._flights.pop(copy_id, None)
        if flight is None:
            return None
        order = flight.order
        if order.way is CopyWay.IN:
            for seq in flight.party:
                seq.saved = []
        elif not order.must_land:
            places = dict(zip(order.pages, order.saved, strict=True))
            self._move_out(_parking(flight.party), places)
        self._pool.release(flight.held)
        self._tidy(_owner(flight.party[0]))
        return flight.transfer

    def fail(self, copy_id: int) -> Transfer | None:
        flight = self._flights.pop(copy_id, None)
        if flight is None:
            return None
        self._pool.release(flight.held)
        owner = _owner(flight.party[0])
        if flight.order.way is CopyWay.OUT:
            for seq in _parking(flight.party):
                self._pool.release(seq.page_table)
                seq.page_table = []
            for seq in flight.party:
                if seq.status is SeqStatus.PARKED:
                    self._forget(seq)
            self._buffers.release(owner, flight.order.saved[0].buffer_id)
        else:
            for seq, before in zip(flight.party, flight.before, strict=True):
                if seq.status in (SeqStatus.RUNNING, SeqStatus.RESTORING):
                    self._undo(seq, before)
        self._tidy(owner)
        return flight.transfer

    def set_budget(self, budget_bytes: int) -> None:
        self.host.set_budget(budget_bytes)

    def pages_held(self) -> Counter[int]:
        return Counter(page for flight in self._flights.values() for page in flight.held)

    def check(self) -> None:
        self.host.check()
        self._buffers.check()

    # --- how

    def _own_pages(self, party: Party) -> list[int]:
        """Pages that come free when the party leaves. What another parked party lists too would not."""
        return self._pool.pages_of_only([seq.page_table for seq in party], sleepers=False)

    def _order(
        self,
        way: CopyWay,
        party: Party,
        pages: Iterable[int],
        places: Iterable[SavedPage],
        *,
        in_step: bool = False,
        before: tuple[_Kept, ...] = (),
    ) -> bool:
        """Order a copy; returns whether it lands before the step, so that its pages can change hands now."""
        self._last_copy += 1
        must_land = in_step or not self._is_async or any(seq.parks_in_step for seq in party)
        saved = tuple(places)
        capacity = self.host.capacity(saved[0].buffer_id)
        ids = tuple(seq.request_id for seq in party)
        order = PageCopy(self._last_copy, way, ids, tuple(pages), saved, capacity, must_land)
        parked = tuple(seq.parked for seq in party if seq.parked is not None)
        held = () if must_land else tuple(dict.fromkeys(p for s in party for p in s.page_table))
        self._flights[order.copy_id] = _Flight(order, party, parked, held, before)
        self._orders.append(order)
        self._pool.hold(held)
        return must_land

    def _move_out(self, party: Party, places: dict[int, SavedPage]) -> None:
        """Cut the tables where the saved pages begin."""
        for seq in party:
            left, moved = _split(seq.page_table, places)
            self._pool.release(moved)
            self._pool.lay_down(left)
            seq.page_table, seq.saved = left, [places[page] for page in moved]

    def _filled_page(self, saved: SavedPage, page_of: dict[SavedPage, int]) -> int:
        """The page that `saved` is copied to; siblings share it."""
        if saved in page_of:
            self._pool.share([page_of[saved]])
        else:
            taken = self._pool.take(1)
            assert taken is not None, f"no page for {saved}: {self._pool.usage()}"
            page_of[saved] = taken[0]
        return page_of[saved]

    def _forget(self, seq: Sequence) -> None:
        self._pool.forget(seq.page_table)
        seq.page_table, seq.saved = [], []

    def _undo(self, seq: Sequence, before: _Kept) -> None:
        """Keep again what was kept before a restore."""
        self._pool.release(seq.page_table[before.num_pages :])
        seq.page_table = seq.page_table[: before.num_pages]
        self._pool.lay_down(seq.page_table)
        seq.saved, seq.num_computed = before.saved, before.num_computed

    def _is_needed(self, owner: Owner) -> bool:
        members = owner.members if isinstance(owner, Family) else (owner,)
        return any(seq.saved for seq in members) or any(
            _owner(flight.party[0]) is owner for flight in self._flights.values()
        )

    def _tidy(self, owner: Owner) -> None:
        """Keep one idle buffer for an owner who is back in the pool, and none for one that has ended."""
        if self._is_needed(owner):
            return
        if owner.has_ended:
            self._buffers.release_all(owner)
        else:
            self._buffers.keep_one(owner)


def _owner(seq: Sequence) -> Owner:
    return seq.family or seq


def _parking(party: Party) -> Party:
    """Those who have not ended while their copy was under way."""
    return tuple(seq for seq in party if seq.status is SeqStatus.PARKING)


def _split(table: list[int], places: dict[int, SavedPage]) -> tuple[list[int], list[int]]:
    """What stays of a table, and what has been moved out from its end."""
    cut = next((index for index, page in enumerate(table) if page in places), len(table))
    return table[:cut], table[cut:]


def _places(buffer_id: int, pages: list[int]) -> dict[int, SavedPage]:
    """Where each page goes in a buffer that holds these and nothing else."""
    return {page: SavedPage(buffer_id, slot) for slot, page in enumerate(pages)}
