"""The table of errors is complete."""

from __future__ import annotations

from engine.errors import ContextLengthExceeded, EngineError, InvalidRequest, PoolFull
from studio.server.errors import ENGINE_ERRORS, error_body


def all_classes(root: type[EngineError]) -> list[type[EngineError]]:
    return [root] + [each for child in root.__subclasses__() for each in all_classes(child)]


def test_every_engine_error_has_exactly_one_row() -> None:
    ours = [each for each in all_classes(EngineError) if each.__module__ == "engine.errors"]
    assert set(ENGINE_ERRORS) == {each.code for each in ours}


def test_an_error_about_the_context_has_both_figures_and_the_type_that_others_read() -> None:
    error = ContextLengthExceeded("too long", needed_tokens=9, limit_tokens=8)
    body = error_body(error)["error"]
    assert (body["n_prompt_tokens"], body["n_ctx"]) == (9, 8)
    assert body["type"] == "exceed_context_size_error"
    assert body["code"] == "context_length_exceeded"


def test_a_reply_that_outgrew_the_pool_does_not_say_its_length_as_the_prompts() -> None:
    error = PoolFull("full", needed_tokens=577, limit_tokens=512, prompt_tokens=35)
    body = error_body(error)["error"]
    assert (body["n_prompt_tokens"], body["n_ctx"]) == (35, 512)


def test_a_body_names_the_parameter() -> None:
    assert error_body(InvalidRequest("top_k is -1", param="top_k")) == {
        "error": {
            "message": "top_k is -1",
            "type": "invalid_request_error",
            "param": "top_k",
            "code": "invalid_value",
        }
    }
