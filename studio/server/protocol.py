"""What clients may send: the wire types of all routes, checked strictly; a wrong type is an error that names the field.

Fields nobody here knows are ignored, as other servers do; fields that would change the answer and cannot be honoured
are refused by name. Bounds of sampling values are the engine's business (`engine.api.SamplingParams`). Any thread; no
web framework.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from studio.server.chat_fields import MAX_MESSAGES as MAX_MESSAGES
from studio.server.chat_fields import ChatFields
from studio.server.guided import GuidedFields
from studio.server.priority_field import AskedPriority
from studio.server.prompt_fields import MAX_TOKEN_ID
from studio.server.wire import MaxWait, PingInterval, WireModel, wrong_value
from studio.server.wire import only as _only

MAX_CHOICES = 128
"""As many as OpenAI takes. They share the pages of their prompt, and those that find no seat stand in line."""
MAX_STOPS = 16


def read_stops(value: object) -> object:
    """One string or a list; empty ones ask for nothing, as front ends send them."""
    stops = [value] if isinstance(value, str) else value
    if not isinstance(stops, list):
        return stops
    if len(stops) > MAX_STOPS:
        raise wrong_value(f"has {len(stops)} strings, the limit is {MAX_STOPS}")
    return [text for text in stops if text != ""]


def _read_logit_bias(value: object) -> object:
    """`{"50256": -100}` -> `((50256, -100.0),)`."""
    if value is None:
        return ()
    if not isinstance(value, dict):
        raise wrong_value("is no object of token ids and biases")
    return tuple((_read_bias_key(key), _read_bias(key, bias)) for key, bias in value.items())


def _read_bias_key(key: str) -> int:
    if not (key.isascii() and key.isdecimal() and len(key) <= 10):
        raise wrong_value(f'has the key {key[:40]!r}; keys are token ids, like "50256"')
    return int(key)


def _read_bias(key: str, bias: object) -> float:
    if isinstance(bias, bool) or not isinstance(bias, int | float) or not -100 <= bias <= 100:
        raise wrong_value(f"of token {key} is {bias!r:.40}, allowed is -100 to 100")
    return float(bias)


def _read_max_tokens(value: object) -> object:
    """-1 is how other local servers say "no limit"."""
    return None if value == -1 else value


TokenId = Annotated[int, Field(ge=0, le=MAX_TOKEN_ID)]

MaxTokens = Annotated[int | None, Field(ge=0), BeforeValidator(_read_max_tokens)]


class SamplingFields(WireModel):
    """Each field is the one of the same name in `engine.api.SamplingParams`; None leaves the engine's default.

    `repeat_penalty` and `repeat_last_n` are llama-server's names of `repetition_penalty` and `penalty_last_n`.
    """

    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    typical_p: float | None = None
    repetition_penalty: float | None = None
    repeat_penalty: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    penalty_last_n: int | None = None
    repeat_last_n: int | None = None
    dry_multiplier: float | None = None
    dry_base: float | None = None
    dry_allowed_length: int | None = None
    dry_penalty_last_n: int | None = None
    dry_sequence_breakers: Annotated[list[str], Field(fail_fast=True, max_length=64)] | None = None
    logit_bias: Annotated[tuple[tuple[int, float], ...], BeforeValidator(_read_logit_bias)] = ()
    seed: int | None = None


class UnsupportedFields(WireModel):
    """What would change the answer and cannot be honoured yet, with the values that ask for nothing."""

    tools: Annotated[Any, _only([])] = None
    tool_choice: Annotated[Any, _only("none", "auto")] = None
    functions: Annotated[Any, _only([])] = None
    function_call: Annotated[Any, _only("none", "auto")] = None
    modalities: Annotated[Any, _only(["text"])] = None
    audio: Annotated[Any, _only()] = None
    web_search_options: Annotated[Any, _only()] = None
    chat_template: Annotated[Any, _only()] = None
    chat_template_kwargs: Annotated[Any, _only({})] = None
    add_generation_prompt: Annotated[Any, _only(True)] = None
    continue_final_message: Annotated[Any, _only(False)] = None
    mirostat: Annotated[Any, _only(0)] = None
    dynatemp_range: Annotated[Any, _only(0)] = None
    xtc_probability: Annotated[Any, _only(0)] = None
    top_n_sigma: Annotated[Any, _only(0, -1)] = None


class StreamOptions(WireModel):
    """What a stream carries beside the text."""

    include_usage: bool | None = None


class GenerationFields(SamplingFields, GuidedFields, UnsupportedFields):
    """What chat and text completions have in common."""

    model: str | None = None
    n: Annotated[int, Field(ge=1, le=MAX_CHOICES)] | None = None
    stop: Annotated[list[str] | None, Field(fail_fast=True), BeforeValidator(read_stops)] = None
    stop_token_ids: Annotated[list[TokenId], Field(fail_fast=True, max_length=1024)] | None = None
    max_tokens: MaxTokens = None
    min_tokens: Annotated[int, Field(ge=0, le=1 << 30)] | None = None
    """Least tokens of the reply before a token may end it."""
    ignore_eos: bool | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_wait: MaxWait = None
    priority: AskedPriority = None
    sse_ping_interval: PingInterval = None

    @property
    def wants_usage_chunk(self) -> bool:
        return self.stream_options is not None and bool(self.stream_options.include_usage)


class ChatCompletionRequest(ChatFields, GenerationFields):
    """POST /v1/chat/completions."""

    max_completion_tokens: MaxTokens = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
