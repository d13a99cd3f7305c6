"""Checked access to a tokenizer.json: pieces, added tokens, how pieces are spelled, BOS and EOS.

Used by the thread that opens the folder. No torch, no tokenizers.
Source of the format: the `tokenizers` library, version 1.0 of its files.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from engine.errors import CorruptModel, UnsupportedModel
from engine.formats.json_files import read_text
from engine.formats.mapped_file import DAMAGED, shorten
from engine.text.added_tokens import AddedToken
from engine.text.pieces import PieceStyle

MAX_FILE_BYTES = 64 << 20
"""The largest tokenizer.json files have some 35 MiB."""
MAX_ITEMS = 5 << 20
"""Values in the file, counted by its commas and brackets; the largest have some 2 M."""
MAX_TOKENS = 1 << 22

_STYLES = {
    "ByteLevel": PieceStyle.BYTE_LEVEL,
    "Metaspace": PieceStyle.SENTENCEPIECE,
    "ByteFallback": PieceStyle.SENTENCEPIECE,
    "WordPiece": PieceStyle.WORDPIECE,
}
"""What the presence of a decoder says."""
_NEUTRAL_DECODERS = frozenset({"Sequence", "Replace", "Fuse", "Strip"})


def parts(step: object, key: str) -> Iterator[dict[str, Any]]:
    """A step of the file and, where it is a sequence (its steps under `key`), all steps in it."""
    if not isinstance(step, dict):
        return
    yield step
    inner = step.get(key)
    for part in inner if isinstance(inner, list) else ():
        yield from parts(part, key)


class TokenizerJson:
    """One file. Raises CorruptModel, naming the field, where a value cannot be."""

    def __init__(self, path: Path) -> None:
        self.name = path.name
        self.source = read_text(path, limit=MAX_FILE_BYTES)
        items = sum(map(self.source.count, "[{,"))
        if items > MAX_ITEMS:
            raise self.corrupt("the file", f"holds {items} values, the limit is {MAX_ITEMS}")
        try:
            self.data: Any = json.loads(self.source)
        except ValueError as error:
            raise self.corrupt("the file", f"is no JSON ({error})") from error
        if not isinstance(self.data, dict) or not isinstance(self.data.get("model"), dict):
            raise self.corrupt("model", "is missing")
        self.model: dict[str, Any] = self.data["model"]
        self._check_merges()
        self.pieces = self._read_pieces()
        """The model's and the added tokens; "" where an id has none."""
        self.ids = {piece: i for i, piece in enumerate(self.pieces) if piece}

    def corrupt(self, field: str, problem: str) -> CorruptModel:
        """The error to raise about `field`."""
        return CorruptModel(f"{self.name}: {field} {problem}; {DAMAGED}")

    def added_entries(self) -> Iterator[tuple[AddedToken, bool]]:
        """The added tokens, with whether the file calls them special; `control` is not set yet."""
        entries = self.data.get("added_tokens")
        if not isinstance(entries, list | None):
            raise self.corrupt("added_tokens", "must be a list")
        for place, entry in enumerate(entries or ()):
            field = f"added_tokens[{place}]"
            content = entry.get("content") if isinstance(entry, dict) else None
            if not isinstance(content, str) or not content or _has_surrogates(content):
                raise self.corrupt(field, "must be an object with a text as content")
            token = AddedToken(
                token_id=self._token_id(f"{field}.id", entry.get("id")),
                content=content,
                control=False,
                lstrip=entry.get("lstrip") is True,
                rstrip=entry.get("rstrip") is True,
                single_word=entry.get("single_word") is True,
            )
            yield token, entry.get("special") is True

    def style(self) -> PieceStyle:
        """How the pieces spell bytes and spaces. Raises UnsupportedModel for an unknown decoder."""
        kinds = [str(part.get("type")) for part in parts(self.data.get("decoder"), "decoders")]
        for kind in kinds:
            if kind not in _STYLES and kind not in _NEUTRAL_DECODERS:
                raise UnsupportedModel(
                    f"{self.name}: decoder.type is {shorten(kind)}, supported are "
                    + ", ".join(sorted({*_STYLES, *_NEUTRAL_DECODERS}))
                )
        return next((_STYLES[kind] for kind in kinds if kind in _STYLES), PieceStyle.PLAIN)

    def space_before_text(self) -> bool:
        """Whether decoding takes a space away from the beginning."""
        for part in parts(self.data.get("decoder"), "decoders"):
            match part.get("type"):
                case "WordPiece":
                    return True
                case "Strip" if part.get("content") == " " and part.get("start"):
                    return True
                case "Metaspace" if part.get("prepend_scheme", "always") != "never":
                    return part.get("add_prefix_space") is not False
        return False

    def frame(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The ids that the file puts before and after a text."""
        before: list[int] = []
        after: list[int] = []
        for part in parts(self.data.get("post_processor"), "processors"):
            if part.get("type") in ("BertProcessing", "RobertaProcessing"):
                before, after = [self._pair_id(part, "cls")], [self._pair_id(part, "sep")]
            elif part.get("type") == "TemplateProcessing":
                before, after = self._template(part)
        return tuple(before), tuple(after)

    def _template(self, part: dict[str, Any]) -> tuple[list[int], list[int]]:
        sides: tuple[list[int], list[int]] = ([], [])
        side = 0
        try:
            for item in part["single"]:
                if "Sequence" in item:
                    side = 1
                    continue
                for token_id in part["special_tokens"][item["SpecialToken"]["id"]]["ids"]:
                    sides[side].append(self._token_id("post_processor ids", token_id))
        except (KeyError, TypeError) as error:
            raise self.corrupt("post_processor", f"is no template ({error!r:.80})") from error
        return sides

    def _pair_id(self, part: dict[str, Any], key: str) -> int:
        pair = part.get(key)
        if not isinstance(pair, list) or len(pair) != 2:
            raise self.corrupt(f"post_processor.{key}", "must be a token and its id")
        return self._token_id(f"post_processor.{key}", pair[1])

    def _token_id(self, field: str, value: object) -> int:
        if type(value) is not int or not 0 <= value < MAX_TOKENS:
            raise self.corrupt(field, f"is {shorten(value)}, allowed is 0 to {MAX_TOKENS - 1}")
        return value

    def _check_merges(self) -> None:
        merges = self.model.get("merges", [])
        if not isinstance(merges, list) or not all(
            isinstance(merge, str)
            or (isinstance(merge, list) and len(merge) == 2 and set(map(type, merge)) == {str})
            for merge in merges
        ):
            raise self.corrupt("model.merges", "must be a list of pairs of pieces")

    def _read_pieces(self) -> list[str]:
        vocab = self.model.get("vocab")
        ids: dict[int, str] = {}
        if isinstance(vocab, dict):
            if not set(map(type, vocab.values())) <= {int}:
                raise self.corrupt("model.vocab", "must give each piece a number")
            ids = {token_id: piece for piece, token_id in vocab.items()}
        elif isinstance(vocab, list):
            for place, entry in enumerate(vocab):
                if not isinstance(entry, list) or len(entry) != 2 or type(entry[0]) is not str:
                    raise self.corrupt(f"model.vocab[{place}]", "must be a piece and its score")
                ids[place] = entry[0]
        else:
            raise self.corrupt("model.vocab", "is missing")
        ids |= {token.token_id: token.content for token, _ in self.added_entries()}
        if not ids:
            raise self.corrupt("model.vocab", "is empty")
        self._token_id("model.vocab, smallest id", min(ids))
        pieces = [""] * (self._token_id("model.vocab, largest id", max(ids)) + 1)
        for token_id, piece in ids.items():
            pieces[token_id] = piece
        return pieces


def _has_surrogates(text: str) -> bool:
    """Whether there are halves of surrogate pairs, which JSON allows and UTF-8 does not."""
    return any("\ud800" <= char <= "\udfff" for char in text)
