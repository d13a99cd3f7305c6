"""Which queries meet which stretches of the pool in one step. Integers only: numpy, no tensor library.

A *tile* is a few query rows of one sequence, a *piece* 256 positions of it that start at a multiple of 256. Every
(tile, piece) pair is computed alike, padded and masked, and a tile's pieces are joined in order: what a row gets
depends on its own position and sequence alone. A *wave* is a number of pairs computed at once; how pairs fall into
waves and what else a tile holds changes nothing in a row's arithmetic.

Two kinds of waves, because memory traffic differs: in a `shared` one, many tiles of one sequence (a prompt) read the
same piece; otherwise each pair (tokens being generated) has a piece of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernels.api import StepInputs

PIECE_TOKENS = 256
TILE_SIZE = 16
"""Rows of a tile's matrix: query rows times the heads that share a key head, then padding. Tiles of 48 (16 query rows
of 3 heads) would run prompts 15 % faster and cost a single token three times as much."""

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Geometry:
    """Sizes that hold for all steps. A wave has at most `max_pairs` pairs and `max_pieces` pieces, at least one."""

    group: int
    """Query heads that share a key head."""
    page_tokens: int
    window: int
    """Sliding window in tokens; 0 for none."""
    max_pairs: int
    max_pieces: int

    @property
    def tile_size(self) -> int:
        return max(TILE_SIZE, self.group)

    @property
    def tile_rows(self) -> int:
        """Query rows in a tile."""
        return self.tile_size // self.group

    @property
    def piece_pages(self) -> int:
        return PIECE_TOKENS // self.page_tokens


@dataclass(frozen=True, slots=True)
class Segment:
    """Pairs that continue neighbouring tiles by one piece each; `is_first` where it is their first."""

    first_tile: int
    first_pair: int
    num_pairs: int
    is_first: bool


@dataclass(frozen=True, slots=True)
class PairMask:
    """Pairs [start, stop) of a wave in which some query must not see some position."""

    start: int
    stop: int
    query_positions: Ints
    """[stop - start, tile_rows]"""
    piece_starts: Ints
    """[stop - start]: the first position of each pair's piece."""


@dataclass(frozen=True, slots=True)
class PieceMask:
    """Pieces [start, stop) of a wave of which only the first `lengths` positions have been written."""

    start: int
    stop: int
    lengths: Ints


@dataclass(frozen=True, slots=True)
class Wave:
    """Segments in order; their pairs and pieces are numbered through the wave."""

    shared: bool
    segments: tuple[Segment, ...]
    pair_tiles: Ints
    """[pairs]"""
    pages: Ints
    """[pieces * piece_pages]"""
    pair_mask: PairMask | None
    piece_mask: PieceMask | None


@dataclass(frozen=True, slots=True)
class AttentionPlan:
    """`rows_of_tiles` [tiles, tile_rows] names the query rows, short tiles padded with their first row."""

    rows_of_tiles: Ints
    place_of_row: Ints
    """[rows]: where a row's result lies in the flattened `rows_of_tiles`."""
    waves: tuple[Wave, ...]


@dataclass(frozen=True, slots=True)
class _Tiles:
    """Every tile of the step, in the plan's order, and the runs of tiles that are walked together."""

    rows: Ints
    positions: Ints
    sequences: Ints
    first_pieces: Ints
    last_pieces: Ints
    num_lone: int
    """The first tiles are the only ones of their sequences, those with most pieces first."""


@dataclass(frozen=True, slots=True)
class _Run:
    """A segment before it is cut: tiles [start, stop) meet `pieces`, one each or one for all."""

    start: int
    stop: int
    pieces: Ints
    is_first: bool


def plan_attention(inputs: StepInputs, geometry: Geometry) -> AttentionPlan:
    """Plan one step. The plan refers to rows as `inputs` numbers them."""
    tiles = _make_tiles(inputs, geometry)
    waves = _pack(_lone_runs(tiles), inputs, tiles, geometry, shared=False)
    for start, stop in _prompt_tiles(tiles):
        waves += _pack(_prompt_runs(tiles, start, stop), inputs, tiles, geometry, shared=True)
    places = np.zeros(len(inputs.positions), dtype=np.int64)
    flat = tiles.rows.reshape(-1)
    places[flat[::-1]] = np.arange(flat.size)[
        ::-1
    ]  # padding repeats a first row: the earliest wins
    return AttentionPlan(tiles.rows, places, tuple(waves))


def _make_tiles(inputs: StepInputs, geometry: Geometry) -> _Tiles:
    sequence_of_row = np.array(inputs.sequences, dtype=np.int64)
    borders = np.flatnonzero(np.diff(sequence_of_row, prepend=-1, append=-1))
    lone: list[Ints] = []
    prompts: list[Ints] = []
    for start, stop in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True):
        firsts = np.arange(start, stop, geometry.tile_rows)[:, None]
        rows = firsts + np.arange(geometry.tile_rows)
        rows = np.where(rows < stop, rows, firsts)
        (lone if len(rows) == 1 else prompts).append(rows)
    rows = np.concatenate(lone + prompts)
    positions = np.array(inputs.positions, dtype=np.int64)[rows]
    last = positions.max(axis=1) // PIECE_TOKENS
    if geometry.window:
        first = np.maximum(positions.min(axis=1) - geometry.window + 1, 0) // PIECE_TOKENS
    else:
        first = np.zeros_like(last)
    order = np.arange(len(rows))
    order[: len(lone)] = np.argsort(first[: len(lone)] - last[: len(lone)], kind="stable")
    rows = rows[order]
    return _Tiles(
        rows, positions[order], sequence_of_row[rows[:, 0]], first[order], last[order], len(lone)
    )


