"""What models of each family write, put together from their templates and their makers' descriptions of the format."""

# ruff: noqa: E501, RUF001 - one reply a line, in the families' own characters

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from engine.api import Tool

TOOLS = (
    Tool(
        name="get_weather",
        description="Weather of a city",
        parameters='{"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}, "required": ["city"]}',
    ),
    Tool(name="now"),
)
WEATHER = ("get_weather", {"city": 'Paris "é" <b>', "days": 2})
NOW: tuple[str, dict[str, Any]] = ("now", {})
JSON = '{"city": "Paris \\"é\\" <b>", "days": 2}'
Call = tuple[str, dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A reply, what is in its template's source, and what it means."""

    family: str
    source: str
    """Words of a template that the family is known by."""
    reply: str
    text: str = ""
    reasoning: str = ""
    calls: tuple[Call, ...] = ()
    is_thinking: bool = False
    ids: tuple[str, ...] = ()
    is_told_whole: bool = False
    """Its first call cannot be told before it is complete."""


def deep(tag: str) -> str:
    return f"<｜{tag.replace(' ', '▁')}｜>"


HERMES = "<think></think><tool_call></tool_call>"
CODER = "<tool_call><function=x><parameter=x><think></think>"
GLM = "<tool_call><arg_key><arg_value><think></think>"
KIMI = "<|tool_calls_section_begin|><think></think>"
HARMONY = "<|channel|><|message|>commentary"
R1 = deep("tool calls begin") + "```json<think></think>"
V31 = deep("tool calls begin") + "<think></think>"
SEED = "<seed:tool_call><seed:think></seed:think>"
DSML = "｜DSML｜invoke name=<think></think>"
SOLAR = "<|tool_call:begin|><|think|><|end|>"
M3 = "]<]minimax[>["
M3_SOURCE = f"{M3}<tool_call><invoke name=<mm:think></mm:think>"
HY_SOURCE = "<tool_sep{}>':opensource'"
GIGA = "'function call'<|role_sep|><|message_sep|>"
COMMAND = "<|START_ACTION|><|START_THINKING|><|END_THINKING|>"

SAMPLES = (
    Sample(
        family="hermes",
        source=HERMES,
        reply="Just <b>text</b>, no call.",
        text="Just <b>text</b>, no call.",
    ),
    Sample(
        family="hermes",
        source=HERMES,
        reply=f'<think>\nHm, "weather".\n</think>\n\nI look.\n<tool_call>\n{{"name": "get_weather", "arguments": {JSON}}}\n</tool_call>\n<tool_call>\n{{"name": "now", "arguments": {{}}}}\n</tool_call>',
        text="I look.",
        reasoning='Hm, "weather".\n'.strip(),
        calls=(WEATHER, NOW),
    ),
    Sample(
        family="hermes",
        source=HERMES,
        reply="still thinking\n</think>\n\nHello",
        is_thinking=True,
        reasoning="still thinking",
        text="Hello",
    ),
    Sample(
        family="hermes",
        source=HERMES,
        reply=f'<tool_call>{{"arguments": {JSON}, "name": "get_weather"}}</tool_call>',
        calls=(WEATHER,),
        is_told_whole=True,
    ),
    Sample(
        family="hermes",
        source=HERMES,
        reply='<tool_call>{"name": "get_weather", "arguments": "{\\"city\\": \\"Rom\\"}"}</tool_call> Done.',
        calls=(("get_weather", {"city": "Rom"}),),
        text="Done.",
        is_told_whole=True,
    ),
    Sample(
        family="hermes",
        source=HERMES,
        reply='<tool_call>{"type": "function", "function": {"name": "now"}}</tool_call>',
        calls=(NOW,),
        is_told_whole=True,
    ),
    Sample(
        family="hermes",
        source=HERMES,
        reply=f'<tool_call>[{{"name": "get_weather", "arguments": {JSON}}}, {{"name": "now", "arguments": null}}]</tool_call>',
        calls=(WEATHER, NOW),
    ),
    Sample(
        family="function-xml",
        source=CODER,
        reply='<think>\n\n</think>\n\nOk.\n<tool_call>\n<function=get_weather>\n<parameter=city>\nParis "é" <b>\n</parameter>\n<parameter=days>\n2\n</parameter>\n</function>\n</tool_call>\n<tool_call>\n<function=now>\n</function>\n</tool_call>',
        text="Ok.",
        calls=(WEATHER, NOW),
    ),
    Sample(
        family="function-xml",
        source=CODER,
        reply='<function=get_weather>\n<parameter=city>\nA\nB\n\n</parameter>\n<parameter=days>\nmany\n</parameter>\n<parameter=other>\n[1, {"a": null}]\n</parameter>\n</function>\n</tool_call>',
        calls=(("get_weather", {"city": "A\nB\n", "days": "many", "other": [1, {"a": None}]}),),
    ),
    Sample(
        family="arg-keys",
        source=GLM,
        reply='\n<think>why</think>\nSee.\n<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Paris "é" <b></arg_value>\n<arg_key>days</arg_key>\n<arg_value>2</arg_value>\n</tool_call>\n<tool_call>now</tool_call>',
        reasoning="why",
        text="See.",
        calls=(WEATHER, NOW),
    ),
    Sample(
        family="arg-keys",
        source=GLM,
        reply="<tool_call>get_weather<arg_key>city</arg_key><arg_value>Rom</arg_value></tool_call>",
        calls=(("get_weather", {"city": "Rom"}),),
    ),
    Sample(
        family="seed",
        source=SEED,
        reply='<seed:think>hm</seed:think>\n\n<seed:tool_call>\n<function=get_weather>\n<parameter=city>Paris "é" <b></parameter>\n<parameter=days>2</parameter>\n</function>\n</seed:tool_call>',
        reasoning="hm",
        calls=(WEATHER,),
    ),
    Sample(
        family="minimax-m2",
        source="<minimax:tool_call><think></think>",
        reply='hm</think>\n\n<minimax:tool_call>\n<invoke name="get_weather">\n<parameter name="city">Paris "é" <b></parameter>\n<parameter name="days">2</parameter>\n</invoke>\n<invoke name="now">\n</invoke>\n</minimax:tool_call>',
        is_thinking=True,
        reasoning="hm",
        calls=(WEATHER, NOW),
    ),
    Sample(
        family="minimax-m3",
        source=M3_SOURCE,
        reply=f'<mm:think>hm</mm:think>I look.{M3}<tool_call>\n{M3}<invoke name="get_weather">{M3}<city>Paris "é" <b>{M3}</city>{M3}<days>2{M3}</days>{M3}</invoke>\n{M3}<invoke name="now">{M3}</invoke>\n{M3}</tool_call>',
        reasoning="hm",
        text="I look.",
        calls=(WEATHER, NOW),
        is_told_whole=True,
    ),
    Sample(
        family="minimax-m3",
        source=M3_SOURCE,
        reply=f'</mm:think>{M3}<tool_call>\n{M3}<invoke name="now">{M3}<list>{M3}<item>1{M3}</item>{M3}<item>{M3}<a>x{M3}</a>{M3}<b>true{M3}</b>{M3}</item>{M3}</list>{M3}</invoke>\n{M3}</tool_call>',
        calls=(("now", {"list": [1, {"a": "x", "b": True}]}),),
        is_told_whole=True,
    ),
    Sample(
        family="minimax-m3",
        source=M3_SOURCE,
        reply=f'{M3}<tool_call>{M3}<invoke name="now">{M3}<a>1{M3}</b>{M3}</invoke>{M3}</tool_call>',
        text=f'{M3}<tool_call>{M3}<invoke name="now">{M3}<a>1{M3}</b>{M3}</invoke>{M3}</tool_call>',
    ),
    Sample(
        family="hunyuan-3",
        source=HY_SOURCE,
        reply='why</think:opensource>See.<tool_calls:opensource>\n<tool_call:opensource>get_weather<tool_sep:opensource>\n<arg_key:opensource>city</arg_key:opensource>\n<arg_value:opensource>Paris "é" <b></arg_value:opensource>\n<arg_key:opensource>days</arg_key:opensource>\n<arg_value:opensource>2</arg_value:opensource>\n</tool_call:opensource>\n<tool_call:opensource>now<tool_sep:opensource>\n</tool_call:opensource>\n</tool_calls:opensource>',
        is_thinking=True,
        reasoning="why",
        text="See.",
        calls=(WEATHER, NOW),
    ),
    Sample(
        family="dsml",
        source=DSML,
        reply='x</think>A\n\n<｜DSML｜tool_calls>\n<｜DSML｜invoke name="get_weather">\n<｜DSML｜parameter name="city" string="true">Paris "é" <b></｜DSML｜parameter>\n<｜DSML｜parameter name="days" string="false">2</｜DSML｜parameter>\n</｜DSML｜invoke>\n<｜DSML｜invoke name="now">\n\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>',
        is_thinking=True,
        reasoning="x",
        text="A",
        calls=(WEATHER, NOW),
    ),
    Sample(
        family="atem",
        source="<atem:function_calls>",
        reply='<atem:function_calls>\n<atem:invoke name="get_weather">\n<atem:parameter name="city">Paris "é" <b></atem:parameter>\n<atem:parameter name="days">2</atem:parameter>\n</atem:invoke>\n</atem:function_calls>',
        calls=(WEATHER,),
    ),
    Sample(
        family="kimi",
        source=KIMI,
        reply=f"<think>t</think>Sure.<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{JSON}<|tool_call_end|><|tool_call_begin|>functions.now:1<|tool_call_argument_begin|>{{}}<|tool_call_end|><|tool_calls_section_end|>",
        reasoning="t",
        text="Sure.",
        calls=(WEATHER, NOW),
        ids=("functions.get_weather:0", "functions.now:1"),
    ),
    Sample(
        family="deepseek-r1",
        source=R1,
        reply=f"plan\n</think>\n\n{deep('tool calls begin')}{deep('tool call begin')}function{deep('tool sep')}get_weather\n```json\n{JSON}\n```{deep('tool call end')}\n{deep('tool call begin')}function{deep('tool sep')}now\n```json\n{{}}\n```{deep('tool call end')}{deep('tool calls end')}",
        is_thinking=True,
        reasoning="plan",
        calls=(WEATHER, NOW),
    ),
    Sample(
        family="deepseek-v3.1",
        source=V31,
        reply=f"I look.{deep('tool calls begin')}{deep('tool call begin')}get_weather{deep('tool sep')}{JSON}{deep('tool call end')}{deep('tool call begin')}now{deep('tool sep')}{{}}{deep('tool call end')}{deep('tool calls end')}",
        text="I look.",
        calls=(WEATHER, NOW),
    ),
    Sample(
        family="mistral",
        source="[TOOL_CALLS]",
        reply=f'[TOOL_CALLS][{{"name": "get_weather", "arguments": {JSON}, "id": "abc123XYZ"}}, {{"name": "now", "arguments": {{}}, "id": "def456UVW"}}]',
        calls=(WEATHER, NOW),
    ),
    Sample(
        family="mistral-args",
        source="[TOOL_CALLS][ARGS][THINK][/THINK]",
        reply=f"[THINK]hm[/THINK]Well.[TOOL_CALLS]get_weather[ARGS]{JSON}[TOOL_CALLS]now[ARGS]{{}}",
        reasoning="hm",
        text="Well.",
        calls=(WEATHER, NOW),
    ),
    Sample(
        family="mistral-args",
        source="[TOOL_CALLS][ARGS][CALL_ID]",
        reply=f"[TOOL_CALLS]get_weather[CALL_ID]abc123XYZ[ARGS]{JSON}[TOOL_CALLS]now{{}}",
        calls=(WEATHER, NOW),
        ids=("abc123XYZ",),
    ),
    Sample(
        family="command-r",
        source=COMMAND,
        reply=f'<|START_THINKING|>I plan.<|END_THINKING|><|START_ACTION|>[\n    {{"tool_call_id": "0", "tool_name": "get_weather", "parameters": {JSON}}},\n    {{"tool_call_id": "1", "tool_name": "now", "parameters": {{}}}}\n]<|END_ACTION|>',
        reasoning="I plan.",
        calls=(WEATHER, NOW),
    ),
    Sample(
        family="command-r",
        source=COMMAND,
        reply="<|START_RESPONSE|>Hello there<|END_RESPONSE|>",
        text="Hello there",
    ),
    Sample(
        family="apertus",
        source="<|tools_prefix|><|inner_prefix|><|inner_suffix|>",
        reply=f'<|inner_prefix|>in<|inner_suffix|>out<|tools_prefix|>[{{"get_weather": {JSON}}}, {{"now": {{}}}}]<|tools_suffix|>',
        reasoning="in",
        text="out",
        calls=(WEATHER, NOW),
    ),
    Sample(
        family="solar",
        source=SOLAR,
        reply=f"<|think|>r<|end|><|begin|>assistant<|tool_calls|><|tool_call:begin|>id7<|tool_call:name|>get_weather<|tool_call:args|>{JSON}<|tool_call:end|>",
        reasoning="r",
        calls=(WEATHER,),
        ids=("id7",),
    ),
    Sample(
        family="solar",
        source=SOLAR,
        reply="<|think|>r<|end|><|begin|>assistant<|content|>Hello<|end|>",
        reasoning="r",
        text="Hello",
    ),
    Sample(
        family="gemma4",
        source="<|tool_call>call:<|channel>thought<channel|>",
        reply='<|channel>thought\nhm\n<channel|>Yes.<|tool_call>call:get_weather{city:<|"|>Paris "é" <b><|"|>,days:2}<tool_call|><|tool_call>call:now{}<tool_call|>',
        reasoning="hm",
        text="Yes.",
        calls=(WEATHER, NOW),
        is_told_whole=True,
    ),
    Sample(
        family="lfm2",
        source="<|tool_list_start|>",
        reply='Ok.<|tool_call_start|>[get_weather(city="Paris \\"é\\" <b>", days=2), now()]<|tool_call_end|>Checking.',
        text="Ok.Checking.",
        calls=(WEATHER, NOW),
        is_told_whole=True,
    ),
    Sample(
        family="gigachat",
        source="<|function_call|>",
        reply=f'a<|function_call|>{{"name": "get_weather", "arguments": {JSON}}}',
        text="a",
        calls=(WEATHER,),
    ),
    Sample(
        family="gigachat-3.0",
        source=GIGA,
        reply=f'a<|message_sep|>\n\nfunction call<|role_sep|>\n{{"name": "get_weather", "arguments": {JSON}}}<|message_sep|>\n\n',
        text="a",
        calls=(WEATHER,),
    ),
    Sample(family="gigachat-3.0", source=GIGA, reply="Hello<|message_sep|>\n\n", text="Hello"),
    Sample(
        family="granite",
        source="<|tool_call|>",
        reply=f'<|tool_call|>[{{"name": "get_weather", "arguments": {JSON}}}]',
        calls=(WEATHER,),
    ),
    Sample(
        family="granite",
        source="<|tool_call|><think></think><response></response>",
        reply="<think>a</think><response>b</response>",
        reasoning="a",
        text="b",
    ),
    Sample(
        family="nemotron",
        source="<TOOLCALL><think></think>",
        reply=f'ok</think>\n<TOOLCALL>[{{"name": "get_weather", "arguments": {JSON}}}, {{"name": "now", "arguments": {{}}}}]</TOOLCALL>',
        is_thinking=True,
        reasoning="ok",
        calls=(WEATHER, NOW),
    ),
    Sample(
        family="tool-calls-list",
        source="<tool_calls>[<thinking></thinking>",
        reply=f'<thinking>m</thinking>\n<tool_calls>[{{"name": "get_weather", "arguments": {JSON}, "id": "x"}}]</tool_calls>',
        reasoning="m",
        calls=(WEATHER,),
    ),
    Sample(
        family="tool-calls-lines",
        source="<tool_calls></tool_calls>",
        reply=f'<tool_calls>\n{{"name": "get_weather", "arguments": {JSON}}}\n{{"name": "now", "arguments": {{}}}}\n</tool_calls>',
        calls=(WEATHER, NOW),
    ),
    Sample(
        family="functionary-v3.2",
        source=">>>all recipient",
        reply=f"all\nI look.>>>get_weather\n{JSON}>>>now\n{{}}",
        text="I look.",
        calls=(WEATHER, NOW),
    ),
    Sample(
        family="functionary-v3.1",
        source="<function=</function>",
        reply=f"Hm. <function=get_weather>{JSON}</function><function=now>{{}}</function>",
        text="Hm.",
        calls=(WEATHER, NOW),
    ),
    Sample(
        family="llama3",
        source='<|start_header_id|>"parameters": ',
        reply=f'{{"name": "get_weather", "parameters": {JSON}}}',
        calls=(WEATHER,),
    ),
    Sample(
        family="llama3",
        source='<|start_header_id|>"parameters": ',
        reply=f'<|python_tag|>{{"type": "function", "name": "get_weather", "parameters": {JSON}}}; {{"name": "now", "parameters": {{}}}}',
        calls=(WEATHER, NOW),
    ),
    Sample(
        family="llama3",
        source='<|start_header_id|>"parameters": ',
        reply='{"name": "Ann", "parameters": {"age": 3}}',
        text='{"name": "Ann", "parameters": {"age": 3}}',
    ),
    Sample(
        family="harmony",
        source=HARMONY,
        reply=f"<|channel|>analysis<|message|>Need weather.<|end|><|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{JSON}<|call|>",
        reasoning="Need weather.",
        calls=(WEATHER,),
    ),
    Sample(
        family="harmony",
        source=HARMONY,
        reply=f"<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>commentary<|message|>I look.<|end|><|start|>assistant to=functions.get_weather<|channel|>commentary json<|message|>{JSON}",
        reasoning="a",
        text="I look.",
        calls=(WEATHER,),
    ),
    Sample(
        family="harmony",
        source=HARMONY,
        reply="<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>Hello <|return|>",
        reasoning="a",
        text="Hello ",
    ),
    Sample(family="harmony", source=HARMONY, reply="no channel at all", text="no channel at all"),
    Sample(
        family="generic",
        source="nothing",
        reply=f'{{"tool_calls": [{{"name": "get_weather", "arguments": {JSON}}}, {{"name": "now", "arguments": {{}}}}]}}',
        calls=(WEATHER, NOW),
    ),
    Sample(
        family="generic",
        source="nothing",
        reply=f'```json\n{{"name": "get_weather", "arguments": {JSON}}}\n```',
        calls=(WEATHER,),
    ),
    Sample(
        family="generic",
        source="nothing",
        reply='{"answer": 42, "name": "now"} is JSON',
        text='{"answer": 42, "name": "now"} is JSON',
    ),
    Sample(
        family="generic",
        source="nothing",
        reply="```json\n[1, 2]\n```",
        text="```json\n[1, 2]\n```",
    ),
)
