"""Every route, described. A test compares this table with the routes that there are. Pure; any thread."""

from __future__ import annotations

from dataclasses import replace

from studio.server.completion_requests import CompletionRequest
from studio.server.llamacpp import fields as llama
from studio.server.llamacpp.embedding import LlamaEmbeddingRequest
from studio.server.messages.fields import MessagesRequest, PromptFields
from studio.server.ollama import fields as ollama
from studio.server.ollama.errors import REFUSED
from studio.server.openapi import reply_schemas as replies
from studio.server.openapi.json_schema import OBJECT, one_of
from studio.server.openapi.operation import ErrorShape, Media, Operation, Query, Tag
from studio.server.protocol import ChatCompletionRequest
from studio.server.responses.fields import ResponsesRequest
from studio.server.routes.embeddings import EmbeddingRequest
from studio.server.routes.runs import PriorityChange
from studio.server.routes.texts import DetokenizeRequest, TokenizeRequest

_HELLO = [{"role": "user", "content": "Hello!"}]
_MODEL = "smollm2-135m"
_CHUNKS = (
    "Server-sent events, each with a chunk as JSON, `[DONE]` at the end. Comments are signs of life, and tell of "
    "parks; with the header `X-Layby-Heartbeat: delta` empty chunks do instead."
)
_EVENTS = "Server-sent events, each named by the `type` of its JSON. Comments are signs of life, and tell of parks."
_LINES = "A line of JSON for each piece, the last one with `done` true."
_LLAMA_EVENTS = (
    "Server-sent events as JSON; the last one has `stop` true. Comments are signs of life."
)
_NEEDS_MODEL = (404, 503)
_STEERED = "By the id of a run, or of a response: then for all its choices in flight."

_OPENAI = {
    ("POST", "/v1/chat/completions"): Operation(
        summary="Chat",
        words="A reply to a conversation. Beside OpenAI's fields it takes those of llama-server, and `max_wait`.",
        tag=Tag.OPENAI,
        body=ChatCompletionRequest,
        reply=replies.CHAT,
        stream=Media.EVENTS,
        stream_words=_CHUNKS,
        failures=_NEEDS_MODEL,
        example={"model": _MODEL, "messages": _HELLO},
    ),
    ("POST", "/v1/completions"): Operation(
        summary="Text completion",
        words="What follows a text, or token ids taken as they are; no chat template.",
        tag=Tag.OPENAI,
        body=CompletionRequest,
        reply=replies.COMPLETION,
        stream=Media.EVENTS,
        stream_words=_CHUNKS,
        failures=_NEEDS_MODEL,
        example={"model": _MODEL, "prompt": "Once upon a time", "max_tokens": 32},
    ),
    ("POST", "/v1/responses"): Operation(
        summary="Response",
        words="A reply as items: messages, thoughts, calls. It is kept in memory unless `store` is false.",
        tag=Tag.OPENAI,
        body=ResponsesRequest,
        reply=replies.RESPONSE,
        stream=Media.EVENTS,
        stream_words=_EVENTS,
        failures=_NEEDS_MODEL,
        example={"model": _MODEL, "input": "Hello!"},
    ),
    ("POST", "/v1/responses/input_tokens"): Operation(
        summary="Count a response's tokens",
        tag=Tag.OPENAI,
        body=ResponsesRequest,
        reply=replies.RESPONSE_COUNT,
        failures=_NEEDS_MODEL,
        example={"model": _MODEL, "input": "Hello!"},
    ),
    ("GET", "/v1/responses/{response_id}"): Operation(
        summary="A kept response",
        tag=Tag.OPENAI,
        reply=replies.RESPONSE,
        failures=(400, 404),
        query=(
            Query(name="stream", schema=one_of("false"), words="Kept responses are not streamed."),
        ),
    ),
    ("DELETE", "/v1/responses/{response_id}"): Operation(
        summary="Forget a kept response",
        tag=Tag.OPENAI,
        reply=replies.DELETED_RESPONSE,
        failures=(404,),
    ),
    ("GET", "/v1/responses/{response_id}/input_items"): Operation(
        summary="What a kept response was asked",
        tag=Tag.OPENAI,
        reply=replies.INPUT_ITEMS,
        failures=(400, 404),
        query=(
            Query(
                name="limit",
                schema={"type": "integer", "minimum": 1, "maximum": 100},
                words="Most items; 20 unless said otherwise.",
            ),
            Query(name="order", schema=one_of("asc", "desc"), words="The last one first: desc."),
            Query(name="after", schema={"type": "string"}, words="The item to go on after."),
        ),
    ),
    ("POST", "/v1/embeddings"): Operation(
        summary="Embeddings",
        words="Texts as vectors of length 1, the same bits alone and among others. The model must be made for that.",
        tag=Tag.OPENAI,
        body=EmbeddingRequest,
        reply=replies.EMBEDDINGS,
        failures=_NEEDS_MODEL,
        example={"model": "qwen3-embedding-0.6b", "input": ["Hello!", "Good bye."]},
    ),
    ("GET", "/v1/models"): Operation(
        summary="Models",
        words="The model that is loaded, and those that a request may name. With a header `anthropic-version` as "
        "Anthropic's clients list them, a page at a time.",
        tag=Tag.OPENAI,
        reply=replies.MODELS,
    ),
    ("GET", "/v1/models/{name:path}"): Operation(
        summary="One model", tag=Tag.OPENAI, reply=replies.MODEL, failures=_NEEDS_MODEL
    ),
}

