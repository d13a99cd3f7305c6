"""What every route answers, as JSON schema. Tests compare real answers with these. Pure; any thread."""

from __future__ import annotations

from studio.server.openapi.json_schema import (
    COUNT,
    FLAG,
    INTEGER,
    NULL,
    NUMBER,
    OBJECT,
    TEXT,
    Schema,
    always,
    either,
    many,
    one_of,
    or_null,
    shape,
)

ERRORS: dict[str, Schema] = {
    "Error": shape(
        {"error": shape({"message": TEXT, "type": TEXT, "param": or_null(TEXT), "code": TEXT})}
    ),
    "AnthropicError": shape(
        {
            "type": always("error"),
            "error": shape({"type": TEXT, "message": TEXT}),
            "request_id": TEXT,
        }
    ),
    "OllamaError": shape({"error": TEXT}),
}
"""The components that are bodies of errors."""

STREAM = either(TEXT, shape({"data": TEXT}, event=TEXT), OBJECT)
"""A stream as a whole, and what readers make of its events or lines: OpenAPI 3.1 has one word for both."""

_PARKS = shape({"parks": COUNT, "recomputes": COUNT})
_USAGE = shape(
    {"prompt_tokens": COUNT, "completion_tokens": COUNT, "total_tokens": COUNT},
    prompt_tokens_details=shape({"cached_tokens": COUNT}),
    completion_tokens_details=shape({"reasoning_tokens": COUNT}),
)
_FINISH = one_of("stop", "length", "tool_calls")
_CHAT_TOKEN = shape({"token": TEXT, "logprob": NUMBER, "bytes": many(COUNT)})
_CHAT_LOGPROBS = or_null(shape({"content": many(_CHAT_TOKEN)}))
_CALL = shape(
    {
        "id": TEXT,
        "type": always("function"),
        "function": shape({"name": TEXT, "arguments": TEXT}),
    }
)


def _completion(kind: str, choice: Schema) -> Schema:
    return shape(
        {
            "id": TEXT,
            "object": always(kind),
            "created": INTEGER,
            "model": TEXT,
            "choices": many(choice),
            "usage": _USAGE,
        },
        preempt=_PARKS,
    )


CHAT = _completion(
    "chat.completion",
    shape(
        {
            "index": COUNT,
            "message": shape(
                {"role": always("assistant"), "content": or_null(TEXT)},
                refusal=NULL,
                reasoning_content=or_null(TEXT),
                tool_calls=many(_CALL),
            ),
            "logprobs": _CHAT_LOGPROBS,
            "finish_reason": _FINISH,
        }
    ),
)
COMPLETION = _completion(
    "text_completion",
    shape(
        {
            "index": COUNT,
            "text": TEXT,
            "logprobs": or_null(
                shape(
                    {
                        "tokens": many(TEXT),
                        "token_logprobs": many(or_null(NUMBER)),
                        "top_logprobs": many(or_null(OBJECT)),
                        "text_offset": many(COUNT),
                    }
                )
            ),
            "finish_reason": _FINISH,
        }
    ),
)
EMBEDDINGS = shape(
    {
        "object": always("list"),
        "model": TEXT,
        "data": many(
            shape(
                {
                    "object": always("embedding"),
                    "index": COUNT,
                    "embedding": either(many(NUMBER), TEXT),
                }
            )
        ),
        "usage": shape({"prompt_tokens": COUNT, "total_tokens": COUNT}),
    }
)
RESPONSE = shape(
    {
        "id": TEXT,
        "object": always("response"),
        "created_at": NUMBER,
        "model": TEXT,
        "status": one_of("completed", "incomplete"),
        "error": NULL,
        "output": many(shape({"type": TEXT, "id": TEXT})),
    },
    usage=shape({"input_tokens": COUNT, "output_tokens": COUNT, "total_tokens": COUNT}),
    preempt=_PARKS,
)
RESPONSE_COUNT = shape({"object": always("response.input_tokens"), "input_tokens": COUNT})
DELETED_RESPONSE = shape({"id": TEXT, "object": always("response"), "deleted": always(True)})
INPUT_ITEMS = shape(
    {
        "object": always("list"),
        "data": many(shape({"id": TEXT})),
        "first_id": or_null(TEXT),
        "last_id": or_null(TEXT),
        "has_more": FLAG,
    }
)
_OPENAIS_MODEL = shape(
    {"id": TEXT, "object": always("model"), "created": INTEGER, "owned_by": TEXT},
    max_model_len=COUNT,
    loaded=FLAG,
)
_ANTHROPICS_MODEL = shape(
    {
        "type": always("model"),
        "id": TEXT,
        "display_name": TEXT,
        "created_at": TEXT,
        "lifecycle": TEXT,
        "max_input_tokens": or_null(COUNT),
        "max_tokens": or_null(COUNT),
    }
)
MODEL = either(_OPENAIS_MODEL, _ANTHROPICS_MODEL)
MODELS = either(
    shape({"object": always("list"), "data": many(_OPENAIS_MODEL)}),
    shape(
        {
            "data": many(_ANTHROPICS_MODEL),
            "has_more": FLAG,
            "first_id": or_null(TEXT),
            "last_id": or_null(TEXT),
        }
    ),
)

MESSAGE = shape(
    {
        "id": TEXT,
        "type": always("message"),
        "role": always("assistant"),
        "model": TEXT,
        "content": many(shape({"type": one_of("text", "thinking", "tool_use")})),
        "stop_reason": one_of("end_turn", "max_tokens", "stop_sequence", "tool_use"),
        "stop_sequence": or_null(TEXT),
        "usage": shape({"input_tokens": COUNT, "output_tokens": COUNT}),
    },
    preempt=_PARKS,
)
MESSAGE_COUNT = shape({"input_tokens": COUNT})

