"""Anthropic's requests -> the engine's. Server thread.

Raises InvalidRequest, naming the field, before anything is queued.
"""

from __future__ import annotations

from engine.api import Chat, ChatMessage, Grammar, Origin, Request
from studio.server.messages.fields import MessagesRequest, PromptFields
from studio.server.structured import only_one
from studio.server.tool_fields import offer
from studio.server.translate import sampling_params
from studio.server.turns import ASSISTANT, thinking_options


def chat_of(wire: PromptFields) -> Chat:
    """The conversation. One that ends with the assistant's turn is gone on with from there."""
    tools = offer(
        wire.tools,
        (wire.tool_choice.choice, wire.tool_choice.name),
        calls_in_parallel=wire.tool_choice.in_parallel,
    )
    system = (ChatMessage(role="system", content=wire.system),) if wire.system else ()
    thinking, last = wire.thinking, wire.messages[-1]
    return Chat(
        messages=(*system, *wire.messages),
        tools=tools.tools,
        tool_choice=tools.tool_choice,
        tool_name=tools.tool_name,
        calls_in_parallel=tools.calls_in_parallel,
        template_options=thinking_options(
            thinking.is_on,
            effort=wire.output_config.effort if wire.output_config is not None else None,
            budget_tokens=thinking.budget_tokens,
        ),
        continues=last.role == ASSISTANT and not last.tool_calls,
    )


def _form_of(wire: MessagesRequest) -> Grammar | None:
    config = wire.output_config
    return only_one(config.format if config is not None else None, wire.output_format)


def messages_request(wire: MessagesRequest, reply_id: str) -> Request:
    return Request(
        request_id=f"{reply_id}-0",
        origin=Origin.API,
        prompt=chat_of(wire),
        sampling=sampling_params(wire, logprobs=None),
        max_tokens=wire.max_tokens,
        stop=tuple(wire.stop_sequences or ()),
        grammar=_form_of(wire),
        max_wait_s=wire.max_wait,
        tells_parts=True,
    )
