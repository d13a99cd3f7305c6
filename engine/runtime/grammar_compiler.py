"""From a request's grammar to a matcher, or to what is wrong with it. Threads of grammars; imports no torch.

The library llguidance does the work. It is bounded in what it may take at every token, and what it may take here is
found out in another process, unless the grammar is of a kind that takes little. One that would take more is refused:
nobody's grammar holds up the replies of others.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import TYPE_CHECKING

from engine.api import Grammar, GrammarKind, Request
from engine.errors import InvalidRequest
from engine.runtime.grammar_matcher import GrammarMatcher, readable
from engine.runtime.grammar_trial import GrammarTrials, TooCostly, Trials, parser_limits
from engine.runtime.grammar_vocabulary import GrammarVocabulary
from engine.text.gbnf.lark import gbnf_to_lark
from engine.text.gbnf.reader import GbnfError
from engine.text.json_schemas import SchemaRefused, prepared_schema
from engine.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from llguidance import LLMatcher

MAX_CHARS = 1 << 17
"""So long a chain of rules, each naming the next, still fits the stack of a thread of grammars."""
MAX_REGEX_CHARS = 1 << 13
"""The time for one may grow with the square of its length: half a second here."""
_MOST_KNOWN = 256
"""Grammars that are remembered not to be too costly."""
_MOST_QUICK_CHARS = 1 << 14
"""Reading a longer one may take a second."""


class MayTakeLong(Exception):
    """A grammar that is not for a thread which is there for what takes little."""


class GrammarCompiler:
    """Of one model."""

    def __init__(self, tokenizer: Tokenizer, trials: Trials | None = None) -> None:
        self._vocabulary = GrammarVocabulary(tokenizer)
        self._trials = trials or GrammarTrials(self._vocabulary.spelled)
        self._takes_all = True
        self._known: dict[bytes, None] = {}
        self._lock = threading.Lock()

    def quick(self) -> GrammarCompiler:
        """The same for grammars that are known to take little; for others it raises MayTakeLong."""
        quick = copy(self)
        quick._takes_all = False
        return quick

    def close(self) -> None:
        """Let go of what is being tried."""
        self._trials.close()

    def matcher_for(self, request: Request, *, is_plain: bool = False) -> GrammarMatcher | None:
        """The matcher of a request, None if it has no grammar. One that is plain takes little, and is not tried first.

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
        return self._compiled(grammar, is_plain=is_plain)

    def can_follow(self, grammar: Grammar, *, is_plain: bool = False) -> bool:
        """Whether a reply could be made to match it."""
        try:
            _check_size(grammar)
            self._compiled(grammar, is_plain=is_plain)
        except InvalidRequest:
            return False
        return True

    def _compiled(self, grammar: Grammar, *, is_plain: bool) -> GrammarMatcher:
        # Here and not above: it takes 50 ms, and most never need it.
        from llguidance import LLMatcher

        is_known = is_plain or self._knows(grammar)
        is_short = is_plain or len(grammar.source) <= _MOST_QUICK_CHARS
        if not self._takes_all and not (is_known and is_short):
            raise MayTakeLong
        source, named = _library_source(grammar), frozenset[int]()
        if grammar.kind in (GrammarKind.LARK, GrammarKind.GBNF):
            named = self._vocabulary.named_in(source)
        special = self._vocabulary.special(named)
        if not is_known:
            self._try(grammar, source, special)
        tokenizer = self._vocabulary.library_tokenizer(special)
        library = LLMatcher(tokenizer, source, log_level=0, limits=parser_limits())
        _raise_error(library, grammar)
        matcher = GrammarMatcher(library, self._vocabulary.vocab_size, grammar.param)
        matcher.follow(())  # the first mask takes the longest
        if matcher.error is not None:
            raise matcher.error
        return matcher

    def _knows(self, grammar: Grammar) -> bool:
        with self._lock:
            return _name_of(grammar) in self._known

    def _try(self, grammar: Grammar, source: str, special: frozenset[int]) -> None:
        """Raises InvalidRequest for one that is too costly. Those that are not are remembered."""
        try:
            self._trials.check(source, special)
        except TooCostly as error:
            raise _wrong(grammar.param, f"cannot be followed: {error}") from error
        with self._lock:
            self._known[_name_of(grammar)] = None
            while len(self._known) > _MOST_KNOWN:
                del self._known[next(iter(self._known))]


def _name_of(grammar: Grammar) -> bytes:
    words = grammar.kind.value + grammar.source
    return hashlib.sha256(words.encode("utf-8", "surrogatepass")).digest()


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
