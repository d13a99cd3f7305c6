"""What models of each family write, put together from their templates and their makers' descriptions of the format."""

# ruff: noqa: E501, RUF001 - one reply a line, in the families' own characters

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
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


@dataclass(frozen=True, slots=True)
class Family:
    """`source`: words of a template that it is known by."""

    name: str
    source: str


@dataclass(frozen=True, slots=True)
class Sample:
    """A reply of a family, and what it means."""

    family: Family
    _: KW_ONLY
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


M3 = "]<]minimax[>["
HERMES = Family("hermes", "<think></think><tool_call></tool_call>")
CODER = Family("function-xml", "<tool_call><function=x><parameter=x><think></think>")
GLM = Family("arg-keys", "<tool_call><arg_key><arg_value><think></think>")
SEED = Family("seed", "<seed:tool_call><seed:think></seed:think>")
MINIMAX_M2 = Family("minimax-m2", "<minimax:tool_call><think></think>")
MINIMAX_M3 = Family("minimax-m3", f"{M3}<tool_call><invoke name=<mm:think></mm:think>")
HUNYUAN_3 = Family("hunyuan-3", "<tool_sep{}>':opensource'")
DSML = Family("dsml", "｜DSML｜invoke name=<think></think>")
ATEM = Family("atem", "<atem:function_calls>")
KIMI = Family("kimi", "<|tool_calls_section_begin|><think></think>")
R1 = Family("deepseek-r1", deep("tool calls begin") + "```json<think></think>")
V31 = Family("deepseek-v3.1", deep("tool calls begin") + "<think></think>")
MISTRAL = Family("mistral", "[TOOL_CALLS]")
MISTRAL_ARGS = Family("mistral-args", "[TOOL_CALLS][ARGS][THINK][/THINK]")
MISTRAL_CALL_IDS = Family("mistral-args", "[TOOL_CALLS][ARGS][CALL_ID]")
COMMAND_R = Family("command-r", "<|START_ACTION|><|START_THINKING|><|END_THINKING|>")
APERTUS = Family("apertus", "<|tools_prefix|><|inner_prefix|><|inner_suffix|>")
SOLAR = Family("solar", "<|tool_call:begin|><|think|><|end|>")
GEMMA4 = Family("gemma4", "<|tool_call>call:<|channel>thought<channel|>")
LFM2 = Family("lfm2", "<|tool_list_start|>")
GIGACHAT = Family("gigachat", "<|function_call|>")
GIGACHAT_3 = Family("gigachat-3.0", "'function call'<|role_sep|><|message_sep|>")
GRANITE = Family("granite", "<|tool_call|>")
GRANITE_THINKING = Family("granite", "<|tool_call|><think></think><response></response>")
NEMOTRON = Family("nemotron", "<TOOLCALL><think></think>")
TOOL_CALLS_LIST = Family("tool-calls-list", "<tool_calls>[<thinking></thinking>")
TOOL_CALLS_LINES = Family("tool-calls-lines", "<tool_calls></tool_calls>")
FUNCTIONARY_V3_2 = Family("functionary-v3.2", ">>>all recipient")
FUNCTIONARY_V3_1 = Family("functionary-v3.1", "<function=</function>")
LLAMA3 = Family("llama3", '<|start_header_id|>"parameters": ')
HARMONY = Family("harmony", "<|channel|><|message|>commentary")
GENERIC = Family("generic", "nothing")

