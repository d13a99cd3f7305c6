"""What is wrong with JSON, in our words and not in the parser's English. Pure; any thread."""

from __future__ import annotations

import json


def json_fault(error: Exception) -> str:
    """Where to look, or what is wrong; what the error says where it is one of ours."""
    match error:
        case json.JSONDecodeError():
            return f"look at line {error.lineno}, character {error.colno}"
        case UnicodeDecodeError():
            return "it is no text in UTF-8"
        case RecursionError():
            return "it is nested too deeply"
        case ValueError() if "integer string conversion" in str(error):
            return "a number in it has thousands of digits"
    return str(error)
