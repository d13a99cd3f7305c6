"""Answers to questions about text. For the intake worker; no tensor library."""

from __future__ import annotations

from collections.abc import Sequence

from engine.errors import InvalidRequest
from engine.text.chat_prompt import render_chat
from engine.text.chat_template import ChatTemplate
from engine.text.tokenizer import Tokenizer
from engine.texts import Detokenize, Render, ShowTemplate, TextAnswer, TextQuestion, Tokenize


def answer_question(
    question: TextQuestion, tokenizer: Tokenizer, template: ChatTemplate
) -> TextAnswer:
    """Raises InvalidRequest for token ids that there are not, and what the template raises."""
    match question:
        case Tokenize():
            ids = _tokenize(question, tokenizer)
            pieces = (tokenizer.token_bytes(token_id, show_control=True) for token_id in ids)
            return TextAnswer(token_ids=tuple(ids), pieces=tuple(pieces))
        case Detokenize(ids=ids, shows_control=shows_control):
            check_ids(ids, tokenizer, "tokens")
            return TextAnswer(text=tokenizer.decode(ids, show_control=shows_control))
        case Render(chat=chat):
            return TextAnswer(text=render_chat(template, chat).text)
        case ShowTemplate():
            names = tuple(tokenizer.special_names.items())
            return TextAnswer(text=template.source, special_tokens=names)


def check_ids(ids: Sequence[int], tokenizer: Tokenizer, param: str) -> None:
    """Raises InvalidRequest about `param` for an id that is outside the vocabulary."""
    wrong = next((i for i in ids if not 0 <= i < tokenizer.vocab_size), None)
    if wrong is not None:
        raise InvalidRequest(
            f"Prompt contains invalid tokens: token id {wrong} is outside the vocabulary, "
            f"0 to {tokenizer.vocab_size - 1}",
            param=param,
        )


def _tokenize(question: Tokenize, tokenizer: Tokenizer) -> list[int]:
    ids: list[int] = []
    for part in question.parts:
        if isinstance(part, str):
            ids += tokenizer.encode(part, parse_special=question.reads_control)
        else:
            check_ids((part,), tokenizer, "content")
            ids.append(part)
    return tokenizer.framed(ids) if question.adds_special else ids
