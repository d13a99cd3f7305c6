"""Chat templates: Hugging Face's rendering, to the letter; clear errors; and nothing endless."""

# ruff: noqa: E501 - one template a line

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path

import pytest
from transformers.utils.chat_template_utils import render_jinja_template

from engine.api import ChatMessage
from engine.errors import InvalidRequest, UnsupportedModel
from engine.text import template_budget
from engine.text.chat_template import (
    MAX_SOURCE_CHARS,
    ChatTemplate,
    TemplateRefused,
    load_chat_template,
)
from engine.text.tokenizer import Tokenizer
from fakes.tiny_text import StandIn, byte_level, chat_ids, sentencepiece

Turns = tuple[tuple[str, str], ...]

CONVERSATIONS: tuple[Turns, ...] = (
    (("user", "Hello <b>there</b> & 'you' \"quoted\" ünï 日本"),),
    (("system", "Be brief.\n"), ("user", " Hi ")),
    (
        ("system", "S"),
        ("user", " a "),
        ("assistant", "<think>\nhm\n</think>\n\nb"),
        ("user", "c\n"),
    ),
    (("user", "a"), ("assistant", "b"), ("user", "c"), ("assistant", "d"), ("user", "e")),
    (("user", "a"), ("user", "b")),
    (("assistant", "x"), ("user", "b")),
    (("user", "q"), ("assistant", "r")),
    (("user", "q"), ("tool", "r"), ("user", "z")),
    (("developer", "q"), ("user", "z")),
    (("user", ""),),
)
TEMPLATES = 47


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return sentencepiece()


def dicts(turns: Turns) -> list[dict[str, str]]:
    return [{"role": role, "content": content} for role, content in turns]


def chat(*turns: tuple[str, str]) -> list[ChatMessage]:
    return [ChatMessage(role=role, content=content) for role, content in turns]


def render(source: str, *turns: tuple[str, str]) -> str:
    return ChatTemplate(source, sentencepiece()).render(dicts(turns or (("user", "hi"),)))


def test_every_shared_template_renders_as_in_transformers(
    shared_cases: Path, tokenizer: Tokenizer
) -> None:
    paths = sorted((shared_cases / "templates").glob("*.jinja"))
    assert len(paths) == TEMPLATES
    refused = 0
    for path in paths:
        source = path.read_text(encoding="utf-8")
        template = ChatTemplate(source, tokenizer)
        for turns in CONVERSATIONS:
            for prompt in (True, False):
                expected = hugging_face(source, turns, prompt=prompt)
                if expected is None:
                    refused += 1
                    with pytest.raises(InvalidRequest):
                        template.render(dicts(turns), add_generation_prompt=prompt)
                else:
                    text = template.render(dicts(turns), add_generation_prompt=prompt)
                    assert text == expected, (path.name, turns)
    assert 0 < refused < TEMPLATES * len(CONVERSATIONS)


def hugging_face(source: str, turns: Turns, *, prompt: bool) -> str | None:
    """What transformers makes of it; None where it fails."""
    try:
        texts, _ = render_jinja_template(
            [dicts(turns)],
            chat_template=source,
            add_generation_prompt=prompt,
            bos_token="<s>",
            eos_token="</s>",
        )
    except Exception:  # noqa: BLE001 - it raises whatever the template makes it raise
        return None
    return str(texts[0])


