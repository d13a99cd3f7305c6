"""Questions about text are answered as prompts are read: on the intake worker, with the loaded model's own rules."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from pathlib import Path

import pytest

from engine.api import (
    Chat,
    ChatMessage,
    Detokenize,
    Failed,
    Infill,
    Origin,
    Render,
    Request,
    ShowTemplate,
    Started,
    Text,
    TextAnswer,
    TokenDelta,
    Tokenize,
)
from engine.errors import EngineStopped, InvalidRequest, ModelUnavailable
from engine.runtime.engine import Engine
from engine.runtime.intake import Intake, TextTask
from fakes.listening import TIMEOUT_S, run_all
from fakes.parking_rig import load
from fakes.tiny_files import write_tiny_gguf
from fakes.tiny_text import byte_level

HELLO = (ChatMessage(role="user", content="hello"),)


@pytest.fixture
def loaded(engine: Engine, tmp_path: Path) -> Engine:
    load(engine, write_tiny_gguf(tmp_path))
    return engine


def answer_of(future: Future[TextAnswer]) -> TextAnswer:
    return future.result(TIMEOUT_S)


def test_tokens_and_text_are_each_others_inverse(loaded: Engine) -> None:
    text = "hello w\u00f6rld \U0001f600"
    tokens = answer_of(loaded.read_text(Tokenize(parts=(text,))))
    assert b"".join(tokens.pieces) == text.encode()
    assert len(tokens.pieces) == len(tokens.token_ids)
    assert answer_of(loaded.read_text(Detokenize(ids=tokens.token_ids))).text == text


def test_ids_among_texts_stand_for_themselves(loaded: Engine) -> None:
    hello = answer_of(loaded.read_text(Tokenize(parts=("hello",)))).token_ids
    mixed = answer_of(loaded.read_text(Tokenize(parts=("hello", 7, "hello")))).token_ids
    assert mixed == (*hello, 7, *hello)


def test_control_tokens_in_a_text_are_tokens_or_text_as_asked(loaded: Engine) -> None:
    ask = Tokenize(parts=("<|im_end|>",))
    (end_id,) = answer_of(loaded.read_text(ask)).token_ids
    as_text = Tokenize(parts=("<|im_end|>",), reads_control=False)
    assert end_id not in answer_of(loaded.read_text(as_text)).token_ids
    assert answer_of(loaded.read_text(Detokenize(ids=(end_id,)))).text == ""
    shown = Detokenize(ids=(end_id,), shows_control=True)
    assert answer_of(loaded.read_text(shown)).text == "<|im_end|>"


def test_the_template_is_shown_with_the_special_tokens(loaded: Engine) -> None:
    answer = answer_of(loaded.read_text(ShowTemplate()))
    assert "<|im_start|>" in answer.text
    assert dict(answer.special_tokens)["eos_token"] == "<|im_end|>"


def test_a_chat_is_rendered_as_a_request_for_it_reads(loaded: Engine) -> None:
    chat = Chat(messages=HELLO)
    text = answer_of(loaded.read_text(Render(chat=chat))).text
    assert text == "<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n"
    ids = answer_of(loaded.read_text(Tokenize(parts=(text,)))).token_ids
    started = [
        event
        for prompt in (chat, Text(text=text, reads_control=True))
        for event in run_all(
            loaded, [Request(request_id="a", origin=Origin.API, prompt=prompt, max_tokens=1)]
        ).of("a")
        if isinstance(event, Started)
    ]
    assert [event.prompt_tokens for event in started] == [len(ids)] * 2


def test_ids_outside_the_vocabulary_are_refused_by_name(loaded: Engine) -> None:
    for question in (Tokenize(parts=("a", 1 << 20)), Detokenize(ids=(1 << 20,))):
        with pytest.raises(InvalidRequest, match="1048576 is outside the vocabulary"):
            answer_of(loaded.read_text(question))


def test_without_a_model_and_after_the_end_there_is_an_error(engine: Engine) -> None:
    with pytest.raises(ModelUnavailable):
        answer_of(engine.read_text(Tokenize(parts=("a",))))


def test_what_is_asked_of_a_worker_that_ends_is_told_so() -> None:
    entered, goes_on = threading.Event(), threading.Event()
    tokenizer = byte_level()

    class Slow:
        @property
        def vocab_size(self) -> int:
            entered.set()
            assert goes_on.wait(TIMEOUT_S)
            return tokenizer.vocab_size

    def task(of: object) -> TextTask:
        return TextTask(Detokenize(ids=(1,)), of, None, Future())  # type: ignore[arg-type]

    intake = Intake(lambda prepared: None)
    first, cancelled, second, late = task(Slow()), *(task(tokenizer) for _ in range(3))
    intake.ask(first)
    assert entered.wait(TIMEOUT_S)
    cancelled.answer.cancel()
    intake._prompts._tasks.put(None)  # as `close` does first
    intake.ask(cancelled)
    intake.ask(second)
    goes_on.set()
    intake.close()
    intake.ask(late)
    for one in (second, late):
        with pytest.raises(EngineStopped):
            one.answer.result(TIMEOUT_S)
    assert cancelled.answer.cancelled()


def test_a_gap_is_filled_where_the_model_has_tokens_for_that(
    engine: Engine, tmp_path: Path
) -> None:
    marks = ("<fim_prefix>", "<fim_suffix>", "<fim_middle>")
    load(engine, write_tiny_gguf(tmp_path, controls=marks))
    gap = Infill(before="the", after="and", context="you")
    same = Text(text="you<fim_prefix>the<fim_suffix>and<fim_middle>", reads_control=True)
    heard = run_all(
        engine,
        [
            Request(request_id=name, origin=Origin.API, prompt=prompt, max_tokens=8)
            for name, prompt in (("gap", gap), ("same", same))
        ],
    )
    counts = [
        e.prompt_tokens for n in ("gap", "same") for e in heard.of(n) if isinstance(e, Started)
    ]
    assert counts[0] == counts[1] == engine.count_tokens(gap)
    assert any(isinstance(event, TokenDelta) for event in heard.of("gap"))


def test_a_gap_is_refused_by_name_where_it_has_none(loaded: Engine) -> None:
    gap = Request(request_id="gap", origin=Origin.API, prompt=Infill(before="a", after="b"))
    (failed,) = [e for e in run_all(loaded, [gap]).of("gap") if isinstance(e, Failed)]
    assert isinstance(failed.error, InvalidRequest)
    assert failed.error.param == "suffix"
    assert "fill-in-the-middle" in str(failed.error)
