"""How to call a route, for people: with curl, and with the openai package where that has a method for it. Pure."""

from __future__ import annotations

import json
from typing import Any

ADDRESS = "http://127.0.0.1:8484"

_OPENAI_CALLS = {
    "/v1/chat/completions": "client.chat.completions.create",
    "/v1/completions": "client.completions.create",
    "/v1/responses": "client.responses.create",
    "/v1/embeddings": "client.embeddings.create",
}
_OPENAI_LISTS = {"/v1/models": "client.models.list()"}


def samples_of(method: str, path: str, body: dict[str, Any] | None) -> list[dict[str, str]]:
    """In the form of `x-codeSamples`."""
    samples = [{"lang": "Shell", "label": "curl", "source": _curl(method, path, body)}]
    call = _openai(method, path, body)
    if call is not None:
        samples.append({"lang": "Python", "label": "openai", "source": call})
    return samples


def _curl(method: str, path: str, body: dict[str, Any] | None) -> str:
    words = ["curl"] if method in ("GET", "POST") else [f"curl -X {method}"]
    words.append(f"{ADDRESS}{path}")
    if body is not None:
        data = json.dumps(body, ensure_ascii=False).replace("'", "'\\''")
        words.append(f"-H 'Content-Type: application/json' -d '{data}'")
    elif method == "POST":
        words.append("-X POST")
    return " ".join(words)


def _openai(method: str, path: str, body: dict[str, Any] | None) -> str | None:
    if method == "GET" and path in _OPENAI_LISTS:
        call = f"print({_OPENAI_LISTS[path]})"
    elif method == "POST" and path in _OPENAI_CALLS and body is not None:
        arguments = ", ".join(f"{name}={value!r}" for name, value in body.items())
        call = f"print({_OPENAI_CALLS[path]}({arguments}))"
    else:
        return None
    return (
        "from openai import OpenAI\n\n"
        f'client = OpenAI(base_url="{ADDRESS}/v1", api_key="none")\n'
        f"{call}"
    )
