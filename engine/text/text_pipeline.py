"""Ordinary text to ids: normaliser, pre-tokeniser and model as one `tokenizers` pipeline, in Rust.

Knows no added token, so nothing a text says can make one. Immutable; used on the intake thread,
which lets go of the GIL meanwhile. No torch.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import tokenizers

from engine.errors import CorruptModel
from engine.formats.mapped_file import DAMAGED

MAX_UNKNOWN_CHARS = 256
"""Length of the piece for unknown text, which the library copies for every unknown character."""
MAX_GROWTH = 256
"""Times that the steps before the model may make a text longer."""


@contextlib.contextmanager
def library_errors(field: str) -> Iterator[None]:
    """Raises CorruptModel about `field` for whatever the library makes of a bad file.

    It raises plain `Exception`, and its panics are `BaseException`s of a class that has no name to import.
    """
    try:
        yield
    except (KeyboardInterrupt, SystemExit, GeneratorExit, CorruptModel):
        raise
    except BaseException as error:
        raise CorruptModel(f"{field} does not work: {str(error)[:200]}; {DAMAGED}") from error


def longest_replacement(table: bytes) -> int:
    """The most bytes that one character becomes under a compiled normalisation table.

    *Layout*: length of a trie (4 bytes, little-endian), the trie, replacements with a NUL after each
    (SentencePiece, `precompiled_charsmap`). Raises ValueError on a length that cannot be true, which the
    library would take memory for.
    """
    trie_bytes = int.from_bytes(table[:4], "little")
    if trie_bytes % 4 or trie_bytes > len(table) - 4:
        raise ValueError(f"its trie is said to have {trie_bytes} bytes of {len(table)}")
    replacements = table[4 + trie_bytes :].split(b"\0")
    return max(1, *map(len, replacements))


@dataclass(frozen=True, slots=True)
class TextPipeline:
    """`first` takes the text at the very beginning, `rest` what follows an added token.

    The two are one object unless the model sets a space before the beginning only.
    """

    name: str
    """The file, for messages."""
    first: tokenizers.Tokenizer
    rest: tokenizers.Tokenizer

    def encode(self, texts: Sequence[str], *, at_start: bool) -> list[list[int]]:
        """The ids of each text; `at_start` says that texts[0] begins the whole.

        Raises CorruptModel where the library gives up on the model's own rules.
        """
        if at_start and self.first is not self.rest:
            head = self._run(self.first, texts[:1])
            return head + self._run(self.rest, texts[1:])
        return self._run(self.rest, texts)

    def _run(self, library: tokenizers.Tokenizer, texts: Sequence[str]) -> list[list[int]]:
        if not texts:
            return []
        with library_errors(self.name):
            # encode() would hold the GIL; the batch call lets go of it.
            return [e.ids for e in library.encode_batch_fast(texts, add_special_tokens=False)]
