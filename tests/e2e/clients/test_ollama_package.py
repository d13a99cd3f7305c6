"""The ollama package on the starter model: what it lists, schemas that bind, tools, errors of its own class."""

from __future__ import annotations

from collections.abc import Iterator

import ollama
import pytest

from fakes.client_calls import OLLAMA_OPTIONS
from fakes.client_jobs import MODEL, TOOL, TOOL_PROMPT, TOWN_PROMPT, Town
from fakes.client_rig import Rig

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("clients")]


@pytest.fixture
def client(rig: Rig) -> Iterator[ollama.Client]:
    with ollama.Client(rig.address) as client:
        yield client


def test_models_are_listed_and_shown(client: ollama.Client) -> None:
    (model,) = client.list().models
    assert model.model is not None
    assert model.model.partition(":")[0] == MODEL
    shown = client.show(MODEL)
    assert shown.modelinfo
    assert "completion" in (shown.capabilities or ())


def test_a_schema_is_kept_to(client: ollama.Client) -> None:
    reply = client.chat(
        MODEL,
        [{"role": "user", "content": TOWN_PROMPT}],
        format=Town.model_json_schema(),
        options=OLLAMA_OPTIONS,
    )
    assert Town.model_validate_json(reply.message.content or "")


def test_a_tool_and_its_result_are_taken(client: ollama.Client) -> None:
    asked = [{"role": "user", "content": TOOL_PROMPT}]
    call = {"function": {"name": "get_weather", "arguments": {"town": "Paris"}}}
    turns = [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": "It is sunny.", "tool_name": "get_weather"},
    ]
    reply = client.chat(MODEL, [*asked, *turns], tools=[TOOL], options=OLLAMA_OPTIONS)
    assert reply.message.content or reply.message.tool_calls


def test_errors_are_the_clients_own_class(client: ollama.Client) -> None:
    with pytest.raises(ollama.ResponseError, match="gpt-99") as error:
        client.chat("gpt-99", [{"role": "user", "content": "hi"}])
    assert error.value.status_code == 404
