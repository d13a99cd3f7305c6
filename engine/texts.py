"""Questions about text that a loaded model's tokenizer or template answers, with nothing computed.

Part of the engine's door beside `engine.api`, which re-exports it. Standard library only; immutable, any thread.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.prompts import Chat


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokenize:
    """Which tokens these texts are, one after another; ids among them stand for themselves."""

    parts: tuple[str | int, ...]
    adds_special: bool = False
    """With what the model's rule puts before and after a prompt, unless it is there."""
    reads_control: bool = True
    """Control tokens spelled out in a text become tokens; False: they are ordinary text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Detokenize:
    """What text these tokens are."""

    ids: tuple[int, ...]
    shows_control: bool = False
    """Control tokens are spelled out; False: they show as nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Render:
    """The text that the model's template makes of a conversation."""

    chat: Chat


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowTemplate:
    """The model's template itself, and the special tokens that it may name."""


TextQuestion = Tokenize | Detokenize | Render | ShowTemplate


@dataclass(frozen=True, slots=True, kw_only=True)
class TextAnswer:
    """What a question asks for; the rest is empty."""

    text: str = ""
    token_ids: tuple[int, ...] = ()
    pieces: tuple[bytes, ...] = ()
    """Of `Tokenize`: the bytes of each token, control tokens spelled out; a character may span several."""
    special_tokens: tuple[tuple[str, str], ...] = ()
    """Of `ShowTemplate`: texts of special tokens by name, as ("bos_token", "<s>"); those the model has."""
