"""JSON as it goes out: on one line whoever counts the lines.

U+2028, U+2029 and U+0085 stand as escapes in it: many readers of lines, Python's `splitlines` and so the ones of httpx
and of Ollama's own client among them, end a line there, and models write them. The other characters that do so are
control characters, which JSON escapes anyway. Pure; any thread.
"""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import JSONResponse

_JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_LINE_ENDS = (("\x85", "\\u0085"), ("\u2028", "\\u2028"), ("\u2029", "\\u2029"))
"""In JSON they stand in strings alone."""


def json_bytes(data: Any) -> bytes:
    """Raises ValueError for what is no JSON."""
    text = _JSON.encode(data)
    if not text.isascii():  # known beforehand: most tokens cost nothing here
        for char, escape in _LINE_ENDS:
            text = text.replace(char, escape)
    return text.encode()


class JsonAnswer(JSONResponse):
    """A whole answer."""

    def render(self, content: Any) -> bytes:
        return json_bytes(content)
