"""Text to token ids and back, by the rules that come with the model.

A `Tokenizer` is immutable and may be read from any thread: the intake thread encodes, the engine
thread asks for the bytes of tokens. No torch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.errors import CorruptModel, UnsupportedModel
from engine.formats.base import Checkpoint, FileFormat
from engine.text.added_tokens import AddedToken, Splitter
from engine.text.fill_in import find_fill_in
from engine.text.folder_vocabulary import read_folder_vocabulary
from engine.text.gguf_vocabulary import read_gguf_vocabulary
from engine.text.pieces import PieceStyle, piece_bytes
from engine.text.vocabulary import Vocabulary

MAX_ADDED_TOKENS = 1 << 17
"""Matching them takes about a kilobyte each; models have up to some ten thousand."""

_END_OF_TEXT = "<|endoftext|>"


class Tokenizer:
    """One model's vocabulary.

    Ordinary text never yields a control token: the pipeline that tokenises it does not know them,
    and its result is checked.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        if len(vocabulary.added) > MAX_ADDED_TOKENS:
            raise UnsupportedModel(
                f"{vocabulary.pipeline.name}: has {len(vocabulary.added)} control and added tokens, "
                f"the limit is {MAX_ADDED_TOKENS}"
            )
        special = vocabulary.special
        self.vocab_size = len(vocabulary.pieces)
        self.bos_id = special.bos_id
        self.eos_ids = special.eos_ids
        self.add_bos = special.bos_id is not None and special.bos_id in special.prefix
        """Whether a prompt begins with BOS."""
        self.between_texts = _between_texts(vocabulary)
        """What a model has read before the beginning of a text: one token, or none where nothing is like that."""
        self.special_names: Mapping[str, str] = special.names
        """Texts of special tokens for chat templates: "bos_token" -> "<s>"."""
        self.control_tokens = tuple(token for token in vocabulary.added if token.control)
        self.plain_added_tokens = tuple(token for token in vocabulary.added if not token.control)
        """Matched as a whole like control tokens, and text all the same."""
        self.added_contents = frozenset(token.content for token in vocabulary.added)
        """Of the control tokens and a model's own additions."""
        self.fill_in = find_fill_in(vocabulary.added, special.fill_in)
        """The tokens around a gap to be filled; None for a model that does not know any."""
        self.space_before_text = vocabulary.space_before_text
        """Whether tokenising puts a space before a text, which decoding takes away again."""
        self._vocabulary = vocabulary
        self._special = special
        self._added: dict[int, AddedToken] = {token.token_id: token for token in vocabulary.added}
        self._known_bytes: dict[int, bytes] = {}
        """Of the tokens asked for so far; the same tokens come again and again."""
        self._control_ids = frozenset(token.token_id for token in self.control_tokens)
        self._forbidden_ids = self._control_ids - {special.unknown_id}
        self._control_splitter = Splitter(self.control_tokens)
        self._splitter = Splitter(self.plain_added_tokens)

    def encode(
        self, text: str, *, parse_special: bool = False, add_special: bool = False
    ) -> list[int]:
        """The ids of `text`.

        `parse_special`: control tokens spelled out in the text become tokens; else they are ordinary
        text. `add_special`: put the model's BOS and EOS around it, unless they are there.
        """
        text = _whole_characters(text)
        ids = self._encode_marked(text, {}) if parse_special else self._encode_text(text)
        return self.framed(ids) if add_special else ids

    def begun(self, ids: list[int]) -> list[int]:
        """The ids with the model's BOS before them, unless it is there."""
        return self._framed(ids, ())

    def framed(self, ids: list[int]) -> list[int]:
        """The ids with the model's BOS and EOS around them, unless they are there."""
        return self._framed(ids, self._special.suffix)

    def encode_rendered(self, text: str, veil: Mapping[str, str]) -> list[int]:
        """The ids of a rendered template: its control tokens as such, the text between them as text.

        Each key of `veil` is changed back to its value after control tokens were found, so that what
        is veiled is never part of one (see `engine.text.veil`). Begins with BOS where the model's rule
        says so, whether or not the template wrote it.
        """
        return self.begun(self._encode_marked(_whole_characters(text), veil))

    def token_bytes(self, token_id: int, *, show_control: bool = False) -> bytes:
        """The bytes a token stands for; nothing for ids out of range and, unless asked for, control tokens."""
        known = None if show_control else self._known_bytes.get(token_id)
        if known is None:
            known = self._bytes_of(token_id, show_control=show_control)
            if not show_control:
                self._known_bytes[token_id] = known
        return known

    def is_control(self, token_id: int) -> bool:
        """Whether the token steers the model and shows as nothing."""
        return token_id in self._control_ids

    def decode(self, ids: Sequence[int], *, show_control: bool = False) -> str:
        """The text of a whole sequence, control tokens left out unless asked for; invalid UTF-8 becomes U+FFFD."""
        data = b"".join(self.token_bytes(i, show_control=show_control) for i in ids)
        if self.space_before_text:
            data = data.removeprefix(b" ")
        return data.decode("utf-8", "replace")

    def _bytes_of(self, token_id: int, *, show_control: bool) -> bytes:
        if not 0 <= token_id < self.vocab_size:
            return b""
        style = self._vocabulary.style
        if token := self._added.get(token_id):
            if token.control:
                return token.content.encode() if show_control else b""
            # An added token is spelled as text where ordinary ones are spelled in byte characters.
            style = PieceStyle.PLAIN if style is PieceStyle.BYTE_LEVEL else style
        return piece_bytes(self._vocabulary.pieces[token_id], style)

    def _framed(self, ids: list[int], suffix: tuple[int, ...]) -> list[int]:
        """The ids with what belongs before and after them, unless it is there."""
        prefix = self._special.prefix
        before = () if tuple(ids[: len(prefix)]) == prefix else prefix
        after = () if suffix and tuple(ids[-len(suffix) :]) == suffix else suffix
        return [*before, *ids, *after]

    def _encode_marked(self, text: str, veil: Mapping[str, str]) -> list[int]:
        ids: list[int] = []
        for segment in self._control_splitter.split(text):
            if segment.token_id is not None:
                ids.append(segment.token_id)
                continue
            plain = segment.text
            for veiled, original in veil.items():
                plain = plain.replace(veiled, original)
            ids += self._encode_text(plain, at_start=segment.start == 0)
        return ids

    def _encode_text(self, text: str, *, at_start: bool = True) -> list[int]:
        segments = self._splitter.split(text)
        texts = [segment.text for segment in segments if segment.token_id is None]
        if not texts:
            return [segment.token_id for segment in segments if segment.token_id is not None]
        begins = at_start and segments[0].token_id is None
        encoded = iter(self._vocabulary.pipeline.encode(texts, at_start=begins))
        ids: list[int] = []
        for segment in segments:
            ids += next(encoded) if segment.token_id is None else (segment.token_id,)
        if not self._forbidden_ids.isdisjoint(ids):
            (bad, *_) = self._forbidden_ids.intersection(ids)
            raise CorruptModel(
                f"{self._vocabulary.pipeline.name}: its rules turn ordinary text into the control "
                f"token {self._added[bad].content!r}; get the model from another source"
            )
        return ids


def _between_texts(vocabulary: Vocabulary) -> tuple[int, ...]:
    """Many vocabularies have a token for exactly that, beside a BOS and an EOS that belong to chats."""
    special = vocabulary.special
    ids = [token.token_id for token in vocabulary.added if token.content == _END_OF_TEXT]
    ids += [] if special.bos_id is None else [special.bos_id]
    return tuple([*ids, *sorted(special.eos_ids)][:1])


def _whole_characters(text: str) -> str:
    """The text without halves of surrogate pairs, which JSON allows and UTF-8 does not."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def load_tokenizer(checkpoint: Checkpoint) -> Tokenizer:
    """The tokenizer that the model's file or folder describes.

    Raises CorruptModel or UnsupportedModel, naming the field.
    """
    if checkpoint.format is FileFormat.GGUF:
        return Tokenizer(read_gguf_vocabulary(checkpoint))
    return Tokenizer(read_folder_vocabulary(checkpoint))
