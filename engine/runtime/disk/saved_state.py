"""What is kept of a parked request on disk, and its metadata as text and back. Pure; no tensor library, any thread.

The tokens are the truth: a state without its pages is computed again, to the same bytes. Whatever is read is checked
field by field, so that a file can say nothing that the program could not have written.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from engine.api import Grammar, GrammarKind, Request, SamplingParams, Tool
from engine.core.parked import ParkedState
from engine.core.types import Sequence
from engine.errors import InvalidRequest
from engine.runtime.live_request import Generation
from engine.text.replies.reply_format import ReplyPlan

_MOST_INT = 1 << 48
_MOST_STOPS = 1024


class StateBroken(Exception):
    """A file that is no saved state, or a damaged one; says what is wrong with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedState:
    """One request at a token boundary. Its pages, if they were saved, hold the first full pages of `token_ids`."""

    request_id: str
    model_name: str
    model_sha256: str
    """Of all files with weights."""
    compute: str
    """What computed the pages and how they are laid out; to any other back end they mean nothing."""
    page_bytes: int
    num_pages: int
    """0: only tokens."""
    num_prompt: int
    num_discarded: int
    """Tokens that context shifts have taken out of `token_ids`."""
    seed: int
    """What every draw is a function of, together with the token's position: the dice have no other state."""
    sampling: SamplingParams
    max_tokens: int | None
    stop: tuple[str, ...]
    ignore_eos: bool
    grammar: Grammar | None
    """The place in it is found anew, by the reply."""
    continues_text: bool
    """Whether the reply goes on a raw text instead of answering a chat."""
    plan: ReplyPlan | None
    """How the reply is told apart; where it stands in that is found anew, by the reply."""
    num_parks: int
    num_recomputes: int
    parked_s: float
    token_ids: tuple[int, ...]
    """Prompt, then generated tokens; without those that context shifts have discarded."""
    reply_ids: tuple[int, ...]
    """Every generated token. The text is made from them anew, and with it the search for stop strings."""

    def __post_init__(self) -> None:
        counted = self.num_prompt + len(self.reply_ids) - self.num_discarded
        if not 1 <= len(self.token_ids) == counted:
            raise StateBroken(
                f"{len(self.token_ids)} tokens are not the {self.num_prompt} of the prompt and "
                f"{len(self.reply_ids)} of the reply less {self.num_discarded}"
            )
        if not self.num_discarded and self.reply_ids != self.token_ids[self.num_prompt :]:
            raise StateBroken("the reply is not the end of the tokens")


def state_of(request: Request, generation: Generation) -> SavedState:
    """What can be told of a request without its model: without pages, and not yet said whose it is."""
    seq = generation.seq
    return SavedState(
        request_id=request.request_id,
        model_name="",
        model_sha256="",
        compute="",
        page_bytes=0,
        num_pages=0,
        num_prompt=seq.num_prompt,
        num_discarded=seq.num_discarded,
        seed=generation.seed,
        sampling=request.sampling,
        max_tokens=request.max_tokens,
        stop=request.stop,
        ignore_eos=request.ignore_eos,
        grammar=request.grammar,
        continues_text=generation.continues_text,
        plan=generation.plan,
        num_parks=seq.num_parks,
        num_recomputes=seq.num_recomputes,
        parked_s=seq.parked_s,
        token_ids=tuple(seq.token_ids),
        reply_ids=tuple(generation.reply_ids),
    )


@dataclass(slots=True, eq=False)
class Save:
    """One park's way to the disk. Owned by the engine thread; the worker only looks whether it is still wanted."""

    seq: Sequence
    parked: ParkedState
    """As it was when the pages were looked up: as long as it is the same, nobody has written to them."""
    is_on_disk: bool = False
    is_cancelled: bool = False


_TOKEN_FIELDS = ("token_ids", "reply_ids")
Token = tuple[int, ...]


def metadata_of(state: SavedState) -> str:
    """All but the tokens, which are numbers in the file; the same state always gives the same text."""
    plain = asdict(state)
    if state.grammar is not None:
        plain["grammar"]["kind"] = state.grammar.kind.value
    for name in _TOKEN_FIELDS:
        plain[name] = len(plain[name])
    return json.dumps(plain, sort_keys=True)