SNIPPETS = [
    "{{ messages | tojson }}{{ messages | tojson(indent=2) }}{{ 'é<&>' | tojson(ensure_ascii=true) }}",
    "{{ {'b': 1, 'a': [1.5, none, true]} | tojson(sort_keys=true, separators=(',', ':')) }}",
    "{% for m in messages %}\n  {% if loop.first %}{% continue %}{% endif %}\n{{ m.content }}{% break %}{% endfor %}",
    "a{% generation %}{{ messages[0].content }}{% endgeneration %}b",
    "{{ bos_token ~ 1 ~ [1, 'x'] ~ none ~ tools ~ documents }}{{ undefined_thing }}|{{ undefined_thing is defined }}",
    "{% set ns = namespace(a=1, b=[]) %}{% for i in range(3) %}{% set ns.a = ns.a * 2 + i %}{% set ns.b = ns.b + [i] %}{% endfor %}{{ ns.a }}{{ ns.b }}",
    "{{ 'a-b'.split('-') | join('+') }}{{ [1, 2] | join }}{{ messages | join(',', attribute='role') }}{{ 'aaa' | replace('a', 'b', 2) }}",
    "{{ '%s is %d' % ('x', 3) }}{{ '%s' | format('y') }}{{ '{} {k}'.format(1, k=2) }}{{ 'ab'.replace('a', 'c') }}{{ '-'.join(['a', 'b']) }}",
    "{{ [3, 1, 2] | sort | list }}{{ [1, 2, 3] | sum }}{{ [[1], [2]] | sum(start=[]) }}{{ messages | map(attribute='role') | list }}{{ 2 ** 5 }}{{ 7 % 3 }}",
    "{{ 'Ab c' | upper }}{{ 'x' | center(5) }}{{ 'a\\nb' | indent(2) }}{{ ' y ' | trim }}{{ 'z' | string | length }}{{ messages | length }}",
    "{% macro f(x, y=2) %}{{ x ~ y }}{{ caller() if caller }}{% endmacro %}{{ f(1) }}{% call f(3) %}in{% endcall %}",
    "{% set x %}  {{ messages[0].content }} {% endset %}[{{ x | trim }}]{% for k, v in {'a': 1}.items() %}{{ k }}{{ v }}{% endfor %}",
    "{% for a, b in [(1, 2), (3, 4)] recursive %}{{ a + b }}{{ loop.index }}{% else %}none{% endfor %}{{ dict(a=1) }}{{ cycler('x').next() }}",
    "{%- if messages[0]['role'] == 'user' and not add_generation_prompt -%} u {%- else -%} n {%- endif -%}\n  tail\n",
]


@pytest.mark.parametrize("source", SNIPPETS, ids=range(len(SNIPPETS)))
def test_the_language_is_that_of_transformers(source: str, tokenizer: Tokenizer) -> None:
    for turns in CONVERSATIONS[:3]:
        expected = hugging_face(source, turns, prompt=True)
        assert expected is not None
        assert ChatTemplate(source, tokenizer).render(dicts(turns)) == expected


def test_the_time_is_the_clock_given(tokenizer: Tokenizer) -> None:
    template = ChatTemplate(
        "{{ strftime_now('%d %b %Y') }}", tokenizer, now=lambda: dt.datetime(2024, 7, 26)
    )
    assert template.render(dicts((("user", "x"),))) == "26 Jul 2024"


def test_a_template_that_is_none_names_the_line() -> None:
    with pytest.raises(UnsupportedModel, match="line 3: "):
        render("a\n\n{% if %}")
    with pytest.raises(UnsupportedModel, match="line 2: No filter named 'nope'"):
        render("\n{{ 1 | nope }}")


@pytest.mark.parametrize(
    "source",
    ["{{ " + "(" * 4000 + "1" + ")" * 4000 + " }}", "{% for i in [1] %}" * 60 + "{% endfor %}" * 60, "x" * (MAX_SOURCE_CHARS + 1)],
    ids=["parentheses", "loops", "length"],
)  # fmt: skip
def test_a_template_beyond_the_compilers_is_an_error(source: str) -> None:
    with pytest.raises(UnsupportedModel, match="the chat template"):
        render(source)


def test_a_failing_template_names_the_line() -> None:
    with pytest.raises(InvalidRequest, match="line 2: division by zero") as caught:
        render("ok\n{{ 1 / 0 }}")
    assert caught.value.param == "messages"


def test_a_refusal_carries_the_templates_own_words() -> None:
    with pytest.raises(TemplateRefused, match="line 2: no pineapple"):
        render("\n{{ raise_exception('no pineapple') }}")


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ cycler.__init__.__globals__ }}",
        "{% include 'x' %}",
        "{% import 'os' as x %}",
        "{{ 'abc'.translate({97: 'x'}) }}",
        "{{ lipsum(n=3) }}",
        "{{ raise_exception.__globals__.x }}",
        "{{ '{0.__class__.__mro__}'.format(1) }}",
    ],
)
def test_a_template_has_no_way_out(source: str) -> None:
    with pytest.raises(InvalidRequest):
        render(source)


