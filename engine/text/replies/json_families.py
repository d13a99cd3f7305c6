"""Families that write a call's arguments as JSON, after its name or around it. Immutable, any thread. No torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from engine.text.replies.call_shape import CallShape
from engine.text.replies.family import Family
from engine.text.replies.json_calls import CallKeys
from engine.text.replies.special import (
    ChannelReply,
    JsonReply,
    MistralReply,
    RecipientReply,
    RoleReply,
)
from engine.text.replies.tagged import HeadedBody, JsonBody, TaggedCalls
from engine.text.replies.whole_calls import GEMMA_QUOTE, WholeBody, gemma_call, python_calls

_JSON = JsonBody()
_LIST = CallShape(before_name='{"name": "', after_name='", "arguments": ', end="}", between=", ")
"""Of an object in a list; the section's tags are the family's."""


def _headed(before: str, after: str) -> Callable[[str], tuple[str, str]]:
    """An id like `functions.NAME:0`, which has the name in it."""

    def split(head: str) -> tuple[str, str]:
        return head.removeprefix(before).rsplit(after, 1)[0], head

    return split


def _deep(tag: str) -> str:
    """DeepSeek's tokens, which templates and vocabularies agree on."""
    return f"<\uff5c{tag.replace(' ', chr(0x2581))}\uff5c>"


def _solar_head(head: str) -> tuple[str, str]:
    """An id and a name."""
    call_id, _, name = head.partition("<|tool_call:name|>")
    return name, call_id


_DEEP_MARKS = tuple(
    map(
        _deep,
        ("tool calls begin", "tool calls end", "tool call begin", "tool call end", "tool sep"),
    )
)
_SOLAR_HEADS = (
    "<|begin|>assistant<|content|>", "<|begin|>assistant<|tool_calls|>", "<|content|>", "<|end|>",
)  # fmt: skip
_TOOL_CALLS = TaggedCalls(open=("<tool_calls>",), close=("</tool_calls>",), bodies=(_JSON,))

_LFM2 = Family(
    name="lfm2",
    has=("<|tool_call_start|>",),
    read=TaggedCalls(
        open=("<|tool_call_start|>",),
        close=("<|tool_call_end|>",),
        bodies=(WholeBody(close="<|tool_call_end|>", parse=python_calls),),
    ),
    marks=("<|tool_call_start|>", "<|tool_call_end|>"),
)

