"""What clients may send to llama-server's own routes, /completion and /infill: the wire types, checked strictly.

Fields nobody here knows are ignored, as is `cache_prompt` (prefixes are always found again); those that would change
the answer and cannot be honoured are refused by name. Any thread; no web framework.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AliasChoices, BeforeValidator, Field, PlainValidator, WithJsonSchema

from studio.server.priority_field import AskedPriority
from studio.server.prompt_fields import MIXED_PROMPT, TOKEN_ID, read_mixed
from studio.server.protocol import MAX_STOPS, SamplingFields
from studio.server.structured import GrammarText, JsonSchema
from studio.server.wire import MaxWait, PingInterval, WireModel, only, whole_number, wrong_value

MAX_EXTRA = 256
MAX_RESPONSE_FIELDS = 256
_SAMPLERS = (
    "penalties", "dry", "top_n_sigma", "top_k", "typ_p", "top_p", "min_p", "xtc", "temperature",
)  # fmt: skip
"""Their usual order in this protocol. Another order, and leaving some out, is not served."""


def _read_prompt(value: object) -> tuple[str | int, ...]:
    """A text, token ids, or both mixed. A list of nothing but texts would be several prompts."""
    parts = read_mixed(value)
    if len(parts) > 1 and all(isinstance(part, str) for part in parts):
        raise wrong_value(
            f"has {len(parts)} prompts, this path takes one; send them one by one, or to /v1/completions"
        )
    return parts


def _read_stops(value: object) -> object:
    if isinstance(value, list) and len(value) > MAX_STOPS:
        raise wrong_value(f"has {len(value)} strings, the limit is {MAX_STOPS}")
    return [text for text in value if text != ""] if isinstance(value, list) else value


def _read_seed(value: object) -> object:
    """-1 is how this protocol says "any"."""
    return None if value == -1 else value


def _read_top_k(value: object) -> object:
    """Less than 0 is as 0 in this protocol: all."""
    return max(value, 0) if type(value) is int else value


def _read_bias(value: object) -> tuple[tuple[int, float], ...]:
    """`[[15043, 1.5], [2, false]]` or `{"15043": 1.5}`; false forbids the token."""
    if value is None:
        return ()
    if isinstance(value, dict):
        pairs: list[Any] = [
            [int(key) if key.isascii() and key.isdecimal() and len(key) <= 10 else key, bias]
            for key, bias in value.items()
        ]
    elif isinstance(value, list):
        pairs = value
    else:
        raise wrong_value("is neither a list of pairs nor an object of token ids and biases")
    return tuple(_read_pair(index, pair) for index, pair in enumerate(pairs))


def _read_pair(index: int, pair: object) -> tuple[int, float]:
    if not isinstance(pair, list) or len(pair) != 2:
        raise wrong_value(
            f"has at [{index}] {pair!r:.40}, which is no pair of a token id and a bias"
        )
    token_id, bias = whole_number(pair[0]), pair[1]
    if type(token_id) is not int or not 0 <= token_id < 1 << 31:
        raise wrong_value(
            f"has at [{index}] {token_id!r:.40}, which is no token id; /tokenize tells them"
        )
    if bias is False:
        return token_id, -100.0
    if isinstance(bias, bool) or not isinstance(bias, int | float) or not -100 <= bias <= 100:
        raise wrong_value(f"of token {token_id} is {bias!r:.40}, allowed are -100 to 100 and false")
    return token_id, float(bias)


_BIAS: dict[str, Any] = {
    "anyOf": [{"type": "number", "minimum": -100, "maximum": 100}, {"const": False}]
}
_BIAS_SCHEMA: dict[str, Any] = {
    "anyOf": [
        {
            "type": "array",
            "items": {
                "type": "array",
                "prefixItems": [TOKEN_ID, _BIAS],
                "minItems": 2,
                "maxItems": 2,
            },
        },
        {
            "type": "object",
            "propertyNames": {"pattern": "^[0-9]{1,9}$"},
            "additionalProperties": _BIAS,
        },
        {"type": "null"},
    ]
}


class CompletionFields(SamplingFields):
    """What /completion and /infill have in common."""

    model: str | None = None
    n_predict: Annotated[int, Field(ge=-2, le=1 << 31)] | None = Field(
        default=None, validation_alias=AliasChoices("n_predict", "max_tokens")
    )
    """Most tokens to write; -1 and -2: no limit."""
    stream: bool | None = None
    stop: Annotated[list[str] | None, Field(fail_fast=True), BeforeValidator(_read_stops)] = None
    seed: Annotated[int | None, BeforeValidator(_read_seed)] = None
    top_k: Annotated[int | None, BeforeValidator(_read_top_k)] = None
    logit_bias: Annotated[
        tuple[tuple[int, float], ...], PlainValidator(_read_bias), WithJsonSchema(_BIAS_SCHEMA)
    ] = ()
    ignore_eos: bool | None = None
    n_probs: Annotated[int, Field(ge=0, le=20)] | None = None
    return_tokens: bool | None = None
    response_fields: Annotated[list[str], Field(max_length=MAX_RESPONSE_FIELDS)] | None = None
    """Tell only these fields; `generation_settings/seed` is told as `seed`."""
    json_schema: JsonSchema = None
    grammar: GrammarText = None
    max_wait: MaxWait = None
    priority: AskedPriority = None
    sse_ping_interval: PingInterval = None
    n: Annotated[Any, only(1)] = None
    n_cmpl: Annotated[Any, only(1)] = None
    samplers: Annotated[Any, only(list(_SAMPLERS))] = None
    timings_per_token: Annotated[Any, only(False)] = None
    mirostat: Annotated[Any, only(0)] = None
    dynatemp_range: Annotated[Any, only(0)] = None
    xtc_probability: Annotated[Any, only(0)] = None
    top_n_sigma: Annotated[Any, only(0, -1)] = None
    n_indent: Annotated[Any, only(0)] = None
    t_max_predict_ms: Annotated[Any, only(0)] = None
    post_sampling_probs: Annotated[Any, only(False)] = None
    lora: Annotated[Any, only([])] = None
    image_data: Annotated[Any, only([])] = None


class LlamaCompletionRequest(CompletionFields):
    """POST /completion."""

    prompt: Annotated[
        tuple[str | int, ...], BeforeValidator(_read_prompt), WithJsonSchema(MIXED_PROMPT)
    ]


class ExtraText(WireModel):
    """A piece of another file, for the model to know of."""

    text: str
    filename: str | None = None


class InfillRequest(CompletionFields):
    """POST /infill: the reply goes between `input_prefix`, with `prompt` behind it, and `input_suffix`."""

    input_prefix: str
    input_suffix: str
    input_extra: Annotated[list[ExtraText], Field(max_length=MAX_EXTRA)] | None = None
    prompt: str | None = None
