"""A model runner whose keys and values are the tokens themselves, so that a wrong page becomes a wrong token.

Like a real one it writes a row's state into the pool through the page table, computed from the state of the position
before, and reads the whole sequence back through the table to choose the next token. It never looks at `token_ids` for
what it reads; those only serve to check it. Memory that is given back loses what it held.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from engine.api import FinishReason
from engine.core.config import SchedulerConfig
from engine.core.parked import Released
from engine.core.types import Sequence, StepBatch, StepRow
from engine.errors import DeviceFailure

VOCABULARY = 40
EMPTY_CONTEXT = 0

KvEntry = tuple[int, int]
"""(token, digest of it and all tokens before): what keys and values of a position depend on."""

KvPage = list[KvEntry | None]


class WrongPage(AssertionError):
    """A row read something else from the pool than its own sequence."""


class FakeRunner:
    """`kv[page][offset]` holds an entry or None. Pages keep what they held until it is written over or given back."""

    def __init__(self, config: SchedulerConfig) -> None:
        self._page_tokens = config.page_tokens
        self.kv: list[KvPage] = [[None] * config.page_tokens for _ in range(config.arena_pages)]
        self.committed: set[int] = set()
        """Pages with memory behind them: written to, and not given back since."""

    def execute(self, batch: StepBatch) -> list[int]:
        """The next token of each sampling row. Raises WrongPage when a row reads back what is not its own."""
        for row in batch.rows:
            self._write(row)
        contexts = [self._read(row) for row in batch.rows]
        return [
            next_token(context, salt_of(row.seq))
            for row, context in zip(batch.rows, contexts, strict=True)
            if row.samples
        ]

    def break_down(self, batch: StepBatch) -> None:
        """Fail in the middle of a step, with rubbish left in every position that the step was to write."""
        for row in batch.rows:
            for position in range(row.start, row.start + row.count):
                self._put(row.seq, position, (-1, -1))
        raise DeviceFailure("the fake device failed")

    def give_back(self, released: Released) -> None:
        """What lay in the pages is lost."""
        for page in released.pages:
            self.kv[page] = [None] * self._page_tokens
            self.committed.discard(page)

    def _write(self, row: StepRow) -> None:
        context = self._get(row.seq, row.start - 1)[1] if row.start else EMPTY_CONTEXT
        for position in range(row.start, row.start + row.count):
            token_id = row.seq.token_ids[position]
            context = extend(context, token_id)
            self._put(row.seq, position, (token_id, context))

    def _read(self, row: StepRow) -> int:
        """The context after the row's last token, from what the pool holds."""
        context = EMPTY_CONTEXT
        for position in range(row.start + row.count):
            token_id, stored = self._get(row.seq, position)
            context = extend(context, token_id)
            if stored != context or token_id != row.seq.token_ids[position]:
                raise WrongPage(
                    f"{row.seq.request_id}: read token {token_id} at position {position}, "
                    f"it holds {row.seq.token_ids[position]}; page table {row.seq.page_table}"
                )
        return context

    def _get(self, seq: Sequence, position: int) -> KvEntry:
        entry = self.kv[seq.page_table[position // self._page_tokens]][position % self._page_tokens]
        if entry is None:
            raise WrongPage(f"{seq.request_id}: nothing was ever written at position {position}")
        return entry

    def _put(self, seq: Sequence, position: int, entry: KvEntry) -> None:
        page = seq.page_table[position // self._page_tokens]
        self.kv[page][position % self._page_tokens] = entry
        self.committed.add(page)


def extend(context: int, token_id: int) -> int:
    """The digest of one more token."""
    return ((context ^ (token_id + 2)) * 0x9E3779B97F4A7C15 + 0x632BE59BD9B4E019) % ((1 << 61) - 1)


def digest(token_ids: Iterable[int]) -> int:
    """The digest of tokens."""
    context = EMPTY_CONTEXT
    for token_id in token_ids:
        context = extend(context, token_id)
    return context


def next_token(context: int, salt: int = 0) -> int:
    """The token that follows all tokens digested in `context`; another one for each salt."""
    return (context >> (20 + salt)) % VOCABULARY


def salt_of(seq: Sequence) -> int:
    """What stands for the seed: siblings reply differently to the same prompt."""
    return 0 if seq.family is None else seq.family.members.index(seq)


def solo_reply(
    prompt: Iterable[int],
    *,
    max_new: int,
    ends: Container[int] = (),
    limit: int = 1 << 30,
    keep: int | None = None,
    salt: int = 0,
) -> tuple[list[int], FinishReason]:
    """The reply to `prompt` by definition, with no scheduler and no pool; `ends` are tokens that end it with STOP.

    At `limit` tokens it ends with LENGTH, or if `keep` is given, half of what follows so many tokens is forgotten.
    """
    tokens = list(prompt)
    context = digest(tokens)
    reply: list[int] = []
    while len(reply) < max_new:
        token_id = next_token(context, salt)
        reply.append(token_id)
        tokens.append(token_id)
        context = extend(context, token_id)
        if token_id in ends:
            return reply, FinishReason.STOP
        if len(tokens) >= limit:
            if keep is None:
                break
            kept = min(keep, len(tokens) // 2)
            tokens = tokens[:kept] + tokens[kept + max((len(tokens) - kept) // 2, 1) :]
            context = digest(tokens)
    return reply, FinishReason.LENGTH