HUGE_TEXT = "{% set x = range(100000) | join %}"
DOUBLED = "{% set ns = namespace(x='a') %}{% for i in range(60) %}BODY{% endfor %}"
NESTED = "{% set ns = namespace(x=[]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}"
ENDLESS = [
    "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}",
    "{% for i in range(100000) %}{% for j in range(100000) %}x{% endfor %}{% endfor %}",
    "{% for i in range(100000) %}{% for j in range(100000) if false %}{% endfor %}{% endfor %}",
    "{% macro f(n) %}{% if n %}{% set a = f(n - 1) %}{% set a = f(n - 1) %}{% endif %}{% endmacro %}{{ f(60) }}",
    DOUBLED.replace("BODY", "{% set ns.x = ns.x ~ ns.x %}"),
    DOUBLED.replace("BODY", "{% set ns.x = ns.x + ns.x %}"),
    DOUBLED.replace("BODY", "{% set ns.x = [ns.x, ns.x] | join %}"),
    DOUBLED.replace("BODY", "{% set ns.x = '%s%s' % (ns.x, ns.x) %}"),
    DOUBLED.replace("BODY", "{% set ns.x = '{0}{0}'.format(ns.x) %}"),
    DOUBLED.replace("BODY", "{% set ns.x = ns.x.replace('', ns.x) %}"),
    DOUBLED.replace("BODY", "{% set y %}{{ ns.x }}{{ ns.x }}{% endset %}{% set ns.x = y %}"),
    DOUBLED.replace("BODY", "{% set ns.x = ns.x | list + ns.x | list %}"),
    DOUBLED.replace("namespace(x='a')", "namespace(x=9)").replace("BODY", "{% set ns.x = ns.x * ns.x %}"),
    *(NESTED + use for use in ("{{ ns.x }}", "{{ ns.x | tojson }}", "{{ ns.x | string }}", "{{ ns.x ~ 1 }}")),
    "{{ 'a' * 10000000000 }}",
    "{{ 10000000000 * ['a'] }}",
    "{{ 10 ** 100000000 }}",
    "{{ '%1000000000d' % 1 }}",
    "{{ '%*d' % (1000000000, 1) }}",
    "{{ '{:1000000000d}'.format(1) }}",
    "{{ '{:{}}'.format(1, 1000000000) }}",
    "{{ '%1000000000d' | format(1) }}",
    *(f"{{{{ 'a\\tb' {call} }}}}" for call in ("| center(10000000000)", "| indent(10000000000)", "| indent(width=10000000000)")),
    *(f"{{{{ 'a\\tb'.{name}(10000000000) }}}}" for name in ("center", "ljust", "rjust", "zfill", "expandtabs")),
    *(f"{{{{ [1] | {name}(10000000000) | list }}}}" for name in ("batch", "slice")),
    *(HUGE_TEXT + use for use in (
        "{{ x | replace('', x) }}", "{{ x.replace('', x) }}", "{{ x.join(x) }}", "{{ x | join(x) }}",
        "{{ ''.join([x] * 100000) }}", "{{ ([x] * 100000) | join }}", "{{ ([x] * 100000) | tojson }}",
        "{{ ([[x] * 1000] * 1000) | sum(start=[]) }}",
    )),
]  # fmt: skip


