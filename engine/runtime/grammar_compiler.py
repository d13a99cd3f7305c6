"""From a request's grammar to a matcher, or to what is wrong with it. Intake thread; imports no torch.

The library llguidance does the work. It is bounded in what it may take here and at every token, and a grammar that
would take more is refused: nobody's grammar holds up the replies of others.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from engine.api import Grammar, GrammarKind, Request
from engine.errors import InvalidRequest
from engine.runtime.grammar_matcher import GrammarMatcher
from engine.runtime.grammar_vocabulary import GrammarVocabulary
from engine.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from llguidance import LLMatcher, LLParserLimits

MAX_CHARS = 1 << 18
MAX_DEPTH = 200
"""Of brackets in one another. The library calls itself for each, and a stack that overflows ends the process."""
_SPACE = r" |\n[ \t]{0,24}"
"""Between the parts of JSON: as models write it, and never without end."""
_OPENING, _CLOSING = "([{", ")]}"


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
            schema = json.dumps(_schema_object(grammar))
            return LLMatcher.grammar_from_json_schema(schema, {"whitespace_pattern": _SPACE})
        case GrammarKind.REGEX:
            return LLMatcher.grammar_from_regex(grammar.source)
        case GrammarKind.LARK:
            return grammar.source
        case GrammarKind.GBNF:
            raise _wrong(grammar, "is in GBNF, which is not supported yet")


def _schema_object(grammar: Grammar) -> dict[str, Any]:
    try:
        schema = json.loads(grammar.source)
    except (ValueError, RecursionError) as error:
        raise _wrong(grammar, f"is no JSON ({error})") from error
    if schema is True:
        return {}
    if not isinstance(schema, dict):
        raise _wrong(
            grammar, f"is {json.dumps(schema):.40}, which no reply can match or is no schema"
        )
    return schema


def _limits() -> LLParserLimits:
    from llguidance import LLParserLimits

    return LLParserLimits(verbose_errors=False)


def _check_size(grammar: Grammar) -> None:
    length = len(grammar.source)
    if length > MAX_CHARS:
        raise _wrong(grammar, f"has {length} characters, the limit is {MAX_CHARS}")
    depth = deepest = 0
    for char in grammar.source:
        if char in _OPENING:
            depth += 1
            deepest = max(deepest, depth)
        elif char in _CLOSING:
            depth -= 1
    if deepest > MAX_DEPTH:
        raise _wrong(
            grammar, f"has brackets {deepest} deep in one another, the limit is {MAX_DEPTH}"
        )


def _raise_error(library: LLMatcher, grammar: Grammar) -> None:
    if library.is_error():
        raise _wrong(grammar, f"cannot be followed: {library.get_error().strip()[:1000]}")


def _wrong(grammar: Grammar, what: str) -> InvalidRequest:
    return InvalidRequest(f"{grammar.param} {what}; change it or leave it out", param=grammar.param)
