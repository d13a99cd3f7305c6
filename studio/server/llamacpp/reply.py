"""Engine events -> llama-server's completion, as server-sent events and in one piece. Server thread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from engine.api import Finished, FinishReason, Started, TokenDelta, TokenLogprob, Usage
from engine.errors import EngineError
from studio.server.errors import ApiError, error_body, request_cancelled
from studio.server.framing import EVENTS, Framing, Json
from studio.server.replies import finite
from studio.server.reply_parts import PartKind, ReplyParts
from studio.server.reply_shape import ReplyEnd

_FRAMING = replace(EVENTS, trailer=b"")
"""The last event says itself that it is the last."""
_ANY_SLOT = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class LlamaTelling:
    """What is told beside the text."""

    settings: Json
    prompt: str | None = None
    """As the last object repeats it; None: it does not."""
    fields: tuple[str, ...] = ()
    """All that the last object tells; none: everything."""
    has_probs: bool = False
    returns_tokens: bool = False


class LlamaReply:
    """One completion; there is always one choice."""

    def __init__(self, model: str, telling: LlamaTelling) -> None:
        self._model = model
        self._telling = telling
        self._prompt_tokens = 0
        self._num_tokens = 0
        self._has_new_line = False

    @property
    def framing(self) -> Framing:
        return _FRAMING

    def opening(self, index: int, started: Started | None) -> Sequence[Json]:
        self._prompt_tokens = started.prompt_tokens if started else 0
        return ()

    def delta(self, index: int, event: TokenDelta) -> Sequence[Json]:
        self._num_tokens += len(event.token_ids)
        self._has_new_line |= "\n" in event.text
        return (self._piece(event.text, event.token_ids, event.logprobs),)

    def sign_of_life(self, index: int) -> Sequence[Json]:
        return (self._piece("", (), ()),)

    def closing(self, index: int, finished: Finished, end: ReplyEnd | None) -> Sequence[Json]:
        assert end is not None, "a completion has one choice"
        text = "\n" if self._has_new_line else ""
        last = {**self._last(finished, text), "content": "", "tokens": [], **end.park_fields}
        return (self._chosen(last),)

    def failure(self, error: ApiError | EngineError) -> Sequence[Json]:
        return (error_body(error),)

    def whole(self, choices: Sequence[ReplyParts], end: ReplyEnd) -> Json:
        (reply,) = choices
        assert reply.finished is not None
        text = reply.text_of(PartKind.TEXT)
        tokens = list(reply.token_ids) if self._telling.returns_tokens else []
        whole = {**self._last(reply.finished, text), "content": text, "tokens": tokens}
        return self._chosen({**whole, **self._probs(reply.logprobs), **end.park_fields})

    def _piece(self, text: str, token_ids: Sequence[int], logprobs: Sequence[TokenLogprob]) -> Json:
        return {
            "index": 0,
            "content": text,
            "tokens": list(token_ids),
            "stop": False,
            "id_slot": _ANY_SLOT,
            "tokens_predicted": self._num_tokens,
            "tokens_evaluated": self._prompt_tokens,
            **self._probs(logprobs),
        }

    def _last(self, finished: Finished, text: str) -> Json:
        usage = finished.usage
        return {
            "index": 0,
            "stop": True,
            "model": self._model,
            "id_slot": _ANY_SLOT,
            "tokens_predicted": usage.completion_tokens,
            "tokens_evaluated": usage.prompt_tokens,
            "tokens_cached": usage.prompt_tokens + usage.completion_tokens,
            "has_new_line": "\n" in text,
            "truncated": False,
            "stop_type": _stop_type(finished),
            "stopping_word": finished.stop_text,
            "timings": timings(usage),
            "generation_settings": {**self._telling.settings, "seed": usage.seed},
            **({} if self._telling.prompt is None else {"prompt": self._telling.prompt}),
        }

    def _chosen(self, last: Json) -> Json:
        """The fields that were asked for: one of an object inside by its path, told without it."""
        if not self._telling.fields:
            return last
        chosen: Json = {}
        for path in self._telling.fields:
            value: object = last
            *outer, name = path.split("/")
            for each in outer:
                value = value.get(each) if isinstance(value, dict) else None
            if isinstance(value, dict) and name in value:
                chosen[name] = value[name]
        return chosen

    def _probs(self, logprobs: Sequence[TokenLogprob]) -> Json:
        if not self._telling.has_probs:
            return {}
        return {"completion_probabilities": [_prob(token) for token in logprobs]}


def timings(usage: Usage) -> Json:
    """What the prompt and the reply took, by token and by second. Waiting is in none of them."""
    read = usage.prompt_tokens - usage.cached_tokens
    return {
        "cache_n": usage.cached_tokens,
        **_pace("prompt", read, usage.prefill_s),
        **_pace("predicted", usage.completion_tokens, usage.decode_s),
    }


def _pace(name: str, tokens: int, seconds: float) -> Json:
    return {
        f"{name}_n": tokens,
        f"{name}_ms": seconds * 1000,
        f"{name}_per_token_ms": seconds * 1000 / tokens if tokens else 0.0,
        f"{name}_per_second": tokens / seconds if seconds else 0.0,
    }


def _stop_type(finished: Finished) -> str:
    """Raises ApiError for a request that was stopped from elsewhere."""
    if finished.reason is FinishReason.ABORTED:
        raise request_cancelled()
    if finished.reason is FinishReason.LENGTH:
        return "limit"
    return "word" if finished.stop_text else "eos"


def _prob(token: TokenLogprob) -> Json:
    return {**_bare(token), "top_logprobs": [_bare(each) for each in token.top]}


def _bare(token: TokenLogprob) -> Json:
    return {
        "id": token.token_id,
        "token": token.text,
        "bytes": list(token.token_bytes),
        "logprob": finite(token.logprob),
    }