_ANTHROPIC = {
    ("POST", "/v1/messages"): Operation(
        summary="Message",
        tag=Tag.ANTHROPIC,
        body=MessagesRequest,
        reply=replies.MESSAGE,
        stream=Media.EVENTS,
        stream_words=_EVENTS,
        failures=(*_NEEDS_MODEL, 529),
        example={"model": _MODEL, "max_tokens": 64, "messages": _HELLO},
    ),
    ("POST", "/v1/messages/count_tokens"): Operation(
        summary="Count a message's tokens",
        tag=Tag.ANTHROPIC,
        body=PromptFields,
        reply=replies.MESSAGE_COUNT,
        failures=_NEEDS_MODEL,
        example={"model": _MODEL, "messages": _HELLO},
    ),
}

_OLLAMA = {
    ("GET", "/"): Operation(
        summary="Whether it runs",
        tag=Tag.OLLAMA,
        reply=replies.PLAIN,
        media=Media.TEXT,
        errors=ErrorShape.OPENAI,
    ),
    ("GET", "/api/version"): Operation(
        summary="The version of Ollama whose API this is",
        tag=Tag.OLLAMA,
        reply=replies.OLLAMA_VERSION,
    ),
    ("GET", "/api/tags"): Operation(summary="Models", tag=Tag.OLLAMA, reply=replies.OLLAMA_TAGS),
    ("GET", "/api/ps"): Operation(
        summary="The loaded model", tag=Tag.OLLAMA, reply=replies.OLLAMA_PS
    ),
    ("POST", "/api/show"): Operation(
        summary="One model",
        tag=Tag.OLLAMA,
        body=ollama.ShowRequest,
        reply=replies.OLLAMA_SHOW,
        failures=_NEEDS_MODEL,
        example={"model": _MODEL},
    ),
    ("POST", "/api/chat"): Operation(
        summary="Chat",
        words="Streamed unless `stream` is false. Without messages the model is loaded.",
        tag=Tag.OLLAMA,
        body=ollama.ChatRequest,
        reply=replies.OLLAMA_CHAT,
        stream=Media.LINES,
        stream_words=_LINES,
        failures=_NEEDS_MODEL,
        example={"model": _MODEL, "messages": _HELLO},
    ),
    ("POST", "/api/generate"): Operation(
        summary="A reply to a prompt",
        words="Streamed unless `stream` is false. Without a prompt the model is loaded.",
        tag=Tag.OLLAMA,
        body=ollama.GenerateRequest,
        reply=replies.OLLAMA_GENERATE,
        stream=Media.LINES,
        stream_words=_LINES,
        failures=_NEEDS_MODEL,
        example={"model": _MODEL, "prompt": "Hello!"},
    ),
    ("POST", "/api/embed"): Operation(
        summary="Embeddings",
        tag=Tag.OLLAMA,
        body=ollama.EmbedRequest,
        reply=replies.OLLAMA_EMBED,
        failures=_NEEDS_MODEL,
        example={"model": "qwen3-embedding-0.6b", "input": ["Hello!"]},
    ),
    ("POST", "/api/embeddings"): Operation(
        summary="One embedding, the older form",
        tag=Tag.OLLAMA,
        body=ollama.EmbeddingsRequest,
        reply=replies.OLLAMA_EMBEDDING,
        failures=_NEEDS_MODEL,
        example={"model": "qwen3-embedding-0.6b", "prompt": "Hello!"},
    ),
    **{
        ("DELETE" if path == "/api/delete" else "POST", path): Operation(
            summary="Refused: programs cannot change Layby's models",
            words="The error says what to do instead.",
            tag=Tag.OLLAMA,
            reply=OBJECT,
            success=None,
            failures=(429,),
        )
        for path in REFUSED
    },
}

_LM_STUDIO = {
    ("GET", "/api/v0/models"): Operation(
        summary="Models, and which is loaded",
        tag=Tag.LM_STUDIO,
        reply=replies.LM_STUDIO_MODELS,
        errors=ErrorShape.OLLAMA,
    ),
    ("GET", "/api/v0/models/{name:path}"): Operation(
        summary="One model, and whether it is loaded",
        tag=Tag.LM_STUDIO,
        reply=replies.LM_STUDIO_MODEL,
        errors=ErrorShape.OLLAMA,
        failures=_NEEDS_MODEL,
    ),
}