JSON_FAMILIES = (
    Family(
        name="harmony",
        has=("<|channel|>", "<|message|>", "commentary"),
        lacks=("<atem:",),
        read=ChannelReply(),
        marks=("<|channel|>", "<|message|>", "<|start|>", "<|end|>", "<|call|>", "<|return|>", "<|constrain|>"),
        shape=CallShape(
            before_name="<|channel|>commentary to=functions.",
            after_name=" <|constrain|>json<|message|>",
        ),
        has_own_reasoning=True,
    ),
    Family(
        name="kimi",
        has=("<|tool_calls_section_begin|>",),
        read=TaggedCalls(
            open=("<|tool_calls_section_begin|>",),
            close=("<|tool_calls_section_end|>",),
            bodies=(
                HeadedBody(
                    open=("<|tool_call_begin|>",),
                    separators=("<|tool_call_argument_begin|>",),
                    close=("<|tool_call_end|>",),
                    split=_headed("functions.", ":"),
                ),
            ),
        ),
        marks=(
            "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>", "<|tool_call_begin|>",
            "<|tool_call_argument_begin|>", "<|tool_call_end|>",
        ),
        shape=CallShape(
            section="<|tool_calls_section_begin|>",
            before_name="<|tool_call_begin|>functions.",
            after_name=":0<|tool_call_argument_begin|>",
            end="<|tool_call_end|>",
            section_end="<|tool_calls_section_end|>",
            most=1,
        ),
    ),
    Family(
        name="deepseek-r1",
        has=(_deep("tool calls begin"), "```json"),
        read=TaggedCalls(
            open=(_deep("tool calls begin"),),
            close=(_deep("tool calls end"),),
            bodies=(
                HeadedBody(
                    open=(_deep("tool call begin"),),
                    separators=(_deep("tool sep"),),
                    close=(_deep("tool call end"),),
                    has_fence=True,
                ),
            ),
        ),
        marks=_DEEP_MARKS,
        shape=CallShape(
            section=_deep("tool calls begin"),
            before_name=f"{_deep('tool call begin')}function{_deep('tool sep')}",
            after_name="\n```json\n",
            end=f"\n```{_deep('tool call end')}",
            between="\n",
            section_end=_deep("tool calls end"),
        ),
    ),
    Family(
        name="deepseek-v3.1",
        has=(_deep("tool calls begin"),),
        read=TaggedCalls(
            open=(_deep("tool calls begin"),),
            close=(_deep("tool calls end"),),
            bodies=(
                HeadedBody(
                    open=(_deep("tool call begin"),),
                    separators=(_deep("tool sep"),),
                    close=(_deep("tool call end"),),
                ),
            ),
        ),
        marks=_DEEP_MARKS,
        shape=CallShape(
            section=_deep("tool calls begin"),
            before_name=_deep("tool call begin"),
            after_name=_deep("tool sep"),
            end=_deep("tool call end"),
            section_end=_deep("tool calls end"),
        ),
    ),
    Family(
        name="mistral",
        has=("[TOOL_CALLS]",),
        lacks=("[ARGS]",),
        read=MistralReply(),
        marks=("[TOOL_CALLS]",),
        shape=replace(_LIST, section="[TOOL_CALLS][", section_end="]"),
    ),
    Family(
        name="mistral-args",
        has=("[TOOL_CALLS]", "[ARGS]"),
        read=MistralReply(),
        marks=("[TOOL_CALLS]", "[ARGS]", "[CALL_ID]"),
        shape=CallShape(before_name="[TOOL_CALLS]", after_name="[ARGS]"),
    ),
    Family(
        name="command-r",
        has=("<|START_ACTION|>",),
        read=TaggedCalls(
            open=("<|START_ACTION|>",),
            close=("<|END_ACTION|>",),
            bodies=(_JSON,),
            dropped=("<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>"),
        ),
        marks=("<|START_ACTION|>", "<|END_ACTION|>"),
        shape=CallShape(
            section="<|START_ACTION|>[\n    ",
            before_name='{"tool_call_id": "0", "tool_name": "',
            after_name='", "parameters": ',
            end="}",
            between=",\n    ",
            section_end="\n]<|END_ACTION|>",
        ),
    ),
    Family(
        name="apertus",
        has=("<|tools_prefix|>",),
        read=TaggedCalls(
            open=("<|tools_prefix|>",),
            close=("<|tools_suffix|>",),
            bodies=(JsonBody(CallKeys(is_by_name=True)),),
        ),
        marks=("<|tools_prefix|>", "<|tools_suffix|>"),
        shape=CallShape(
            section="<|tools_prefix|>[",
            before_name='{"',
            after_name='": ',
            end="}",
            between=", ",
            section_end="]<|tools_suffix|>",
        ),
    ),
    Family(
        name="solar",
        has=("<|tool_call:begin|>",),
        read=TaggedCalls(
            open=("<|tool_call:begin|>",),
            bodies=(
                HeadedBody(
                    separators=("<|tool_call:args|>",),
                    close=("<|tool_call:end|>",),
                    split=_solar_head,
                ),
            ),
            dropped=_SOLAR_HEADS,
        ),
        marks=(
            "<|tool_call:begin|>", "<|tool_call:args|>", "<|tool_call:end|>", "<|tool_call:name|>",
            "<|begin|>", "<|content|>", "<|tool_calls|>", "<|end|>",
        ),
    ),
    Family(
        name="gemma4",
        has=("<|tool_call>call:",),
        read=TaggedCalls(
            open=("<|tool_call>",),
            close=("<tool_call|>",),
            bodies=(WholeBody(close="<tool_call|>", parse=gemma_call),),
        ),
        marks=("<|tool_call>", "<tool_call|>", GEMMA_QUOTE),
    ),
    _LFM2,
    replace(_LFM2, has=("<|tool_list_start|>",)),
    Family(
        name="gigachat-3.0",
        has=("<|role_sep|>", "<|message_sep|>", "'function call'"),
        read=RoleReply("<|message_sep|>", "function call<|role_sep|>"),
        marks=("<|message_sep|>", "<|role_sep|>"),
        shape=replace(
            _LIST,
            section='<|message_sep|>\n\nfunction call<|role_sep|>\n',
            section_end="<|message_sep|>\n\n",
            most=1,
        ),
    ),
    Family(
        name="gigachat",
        has=("<|function_call|>",),
        read=TaggedCalls(open=("<|function_call|>",), bodies=(_JSON,)),
        marks=("<|function_call|>",),
        shape=replace(_LIST, section="<|function_call|>"),
    ),
    Family(
        name="granite",
        has=("<|tool_call|>",),
        read=TaggedCalls(open=("<|tool_call|>",), bodies=(_JSON,)),
        marks=("<|tool_call|>",),
        shape=replace(_LIST, section="<|tool_call|>[", section_end="]"),
    ),
    Family(
        name="nemotron",
        has=("<TOOLCALL>",),
        read=TaggedCalls(open=("<TOOLCALL>",), close=("</TOOLCALL>",), bodies=(_JSON,)),
        marks=("<TOOLCALL>", "</TOOLCALL>"),
        shape=replace(_LIST, section="<TOOLCALL>[", section_end="]</TOOLCALL>"),
    ),
    Family(
        name="tool-calls-list",
        has=("<tool_calls>[",),
        read=_TOOL_CALLS,
        marks=("<tool_calls>", "</tool_calls>"),
        shape=replace(_LIST, section="<tool_calls>[", section_end="]</tool_calls>"),
    ),
    Family(
        name="tool-calls-lines",
        has=("<tool_calls>", "</tool_calls>"),
        lacks=("<tool_call>",),
        read=_TOOL_CALLS,
        marks=("<tool_calls>", "</tool_calls>"),
        shape=replace(
            _LIST, section="<tool_calls>\n", end="}\n", between="", section_end="</tool_calls>"
        ),
    ),
    Family(
        name="hermes",
        has=("<tool_call>",),
        lacks=("]<]minimax[>[",),
        read=TaggedCalls(open=("<tool_call>",), close=("</tool_call>",), bodies=(_JSON,)),
        marks=("<tool_call>", "</tool_call>"),
        shape=replace(
            _LIST,
            before_name='<tool_call>\n{"name": "',
            end="}\n</tool_call>",
            between="\n",
        ),
    ),
    Family(
        name="functionary-v3.2",
        has=(">>>all", "recipient"),
        read=RecipientReply(),
        marks=(),
        shape=CallShape(after_name="\n", between=">>>", text_begins="all\n"),
    ),
    Family(
        name="functionary-v3.1",
        has=("<function=", "</function>"),
        read=TaggedCalls(
            open=("<function=",),
            bodies=(HeadedBody(separators=(">",), close=("</function>",)),),
        ),
        marks=(),
        shape=CallShape(before_name="<function=", after_name=">", end="</function>"),
    ),
    Family(
        name="llama3",
        has=("<|start_header_id|>", '"parameters": '),
        read=JsonReply(opens=("<|python_tag|>",)),
        marks=("<|python_tag|>",),
        shape=CallShape(before_name='{"name": "', after_name='", "parameters": ', end="}", most=1),
    ),
)  # fmt: skip

GENERIC = Family(
    name="generic",
    has=(),
    read=JsonReply(wrapper="tool_calls"),
    marks=(),
    shape=replace(_LIST, section='{"tool_calls": [', section_end="]}", most=1),
)
"""For every other model: `{"tool_calls": [{"name": …, "arguments": {…}}]}` is the reply, as its prompt tells it.

One call that it must make is one: such models repeat what they have once begun."""
