"""What every client is asked to do, so that their answers can be compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

MODEL = "smollm2-135m"
PROMPT = "What is the capital of France?"
MAX_TOKENS = 100
"""More than the reply has."""
MESSAGES: list[Any] = [{"role": "user", "content": PROMPT}]

TOOL_PROMPT = "What is the weather in Paris?"
TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a town.",
        "parameters": {
            "type": "object",
            "properties": {"town": {"type": "string", "maxLength": 20}},
            "required": ["town"],
            "additionalProperties": False,
        },
    },
}

TOWN_PROMPT = "Name a town and say how large it is, as JSON."


class Town(BaseModel):
    """A town, and nothing beside what is asked of it: a small model would go on for ever."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(max_length=20)
    size: Literal["small", "large"]


def side_by_side(address: str, calls: Sequence[Callable[[str], str]]) -> list[str]:
    """What each is answered, all asking at once."""
    with ThreadPoolExecutor(len(calls)) as threads:
        return list(threads.map(lambda call: call(address), calls))
