"""What a reply must match, all told: a request's own grammar, the calls that it must make, reasoning before either.

Intake thread. Imports no tensor library.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from engine.api import Chat, Grammar, GrammarKind, Request, ToolChoice
from engine.errors import InvalidRequest
from engine.runtime.grammar_compiler import GrammarCompiler, refused_by_name
from engine.runtime.grammar_matcher import GrammarMatcher
from engine.text.json_schemas import SchemaRefused
from engine.text.replies.call_grammar import (
    PARAM,
    CallWish,
    call_grammar,
    json_after_thoughts,
)
from engine.text.replies.reply_format import ReplyFormat, ReplyPlan
from engine.text.tokenizer import Tokenizer


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
        is_free = request.grammar is None or request.grammar.kind is GrammarKind.JSON_SCHEMA
        return plan if is_free else None  # what a client's own grammar says is what it gets

    def grammar_for(self, request: Request, plan: ReplyPlan | None) -> Grammar | None:
        """What the whole reply must match. Raises InvalidRequest for wishes that exclude each other."""
        chat, grammar = request.prompt, request.grammar
        wish = self._calls(chat)
        if grammar is not None:
            if wish is not None and wish.must_call:
                raise InvalidRequest(
                    f"tool_choice asks for a call, and {grammar.param} for something else; leave one of them out",
                    param=grammar.param,
                )
            thinking = self.reply.thinking
            if grammar.kind is GrammarKind.JSON_SCHEMA and thinking and plan and plan.is_thinking:
                with refused_by_name(grammar.param):
                    return json_after_thoughts(grammar, thinking, self._tokenizer)
            return grammar
        if wish is None or plan is None:
            return None
        return self._call_grammar(wish, plan)

    def matcher_for(self, request: Request, grammar: Grammar | None) -> GrammarMatcher | None:
        """The matcher of a grammar, for this request. Raises InvalidRequest as the compiler does."""
        return self._grammars.matcher_for(replace(request, grammar=grammar))

    def _calls(self, prompt: object) -> CallWish | None:
        if not isinstance(prompt, Chat) or prompt.tool_choice is ToolChoice.NONE:
            return None
        return CallWish.of(prompt) if prompt.tools else None

    def _call_grammar(self, wish: CallWish, plan: ReplyPlan) -> Grammar:
        """With the tools' schemas; of tools that are not strict without them, where they cannot be followed."""
        reply = self.reply.planned(plan)
        thinking = None if reply.thinking is None else (reply.thinking, plan.is_thinking)
        is_strict = all(tool.is_strict for tool in wish.tools)
        with suppress(SchemaRefused):
            grammar = call_grammar(wish, reply.family, thinking, self._tokenizer)
            if is_strict or self._grammars.can_follow(grammar):
                return grammar
        with refused_by_name(PARAM):
            return call_grammar(wish, reply.family, thinking, self._tokenizer, is_loose=True)