@pytest.mark.parametrize("source", ENDLESS, ids=range(len(ENDLESS)))
def test_a_template_that_would_never_end_does(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(template_budget, "MAX_SECONDS", 0.1)
    with pytest.raises(UnsupportedModel, match=r"chat template.*: (makes|takes|formats)"):
        render(source)


def test_a_long_chat_is_far_from_the_limits(tokenizer: Tokenizer) -> None:
    template = ChatTemplate(
        "{% set ns = namespace(t='') %}{% for m in messages %}"
        "{% set ns.t = ns.t + ('<' ~ m.role ~ '>' ~ (m.content | trim) + '\\n') %}{% endfor %}{{ ns.t }}",
        tokenizer,
    )
    turns = [("user", "word " * 500), ("assistant", "reply " * 500)] * 50
    assert len(template.render(dicts(tuple(turns)))) > 250_000


def test_a_model_without_a_template_gets_chatml_where_it_has_the_tokens() -> None:
    tokenizer = byte_level()
    template = load_chat_template(StandIn({}), tokenizer)
    ids = chat_ids(tokenizer, template, chat(("system", "s"), ("user", "hello")))
    shown = b"".join(tokenizer.token_bytes(i, show_control=True) for i in ids).decode()
    assert shown == (
        "<|im_start|>system\ns<|im_end|>\n<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n"
    )


def test_a_base_model_gets_a_plain_dialogue() -> None:
    tokenizer = sentencepiece()
    template = load_chat_template(StandIn({}), tokenizer)
    text = template.render(dicts((("user", " hello "), ("assistant", "hi"), ("user", "so?"))))
    assert text == "User: hello\n\nAssistant: hi\n\nUser: so?\n\nAssistant:"
    ids = chat_ids(tokenizer, template, chat(("user", "hello")))
    assert ids == tokenizer.encode("User: hello\n\nAssistant:", add_special=True)


def test_a_models_own_template_goes_first() -> None:
    tokenizer = byte_level()
    template = load_chat_template(StandIn({}, chat_template="own"), tokenizer)
    assert template.render(dicts((("user", "x"),))) == "own"


@pytest.fixture
def no_system() -> str:
    return (
        "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}{% endif %}"
        "{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('alternate') }}{% endif %}"
        "[{{ m.role }}:{{ m.content }}]{% endfor %}"
    )


def shown(source: str, *turns: tuple[str, str]) -> str:
    tokenizer = byte_level()
    return tokenizer.decode(chat_ids(tokenizer, ChatTemplate(source, tokenizer), chat(*turns)))


def test_a_refused_system_message_goes_into_the_first_turn(no_system: str) -> None:
    turns = (("system", "A"), ("developer", "B"), ("user", "C"), ("assistant", "D"), ("user", "E"))
    assert shown(no_system, *turns) == "[user:A\n\nB\n\nC][assistant:D][user:E]"
    assert shown(no_system, ("system", "A")) == "[user:A]"


def test_other_refusals_stay_refusals(no_system: str) -> None:
    with pytest.raises(TemplateRefused, match="alternate"):
        shown(no_system, ("user", "A"), ("user", "B"))
    with pytest.raises(TemplateRefused, match="no system"):
        shown(no_system, ("system", "S"), ("user", "A"), ("user", "B"))


def test_a_system_message_that_is_taken_stays_where_it_is() -> None:
    source = "{% for m in messages %}[{{ m.role }}:{{ m.content }}]{% endfor %}"
    assert shown(source, ("system", "A"), ("user", "B")) == "[system:A][user:B]"


def test_developer_is_system_for_templates_that_do_not_know_it() -> None:
    source = "{% for m in messages %}[{{ m.role }}]{% endfor %}"
    assert shown(source, ("developer", "A"), ("user", "B")) == "[system][user]"
    assert (
        shown(source + "{# developer #}", ("developer", "A"), ("user", "B")) == "[developer][user]"
    )


def test_a_reply_that_goes_on_stands_open_after_its_own_prompt() -> None:
    tokenizer = byte_level()
    template = load_chat_template(StandIn({}), tokenizer)
    turns = chat(("user", "hello"), ("assistant", " Once <|im_end|> upon\n"))
    ids = chat_ids(tokenizer, template, turns, continues=True)
    prompt = chat_ids(tokenizer, template, turns[:1])
    assert ids == prompt + tokenizer.encode(" Once <|im_end|> upon\n")


def test_a_reply_goes_on_with_words_that_nothing_stands_before() -> None:
    tokenizer = byte_level()
    source = (
        "{% for m in messages %}[{{ m.content }}]{% endfor %}"
        "{% if add_generation_prompt %}[reply]{% endif %}"
    )
    template = ChatTemplate(source, tokenizer)
    ids = chat_ids(tokenizer, template, chat(("assistant", "hi")), continues=True)
    assert ids == tokenizer.encode("[reply]hi")


@pytest.mark.parametrize("source", ["{{ messages[0].role }}", "{{ raise_exception('no') }}"])
def test_but_not_with_a_template_that_needs_the_prompt_it_answers(source: str) -> None:
    tokenizer = byte_level()
    template = ChatTemplate(source, tokenizer)
    with pytest.raises(InvalidRequest, match="only the assistant's turn"):
        chat_ids(tokenizer, template, chat(("assistant", "hi")), continues=True)


@pytest.mark.parametrize(
    "make", [lambda: chat(), lambda: chat(("wizard", "hi"))], ids=["none", "role"]
)
def test_messages_that_no_template_can_take_are_refused(
    make: Callable[[], list[ChatMessage]],
) -> None:
    tokenizer = byte_level()
    with pytest.raises(InvalidRequest) as caught:
        chat_ids(tokenizer, ChatTemplate("x", tokenizer), make())
    assert caught.value.param == "messages"
