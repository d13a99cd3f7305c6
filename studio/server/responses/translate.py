"""Requests for a response -> the engine's, and the response before anything has been written. Server thread.

Raises InvalidRequest, naming the field, before anything is queued.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from engine.api import Chat, Origin, Request
from engine.errors import InvalidRequest
from studio.server.framing import Json
from studio.server.replies import ReplyHead
from studio.server.responses.fields import ResponsesRequest
from studio.server.responses.items import Item, add_to
from studio.server.tool_fields import AllowedTools, Choice, offer
from studio.server.translate import sampling_params
from studio.server.turns import Turns, effort_options


def chat_of(wire: ResponsesRequest, items: Sequence[Item]) -> Chat:
    """The conversation: the instructions and then the items."""
    turns = Turns()
    if wire.instructions:
        turns.say("system", (wire.instructions,))
    add_to(turns, items)
    messages = turns.messages()
    if not messages:
        raise InvalidRequest("input has no items; send at least one", param="input")
    field = wire.tool_choice
    choice: Choice | AllowedTools = (field.kind, field.name)
    if field.allowed is not None:
        choice = AllowedTools(kind=field.kind, names=field.allowed)
    offered = offer(wire.tools, choice, calls_in_parallel=wire.parallel_tool_calls)
    reasoning = wire.reasoning
    return Chat(
        messages=messages,
        tools=offered.tools,
        tool_choice=offered.tool_choice,
        tool_name=offered.tool_name,
        calls_in_parallel=offered.calls_in_parallel,
        template_options=effort_options(reasoning.effort if reasoning is not None else None),
    )


def responses_request(wire: ResponsesRequest, items: Sequence[Item], reply_id: str) -> Request:
    return Request(
        request_id=f"{reply_id}-0",
        origin=Origin.API,
        prompt=chat_of(wire, items),
        sampling=sampling_params(wire, logprobs=wire.logprobs),
        max_tokens=wire.max_output_tokens,
        stop=tuple(wire.stop or ()),
        grammar=wire.text.format.grammar if wire.text and wire.text.format else None,
        max_wait_s=wire.max_wait,
        tells_parts=True,
    )


def blank_response(wire: ResponsesRequest, request: Request, head: ReplyHead) -> Json:
    """What was asked, as it was understood, and nothing written yet."""
    reasoning, text = wire.reasoning, wire.text
    return {
        "id": head.reply_id,
        "object": "response",
        "created_at": head.created_s,
        "completed_at": None,
        "status": "in_progress",
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": wire.instructions,
        "max_output_tokens": wire.max_output_tokens,
        "max_tool_calls": None,
        "model": head.model,
        "output": [],
        "parallel_tool_calls": wire.parallel_tool_calls is not False,
        "previous_response_id": wire.previous_response_id,
        "reasoning": {
            "effort": reasoning.effort if reasoning is not None else None,
            "summary": reasoning.summary if reasoning is not None else None,
        },
        "service_tier": "default",
        "store": wire.is_kept,
        "temperature": request.sampling.temperature,
        "text": {
            "format": text.format.wire if text and text.format else {"type": "text"},
            "verbosity": (text.verbosity if text is not None else None) or "medium",
        },
        "tool_choice": wire.tool_choice.wire,
        "tools": [
            {
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": json.loads(tool.parameters),
                "strict": tool.is_strict,
            }
            for tool in wire.tools
        ],
        "top_logprobs": wire.top_logprobs or 0,
        "top_p": request.sampling.top_p,
        "truncation": wire.truncation or "disabled",
        "usage": None,
        "user": wire.user,
        "metadata": wire.metadata or {},
    }
