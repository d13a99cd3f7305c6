"""Builds the tokenising pipeline of a Hugging Face folder from its tokenizer.json.

Normaliser, pre-tokeniser and model are taken as they are; added tokens, templates, truncation and
padding are left out, and control tokens are taken out of the model, so no text can become one. Used
by the thread that opens the folder. No torch.
"""

from __future__ import annotations

import base64
import binascii
import copy
import json
from collections.abc import Iterator, Mapping
from typing import Any

import tokenizers
from tokenizers import models

from engine.text.text_pipeline import (
    MAX_GROWTH,
    MAX_UNKNOWN_CHARS,
    TextPipeline,
    library_errors,
    longest_replacement,
)
from engine.text.tokenizer_json import TokenizerJson, parts

MAX_WORD_CHARS = 1000
"""Longest word for WordPiece, which takes the cube of a word's length; files say 100."""

_NOTHING = {"version": "1.0", "model": {"type": "BPE", "vocab": {}, "merges": []}}


def build_pipeline(file: TokenizerJson, hidden: frozenset[str]) -> TextPipeline:
    """The file's pipeline, without the pieces in `hidden`.

    Raises CorruptModel where the library does not take the file, or where the file would make the
    library copy gigabytes.
    """
    data, source = file.data, file.source
    _check_growth(file)
    if not hidden.isdisjoint(_pieces_of(file.model)):
        source = json.dumps({**_NOTHING, **_steps(data), "model": _without(file.model, hidden)})
    with library_errors(file.name):
        whole = tokenizers.Tokenizer.from_str(source)
        _tame(whole.model)
        first = rest = _bare(whole, whole)
        later = _after_the_beginning(data.get("pre_tokenizer"))
        if later != data.get("pre_tokenizer"):
            steps = {**_NOTHING, **_steps(data), "pre_tokenizer": later}
            rest = _bare(whole, tokenizers.Tokenizer.from_str(json.dumps(steps)))
    return TextPipeline(file.name, first, rest)


def _tame(model: models.Model) -> None:
    """Undo settings that make encoding random or endless."""
    if isinstance(model, models.BPE):
        model.dropout = None  # a training aid
    elif isinstance(model, models.WordPiece):
        model.max_input_chars_per_word = min(model.max_input_chars_per_word, MAX_WORD_CHARS)


def _bare(model: tokenizers.Tokenizer, steps: tokenizers.Tokenizer) -> tokenizers.Tokenizer:
    """The model of one (shared, not copied) and the steps before it of the other."""
    library = tokenizers.Tokenizer(model.model)
    if steps.normalizer is not None:
        library.normalizer = steps.normalizer
    if steps.pre_tokenizer is not None:
        library.pre_tokenizer = steps.pre_tokenizer
    return library


def _steps(data: Mapping[str, Any]) -> dict[str, Any]:
    return {key: data.get(key) for key in ("normalizer", "pre_tokenizer")}


def _pieces_of(model: Mapping[str, Any]) -> Iterator[str]:
    vocab = model["vocab"]
    return iter(vocab) if isinstance(vocab, dict) else (piece for piece, _ in vocab)


def _without(model: Mapping[str, Any], hidden: frozenset[str]) -> dict[str, Any]:
    """The model's description with `hidden` pieces out of reach; other ids stay as they are."""
    vocab = model["vocab"]
    if isinstance(vocab, list):
        # Ids are places in the list. No text reaches a piece with a space: models of this kind
        # replace all spaces.
        return {**model, "vocab": [[f" {p}" if p in hidden else p, score] for p, score in vocab]}
    changed = {**model, "vocab": {piece: i for piece, i in vocab.items() if piece not in hidden}}
    if "merges" in model:
        pairs = (m.split(" ", 1) if isinstance(m, str) else m for m in model["merges"])
        changed["merges"] = [pair for pair in pairs if hidden.isdisjoint((*pair, "".join(pair)))]
    return changed


def _after_the_beginning(step: object) -> object:
    """The pre-tokeniser as it works on text that is not the beginning."""
    changed = copy.deepcopy(step)
    for part in parts(changed, "pretokenizers"):
        if part.get("type") == "Metaspace" and part.get("prepend_scheme") == "first":
            part["prepend_scheme"] = "never"
    return changed


def _check_growth(file: TokenizerJson) -> None:
    """Refuse steps that make a text many times longer, and long pieces that are copied often."""
    growth = 1
    for step in parts(file.data.get("normalizer"), "normalizers"):
        growth *= max(len(str(step.get(key, " "))) for key in ("content", "prepend"))
        if table := step.get("precompiled_charsmap"):
            try:
                growth *= longest_replacement(base64.b64decode(table))
            except (binascii.Error, TypeError, ValueError) as error:
                raise file.corrupt(
                    "normalizer.precompiled_charsmap", f"is no table ({error})"
                ) from None
        if growth > MAX_GROWTH:
            raise file.corrupt("normalizer", f"may make a text over {MAX_GROWTH} times longer")
    for key in ("unk_token", "continuing_subword_prefix", "end_of_word_suffix"):
        length = len(str(file.model.get(key) or ""))
        if length > MAX_UNKNOWN_CHARS:
            raise file.corrupt(
                f"model.{key}", f"has {length} characters, the limit is {MAX_UNKNOWN_CHARS}"
            )
