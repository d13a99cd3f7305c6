"""What a program calls itself: the first product of its User-Agent that says something. Pure; any thread.

Source: RFC 9110, section 10.1.5; browsers and programs made of one name those first that they want to be taken for.
"""

from __future__ import annotations

import re

_COMMENT = re.compile(r"\([^()]*\)")
_PRODUCT = re.compile(r"([A-Za-z][\w.+-]{0,39})(?:/[\w.+-]*)?")
_SAYS_NOTHING = frozenset({"mozilla", "applewebkit", "gecko", "version"})
_MOST_CHARS = 1000


def program_name(user_agent: str) -> str:
    """ "Zed" of "Zed/0.211.6 (linux; x86_64)"; empty where none is named."""
    words = _COMMENT.sub(" ", user_agent[:_MOST_CHARS]).split()
    products = (found[1] for word in words if (found := _PRODUCT.fullmatch(word)) is not None)
    return next((name for name in products if name.lower() not in _SAYS_NOTHING), "")
