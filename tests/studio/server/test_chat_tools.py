"""Tools, calls and reasoning of chats on the wire: what the engine is asked, and how its answer is told."""

from __future__ import annotations

from typing import Any

from engine.api import (
    Chat,
    ChatMessage,
    Finished,
    FinishReason,
    TokenDelta,
    Tool,
    ToolCall,
    ToolCallDelta,
    ToolChoice,
    Usage,
)
from studio.server.protocol import ChatCompletionRequest
from studio.server.replies import ChatReply, ReplyHead
from studio.server.reply_parts import ReplyParts
from studio.server.reply_shape import ReplyEnd
from studio.server.translate import chat_requests

HEAD = ReplyHead(reply_id="chatcmpl-1", created_s=7, model="tiny")
USAGE = Usage(
    prompt_tokens=5, cached_tokens=0, completion_tokens=3, queued_s=0, prefill_s=0, decode_s=0
)
TOOLS = [{"type": "function", "function": {"name": "f", "strict": True}}]


def asked(**fields: Any) -> Chat:
    """The chat that the engine is asked to go on with."""
    wire = ChatCompletionRequest.model_validate(
        {"messages": [{"role": "user", "content": "hi"}], **fields}
    )
    (request,) = chat_requests(wire, "x")
    assert request.tells_parts
    assert isinstance(request.prompt, Chat)
    return request.prompt


def delta(text: str = "", reasoning: str = "", *calls: ToolCallDelta) -> TokenDelta:
    return TokenDelta(
        request_id="x-0", text=text, token_ids=(1,), reasoning=reasoning, tool_calls=calls
    )


ANSWER = (
    delta(reasoning="Hm"),
    delta(reasoning="."),
    delta("I look."),
    delta("", "", ToolCallDelta(index=0, call_id="a", name="f")),
    delta("", "", ToolCallDelta(index=0, arguments='{"x"')),
    delta(
        "",
        "",
        ToolCallDelta(index=0, arguments=": 1}"),
        ToolCallDelta(index=1, call_id="b", name="g", arguments="{}"),
    ),
)


def test_tools_and_their_choice_reach_the_engine() -> None:
    chat = asked(
        tools=TOOLS,
        tool_choice={"type": "function", "function": {"name": "f"}},
        parallel_tool_calls=False,
        chat_template_kwargs={"enable_thinking": False},
        reasoning_effort="low",
    )
    assert chat.tools == (Tool(name="f", is_strict=True),)
    assert (chat.tool_choice, chat.tool_name) == (ToolChoice.NAMED, "f")
    assert not chat.calls_in_parallel
    assert dict(chat.template_options) == {"enable_thinking": False, "reasoning_effort": "low"}


def test_effort_says_whether_to_think_at_all() -> None:
    off, on = asked(reasoning_effort="none"), asked(reasoning_effort="high")
    assert dict(off.template_options)["enable_thinking"] is False
    assert dict(on.template_options) == {
        "enable_thinking": True,
        "thinking": True,
        "reasoning_effort": "high",
    }


def test_a_chat_without_tools_asks_for_none() -> None:
    for nothing in ({}, {"tools": None, "tool_choice": None}, {"tools": [], "tool_choice": "auto"}):
        assert asked(**nothing) == Chat(messages=(ChatMessage(role="user", content="hi"),))


def test_earlier_calls_results_and_reasoning_reach_the_engine() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}}
    chat = asked(
        messages=[
            {"role": "user", "content": "hi", "name": "Ann"},
            {
                "role": "assistant",
                "content": None,
                "reasoning_content": "hm",
                "tool_calls": [call],
            },
            {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "7"}]},
            {"role": "assistant", "content": "seven"},
        ]
    )
    assert chat.messages == (
        ChatMessage(role="user", content="hi"),
        ChatMessage(
            role="assistant",
            content="",
            reasoning="hm",
            tool_calls=(ToolCall(call_id="c1", name="f", arguments='{"x": 1}'),),
        ),
        ChatMessage(role="tool", content="7", tool_call_id="c1"),
        ChatMessage(role="assistant", content="seven"),
    )


def whole(*deltas: TokenDelta, reason: FinishReason = FinishReason.TOOL_CALLS) -> dict[str, Any]:
    parts = ReplyParts()
    for each in deltas:
        parts.add(each)
    parts.finished = Finished(request_id="x-0", reason=reason, usage=USAGE)
    reply = ChatReply(HEAD, has_logprobs=False).whole([parts], ReplyEnd(usages=(USAGE,)))
    (choice,) = reply["choices"]
    return choice


def test_a_whole_reply_has_reasoning_text_and_calls_apart() -> None:
    choice = whole(*ANSWER)
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"] == {
        "role": "assistant",
        "content": "I look.",
        "refusal": None,
        "reasoning_content": "Hm.",
        "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}},
            {"id": "b", "type": "function", "function": {"name": "g", "arguments": "{}"}},
        ],
    }


def test_calls_alone_have_null_as_their_text_and_text_alone_has_nothing_else() -> None:
    assert whole(*ANSWER[3:])["message"]["content"] is None
    said = whole(delta("Hi"), reason=FinishReason.STOP)
    assert said["message"] == {"role": "assistant", "content": "Hi", "refusal": None}
    assert whole(delta(reasoning="x"), reason=FinishReason.LENGTH)["message"]["content"] == ""


def test_a_stream_names_a_call_first_and_then_tells_its_arguments() -> None:
    shape = ChatReply(HEAD, has_logprobs=False)
    chunks = [chunk for each in ANSWER for chunk in shape.delta(0, each)]
    assert [chunk["choices"][0]["delta"] for chunk in chunks] == [
        {"reasoning_content": "Hm"},
        {"reasoning_content": "."},
        {"content": "I look."},
        {"tool_calls": [{"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"x"'}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": ": 1}"}}]},
        {"tool_calls": [{"index": 1, "id": "b", "type": "function", "function": {"name": "g", "arguments": ""}}]},
        {"tool_calls": [{"index": 1, "function": {"arguments": "{}"}}]},
    ]  # fmt: skip
    end = Finished(request_id="x-0", reason=FinishReason.TOOL_CALLS, usage=USAGE)
    (last, *_) = shape.closing(0, end, None)
    assert last["choices"][0]["finish_reason"] == "tool_calls"
