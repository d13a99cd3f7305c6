"""Tools, calls, results, reasoning and options reach templates as Hugging Face's renderer gives them.

The reference is transformers itself; the templates are those of the shared cases, and three small ones of our own.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from transformers.utils.chat_template_utils import render_jinja_template

from engine.api import Chat, ChatMessage, Tool, ToolCall, ToolChoice
from engine.errors import InvalidRequest
from engine.text.chat_prompt import encode_chat, render_chat
from engine.text.chat_template import CHATML, ChatTemplate
from engine.text.replies.families import FAMILIES, family_of
from engine.text.replies.schemas import UNREADABLE
from engine.text.template_values import message_values, tool_values
from engine.text.tokenizer import Tokenizer
from fakes.tiny_text import byte_level, sentencepiece

HERMES = """\
{%- if tools %}<|im_start|>system
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}<tool_call>{"name": …}</tool_call><|im_end|>
{% endif %}
{%- for m in messages %}<|im_start|>{{ m.role }}
{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}
{{- m.content or '' }}
{%- for call in m.tool_calls or [] %}<tool_call>{{ call.function | tojson }}</tool_call>{% endfor %}<|im_end|>
{% endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% if enable_thinking is defined and not enable_thinking %}<think></think>{% else %}<think>
{% endif %}{% endif %}"""
PICKY = """\
{%- for m in messages %}
{%- if m.role == 'tool' and m.tool_call_id | length != 9 %}{{ raise_exception('ids have 9 characters') }}{% endif %}
{%- for call in m.tool_calls or [] %}
{%- if call.id | length != 9 %}{{ raise_exception('ids have 9 characters') }}{% endif %}
{{- '[TOOL_CALLS]' + call.function.name + '[ARGS]' + call.function.arguments }}{% endfor %}
{{- '[' + m.role + ']' + m.content }}{% endfor %}{{ tools | tojson if tools }}"""
OWN = {"hermes": HERMES, "picky": PICKY, "chatml": CHATML}

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "description": "Größe <b>"},
        "days": {"type": "integer", "description": "how many"},
    },
    "required": ["city"],
}
TOOLS = (
    Tool(name="get_weather", description="Weather of a city", parameters=json.dumps(SCHEMA)),
    Tool(name="now", description="The time"),
)
CALL = ToolCall(call_id="abcdef123", name="get_weather", arguments='{"city": "Paris", "days": 2}')
NOW = ToolCall(call_id="abcdef456", name="now", arguments="{}")


def says(role: str, content: str, **more: Any) -> ChatMessage:
    return ChatMessage(role=role, content=content, **more)


def result(call: ToolCall, content: str) -> ChatMessage:
    return says("tool", content, tool_call_id=call.call_id, name=call.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    messages: tuple[ChatMessage, ...]
    tools: tuple[Tool, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)


USER = says("user", " What's the <weather>? ")
CALLS = says("assistant", "", tool_calls=(CALL,))
CONVERSATIONS = (
    Conversation(messages=(says("system", "Be brief."), USER)),
    Conversation(messages=(USER, says("assistant", "Fine."), says("user", "And now?"))),
    Conversation(messages=(USER,), tools=TOOLS),
    Conversation(messages=(says("system", "Be brief."), USER), tools=TOOLS[:1]),
    Conversation(messages=(USER, CALLS, result(CALL, '{"t": 21}')), tools=TOOLS),
    Conversation(
        messages=(
            says("system", "S"),
            USER,
            says("assistant", "Both.", tool_calls=(CALL, NOW)),
            result(CALL, "21"),
            result(NOW, "noon"),
            says("assistant", "It is 21 at noon."),
            says("user", "Thanks"),
        ),
        tools=TOOLS,
    ),
    Conversation(messages=(USER, says("assistant", "Fine.", reasoning="I guess."), USER)),
    Conversation(
        messages=(
            USER,
            says("assistant", "", reasoning="I look.", tool_calls=(CALL,)),
            result(CALL, "21"),
        ),
        tools=TOOLS,
    ),
    Conversation(messages=(USER,), options={"enable_thinking": True, "thinking": True}),
    Conversation(messages=(USER,), tools=TOOLS, options={"enable_thinking": False}),
)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return sentencepiece()


def hugging_face(
    source: str, one: Conversation, values: list[dict[str, Any]], *, prompt: bool
) -> str | None:
    """What transformers makes of it; None where it fails."""
    tools = [tool_values(tool, str) for tool in one.tools] or None
    try:
        texts, _ = render_jinja_template(
            [values],
            tools=tools,
            chat_template=source,
            add_generation_prompt=prompt,
            bos_token="<s>",
            eos_token="</s>",
            **one.options,
        )
    except Exception:  # noqa: BLE001 - it raises whatever the template makes it raise
        return None
    return str(texts[0])


def ours(
    template: ChatTemplate, one: Conversation, values: list[dict[str, Any]], *, prompt: bool
) -> str | None:
    """What we make of it; None where it is refused."""
    tools = [tool_values(tool, str) for tool in one.tools] or None
    try:
        return template.render(
            values, tools=tools, options=one.options, add_generation_prompt=prompt
        )
    except InvalidRequest:
        return None


def assert_as_in_transformers(source: str, tokenizer: Tokenizer) -> int:
    """Both render the same, or both fail; how often they failed."""
    template, failed = ChatTemplate(source, tokenizer), 0
    for one in CONVERSATIONS:
        values = [message_values(message, template.shape, str) for message in one.messages]
        for prompt in (True, False):
            expected = hugging_face(source, one, values, prompt=prompt)
            assert ours(template, one, values, prompt=prompt) == expected, one
            failed += expected is None
    return failed


def test_every_shared_template_renders_tools_as_in_transformers(
    shared_cases: Path, tokenizer: Tokenizer
) -> None:
    paths = sorted((shared_cases / "templates").glob("*.jinja"))
    assert paths
    failed = 0
    for path in paths:
        failed += assert_as_in_transformers(path.read_text(encoding="utf-8"), tokenizer)
    assert 0 < failed < len(paths) * len(CONVERSATIONS) // 2


@pytest.mark.parametrize("name", OWN)
def test_small_templates_render_tools_as_in_transformers(name: str, tokenizer: Tokenizer) -> None:
    assert_as_in_transformers(OWN[name], tokenizer)


def test_a_chat_is_rendered_as_in_transformers_where_its_template_shows_it_all(
    shared_cases: Path, tokenizer: Tokenizer
) -> None:
    compared = 0
    for path in sorted((shared_cases / "templates").glob("*.jinja")):
        source = path.read_text(encoding="utf-8")
        template = ChatTemplate(source, tokenizer)
        shape = template.shape
        if not (shape.knows_tools and shape.writes_calls and shape.writes_results):
            continue
        if "|safe +" in source:
            continue  # it escapes < for HTML in what is added to that, and a veiled one is none
        for one in CONVERSATIONS:
            values = [message_values(message, shape, str) for message in one.messages]
            expected = hugging_face(source, one, values, prompt=True)
            if expected is not None:
                options = tuple(one.options.items())
                chat = Chat(messages=one.messages, tools=one.tools, template_options=options)
                assert render_chat(template, chat).text == expected, (path.name, one)
                compared += 1
    assert compared > 300


def test_a_template_says_by_what_it_writes_how_it_wants_calls(tokenizer: Tokenizer) -> None:
    hermes = ChatTemplate(HERMES, tokenizer).shape
    assert (hermes.knows_tools, hermes.writes_calls, hermes.writes_results) == (True, True, True)
    assert not hermes.takes_text_arguments
    assert not hermes.takes_short_ids
    assert not hermes.takes_empty_content
    assert hermes.reasoning_key == "reasoning_content"
    picky = ChatTemplate(PICKY, tokenizer).shape
    assert picky.knows_tools
    assert picky.takes_text_arguments
    assert picky.takes_short_ids
    assert picky.takes_empty_content
    chatml = ChatTemplate(CHATML, tokenizer).shape
    assert (chatml.knows_tools, chatml.writes_calls, chatml.reasoning_key) == (False, False, "")


def test_ids_that_a_template_does_not_take_become_others_that_agree(tokenizer: Tokenizer) -> None:
    template = ChatTemplate(PICKY, tokenizer)
    long_id = ToolCall(call_id="call_0123456789", name="now", arguments="{}")
    chat = Chat(
        messages=(USER, says("assistant", "", tool_calls=(long_id,)), result(long_id, "noon")),
        tools=TOOLS,
    )
    assert "[TOOL_CALLS]now[ARGS]{}" in render_chat(template, chat).text


def test_results_are_named_after_their_calls(tokenizer: Tokenizer) -> None:
    template = ChatTemplate(
        "{% for m in messages %}{{ m.name }};{% for c in m.tool_calls or [] %}{{ c.function.name }}"
        "{{ c.function.arguments }}{% endfor %}{{ m.content }}{% endfor %}{{ tools[0].function.name if tools }}",
        tokenizer,
    )
    chat = Chat(messages=(USER, CALLS, says("tool", "21", tool_call_id=CALL.call_id)), tools=TOOLS)
    assert "get_weather;21" in render_chat(template, chat).text


# --- templates that know no tools


def chatml_text(chat: Chat) -> str:
    tokenizer = byte_level()
    ids = encode_chat(tokenizer, ChatTemplate(CHATML, tokenizer), chat)
    return b"".join(tokenizer.token_bytes(i, show_control=True) for i in ids).decode()


def test_tools_are_described_where_the_template_knows_none() -> None:
    text = chatml_text(Chat(messages=(says("system", "Be brief."), USER), tools=TOOLS))
    system, user, _ = text.split("<|im_end|>\n")
    assert system.startswith("<|im_start|>system\nBe brief.\n\nYou may use these tools")
    described = json.loads(next(line for line in system.split("\n") if "get_weather" in line))
    assert described["parameters"] == SCHEMA
    assert '{"tool_calls": [{"name": ' in system
    assert user == "<|im_start|>user\n What's the <weather>? "
    assert "Call at most one" in chatml_text(
        Chat(messages=(USER,), tools=TOOLS, calls_in_parallel=False)
    )


def test_earlier_calls_and_results_are_text_where_the_template_shows_none() -> None:
    chat = Chat(
        messages=(
            USER,
            says("assistant", "I look.", tool_calls=(CALL, NOW)),
            result(CALL, "21"),
            result(NOW, "noon"),
            says("user", "So?"),
        )
    )
    assert chatml_text(chat) == (
        "<|im_start|>user\n What's the <weather>? <|im_end|>\n"
        '<|im_start|>assistant\nI look.\n{"tool_calls": [{"name": "get_weather", "arguments": '
        '{"city": "Paris", "days": 2}}, {"name": "now", "arguments": {}}]}<|im_end|>\n'
        "<|im_start|>user\nResult of get_weather:\n21\n\nResult of now:\nnoon\n\nSo?<|im_end|>\n"
        "<|im_start|>assistant\n"
    )


def test_no_tools_are_offered_where_none_may_be_called() -> None:
    chat = Chat(messages=(USER,), tools=TOOLS, tool_choice=ToolChoice.NONE)
    assert chatml_text(chat) == chatml_text(Chat(messages=(USER,)))


def test_a_description_goes_where_a_template_takes_no_system_message(tokenizer: Tokenizer) -> None:
    source = (
        "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}{% endif %}"
        "[{{ m.role }}]{{ m.content }}{% endfor %}"
    )
    text = render_chat(ChatTemplate(source, tokenizer), Chat(messages=(USER,), tools=TOOLS)).text
    assert text.startswith("[user]You may use these tools")


def test_a_template_that_wants_a_list_of_tools_gets_an_empty_one(tokenizer: Tokenizer) -> None:
    source = "{{ tools | length }}{% for m in messages %}{{ m.content }}{% endfor %}"
    chat = Chat(messages=(says("user", "hi"),))
    assert render_chat(ChatTemplate(source, tokenizer), chat).text == "0hi"
    with pytest.raises(InvalidRequest, match="by zero"):
        render_chat(ChatTemplate("{{ 1 / 0 }}", tokenizer), chat)


# --- how the reply is to be read


@pytest.mark.parametrize(
    ("options", "is_thinking"), [((), True), ((("enable_thinking", False),), False)]
)
def test_a_prompt_that_opens_the_reasoning_says_so(
    tokenizer: Tokenizer, options: tuple[tuple[str, object], ...], is_thinking: bool
) -> None:
    template = ChatTemplate(HERMES, tokenizer)
    plan = render_chat(template, Chat(messages=(USER,), template_options=options)).plan
    assert plan.is_thinking == is_thinking
    assert not plan.tools


def test_a_plan_has_the_tools_that_may_be_called(tokenizer: Tokenizer) -> None:
    for source, is_generic in ((HERMES, False), (CHATML, True)):
        chat = Chat(messages=(USER,), tools=TOOLS, calls_in_parallel=False)
        plan = render_chat(ChatTemplate(source, tokenizer), chat).plan
        assert (plan.tools, plan.is_generic, plan.most_calls) == (TOOLS, is_generic, 1)


@pytest.mark.parametrize("choice", list(ToolChoice))
def test_a_plan_says_whether_a_call_must_be_made(tokenizer: Tokenizer, choice: ToolChoice) -> None:
    chat = Chat(messages=(USER,), tools=TOOLS, tool_choice=choice, tool_name=TOOLS[0].name)
    plan = render_chat(ChatTemplate(HERMES, tokenizer), chat).plan
    assert plan.must_call is (choice in (ToolChoice.REQUIRED, ToolChoice.NAMED))


FAMILY_OF = {
    "Qwen-Qwen2.5-7B-Instruct": "hermes", "Qwen3-Coder": "function-xml", "Qwen3.5-4B": "function-xml",
    "NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use": "hermes", "meta-llama-Llama-3.3-70B-Instruct": "llama3",
    "mistralai-Mistral-Nemo-Instruct-2407": "mistral", "Mistral-Small-3.2-24B-Instruct-2506": "mistral-args",
    "llama-cpp-deepseek-r1": "deepseek-r1", "deepseek-ai-DeepSeek-V3.1": "deepseek-v3.1",
    "ibm-granite-granite-3.3-2B-Instruct": "granite", "ibm-granite-granite-4.0": "hermes",
    "meetkai-functionary-medium-v3.1": "functionary-v3.1", "meetkai-functionary-medium-v3.2": "functionary-v3.2",
    "CohereForAI-c4ai-command-r7b-12-2024-tool_use": "command-r", "GLM-4.6": "arg-keys",
    "Kimi-K2-Instruct": "kimi", "openai-gpt-oss-120b": "harmony", "MiniMax-M1": "tool-calls-lines",
    "NVIDIA-Nemotron-Nano-v2": "nemotron", "LFM2-8B-A1B": "lfm2", "ByteDance-Seed-OSS": "seed",
    "google-gemma-2-2b-it": "generic", "deepseek-ai-DeepSeek-V4": "dsml", "google-gemma-4-31B-it-interleaved": "gemma4",
    "Apertus-8B-Instruct": "apertus", "GigaChat3.1-10B-A1.8B": "gigachat", "upstage-Solar-Open-100B": "solar",
    "muse-glimmer": "atem", "MiniMax-M3": "minimax-m3", "tencent-Hy3": "hunyuan-3",
    "GigaChat3-10B-A1.8B": "gigachat-3.0",
}  # fmt: skip


def test_families_are_known_by_their_templates(shared_cases: Path) -> None:
    for name, family in FAMILY_OF.items():
        source = (shared_cases / "templates" / f"{name}.jinja").read_text(encoding="utf-8")
        assert family_of(source).name == family, name


def test_what_a_family_writes_is_what_its_templates_show(
    shared_cases: Path, tokenizer: Tokenizer
) -> None:
    """The spelling of a call that must be made is that of the call in an earlier turn."""
    checked = set()
    for path in sorted((shared_cases / "templates").glob("*.jinja")):
        template = ChatTemplate(path.read_text(encoding="utf-8"), tokenizer)
        shape = template.reply.family.shape
        if shape is None or not template.shape.writes_calls or not template.shape.knows_tools:
            continue
        chat = Chat(messages=(USER, CALLS, result(CALL, "21")), tools=TOOLS)
        text = render_chat(template, chat).text
        begun = shape.before_name.replace("<|constrain|>", "") + CALL.name
        assert begun in text or template.reply.family.name in ("generic", "harmony"), path.name
        checked.add(template.reply.family.name)
    assert len(checked) > 12
    assert checked <= {family.name for family in FAMILIES} | {"generic"}


@pytest.mark.parametrize("text", ['{\n    "', "[]", "5", '{"city": "Par'])
@pytest.mark.parametrize("source", OWN.values(), ids=OWN)
def test_a_call_that_was_cut_off_is_shown_as_it_is(
    source: str, text: str, tokenizer: Tokenizer
) -> None:
    call = ToolCall(call_id="abcdef123", name="now", arguments=text)
    messages = (USER, says("assistant", "", tool_calls=(call,)), result(call, "what?"))
    shown = render_chat(ChatTemplate(source, tokenizer), Chat(messages=messages, tools=TOOLS)).text
    as_object = json.dumps({UNREADABLE: text}, ensure_ascii=False)
    assert ("[ARGS]" + text if source is PICKY else as_object) in shown


def test_null_arguments_are_none(tokenizer: Tokenizer) -> None:
    call = ToolCall(call_id="abcdef123", name="now", arguments="null")
    chats = [
        Chat(messages=(USER, says("assistant", "", tool_calls=(each,)), result(each, "noon")))
        for each in (call, NOW)
    ]
    shown = [render_chat(ChatTemplate(HERMES, tokenizer), chat).text for chat in chats]
    assert shown[0] == shown[1]
