"""What JSON schema says of fields that are read by functions: the rest of a wire type describes itself.

Each says exactly what its reader takes, as far as JSON schema can. Pure; any thread.
"""

from __future__ import annotations

from engine.api import SAMPLING_BOUNDS
from studio.server.chat_fields import MAX_MESSAGES, ChatFields, Message
from studio.server.llamacpp.fields import CompletionFields
from studio.server.messages.fields import PromptFields
from studio.server.openapi.json_schema import (
    FLAG,
    NULL,
    OBJECT,
    TEXT,
    Schema,
    either,
    many,
    or_null,
    shape,
)
from studio.server.protocol import (
    MAX_STOPS,
    ChatCompletionRequest,
    GenerationFields,
    SamplingFields,
)
from studio.server.responses.fields import ResponsesRequest
from studio.server.wire import NOT_SERVED, WireModel

_OPTIONAL_TEXT = or_null(TEXT)
_OPTIONAL_FLAG = or_null(FLAG)

_NAME: Schema = {"type": "string", "pattern": "^[A-Za-z0-9_][A-Za-z0-9_.:/-]{0,127}$"}
_ARGUMENTS: Schema = {
    "type": "object",
    "properties": {"type": {"const": "object"}},
    "description": "A JSON schema, of an object.",
}
_TEXT_PART = shape({"type": {"const": "text"}, "text": TEXT})
_STOPS = either(TEXT, many(TEXT, maxItems=MAX_STOPS), NULL)
_LIMIT: Schema = {"anyOf": [{"type": "integer", "minimum": -1}, NULL]}
_LOGIT_BIAS = either(
    {
        "type": "object",
        "propertyNames": {"pattern": "^[0-9]{1,10}$"},
        "additionalProperties": {"type": "number", "minimum": -100, "maximum": 100},
    },
    NULL,
)

_USER_BLOCK = either(
    _TEXT_PART,
    shape(
        {"type": {"const": "tool_result"}, "tool_use_id": TEXT},
        content=either(TEXT, many(_TEXT_PART), NULL),
    ),
)
_ASSISTANT_BLOCK = either(
    _TEXT_PART,
    shape({"type": {"const": "tool_use"}, "name": _NAME}, id=TEXT, input=OBJECT),
    shape({"type": {"const": "thinking"}, "thinking": TEXT}),
)
_ANTHROPIC_MESSAGE = either(
    shape({"role": {"enum": ["user", "assistant", "system"]}, "content": TEXT}),
    shape({"role": {"const": "user"}, "content": many(_USER_BLOCK)}),
    shape({"role": {"const": "assistant"}, "content": many(_ASSISTANT_BLOCK)}),
)
_ANTHROPIC_TOOL = shape(
    {"name": _NAME, "input_schema": or_null(_ARGUMENTS)},
    description=_OPTIONAL_TEXT,
    type={"enum": ["custom", None]},
)

_ITEM = either(
    shape(
        {"role": {"enum": ["user", "system", "developer", "assistant"]}, "content": TEXT},
        type={"const": "message"},
    ),
    shape(
        {
            "role": {"enum": ["user", "system", "developer"]},
            "content": many(shape({"type": {"const": "input_text"}, "text": TEXT})),
        },
        type={"const": "message"},
    ),
    shape({"type": {"const": "function_call"}, "call_id": TEXT, "name": _NAME, "arguments": TEXT}),
    shape({"type": {"const": "function_call_output"}, "call_id": TEXT, "output": TEXT}),
)
_FLAT_TOOL = shape(
    {"type": {"const": "function"}, "name": _NAME},
    description=_OPTIONAL_TEXT,
    parameters=either(_ARGUMENTS, NULL),
    strict=_OPTIONAL_FLAG,
)
_OLDER_FORM: Schema = {"enum": [None, [], "none", "auto"], "description": NOT_SERVED}


def _bounded(name: str, kind: str) -> Schema:
    low, high = SAMPLING_BOUNDS[name]
    return either({"type": kind, "minimum": low, "maximum": high}, NULL)


_NUMBERS = ("temperature", "top_p", "min_p", "typical_p", "repetition_penalty", "presence_penalty",
            "frequency_penalty", "dry_multiplier", "dry_base")  # fmt: skip
_INTEGERS = ("top_k", "penalty_last_n", "dry_allowed_length", "dry_penalty_last_n", "seed")

READ_FIELDS: dict[type[WireModel], dict[str, Schema]] = {
    SamplingFields: {
        **{name: _bounded(name, "number") for name in _NUMBERS},
        **{name: _bounded(name, "integer") for name in _INTEGERS},
        "repeat_penalty": _bounded("repetition_penalty", "number"),
        "repeat_last_n": _bounded("penalty_last_n", "integer"),
        "logit_bias": _LOGIT_BIAS,
    },
    GenerationFields: {
        "stop": _STOPS,
        "max_tokens": _LIMIT,
    },
    ChatCompletionRequest: {"max_completion_tokens": _LIMIT},
    PromptFields: {
        "messages": many(_ANTHROPIC_MESSAGE, minItems=1),
        "system": either(TEXT, many(_TEXT_PART), NULL),
        "tools": either(many(_ANTHROPIC_TOOL, maxItems=512), NULL),
        "tool_choice": either(
            shape({"type": {"enum": ["auto", "none"]}}, disable_parallel_tool_use=_OPTIONAL_FLAG),
            shape({"type": {"enum": ["any", "tool"]}}, name=_NAME),
            NULL,
        ),
        "thinking": either(
            shape(
                {"type": {"enum": ["enabled", "adaptive", "between_tools", "disabled"]}},
                budget_tokens={"type": ["integer", "null"], "minimum": 0},
            ),
            NULL,
        ),
    },
    ChatFields: {
        "functions": _OLDER_FORM,
        "function_call": _OLDER_FORM,
        "messages": many(
            {
                "allOf": [
                    {"$ref": "#/components/schemas/Message"},
                    either(
                        {"properties": {"role": {"const": "assistant"}}},
                        {
                            "properties": {"content": {"not": NULL}, "tool_calls": {"maxItems": 0}},
                            "required": ["content"],
                        },
                    ),
                ]
            },
            minItems=1,
            maxItems=MAX_MESSAGES,
        ),
    },
    CompletionFields: {
        "seed": _bounded("seed", "integer"),
        "top_k": either({"type": "integer", "maximum": SAMPLING_BOUNDS["top_k"][1]}, NULL),
        "stop": or_null(many(TEXT, maxItems=MAX_STOPS)),
    },
    Message: {
        "role": {"enum": ["system", "developer", "user", "assistant", "tool"]},
        "function_call": _OLDER_FORM,
    },
    ResponsesRequest: {
        "input": either(TEXT, many(_ITEM, minItems=1)),
        "max_output_tokens": _LIMIT,
        "tools": either(many(_FLAT_TOOL, maxItems=512), NULL),
        "tool_choice": either(
            {"enum": ["none", "auto", "required"]},
            shape({"type": {"const": "function"}, "name": _NAME}),
            NULL,
        ),
    },
}
"""By the wire type that defines the field; types that build on it say the same."""

WHOLES: dict[type[WireModel], Schema] = {
    ResponsesRequest: either({"required": ["input"]}, {"required": ["previous_response_id"]})
}
"""What holds of several fields together."""
