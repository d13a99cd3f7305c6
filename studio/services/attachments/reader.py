"""A file as an attachment: what kind it is, by its beginning rather than its name, and what can be read of it.

Runs in a worker thread; no Qt.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

from engine.system_faults import system_fault
from studio.models.attachment import Attachment, AttachmentKind
from studio.models.errors import AttachmentError
from studio.models.one_line import one_line
from studio.services.attachments.child import read_in_child
from studio.services.attachments.text_files import decode

MOST_TEXT_BYTES = 5_000_000
MOST_DOCUMENT_BYTES = 100_000_000
_HEAD_BYTES = 1024
_PICTURES = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"BM", b"II*\0", b"MM\0*")
_CODE_ENDINGS = (
    "bash bat c cc clj cmake cpp cs css dart ex f90 go gradle h hpp hs html ini java jl js json jsx kt less lua m mk "
    "ml nim php pl ps1 py pyi r rb rs scala scss sh sql svelte swift tex toml ts tsx vue xml yaml yml zig"
)
_CODE = frozenset(_CODE_ENDINGS.split(" "))


def read_attachment(path: Path) -> Attachment:
    """What is read of a file. Raises AttachmentError, in words, where nothing is."""
    try:
        if not path.is_file():
            raise AttachmentError(f"{path.name} is no file; attach the files in it one by one")
        size = path.stat().st_size
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
        kind = kind_of(path, head)
        text = _text(path, kind, size)
    except OSError as error:
        raise AttachmentError(f"{path.name} cannot be read: {system_fault(error)}") from error
    return Attachment(name=one_line(path.name), kind=kind, text=text, path=str(path))


def kind_of(path: Path, head: bytes) -> AttachmentKind:
    """What a file is. Raises AttachmentError for what cannot be attached by its very kind."""
    if b"%PDF-" in head:
        return AttachmentKind.PDF
    is_webp = head[:4] == b"RIFF" and head[8:12] == b"WEBP"
    if is_webp or any(head.startswith(mark) for mark in _PICTURES):
        return AttachmentKind.IMAGE
    if head.startswith(b"PK") and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            if "word/document.xml" in archive.namelist():
                return AttachmentKind.DOCX
        raise AttachmentError(
            f"{path.name} is an archive; unpack it and attach the files in it one by one"
        )
    return (
        AttachmentKind.CODE
        if path.suffix.lower().removeprefix(".") in _CODE
        else AttachmentKind.TEXT
    )


def _text(path: Path, kind: AttachmentKind, size: int) -> str:
    if kind is AttachmentKind.IMAGE:
        raise AttachmentError(
            f"{path.name} is a picture, and the model cannot see; say in words what is on it"
        )
    is_document = kind in (AttachmentKind.PDF, AttachmentKind.DOCX)
    limit = MOST_DOCUMENT_BYTES if is_document else MOST_TEXT_BYTES
    if size > limit:
        raise AttachmentError(
            f"{path.name} has {size / 1e6:.0f} MB, the limit is {limit / 1e6:.0f} MB; attach a part of it"
        )
    if is_document:
        return read_in_child(path, kind)
    text = decode(path.read_bytes())
    if text is None:
        raise AttachmentError(f"{path.name} is no text, PDF or Word file; save it as one of these")
    if not text.strip():
        raise AttachmentError(f"{path.name} is empty")
    return text
