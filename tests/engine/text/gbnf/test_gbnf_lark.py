"""GBNF becomes Lark of the same language: compared, text by text, with the plainest reading of random grammars."""

from __future__ import annotations

import itertools
from random import Random

import pytest
from llguidance import LLMatcher, LLTokenizer

from engine.text.gbnf.lark import gbnf_to_lark
from engine.text.gbnf.reader import read_gbnf
from fakes.plain_gbnf import generates, random_grammar

BYTES = LLTokenizer("byte")
TEXTS = ["".join(letters) for size in range(6) for letters in itertools.product("abc", repeat=size)]

JSON = r"""
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws
object ::= "{" ws ( string ":" ws value ("," ws string ":" ws value)* )? "}" ws
array  ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::= "\"" ( [^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) )* "\"" ws
number ::= "-"? ("0" | [1-9] [0-9]{0,15}) ("." [0-9]+)? ([eE] [-+]? [0-9]{1,5})? ws
ws     ::= | " " | "\n" [ \t]{0,20}
"""


def matches(lark: str, text: str) -> bool:
    matcher = LLMatcher(BYTES, lark, log_level=0)
    assert not matcher.is_error(), matcher.get_error()
    return all(map(matcher.consume_token, text.encode())) and matcher.is_accepting()


@pytest.mark.parametrize("seed", range(8))
def test_a_random_grammar_becomes_one_of_the_same_language(seed: int) -> None:
    dice, accepted = Random(seed), 0
    for _ in range(10):
        source = random_grammar(dice)
        rules, lark = read_gbnf(source), gbnf_to_lark(source)
        expected = {text: generates(rules, text) for text in dice.sample(TEXTS, 20)}
        expected |= {text: True for text in TEXTS[:40] if generates(rules, text)}
        accepted += sum(expected.values())
        assert {text: matches(lark, text) for text in expected} == expected, source
    assert accepted > 8


def test_the_usual_grammar_of_json_is_read_in_whole_lexemes() -> None:
    lark = gbnf_to_lark(JSON)
    assert "/true/" in lark, "not letter by letter, which would be slow"
    for text in ("{}", '{"a": [1, -2.5e3, true, {"b":null}]}\n', '{ "a\\n\\u00e9":"" }'):
        assert matches(lark, text)
    for text in ("[]", '{"a":}', '{"a":01}', '{"a":1}}', "{a:1}", "{  }"):
        assert not matches(lark, text)


@pytest.mark.parametrize(
    ("source", "yes", "no"),
    [
        ('root ::= [a-z]+ "abc" root?', ["xabc", "abcabc", "xabcyabc"], ["abc", "xab"]),
        ('root ::= ("ab" "cx" | "abcd") root?', ["abcx", "abcdabcx"], ["ab", "abcdx"]),
        ("root ::= [^a] | root [^a]", ["\n", "\u00e9\U0001f600"], ["a", ""]),
        ('root ::= "\\"/\\\\[<" ">]" root?', ['"/\\[<>]'], ['"/[<>]']),
        ("root ::= . root?", ["\n/", "\U0010ffff"], [""]),
        (
            'root ::= "a"{0} root2{2,3}\nroot2 ::= "b" | "(" root2 ")"',
            ["bb", "b(b)b"],
            ["b", "abb"],
        ),
    ],
)
def test_what_is_read_greedily_elsewhere_is_not_here(
    source: str, yes: list[str], no: list[str]
) -> None:
    lark = gbnf_to_lark(source)
    assert [matches(lark, text) for text in yes] == [True] * len(yes)
    assert [matches(lark, text) for text in no] == [False] * len(no)


@pytest.mark.parametrize(
    "source",
    [
        "root ::= (" + " | ".join(f'"{i}"' for i in range(3000)) + ") root?",
        'root ::= ' + '"a"? ' * 3000 + " root?",
        "root ::= " + "".join(f"x{i} | " for i in range(500)) + '"y" root\n'
        + "".join(f'x{i} ::= "{i}" root?\n' for i in range(500)),
        "root ::= " + " | ".join(f"x{i}" for i in range(2500)) + "\n"
        + "".join(f'x{i} ::= [^a]* x{(i * 7 + 1) % 2500} | "{i}"\n' for i in range(2500)),
        "root ::= x0\n" + "".join(f"x{i} ::= x{i + 1} x{i + 1}\n" for i in range(60)) + 'x60 ::= ""',
    ],
    ids=["many words", "many that may be left out", "many rules", "rules of all rules", "nothing, many times"],
)  # fmt: skip
def test_a_large_grammar_takes_no_long_time(source: str) -> None:
    assert gbnf_to_lark(source).startswith("start: r0")