_TIMINGS = shape({"cache_n": COUNT, "prompt_n": COUNT, "predicted_n": COUNT})
LLAMA_COMPLETION = shape(
    {},
    **{
        "index": always(0),
        "content": TEXT,
        "tokens": many(COUNT),
        "stop": always(True),
        "id_slot": INTEGER,
        "model": TEXT,
        "tokens_predicted": COUNT,
        "tokens_evaluated": COUNT,
        "tokens_cached": COUNT,
        "stop_type": one_of("eos", "limit", "word"),
        "stopping_word": TEXT,
        "has_new_line": FLAG,
        "truncated": FLAG,
        "timings": _TIMINGS,
        "generation_settings": OBJECT,
        "prompt": TEXT,
        "preempt": _PARKS,
    },
)
"""All of it, unless `response_fields` says what."""
LLAMA_EMBEDDINGS = many(shape({"index": COUNT, "embedding": many(many(NUMBER))}))
TOKENS = shape(
    {"tokens": many(either(COUNT, shape({"id": COUNT, "piece": either(TEXT, many(COUNT))})))}
)
CONTENT = shape({"content": TEXT})
RENDERED = shape({"prompt": TEXT})
SLOTS = many(
    shape(
        {
            "id": COUNT,
            "n_ctx": COUNT,
            "is_processing": FLAG,
            "is_preempted": FLAG,
            "is_transferring": FLAG,
        }
    )
)
PROPS = shape(
    {
        "default_generation_settings": OBJECT,
        "total_slots": COUNT,
        "model_alias": TEXT,
        "model_path": TEXT,
        "chat_template": TEXT,
        "bos_token": TEXT,
        "eos_token": TEXT,
        "modalities": shape({"vision": FLAG, "audio": FLAG}),
        "build_info": TEXT,
        "exact_concurrency": FLAG,
        "preempt": shape({"enabled": FLAG, "ram_mib": INTEGER, "async": FLAG}),
    }
)

_LAST_LINE: dict[str, Schema] = {
    "done_reason": TEXT,
    "total_duration": COUNT,
    "load_duration": COUNT,
    "prompt_eval_count": COUNT,
    "prompt_eval_duration": COUNT,
    "eval_count": COUNT,
    "eval_duration": COUNT,
    "preempt": _PARKS,
}
_LINE: dict[str, Schema] = {"model": TEXT, "created_at": TEXT, "done": FLAG}
OLLAMA_CHAT = shape(
    {**_LINE, "message": shape({"role": always("assistant"), "content": TEXT}, thinking=TEXT)},
    **_LAST_LINE,
)
OLLAMA_GENERATE = shape({**_LINE, "response": TEXT}, thinking=TEXT, **_LAST_LINE)
OLLAMA_EMBED = shape({"model": TEXT, "embeddings": many(many(NUMBER))}, prompt_eval_count=COUNT)
OLLAMA_EMBEDDING = shape({"embedding": many(NUMBER)})
_DETAILS = shape({"format": TEXT, "family": TEXT, "families": many(TEXT), "parameter_size": TEXT})
_LISTED: dict[str, Schema] = {
    "name": TEXT,
    "model": TEXT,
    "size": COUNT,
    "digest": TEXT,
    "details": _DETAILS,
}
OLLAMA_TAGS = shape({"models": many(shape({**_LISTED, "modified_at": TEXT}))})
OLLAMA_PS = shape({"models": many(shape({**_LISTED, "expires_at": TEXT, "size_vram": COUNT}))})
OLLAMA_SHOW = shape(
    {
        "modelfile": TEXT,
        "template": TEXT,
        "details": _DETAILS,
        "model_info": OBJECT,
        "capabilities": many(TEXT),
    }
)
OLLAMA_VERSION = shape({"version": TEXT})

LM_STUDIO_MODEL = shape(
    {
        "id": TEXT,
        "object": always("model"),
        "type": one_of("llm", "embeddings"),
        "publisher": TEXT,
        "compatibility_type": one_of("gguf", "safetensors"),
        "state": one_of("loaded", "not-loaded"),
    },
    arch=TEXT,
    quantization=TEXT,
    max_context_length=COUNT,
    loaded_context_length=COUNT,
    capabilities=many(TEXT),
)
LM_STUDIO_MODELS = shape({"object": always("list"), "data": many(LM_STUDIO_MODEL)})

HEALTH = shape({"status": TEXT}, error=shape({"code": INTEGER, "message": TEXT, "type": TEXT}))
_RUN = shape(
    {
        "id": TEXT,
        "object": always("run"),
        "origin": TEXT,
        "priority": one_of("interactive", "normal", "background"),
        "state": TEXT,
        "prompt_tokens": COUNT,
        "completion_tokens": COUNT,
        "held_tokens": COUNT,
        "pinned": FLAG,
        "parks": COUNT,
        "recomputes": COUNT,
        "waited_s": NUMBER,
        "place": or_null(INTEGER),
        "reason": or_null(TEXT),
        "ahead": many(TEXT),
    }
)
RUNS = shape({"object": always("list"), "data": many(_RUN)})
RUN = either(_RUN, RUNS)
DOCUMENT = shape({"openapi": TEXT, "info": OBJECT, "paths": OBJECT, "components": OBJECT})
PLAIN: Schema = TEXT
