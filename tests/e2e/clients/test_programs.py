"""langchain-openai, litellm and Node's openai on the starter model, in processes of their own: tools and schemas."""

from __future__ import annotations

import pytest

from fakes.client_jobs import Town
from fakes.client_programs import ask_program, skip_without
from fakes.client_rig import Rig

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("clients")]

PROGRAMS = ("openai_client.cjs", "langchain_openai_client.py", "litellm_client.py")


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_tool_is_called(name: str, rig: Rig) -> None:
    skip_without(name)
    call = ask_program(name, rig.address, "tools")
    assert call["name"] == "get_weather"
    assert set(call["arguments"]) == {"town"}


def test_langchains_structured_output_keeps_to_its_schema(rig: Rig) -> None:
    skip_without("langchain_openai_client.py")
    assert Town.model_validate(ask_program("langchain_openai_client.py", rig.address, "structured"))
