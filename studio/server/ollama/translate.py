"""Ollama's requests -> the engine's. Server thread.

Raises InvalidRequest, naming the field, before anything is queued.
"""

from __future__ import annotations

from engine.api import Chat, ChatMessage, Infill, Origin, Prompt, Request, Text
from engine.errors import InvalidRequest
from studio.server.ollama.fields import ChatRequest, GenerateRequest, Options, ReplyFields
from studio.server.translate import sampling_params
from studio.server.turns import ASSISTANT, thinking_options


def plain_name(name: str | None) -> str | None:
    """The model's name without the tag that clients put behind one that has none."""
    return None if name is None else name.removesuffix(":latest")


def chat_request(wire: ChatRequest, reply_id: str) -> Request:
    """One that ends with the assistant's turn is gone on with from there."""
    last = wire.messages[-1]
    chat = Chat(
        messages=wire.messages,
        tools=wire.tools,
        template_options=_thinking(wire),
        continues=last.role == ASSISTANT and not last.tool_calls,
    )
    return _request(wire, reply_id, chat)


def generate_request(wire: GenerateRequest, reply_id: str) -> Request:
    """Raises InvalidRequest for a suffix beside what only a chat has."""
    return _request(wire, reply_id, _generate_prompt(wire))


def _generate_prompt(wire: GenerateRequest) -> Prompt:
    prompt = wire.prompt or ""
    if wire.suffix:
        if wire.system:
            raise InvalidRequest(
                "system cannot be honoured with a suffix: a gap in a text is no conversation; leave one out",
                param="system",
            )
        return Infill(before=prompt, after=wire.suffix)
    if wire.raw:
        return Text(text=prompt, reads_control=True)
    system = (ChatMessage(role="system", content=wire.system),) if wire.system else ()
    return Chat(
        messages=(*system, ChatMessage(role="user", content=prompt)),
        template_options=_thinking(wire),
    )


def _request(wire: ReplyFields, reply_id: str, prompt: Prompt) -> Request:
    options = wire.options or Options()
    limit = options.num_predict
    return Request(
        request_id=f"{reply_id}-0",
        origin=Origin.API,
        prompt=prompt,
        sampling=sampling_params(options, logprobs=wire.num_logprobs),
        max_tokens=limit if limit is not None and limit >= 0 else None,
        stop=tuple(options.stop or ()),
        max_wait_s=wire.max_wait,
        grammar=wire.format,
        tells_parts=isinstance(prompt, Chat),
    )


def _thinking(wire: ReplyFields) -> tuple[tuple[str, object], ...]:
    if isinstance(wire.think, str):
        return thinking_options(True, effort=wire.think)
    return thinking_options(wire.think)