def _lone_runs(tiles: _Tiles) -> Iterator[_Run]:
    """Tiles of different sequences: the first piece of each, then the second of each that has one, and so on."""
    first = tiles.first_pieces[: tiles.num_lone]
    counts = tiles.last_pieces[: tiles.num_lone] - first + 1
    for step in range(counts.max(initial=0)):
        stop = int(np.count_nonzero(counts > step))
        yield _Run(0, stop, first[:stop] + step, is_first=step == 0)


def _prompt_tiles(tiles: _Tiles) -> Iterator[tuple[int, int]]:
    """The tiles [start, stop) of each sequence that has several; they stand in order of position."""
    borders = np.flatnonzero(np.diff(tiles.sequences[tiles.num_lone :], prepend=-1, append=-1))
    borders += tiles.num_lone
    yield from zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True)


def _prompt_runs(tiles: _Tiles, start: int, stop: int) -> Iterator[_Run]:
    """Tiles of one sequence, piece by piece: first those that had a piece before, then those that begin."""
    first, last = tiles.first_pieces[start:stop], tiles.last_pieces[start:stop]
    for piece in range(int(first[0]), int(last[-1]) + 1):
        low = start + int(np.count_nonzero(last < piece))
        middle = start + int(np.count_nonzero(first < piece))
        high = start + int(np.count_nonzero(first <= piece))
        for a, b in ((low, middle), (max(low, middle), high)):
            if a < b:
                yield _Run(a, b, np.array([piece]), is_first=a >= middle)


def _pack(
    runs: Iterator[_Run], inputs: StepInputs, tiles: _Tiles, geometry: Geometry, *, shared: bool
) -> list[Wave]:
    """Cut the runs to what a wave holds, and fill waves in order."""
    waves: list[Wave] = []
    batch: list[_Run] = []
    pairs = 0
    most_tiles = geometry.max_pairs if shared else min(geometry.max_pairs, geometry.max_pieces)

    def close_wave() -> None:
        if batch:
            waves.append(_make_wave(tuple(batch), inputs, tiles, geometry, shared=shared))
            batch.clear()

    for run in runs:
        for start in range(run.start, run.stop, most_tiles):
            stop = min(start + most_tiles, run.stop)
            pieces = run.pieces if shared else run.pieces[start - run.start : stop - run.start]
            pairs += stop - start
            num_pieces = sum(len(one.pieces) for one in batch) + len(pieces)
            if pairs > geometry.max_pairs or num_pieces > geometry.max_pieces:
                close_wave()
                pairs = stop - start
            batch.append(_Run(start, stop, pieces, run.is_first))
    close_wave()
    return waves


def _make_wave(
    runs: tuple[_Run, ...],
    inputs: StepInputs,
    tiles: _Tiles,
    geometry: Geometry,
    *,
    shared: bool,
) -> Wave:
    segments, first_pair = [], 0
    for run in runs:
        segments.append(Segment(run.start, first_pair, run.stop - run.start, run.is_first))
        first_pair += run.stop - run.start
    pair_tiles = np.concatenate([np.arange(run.start, run.stop) for run in runs])
    pieces = np.concatenate([run.pieces for run in runs])
    if shared:
        pair_pieces = np.repeat(pieces, [run.stop - run.start for run in runs])
        owners = np.full(len(pieces), tiles.sequences[runs[0].start])
    else:
        pair_pieces, owners = pieces, tiles.sequences[pair_tiles]
    return Wave(
        shared=shared,
        segments=tuple(segments),
        pair_tiles=pair_tiles,
        pages=_pages(owners, pieces, inputs, geometry),
        pair_mask=_pair_mask(tiles.positions[pair_tiles], pair_pieces * PIECE_TOKENS, geometry),
        piece_mask=_piece_mask(owners, pieces, inputs),
    )


def _pages(owners: Ints, pieces: Ints, inputs: StepInputs, geometry: Geometry) -> Ints:
    """The pages of each piece; where a sequence has no more, its first page stands in, which the masks hide."""
    pages: list[int] = []
    count = geometry.piece_pages
    for owner, piece in zip(owners.tolist(), pieces.tolist(), strict=True):
        table = inputs.page_tables[owner]
        own = table[piece * count : (piece + 1) * count]
        pages += own
        pages += table[:1] * (count - len(own))
    return np.array(pages, dtype=np.int64)


def _pair_mask(positions: Ints, starts: Ints, geometry: Geometry) -> PairMask | None:
    """The stretch of pairs in which a query stands before the piece's end, or so far behind it that the window ends."""
    hides = positions.min(axis=1) < starts + PIECE_TOKENS - 1
    if geometry.window:
        hides |= positions.max(axis=1) >= starts + geometry.window
    where = np.flatnonzero(hides)
    if not where.size:
        return None
    start, stop = int(where[0]), int(where[-1]) + 1
    return PairMask(start, stop, positions[start:stop], starts[start:stop])


def _piece_mask(owners: Ints, pieces: Ints, inputs: StepInputs) -> PieceMask | None:
    """The stretch of pieces that reach beyond what their sequences have written, this step included."""
    written = {}
    for sequence, position in zip(inputs.sequences, inputs.positions, strict=True):
        written[sequence] = position + 1  # positions ascend
    lengths = np.array([written[owner] for owner in owners.tolist()]) - pieces * PIECE_TOKENS
    where = np.flatnonzero(lengths < PIECE_TOKENS)
    if not where.size:
        return None
    start, stop = int(where[0]), int(where[-1]) + 1
    return PieceMask(start, stop, lengths[start:stop].clip(0, PIECE_TOKENS))
