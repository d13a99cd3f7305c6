"""Anthropic's requests -> the engine's. Server thread.

Raises InvalidRequest, naming the field, before anything is queued.
"""

from __future__ import annotations

from engine.api import Chat, ChatMessage, Origin, Request
from studio.server.messages.fields import MessagesRequest, PromptFields
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


def messages_request(wire: MessagesRequest, reply_id: str) -> Request:
    return Request(
        request_id=f"{reply_id}-0",
        origin=Origin.API,
        prompt=chat_of(wire),
        sampling=sampling_params(wire, logprobs=None),
        max_tokens=wire.max_tokens,
        stop=tuple(wire.stop_sequences or ()),
        grammar=wire.output_config.format if wire.output_config is not None else None,
        max_wait_s=wire.max_wait,
        tells_parts=True,
    )
