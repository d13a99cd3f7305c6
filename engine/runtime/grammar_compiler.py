"""From a request's grammar to a matcher, or to what is wrong with it. Thread of grammars; imports no torch.

The library llguidance does the work. It is bounded in what it may take here and at every token, and a grammar that
would take more is refused: nobody's grammar holds up the replies of others.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from engine.api import Grammar, GrammarKind, Request
from engine.errors import InvalidRequest
from engine.runtime.grammar_matcher import GrammarMatcher, readable
from engine.runtime.grammar_vocabulary import GrammarVocabulary
from engine.text.gbnf.lark import gbnf_to_lark
from engine.text.gbnf.reader import GbnfError
from engine.text.json_schemas import SchemaRefused, prepared_schema
from engine.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from llguidance import LLMatcher, LLParserLimits

MAX_CHARS = 1 << 17
"""So long a chain of rules, each naming the next, still fits the stack of the thread of grammars."""
MAX_REGEX_CHARS = 1 << 13
"""The time for one may grow with the square of its length: half a second here."""


class GrammarCompiler:
    """Of one model."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._vocabulary = GrammarVocabulary(tokenizer)

    def matcher_for(self, request: Request) -> GrammarMatcher | None:
        """The matcher of a request, None if it has no grammar.

        Raises InvalidRequest for a grammar that is wrong or too costly, or that does not go with the rest of the
        request or with the model.
        """
        grammar = request.grammar
        if grammar is None:
            return None
        if request.ignore_eos:
            raise InvalidRequest(
                f"ignore_eos does not go with {grammar.param}: the reply ends where that is complete; leave one out",
                param="ignore_eos",
            )
        if not self._vocabulary.eos_ids:
            raise InvalidRequest(
                f"{grammar.param} cannot be followed: this model has no token that ends a reply; leave it out",
                param=grammar.param,
            )
        _check_size(grammar)
        return self._compiled(grammar)

    def can_follow(self, grammar: Grammar) -> bool:
        """Whether a reply could be made to match it."""
        try:
            _check_size(grammar)
            self._compiled(grammar)
        except InvalidRequest:
            return False
        return True

    def _compiled(self, grammar: Grammar) -> GrammarMatcher:
        # Here and not above: it takes 50 ms, and most never need it.
        from llguidance import LLMatcher

        source, named = _library_source(grammar), frozenset[int]()
        if grammar.kind in (GrammarKind.LARK, GrammarKind.GBNF):
            named = self._vocabulary.named_in(source)
        tokenizer = self._vocabulary.library_tokenizer(named)
        library = LLMatcher(tokenizer, source, log_level=0, limits=_limits())
        _raise_error(library, grammar)
        matcher = GrammarMatcher(library, self._vocabulary.vocab_size, grammar.param)
        matcher.follow(())  # the first mask takes the longest
        if matcher.error is not None:
            raise matcher.error
        return matcher


def _library_source(grammar: Grammar) -> str:
    from llguidance import LLMatcher

    match grammar.kind:
        case GrammarKind.JSON_SCHEMA:
            return LLMatcher.grammar_from_json_schema(_schema_source(grammar))
        case GrammarKind.REGEX:
            return LLMatcher.grammar_from_regex(grammar.source)
        case GrammarKind.LARK:
            return grammar.source
        case GrammarKind.GBNF:
            return _lark_of(grammar)


@contextmanager
def refused_by_name(param: str) -> Iterator[None]:
    """Raises InvalidRequest, naming the field, for a schema that cannot be followed."""
    try:
        yield
    except SchemaRefused as error:
        raise _wrong(param, str(error)) from error


def _schema_source(grammar: Grammar) -> str:
    with refused_by_name(grammar.param):
        return json.dumps(prepared_schema(grammar.source), ensure_ascii=False)


def _lark_of(grammar: Grammar) -> str:
    try:
        return gbnf_to_lark(grammar.source)
    except GbnfError as error:
        raise _wrong(grammar.param, f"is no GBNF: {error}") from error
    except RecursionError as error:
        raise _wrong(
            grammar.param, "has rules that name one another in too long a chain"
        ) from error


def _limits() -> LLParserLimits:
    """Some tenth of the library's own: the worst token then holds up the others for some 10 ms."""
    from llguidance import LLParserLimits

    return LLParserLimits(
        max_items_in_row=1000,
        step_max_items=10_000,
        step_lexer_fuel=50_000,
        max_lexer_states=50_000,
        max_grammar_size=100_000,
        verbose_errors=False,
    )


def _check_size(grammar: Grammar) -> None:
    length = len(grammar.source)
    limit = MAX_REGEX_CHARS if grammar.kind is GrammarKind.REGEX else MAX_CHARS
    if length > limit:
        raise _wrong(grammar.param, f"has {length} characters, the limit is {limit}")


def _raise_error(library: LLMatcher, grammar: Grammar) -> None:
    if library.is_error():
        raise _wrong(grammar.param, f"cannot be followed: {readable(library.get_error())}")


def _wrong(param: str, what: str) -> InvalidRequest:
    return InvalidRequest(f"{param} {what}; change it or leave it out", param=param)
