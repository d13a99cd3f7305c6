"""What all wire types have in common: whole numbers, which some languages write with a point."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import ValidationError

from fakes.fake_engine import FakeEngine
from fakes.http_driver import CHAT, MESSAGES, POSTS, TEXT, on_a_loop, open_client
from studio.server.openapi.document import build_document
from studio.server.openapi.entries import OPERATIONS
from studio.server.protocol import ChatCompletionRequest
from studio.server.wire import WireModel

SCHEMAS = build_document(OPERATIONS, "1")["components"]["schemas"]


def is_whole(schema: dict[str, Any]) -> bool:
    return schema.get("type") == "integer" or any(map(is_whole, schema.get("anyOf", ())))


def whole_fields() -> Iterator[tuple[str, str]]:
    for (method, path), operation in OPERATIONS.items():
        if method == "POST" and operation.body is not None and path in POSTS:
            for name, schema in SCHEMAS[operation.body.__name__]["properties"].items():
                if is_whole(schema):
                    yield path, name


@pytest.mark.parametrize(("path", "name"), list(whole_fields()))
@on_a_loop
async def test_a_whole_number_may_have_a_point(path: str, name: str) -> None:
    async with open_client(FakeEngine()) as client:
        body = {**POSTS[path], "logprobs": True} if name == "top_logprobs" else POSTS[path]
        for plain, pointed in ((1, 1.0), (5, 5.0)):
            expected = (await client.post(path, json={**body, name: plain})).status_code
            answer = await client.post(path, json={**body, name: pointed})
            assert answer.status_code == expected, answer.text
        answer = await client.post(path, json={**body, name: 8.5})
        assert answer.status_code == 400, answer.text
        assert f"{name} is 8.5" in answer.text


@pytest.mark.parametrize(
    ("path", "more"),
    [
        (CHAT, {"stop_token_ids": [3.0]}),
        (TEXT, {"prompt": [1.0, 2.0]}),
        (TEXT, {"prompt": [[1.0], [2]]}),
        ("/completion", {"prompt": ["a", 2.0], "logit_bias": [[3.0, 1.5]]}),
        ("/detokenize", {"tokens": [1.0]}),
        ("/api/chat", {"options": {"top_k": 20.0, "num_predict": 3.0}}),
        (MESSAGES, {"thinking": {"type": "enabled", "budget_tokens": 1024.0}}),
    ],
)
@on_a_loop
async def test_whole_numbers_inside_of_fields_may_have_one_too(
    path: str, more: dict[str, Any]
) -> None:
    async with open_client(FakeEngine()) as client:
        answer = await client.post(path, json={**POSTS[path], **more})
        assert answer.status_code == 200, answer.text
        wrong = json.loads(json.dumps(more).replace(".0", ".25"))
        answer = await client.post(path, json={**POSTS[path], **wrong})
        assert answer.status_code == 400, answer.text


class Outer(WireModel):
    """Stands for any wire type that another one is made of."""

    inner: ChatCompletionRequest


@pytest.mark.parametrize("wrong", ["true", '"8"', "8.5", "1e999", "[8]"])
def test_nothing_else_is_taken_for_a_whole_number(wrong: str) -> None:
    body = '{"inner": {"messages": [{"role": "user", "content": "x"}], "max_tokens": %s}}'
    assert Outer.model_validate_json(body % "8.0").inner.max_tokens == 8
    with pytest.raises(ValidationError):
        Outer.model_validate_json(body % wrong)