SAMPLES = (
    Sample(HERMES, reply="Just <b>text</b>, no call.", text="Just <b>text</b>, no call."),
    Sample(
        HERMES,
        reply=f'<think>\nHm, "weather".\n</think>\n\nI look.\n<tool_call>\n{{"name": "get_weather", "arguments": {JSON}}}\n</tool_call>\n<tool_call>\n{{"name": "now", "arguments": {{}}}}\n</tool_call>',
        text="I look.",
        reasoning='Hm, "weather".\n'.strip(),
        calls=(WEATHER, NOW),
    ),
    Sample(
        HERMES,
        reply="still thinking\n</think>\n\nHello",
        is_thinking=True,
        reasoning="still thinking",
        text="Hello",
    ),
    Sample(
        HERMES,
        reply=f'<tool_call>{{"arguments": {JSON}, "name": "get_weather"}}</tool_call>',
        calls=(WEATHER,),
        is_told_whole=True,
    ),
    Sample(
        HERMES,
        reply='<tool_call>{"name": "get_weather", "arguments": "{\\"city\\": \\"Rom\\"}"}</tool_call> Done.',
        calls=(("get_weather", {"city": "Rom"}),),
        text="Done.",
        is_told_whole=True,
    ),
    Sample(
        HERMES,
        reply='<tool_call>{"type": "function", "function": {"name": "now"}}</tool_call>',
        calls=(NOW,),
        is_told_whole=True,
    ),
    Sample(
        HERMES,
        reply=f'<tool_call>[{{"name": "get_weather", "arguments": {JSON}}}, {{"name": "now", "arguments": null}}]</tool_call>',
        calls=(WEATHER, NOW),
    ),
    Sample(
        CODER,
        reply='<think>\n\n</think>\n\nOk.\n<tool_call>\n<function=get_weather>\n<parameter=city>\nParis "é" <b>\n</parameter>\n<parameter=days>\n2\n</parameter>\n</function>\n</tool_call>\n<tool_call>\n<function=now>\n</function>\n</tool_call>',
        text="Ok.",
        calls=(WEATHER, NOW),
    ),
    Sample(
        CODER,
        reply='<function=get_weather>\n<parameter=city>\nA\nB\n\n</parameter>\n<parameter=days>\nmany\n</parameter>\n<parameter=other>\n[1, {"a": null}]\n</parameter>\n</function>\n</tool_call>',
        calls=(("get_weather", {"city": "A\nB\n", "days": "many", "other": [1, {"a": None}]}),),
    ),
    Sample(
        GLM,
        reply='\n<think>why</think>\nSee.\n<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Paris "é" <b></arg_value>\n<arg_key>days</arg_key>\n<arg_value>2</arg_value>\n</tool_call>\n<tool_call>now</tool_call>',
        reasoning="why",
        text="See.",
        calls=(WEATHER, NOW),
    ),
    Sample(
        GLM,
        reply="<tool_call>get_weather<arg_key>city</arg_key><arg_value>Rom</arg_value></tool_call>",
        calls=(("get_weather", {"city": "Rom"}),),
    ),
    Sample(
        SEED,
        reply='<seed:think>hm</seed:think>\n\n<seed:tool_call>\n<function=get_weather>\n<parameter=city>Paris "é" <b></parameter>\n<parameter=days>2</parameter>\n</function>\n</seed:tool_call>',
        reasoning="hm",
        calls=(WEATHER,),
    ),
    Sample(
        MINIMAX_M2,
        reply='hm</think>\n\n<minimax:tool_call>\n<invoke name="get_weather">\n<parameter name="city">Paris "é" <b></parameter>\n<parameter name="days">2</parameter>\n</invoke>\n<invoke name="now">\n</invoke>\n</minimax:tool_call>',
        is_thinking=True,
        reasoning="hm",
        calls=(WEATHER, NOW),
    ),
    Sample(
        MINIMAX_M3,
        reply=f'<mm:think>hm</mm:think>I look.{M3}<tool_call>\n{M3}<invoke name="get_weather">{M3}<city>Paris "é" <b>{M3}</city>{M3}<days>2{M3}</days>{M3}</invoke>\n{M3}<invoke name="now">{M3}</invoke>\n{M3}</tool_call>',
        reasoning="hm",
        text="I look.",
        calls=(WEATHER, NOW),
        is_told_whole=True,
    ),
    Sample(
        MINIMAX_M3,
        reply=f'</mm:think>{M3}<tool_call>\n{M3}<invoke name="now">{M3}<list>{M3}<item>1{M3}</item>{M3}<item>{M3}<a>x{M3}</a>{M3}<b>true{M3}</b>{M3}</item>{M3}</list>{M3}</invoke>\n{M3}</tool_call>',
        calls=(("now", {"list": [1, {"a": "x", "b": True}]}),),
        is_told_whole=True,
    ),
    Sample(
        MINIMAX_M3,
        reply=f'{M3}<tool_call>{M3}<invoke name="now">{M3}<a>1{M3}</b>{M3}</invoke>{M3}</tool_call>',
        text=f'{M3}<tool_call>{M3}<invoke name="now">{M3}<a>1{M3}</b>{M3}</invoke>{M3}</tool_call>',
    ),
    Sample(
        HUNYUAN_3,
        reply='why</think:opensource>See.<tool_calls:opensource>\n<tool_call:opensource>get_weather<tool_sep:opensource>\n<arg_key:opensource>city</arg_key:opensource>\n<arg_value:opensource>Paris "é" <b></arg_value:opensource>\n<arg_key:opensource>days</arg_key:opensource>\n<arg_value:opensource>2</arg_value:opensource>\n</tool_call:opensource>\n<tool_call:opensource>now<tool_sep:opensource>\n</tool_call:opensource>\n</tool_calls:opensource>',
        is_thinking=True,
        reasoning="why",
        text="See.",
        calls=(WEATHER, NOW),
    ),
    Sample(
        DSML,
        reply='x</think>A\n\n<｜DSML｜tool_calls>\n<｜DSML｜invoke name="get_weather">\n<｜DSML｜parameter name="city" string="true">Paris "é" <b></｜DSML｜parameter>\n<｜DSML｜parameter name="days" string="false">2</｜DSML｜parameter>\n</｜DSML｜invoke>\n<｜DSML｜invoke name="now">\n\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>',
        is_thinking=True,
        reasoning="x",
        text="A",
        calls=(WEATHER, NOW),
    ),
    Sample(
        ATEM,
        reply='<atem:function_calls>\n<atem:invoke name="get_weather">\n<atem:parameter name="city">Paris "é" <b></atem:parameter>\n<atem:parameter name="days">2</atem:parameter>\n</atem:invoke>\n</atem:function_calls>',
        calls=(WEATHER,),
    ),
    Sample(
        KIMI,
        reply=f"<think>t</think>Sure.<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{JSON}<|tool_call_end|><|tool_call_begin|>functions.now:1<|tool_call_argument_begin|>{{}}<|tool_call_end|><|tool_calls_section_end|>",
        reasoning="t",
        text="Sure.",
        calls=(WEATHER, NOW),
        ids=("functions.get_weather:0", "functions.now:1"),
    ),
    Sample(
        R1,
        reply=f"plan\n</think>\n\n{deep('tool calls begin')}{deep('tool call begin')}function{deep('tool sep')}get_weather\n```json\n{JSON}\n```{deep('tool call end')}\n{deep('tool call begin')}function{deep('tool sep')}now\n```json\n{{}}\n```{deep('tool call end')}{deep('tool calls end')}",
        is_thinking=True,
        reasoning="plan",
        calls=(WEATHER, NOW),
    ),
    Sample(
        V31,
        reply=f"I look.{deep('tool calls begin')}{deep('tool call begin')}get_weather{deep('tool sep')}{JSON}{deep('tool call end')}{deep('tool call begin')}now{deep('tool sep')}{{}}{deep('tool call end')}{deep('tool calls end')}",
        text="I look.",
        calls=(WEATHER, NOW),
    ),
    Sample(
        MISTRAL,
        reply=f'[TOOL_CALLS][{{"name": "get_weather", "arguments": {JSON}, "id": "abc123XYZ"}}, {{"name": "now", "arguments": {{}}, "id": "def456UVW"}}]',
        calls=(WEATHER, NOW),
    ),
    Sample(
        MISTRAL_ARGS,
        reply=f"[THINK]hm[/THINK]Well.[TOOL_CALLS]get_weather[ARGS]{JSON}[TOOL_CALLS]now[ARGS]{{}}",
        reasoning="hm",
        text="Well.",
        calls=(WEATHER, NOW),
    ),
    Sample(
        MISTRAL_CALL_IDS,
        reply=f"[TOOL_CALLS]get_weather[CALL_ID]abc123XYZ[ARGS]{JSON}[TOOL_CALLS]now{{}}",
        calls=(WEATHER, NOW),
        ids=("abc123XYZ",),
    ),
    Sample(
        COMMAND_R,
        reply=f'<|START_THINKING|>I plan.<|END_THINKING|><|START_ACTION|>[\n    {{"tool_call_id": "0", "tool_name": "get_weather", "parameters": {JSON}}},\n    {{"tool_call_id": "1", "tool_name": "now", "parameters": {{}}}}\n]<|END_ACTION|>',
        reasoning="I plan.",
        calls=(WEATHER, NOW),
    ),
    Sample(COMMAND_R, reply="<|START_RESPONSE|>Hello there<|END_RESPONSE|>", text="Hello there"),
    Sample(
        APERTUS,
        reply=f'<|inner_prefix|>in<|inner_suffix|>out<|tools_prefix|>[{{"get_weather": {JSON}}}, {{"now": {{}}}}]<|tools_suffix|>',
        reasoning="in",
        text="out",
        calls=(WEATHER, NOW),
    ),
    Sample(
        SOLAR,
        reply=f"<|think|>r<|end|><|begin|>assistant<|tool_calls|><|tool_call:begin|>id7<|tool_call:name|>get_weather<|tool_call:args|>{JSON}<|tool_call:end|>",
        reasoning="r",
        calls=(WEATHER,),
        ids=("id7",),
    ),
    Sample(
        SOLAR,
        reply="<|think|>r<|end|><|begin|>assistant<|content|>Hello<|end|>",
        reasoning="r",
        text="Hello",
    ),
    Sample(
        GEMMA4,
        reply='<|channel>thought\nhm\n<channel|>Yes.<|tool_call>call:get_weather{city:<|"|>Paris "é" <b><|"|>,days:2}<tool_call|><|tool_call>call:now{}<tool_call|>',
        reasoning="hm",
        text="Yes.",
        calls=(WEATHER, NOW),
        is_told_whole=True,
    ),
    Sample(
        LFM2,
        reply='Ok.<|tool_call_start|>[get_weather(city="Paris \\"é\\" <b>", days=2), now()]<|tool_call_end|>Checking.',
        text="Ok.Checking.",
        calls=(WEATHER, NOW),
        is_told_whole=True,
    ),
    Sample(
        GIGACHAT,
        reply=f'a<|function_call|>{{"name": "get_weather", "arguments": {JSON}}}',
        text="a",
        calls=(WEATHER,),
    ),
    Sample(
        GIGACHAT_3,
        reply=f'a<|message_sep|>\n\nfunction call<|role_sep|>\n{{"name": "get_weather", "arguments": {JSON}}}<|message_sep|>\n\n',
        text="a",
        calls=(WEATHER,),
    ),
    Sample(GIGACHAT_3, reply="Hello<|message_sep|>\n\n", text="Hello"),
    Sample(
        GRANITE,
        reply=f'<|tool_call|>[{{"name": "get_weather", "arguments": {JSON}}}]',
        calls=(WEATHER,),
    ),
    Sample(
        GRANITE_THINKING, reply="<think>a</think><response>b</response>", reasoning="a", text="b"
    ),
    Sample(
        NEMOTRON,
        reply=f'ok</think>\n<TOOLCALL>[{{"name": "get_weather", "arguments": {JSON}}}, {{"name": "now", "arguments": {{}}}}]</TOOLCALL>',
        is_thinking=True,
        reasoning="ok",
        calls=(WEATHER, NOW),
    ),
    Sample(
        TOOL_CALLS_LIST,
        reply=f'<thinking>m</thinking>\n<tool_calls>[{{"name": "get_weather", "arguments": {JSON}, "id": "x"}}]</tool_calls>',
        reasoning="m",
        calls=(WEATHER,),
    ),
    Sample(
        TOOL_CALLS_LINES,
        reply=f'<tool_calls>\n{{"name": "get_weather", "arguments": {JSON}}}\n{{"name": "now", "arguments": {{}}}}\n</tool_calls>',
        calls=(WEATHER, NOW),
    ),
    Sample(
        FUNCTIONARY_V3_2,
        reply=f"all\nI look.>>>get_weather\n{JSON}>>>now\n{{}}",
        text="I look.",
        calls=(WEATHER, NOW),
    ),
    Sample(
        FUNCTIONARY_V3_1,
        reply=f"Hm. <function=get_weather>{JSON}</function><function=now>{{}}</function>",
        text="Hm.",
        calls=(WEATHER, NOW),
    ),
    Sample(LLAMA3, reply=f'{{"name": "get_weather", "parameters": {JSON}}}', calls=(WEATHER,)),
    Sample(
        LLAMA3,
        reply=f'<|python_tag|>{{"type": "function", "name": "get_weather", "parameters": {JSON}}}; {{"name": "now", "parameters": {{}}}}',
        calls=(WEATHER, NOW),
    ),
    Sample(
        LLAMA3,
        reply='{"name": "Ann", "parameters": {"age": 3}}',
        text='{"name": "Ann", "parameters": {"age": 3}}',
    ),
    Sample(
        HARMONY,
        reply=f"<|channel|>analysis<|message|>Need weather.<|end|><|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{JSON}<|call|>",
        reasoning="Need weather.",
        calls=(WEATHER,),
    ),
    Sample(
        HARMONY,
        reply=f"<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>commentary<|message|>I look.<|end|><|start|>assistant to=functions.get_weather<|channel|>commentary json<|message|>{JSON}",
        reasoning="a",
        text="I look.",
        calls=(WEATHER,),
    ),
    Sample(
        HARMONY,
        reply="<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>Hello <|return|>",
        reasoning="a",
        text="Hello ",
    ),
    Sample(HARMONY, reply="no channel at all", text="no channel at all"),
    Sample(
        GENERIC,
        reply=f'{{"tool_calls": [{{"name": "get_weather", "arguments": {JSON}}}, {{"name": "now", "arguments": {{}}}}]}}',
        calls=(WEATHER, NOW),
    ),
    Sample(
        GENERIC,
        reply=f'```json\n{{"name": "get_weather", "arguments": {JSON}}}\n```',
        calls=(WEATHER,),
    ),
    Sample(
        GENERIC,
        reply='{"answer": 42, "name": "now"} is JSON',
        text='{"answer": 42, "name": "now"} is JSON',
    ),
    Sample(GENERIC, reply="```json\n[1, 2]\n```", text="```json\n[1, 2]\n```"),
)
