"""Families that write a call's arguments one by one between tags. Immutable, any thread. No torch."""

from __future__ import annotations

from engine.text.replies.call_shape import CallShape, ParameterShape
from engine.text.replies.family import Family
from engine.text.replies.nested_tags import NestedBody
from engine.text.replies.tagged import FunctionBody, JsonBody, NamedBody, TaggedCalls
from engine.text.replies.thinking import Thinking
from engine.text.replies.xml_calls import ParameterTags


def _parameters(name: str = "parameter", *, trims: bool = True) -> ParameterTags:
    """`<parameter=NAME>` and `<parameter name="NAME">`."""
    return ParameterTags(
        open=(f"<{name}=", f'<{name} name="'),
        named=(">", '">'),
        close=(f"</{name}>",),
        trims=trims,
    )


_JSON = JsonBody()
_FUNCTIONS = FunctionBody(open=("<function=",), close=("</function>",), parameters=_parameters())


def _arg_keys(suffix: str = "") -> ParameterTags:
    """`<arg_key>NAME</arg_key><arg_value>VALUE</arg_value>`, with a suffix to each tag's name."""
    value = f"<arg_value{suffix}>"
    return ParameterTags(
        open=(f"<arg_key{suffix}>",),
        named=(f"</arg_key{suffix}>\n{value}", f"</arg_key{suffix}>{value}"),
        close=(f"</arg_value{suffix}>",),
        trims=False,
    )


_DSML = "\uff5cDSML\uff5c"
_M3 = "]<]minimax[>["
_HY = ":opensource"
"""Hunyuan 3 writes it into each of its tags."""


def _invokes(prefix: str, parameters: ParameterTags) -> FunctionBody:
    return FunctionBody(
        open=(f'<{prefix}invoke name="',),
        named=('">',),
        close=(f"</{prefix}invoke>",),
        parameters=parameters,
    )


XML_FAMILIES = (
    Family(
        name="seed",
        has=("<seed:tool_call>",),
        read=TaggedCalls(open=("<seed:tool_call>",), close=("</seed:tool_call>",), bodies=(_FUNCTIONS, _JSON)),
        marks=("<seed:tool_call>", "</seed:tool_call>"),
        shape=CallShape(
            before_name="<seed:tool_call>\n<function=",
            after_name=">\n",
            parameters=ParameterShape(before_name="<parameter=", after_name=">", after_value="</parameter>\n"),
            end="</function>\n</seed:tool_call>",
        ),
    ),
    Family(
        name="minimax-m2",
        has=("<minimax:tool_call>",),
        read=TaggedCalls(
            open=("<minimax:tool_call>",),
            close=("</minimax:tool_call>",),
            bodies=(_invokes("", _parameters()),),
        ),
        marks=("<minimax:tool_call>", "</minimax:tool_call>"),
        shape=CallShape(
            section='<minimax:tool_call>\n',
            before_name='<invoke name="',
            after_name='">\n',
            parameters=ParameterShape(before_name='<parameter name="', after_name='">', after_value="</parameter>\n"),
            end="</invoke>\n",
            section_end="</minimax:tool_call>",
        ),
    ),
    Family(
        name="minimax-m3",
        has=(_M3, "<tool_call>", "<invoke name="),
        read=TaggedCalls(
            open=(f"{_M3}<tool_call>",), bodies=(NestedBody(mark=_M3, close="</tool_call>"),)
        ),
        marks=(_M3,),
    ),
    Family(
        name="hunyuan-3",
        has=("<tool_sep{}>", f"'{_HY}'"),
        read=TaggedCalls(
            open=(f"<tool_calls{_HY}>", f"<tool_call{_HY}>"),
            close=(f"</tool_calls{_HY}>",),
            bodies=(
                FunctionBody(
                    open=(f"<tool_call{_HY}>",),
                    named=(f"<tool_sep{_HY}>",),
                    close=(f"</tool_call{_HY}>",),
                    parameters=_arg_keys(_HY),
                ),
            ),
        ),
        marks=tuple(
            f"<{tag}{_HY}>"
            for tag in ("tool_calls", "/tool_calls", "tool_call", "/tool_call", "tool_sep", "arg_key", "/arg_key",
                        "arg_value", "/arg_value")
        ),
        shape=CallShape(
            section=f"<tool_calls{_HY}>\n",
            before_name=f"<tool_call{_HY}>",
            after_name=f"<tool_sep{_HY}>\n",
            parameters=ParameterShape(
                before_name=f"<arg_key{_HY}>",
                after_name=f"</arg_key{_HY}>\n<arg_value{_HY}>",
                after_value=f"</arg_value{_HY}>\n",
            ),
            end=f"</tool_call{_HY}>\n",
            section_end=f"</tool_calls{_HY}>",
        ),
        thinking=Thinking(open=f"<think{_HY}>", close=f"</think{_HY}>"),
    ),
    Family(
        name="dsml",
        has=(_DSML, "invoke name="),
        read=TaggedCalls(
            open=(f"<{_DSML}tool_calls>", f"<{_DSML}function_calls>"),
            close=(f"</{_DSML}tool_calls>", f"</{_DSML}function_calls>"),
            bodies=(
                _invokes(
                    _DSML,
                    ParameterTags(
                        open=(f'<{_DSML}parameter name="',),
                        named=('" string="true">', '" string="false">', '">'),
                        close=(f"</{_DSML}parameter>",),
                        trims=False,
                        spoken_type={'" string="true">': True, '" string="false">': False},
                    ),
                ),
            ),
        ),
        marks=(_DSML,),
    ),
    Family(
        name="atem",
        has=("<atem:function_calls>",),
        read=TaggedCalls(
            open=("<atem:function_calls>",),
            close=("</atem:function_calls>",),
            bodies=(_invokes("atem:", _parameters("atem:parameter")),),
        ),
        marks=(),
    ),
    Family(
        name="arg-keys",
        has=("<tool_call>", "<arg_key>", "<arg_value>"),
        read=TaggedCalls(
            open=("<tool_call>",),
            close=("</tool_call>",),
            bodies=(_JSON, NamedBody(ends=("\n", "<arg_key>", "</tool_call>"), parameters=_arg_keys())),
        ),
        marks=("<tool_call>", "</tool_call>"),
        shape=CallShape(
            before_name="<tool_call>",
            after_name="\n",
            parameters=ParameterShape(
                before_name="<arg_key>", after_name="</arg_key>\n<arg_value>", after_value="</arg_value>\n"
            ),
            end="</tool_call>",
        ),
    ),
    Family(
        name="function-xml",
        has=("<tool_call>", "<function=", "<parameter="),
        read=TaggedCalls(
            open=("<tool_call>", "<function="),
            close=("</tool_call>",),
            bodies=(_JSON, _FUNCTIONS),
        ),
        marks=("<tool_call>", "</tool_call>"),
        shape=CallShape(
            before_name="<tool_call>\n<function=",
            after_name=">\n",
            parameters=ParameterShape(before_name="<parameter=", after_name=">\n", after_value="\n</parameter>\n"),
            end="</function>\n</tool_call>",
            between="\n",
        ),
    ),
)  # fmt: skip
