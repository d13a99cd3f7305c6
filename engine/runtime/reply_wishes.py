"""What a reply must match, all told: a request's own grammar, the calls that it must make, reasoning before either.

Threads of prompts and of grammars. Imports no tensor library.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from engine.api import Chat, Grammar, GrammarKind, Request, Tool, ToolChoice
from engine.errors import InvalidRequest
from engine.runtime.grammar_compiler import GrammarCompiler, refused_by_name
from engine.runtime.grammar_matcher import GrammarMatcher
from engine.text.json_schemas import SchemaRefused
from engine.text.plain_schemas import is_plain
from engine.text.replies.call_grammar import PARAM, CallWish, call_grammar, json_after_thoughts
from engine.text.replies.reply_format import ReplyFormat, ReplyPlan
from engine.text.tokenizer import Tokenizer

_MOST_PLAIN_CHARS = 1 << 16
"""Of all schemas of a request together."""


class ReplyWishes:
    """Of one model."""

    def __init__(self, reply: ReplyFormat, tokenizer: Tokenizer, grammars: GrammarCompiler) -> None:
        self.reply = reply
        self._tokenizer = tokenizer
        self._grammars = grammars

    def plan_for(self, request: Request, plan: ReplyPlan | None) -> ReplyPlan | None:
        """How the request wants its reply told apart; None: all of it is text."""
        if plan is None or not request.tells_parts or not self.reply.has_parts(plan):
            return None
        if request.grammar is not None and request.grammar.kind is not GrammarKind.JSON_SCHEMA:
            return None  # what a client's own grammar says is what it gets
        is_bound = request.grammar is not None or self._calls(request.prompt) is not None
        if is_bound and plan.tools and self.reply.planned(plan).family.shape is None:
            return replace(plan, is_generic=True)  # nobody can say how its family would spell it
        return plan

    def grammar_for(self, request: Request, plan: ReplyPlan | None) -> Grammar | None:
        """What the whole reply must match.

        Raises InvalidRequest for wishes that exclude each other, and for schemas that cannot be followed.
        """
        param = request.grammar.param if request.grammar is not None else PARAM
        with refused_by_name(param):
            return self._grammar_for(request, plan)

    def _grammar_for(self, request: Request, plan: ReplyPlan | None) -> Grammar | None:
        chat, grammar = request.prompt, request.grammar
        wish = self._calls(chat)
        if grammar is not None:
            if wish is not None and wish.must_call:
                raise InvalidRequest(
                    f"tool_choice asks for a call, and {grammar.param} for something else; leave one of them out",
                    param=grammar.param,
                )
            if (
                plan is None
                or grammar.kind is not GrammarKind.JSON_SCHEMA
                or not request.tells_parts
            ):
                return grammar
            if plan.tools:
                free = CallWish(tools=plan.tools, must_call=False, most=plan.most_calls)
                return replace(self._call_grammar(wish or free, plan, grammar), param=grammar.param)
            thinking = self.reply.thinking
            if thinking is not None and plan.is_thinking:
                return json_after_thoughts(grammar, thinking, self._tokenizer)
            return grammar
        return None if wish is None or plan is None else self._call_grammar(wish, plan)

    def matcher_for(self, request: Request, grammar: Grammar | None) -> GrammarMatcher | None:
        """The matcher of a grammar, for this request. Raises InvalidRequest as the compiler does."""
        prompt = request.prompt
        tools = prompt.tools if isinstance(prompt, Chat) else ()
        bound = replace(request, grammar=grammar)
        return self._grammars.matcher_for(bound, is_plain=_are_plain(tools, request.grammar))

    def _calls(self, prompt: object) -> CallWish | None:
        if not isinstance(prompt, Chat) or prompt.tool_choice is ToolChoice.NONE:
            return None
        return CallWish.of(prompt) if prompt.tools else None

    def _call_grammar(
        self, wish: CallWish, plan: ReplyPlan, answer: Grammar | None = None
    ) -> Grammar:
        """With the tools' schemas; of tools that are not strict without them, where they cannot be followed."""
        reply = self.reply.planned(plan)
        thinking = None if reply.thinking is None else (reply.thinking, plan.is_thinking)

        def grammar(*, is_loose: bool) -> Grammar:
            return call_grammar(
                wish, reply.family, thinking, self._tokenizer, is_loose=is_loose, answer=answer
            )

        with suppress(SchemaRefused):
            exact = grammar(is_loose=False)
            plain = _are_plain(wish.tools, answer)
            if all(tool.is_strict for tool in wish.tools) or self._grammars.can_follow(
                exact, is_plain=plain
            ):
                return exact
        return grammar(is_loose=True)


def _are_plain(tools: Sequence[Tool], answer: Grammar | None) -> bool:
    """Whether schemas of tools, and what a reply must match otherwise, are known to take little to follow."""
    schemas = [tool.parameters for tool in tools]
    if answer is not None:
        if answer.kind is not GrammarKind.JSON_SCHEMA:
            return False
        schemas.append(answer.source)
    return sum(map(len, schemas)) <= _MOST_PLAIN_CHARS and all(map(is_plain, schemas))
