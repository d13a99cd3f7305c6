"""GBNF is read as llama.cpp documents it, and what is wrong is named with its place."""

from __future__ import annotations

import pytest

from engine.text.gbnf.nodes import Chars, Choice, Repeat, Rule, Sequence, Token, all_but, text
from engine.text.gbnf.reader import GbnfError, read_gbnf


def root(source: str) -> object:
    return read_gbnf(f'root ::= {source}\nx ::= "x"\n')["root"]


def chars(*spans: tuple[str, str]) -> Chars:
    return Chars(tuple((ord(first), ord(last)) for first, last in spans))


@pytest.mark.parametrize(
    ("source", "node"),
    [
        ('"ab"', text("ab")),
        ('""', text("")),
        (r'"\n\t\r\\\"\[\]"', text('\n\t\r\\"[]')),
        (r'"\x41\u00e9\U0001F600"', text("A\u00e9\U0001f600")),
        ("[a-c]", chars(("a", "c"))),
        ("[ca-bb]", chars(("a", "c"))),
        ("[a-]", chars(("-", "-"), ("a", "a"))),
        (r"[\]\-]", None),
        (r"[\x30-\x39]", chars(("0", "9"))),
        ("[^\x00-\u007f]", Chars(all_but(((0, 0x7F),)))),
        (".", Chars(((0, 0xD7FF), (0xE000, 0x10FFFF)))),
        ("x", Rule("x")),
        ("x x", Sequence((Rule("x"), Rule("x")))),
        ("(x | x x |)", Choice((Rule("x"), Sequence((Rule("x"), Rule("x"))), Sequence(())))),
        ("x*", Repeat(Rule("x"), 0, None)),
        ("x+ x?", Sequence((Repeat(Rule("x"), 1, None), Repeat(Rule("x"), 0, 1)))),
        ("x{3} x{2,} x{,4} x{1,2}", None),
        ("x{3}", Repeat(Rule("x"), 3, 3)),
        ("x{2,}", Repeat(Rule("x"), 2, None)),
        ("x{,4}", Repeat(Rule("x"), 0, 4)),
        ("x{1, 2}", Repeat(Rule("x"), 1, 2)),
        ("(x | x)+", Repeat(Choice((Rule("x"), Rule("x"))), 1, None)),
        ("(\n  x # words\n  x\n)", Sequence((Rule("x"), Rule("x")))),
        ("\n  x", Rule("x")),
        ("x |\n  x", Choice((Rule("x"), Rule("x")))),
        ("x\n  | x", Choice((Rule("x"), Rule("x")))),
        ("<think> <[7]> !<[8]>", Sequence((Token("<think>"), Token("<[7]>"), Token("<[^8]>")))),
    ],
)
def test_it_reads(source: str, node: object) -> None:
    if node is None and "{" not in source:  # an escape that it does not have
        with pytest.raises(GbnfError, match=r"\\- is no character"):
            root(source)
        return
    found = root(source)
    assert node is None or found == node


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("", "there is no rule 'root'"),
        ('x ::= "a"', "there is no rule 'root'"),
        ("root ::= y", "line 1, column 10: there is no rule 'y'"),
        ('root ::= "a"\nroot ::= "b"', "line 2, column 1: the rule 'root' is there twice"),
        ('root = "a"', "line 1, column 6: ::= should stand here"),
        ("::= x", "line 1, column 1: the name of a rule should stand here"),
        ('root ::= "a\nb"', 'line 1, column 10: what " opens here does not end in its line'),
        ("root ::= [a", "column 10: what [ opens here"),
        ("root ::= [z-a]", "a range in this set ends before it begins"),
        ("root ::= []", "no character is in this set"),
        ('root ::= ("a"', "column 10: the bracket that opens here is not closed"),
        ('root ::= "a")', "column 13: here a rule should end"),
        ('root ::= "a"{2,1}', "{2,1} is no count from lower to higher, of 2000 at most"),
        ('root ::= "a"{2001}', "{2001} is no count"),
        ('root ::= "a"{}', "a count is {3}"),
        (r'root ::= "\q"', r"\q is no character"),
        (r'root ::= "\x4"', r"\x4"),
        (r'root ::= "\uD800"', r"\uD800 is no character"),
        ("root ::= !<think>", "any token but <think> can only be asked for by its id"),
        ("root ::= $", "column 10: here a rule should end"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(source: str, words: str) -> None:
    with pytest.raises(GbnfError) as caught:
        read_gbnf(source)
    assert words in str(caught.value)
