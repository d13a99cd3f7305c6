"""Every plan covers exactly the positions each row may see, in order, within the limits of a wave."""

import random

import numpy as np
import pytest

from kernels.api import StepInputs
from kernels.attention_plan import PIECE_TOKENS, AttentionPlan, Geometry, Wave, plan_attention

PAGE_TOKENS = 32


def _random_step(dice: random.Random) -> StepInputs:
    """Several sequences, each a run of consecutive positions, with pages that name sequence and place."""
    step = StepInputs([], [], [], [], [])
    for sequence in range(dice.randint(1, 6)):
        start = dice.choice([0, 5, 250, 255, 256, 511, 700, 1300])
        count = dice.choice([1, 1, 1, 2, 5, 6, 20, 300])
        step.positions.extend(range(start, start + count))
        step.sequences.extend([sequence] * count)
        step.token_ids.extend([0] * count)
        pages = -(-(start + count) // PAGE_TOKENS)
        step.page_tables.append([1000 * sequence + page for page in range(pages)])
    return step


def _seen(plan: AttentionPlan, step: StepInputs, geometry: Geometry) -> list[list[int]]:
    """The positions each row of the step sees, in the order they are walked, by what the masks leave."""
    seen: list[list[int]] = [[] for _ in step.positions]
    begun: set[int] = set()
    for wave in plan.waves:
        for segment in wave.segments:
            for offset in range(segment.num_pairs):
                pair, tile = segment.first_pair + offset, segment.first_tile + offset
                assert wave.pair_tiles[pair] == tile
                assert segment.is_first == (tile not in begun)
                begun.add(tile)
                piece = list(wave.segments).index(segment) if wave.shared else pair
                for place, row in enumerate(plan.rows_of_tiles[tile]):
                    if plan.place_of_row[row] == tile * geometry.tile_rows + place:
                        seen[row] += _visible(wave, pair, piece, step, row, geometry)
    return seen


def _visible(
    wave: Wave, pair: int, piece: int, step: StepInputs, row: int, geometry: Geometry
) -> list[int]:
    """Positions of one pair that one row sees; checks that the pages are its sequence's own."""
    count = geometry.piece_pages
    pages = wave.pages[piece * count : (piece + 1) * count]
    assert {page // 1000 for page in pages.tolist()} == {step.sequences[row]}
    start = int(pages[0] % 1000) * PAGE_TOKENS
    positions = np.arange(start, start + PIECE_TOKENS)
    mask = wave.pair_mask
    if mask is not None and mask.start <= pair < mask.stop:
        assert mask.piece_starts[pair - mask.start] == start
        query = step.positions[row]
        assert query in mask.query_positions[pair - mask.start]
        positions = positions[positions <= query]
        if geometry.window:
            positions = positions[positions > query - geometry.window]
    for position in positions.tolist():
        assert pages[(position - start) // PAGE_TOKENS] % 1000 == position // PAGE_TOKENS
    return positions.tolist()


@pytest.mark.parametrize("window", [0, 1, 40, 256, 600])
@pytest.mark.parametrize("group", [1, 3, 7, 20])
def test_each_row_sees_exactly_its_own_past_in_order(window: int, group: int) -> None:
    dice = random.Random(window * 100 + group)
    for max_pairs, max_pieces in ((10_000, 10_000), (3, 2), (1, 1), (7, 1)) * 4:
        geometry = Geometry(group, PAGE_TOKENS, window, max_pairs, max_pieces)
        step = _random_step(dice)
        plan = plan_attention(step, geometry)
        for row, positions in enumerate(_seen(plan, step, geometry)):
            last = step.positions[row]
            first = max(0, last - window + 1) if window else 0
            assert positions == list(range(first, last + 1))


def test_waves_keep_to_their_limits() -> None:
    dice = random.Random(3)
    for _ in range(50):
        geometry = Geometry(3, PAGE_TOKENS, 0, dice.randint(1, 9), dice.randint(1, 9))
        plan = plan_attention(_random_step(dice), geometry)
        for wave in plan.waves:
            assert len(wave.pair_tiles) <= geometry.max_pairs
            assert len(wave.pages) <= geometry.max_pieces * geometry.piece_pages


def test_what_lies_beyond_the_written_positions_is_masked() -> None:
    dice = random.Random(4)
    for _ in range(50):
        geometry = Geometry(2, PAGE_TOKENS, 0, 5, 5)
        step = _random_step(dice)
        written = dict(zip(step.sequences, step.positions, strict=True))
        for wave in plan_attention(step, geometry).waves:
            pages = wave.pages.reshape(-1, geometry.piece_pages)
            for piece, first in enumerate(pages[:, 0].tolist()):
                length = written[first // 1000] + 1 - first % 1000 * PAGE_TOKENS
                mask = wave.piece_mask
                if mask is not None and mask.start <= piece < mask.stop:
                    assert mask.lengths[piece - mask.start] == min(length, PIECE_TOKENS)
                else:
                    assert length >= PIECE_TOKENS


def test_prompts_share_pieces_and_single_tokens_have_their_own() -> None:
    table = list(range(20))
    prompt = StepInputs([0] * 50, list(range(300, 350)), [0] * 50, [table], [])
    waves = plan_attention(prompt, Geometry(3, PAGE_TOKENS, 0, 100, 100)).waves
    assert [wave.shared for wave in waves] == [True]
    assert len(waves[0].pages) == 2 * 8  # two pieces for ten tiles
    tokens = StepInputs([0] * 3, [299] * 3, [0, 1, 2], [table] * 3, [])
    waves = plan_attention(tokens, Geometry(3, PAGE_TOKENS, 0, 100, 100)).waves
    assert [wave.shared for wave in waves] == [False]
    assert len(waves[0].pages) == 3 * 2 * 8