def read_metadata(text: str) -> Metadata:
    """The values of a text that `metadata_of` may have made. Raises StateBroken."""
    try:
        plain = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise StateBroken(f"its description is no JSON ({error})") from error
    expected = {entry.name for entry in fields(SavedState)}
    if not isinstance(plain, dict) or plain.keys() != expected:
        raise StateBroken("its description has other fields than this version writes")
    for name, is_allowed in _CHECKS.items():
        if not is_allowed(plain[name]):
            raise StateBroken(f"{name} is {str(plain[name])[:80]!r}, which is not allowed")
    sampling = _sampling(plain.pop("sampling"))
    lengths = [plain.pop(name) for name in _TOKEN_FIELDS]
    grammar = _grammar(plain["grammar"])
    values = {
        **plain,
        "sampling": sampling,
        "stop": tuple(plain["stop"]),
        "grammar": grammar,
        "plan": _plan(plain["plan"]),
    }
    return Metadata(values, num_tokens=lengths[0], num_reply=lengths[1])


@dataclass(frozen=True, slots=True)
class Metadata:
    """A state whose tokens have not been read yet."""

    values: Mapping[str, object]
    num_tokens: int
    num_reply: int

    @property
    def num_page_bytes(self) -> int:
        num_pages, page_bytes = self.values["num_pages"], self.values["page_bytes"]
        assert isinstance(num_pages, int)
        assert isinstance(page_bytes, int)
        return num_pages * page_bytes

    def with_tokens(self, token_ids: Token, reply_ids: Token) -> SavedState:
        """The whole state. Raises StateBroken where the two contradict each other."""
        return SavedState(**self.values, token_ids=token_ids, reply_ids=reply_ids)  # type: ignore[arg-type]


def _sampling(plain: dict[str, object]) -> SamplingParams:
    lists = {
        name: tuple(tuple(item) if isinstance(item, list) else item for item in value)
        for name, value in plain.items()
        if isinstance(value, list)
    }
    try:
        return SamplingParams(**{**plain, **lists})  # type: ignore[arg-type]
    except (TypeError, ValueError, InvalidRequest) as error:
        raise StateBroken(f"sampling: {error}") from error


def _grammar(plain: dict[str, str] | None) -> Grammar | None:
    if plain is None:
        return None
    try:
        return Grammar(**{**plain, "kind": GrammarKind(plain["kind"])})  # type: ignore[arg-type]
    except (KeyError, TypeError, ValueError) as error:
        raise StateBroken(f"grammar: {error}") from error


def _plan(plain: dict[str, Any] | None) -> ReplyPlan | None:
    if plain is None:
        return None
    try:
        tools = tuple(_tool(tool) for tool in plain["tools"])
        plan = ReplyPlan(**{**plain, "tools": tools})
    except (KeyError, TypeError, ValueError) as error:
        raise StateBroken(f"plan: {error}") from error
    is_sound = (
        isinstance(plan.is_generic, bool)
        and isinstance(plan.is_thinking, bool)
        and isinstance(plan.must_call, bool)
        and _is_text(plan.begun)
        and (plan.most_calls is None or _is_count(plan.most_calls))
    )
    if not is_sound:
        raise StateBroken("plan has values that are not allowed")
    return plan


def _tool(plain: dict[str, Any]) -> Tool:
    tool = Tool(**plain)
    texts = (tool.name, tool.description, tool.parameters)
    if not all(map(_is_text, texts)) or not isinstance(tool.is_strict, bool):
        raise ValueError("a tool has values that are not allowed")
    if not isinstance(json.loads(tool.parameters), dict):
        raise ValueError("a tool's parameters are no object")
    return tool


def _is_texts(value: object) -> bool:
    """No grammar, or texts by name."""
    return value is None or (isinstance(value, dict) and all(map(_is_text, value.values())))


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < _MOST_INT


def _is_seed(value: object) -> bool:
    return type(value) is int and -(1 << 63) <= value < 1 << 64


def _is_seconds(value: object) -> bool:
    return type(value) in (int, float) and 0 <= value < _MOST_INT  # type: ignore[operator]


def _is_stops(value: object) -> bool:
    return (
        isinstance(value, list)
        and len(value) <= _MOST_STOPS
        and all(isinstance(one, str) and one for one in value)
    )


_CHECKS: Mapping[str, Callable[[object], bool]] = {
    "request_id": _is_text,
    "model_name": _is_text,
    "model_sha256": _is_text,
    "compute": _is_text,
    "page_bytes": _is_count,
    "num_pages": _is_count,
    "num_prompt": _is_count,
    "num_discarded": _is_count,
    "seed": _is_seed,
    "sampling": lambda value: isinstance(value, dict),
    "max_tokens": lambda value: value is None or _is_count(value),
    "stop": _is_stops,
    "ignore_eos": lambda value: isinstance(value, bool),
    "grammar": _is_texts,
    "continues_text": lambda value: isinstance(value, bool),
    "plan": lambda value: value is None or isinstance(value, dict),
    "num_parks": _is_count,
    "num_recomputes": _is_count,
    "parked_s": _is_seconds,
    "token_ids": _is_count,
    "reply_ids": _is_count,
}