_LLAMA_SERVER = {
    ("POST", "/completion"): Operation(
        summary="Text completion",
        words="The prompt is text, token ids, or both mixed; control tokens spelled out are tokens.",
        tag=Tag.LLAMA_SERVER,
        body=llama.LlamaCompletionRequest,
        reply=replies.LLAMA_COMPLETION,
        stream=Media.EVENTS,
        stream_words=_LLAMA_EVENTS,
        failures=_NEEDS_MODEL,
        example={"prompt": "Once upon a time", "n_predict": 32},
    ),
    ("POST", "/infill"): Operation(
        summary="Fill a gap in a text",
        words="Only models with fill-in-the-middle tokens do.",
        tag=Tag.LLAMA_SERVER,
        body=llama.InfillRequest,
        reply=replies.LLAMA_COMPLETION,
        stream=Media.EVENTS,
        stream_words=_LLAMA_EVENTS,
        failures=_NEEDS_MODEL,
        example={"input_prefix": "def add(", "input_suffix": "return a + b", "n_predict": 32},
    ),
    ("POST", "/embedding"): Operation(
        summary="Embeddings",
        words="At `/embeddings` too. Each vector stands in a list of its own.",
        tag=Tag.LLAMA_SERVER,
        body=LlamaEmbeddingRequest,
        reply=replies.LLAMA_EMBEDDINGS,
        failures=_NEEDS_MODEL,
        example={"content": "Hello!"},
    ),
    ("POST", "/tokenize"): Operation(
        summary="Text to token ids",
        tag=Tag.LLAMA_SERVER,
        body=TokenizeRequest,
        reply=replies.TOKENS,
        failures=_NEEDS_MODEL,
        example={"content": "Hello!", "with_pieces": True},
    ),
    ("POST", "/detokenize"): Operation(
        summary="Token ids to text",
        tag=Tag.LLAMA_SERVER,
        body=DetokenizeRequest,
        reply=replies.CONTENT,
        failures=_NEEDS_MODEL,
        example={"tokens": [19556, 17]},
    ),
    ("POST", "/apply-template"): Operation(
        summary="A conversation as the model reads it",
        tag=Tag.LLAMA_SERVER,
        body=ChatCompletionRequest,
        reply=replies.RENDERED,
        failures=_NEEDS_MODEL,
        example={"messages": _HELLO},
    ),
    ("GET", "/slots"): Operation(
        summary="Seats and parked requests",
        tag=Tag.LLAMA_SERVER,
        reply=replies.SLOTS,
        failures=(503,),
    ),
    ("GET", "/props"): Operation(
        summary="What this server can do",
        tag=Tag.LLAMA_SERVER,
        reply=replies.PROPS,
        failures=(503,),
    ),
    ("GET", "/metrics"): Operation(
        summary="Figures for Prometheus",
        tag=Tag.LLAMA_SERVER,
        reply=replies.PLAIN,
        media=Media.TEXT,
    ),
}

_STEER = Operation(
    summary="",
    words=_STEERED,
    tag=Tag.LAYBY,
    reply=replies.RUN,
    success=202,
    failures=(404, 429),
)
_LAYBY = {
    ("GET", "/health"): Operation(
        summary="Whether a model is ready",
        words="503 while none is, with the same body; while one is loading it has llama-server's `error` too.",
        tag=Tag.LAYBY,
        reply=replies.HEALTH,
        not_ready=replies.HEALTH,
        is_open=True,
    ),
    ("GET", "/v1/runs"): Operation(
        summary="Every request in flight, the window's too", tag=Tag.LAYBY, reply=replies.RUNS
    ),
    ("GET", "/v1/runs/{run_id}"): Operation(
        summary="One request in flight",
        words=_STEERED,
        tag=Tag.LAYBY,
        reply=replies.RUN,
        failures=(404,),
    ),
    ("POST", "/v1/runs/{run_id}/park"): replace(
        _STEER, summary="Park it now", failures=(404, 409, 429)
    ),
    ("POST", "/v1/runs/{run_id}/resume"): replace(_STEER, summary="Let it go first"),
    ("POST", "/v1/runs/{run_id}/pin"): replace(_STEER, summary="Never park it"),
    ("POST", "/v1/runs/{run_id}/unpin"): replace(_STEER, summary="Let it be parked again"),
    ("POST", "/v1/runs/{run_id}/priority"): replace(
        _STEER,
        summary="Change its priority",
        body=PriorityChange,
        example={"priority": "interactive"},
    ),
    ("GET", "/openapi.json"): Operation(
        summary="This description", tag=Tag.LAYBY, reply=replies.DOCUMENT, is_open=True
    ),
    ("GET", "/docs"): Operation(
        summary="This description, to be read",
        tag=Tag.LAYBY,
        reply=replies.PLAIN,
        media=Media.HTML,
        is_open=True,
    ),
}

_IN_ANTHROPICS_SHAPE = {
    route: replace(operation, errors=ErrorShape.ANTHROPIC)
    for route, operation in _ANTHROPIC.items()
}
_IN_OLLAMAS_SHAPE = {
    route: replace(operation, errors=ErrorShape.OLLAMA) if route[1] != "/" else operation
    for route, operation in _OLLAMA.items()
}
OPERATIONS = {
    **_OPENAI,
    **_IN_ANTHROPICS_SHAPE,
    **_IN_OLLAMAS_SHAPE,
    **_LM_STUDIO,
    **_LLAMA_SERVER,
    **_LAYBY,
}
"""By method and path, in the order in which they are shown."""
