"""What a tool has answered, as text for the model and for a person. Pure; no import of the protocol's package.

The blocks are told apart by their `type`, as the protocol writes it; what is no text is said in words.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

MOST_CHARS = 100_000
"""Of an answer; a model's window holds no more by far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAnswer:
    """What came of a call."""

    text: str
    is_error: bool = False
    """The tool itself says that it failed."""


def answer_of(result: dict[str, Any], *, most_chars: int = MOST_CHARS) -> ToolAnswer:
    """A `tools/call` result, as JSON values, in words; what is beyond the limit is cut off and counted."""
    blocks = result.get("content")
    parts = [block_words(one) for one in blocks] if isinstance(blocks, list) else []
    text = "\n\n".join(part for part in parts if part)
    structured = result.get("structuredContent")
    if not text and structured is not None:
        text = json.dumps(structured, ensure_ascii=False)
    return ToolAnswer(text=shortened(text, most_chars), is_error=result.get("isError") is True)


def block_words(block: Any) -> str:
    """One block of content; an image or a sound by its kind and size."""
    if not isinstance(block, dict):
        return ""
    match block.get("type"):
        case "text":
            return str(block.get("text", ""))
        case "image" | "audio" as kind:
            return (
                f"[{kind}: {block.get('mimeType', 'of unknown kind')}, {_size(block.get('data'))}]"
            )
        case "resource_link":
            return _joined("resource", (block.get("title") or block.get("name"), block.get("uri")))
        case "resource":
            return _resource_words(block.get("resource"))
        case kind:
            return f"[content of the kind {kind!r}, which Layby does not know]"


def shortened(text: str, most_chars: int) -> str:
    """The beginning of a text that is too long, and how much is left out."""
    if len(text) <= most_chars:
        return text
    return f"{text[:most_chars]}\n[cut off here: {len(text) - most_chars:,} characters more]"


def _resource_words(resource: Any) -> str:
    if not isinstance(resource, dict):
        return ""
    if isinstance(text := resource.get("text"), str):
        return text
    return _joined(
        "resource", (resource.get("uri"), resource.get("mimeType"), _size(resource.get("blob")))
    )


def _joined(kind: str, parts: Iterable[object]) -> str:
    return f"[{kind}: {', '.join(str(part) for part in parts if part)}]"


def _size(data: object) -> str:
    """Bytes of what is in base64."""
    try:
        num_bytes = len(base64.b64decode(data, validate=True)) if isinstance(data, str) else 0
    except (binascii.Error, ValueError):
        return "damaged"
    return f"{num_bytes:,} bytes"
