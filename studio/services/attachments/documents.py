"""The text of PDF and Word files. Runs in a process of its own (`child`): files from anywhere, read by native code.

No Qt. Raises AttachmentError, in words for the user, for a file that has no text to give.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from studio.models.errors import AttachmentError

MOST_PAGES = 2_000
MOST_CHARS = 5_000_000
_MOST_UNPACKED = 200 << 20
_MOST_RATIO = 200
"""Of a member's size to what it takes in the file; XML of real documents stays below 30."""
_RATIO_COUNTS_FROM = 1 << 20


def pdf_text(path: Path) -> str:
    """The text of a PDF, pages apart."""
    import pypdfium2  # type: ignore[import-untyped]
    from pypdfium2 import PdfiumError

    try:
        document = pypdfium2.PdfDocument(path)
    except PdfiumError as error:
        if "password" in str(error).lower():
            raise AttachmentError(
                f"{path.name} is locked with a password; save it without one and attach that"
            ) from error
        raise AttachmentError(f"{path.name} is damaged, or no PDF") from error
    try:
        if len(document) > MOST_PAGES:
            raise AttachmentError(
                f"{path.name} has {len(document)} pages, the limit is {MOST_PAGES}; attach a part of it"
            )
        pages = [_page_text(document, number) for number in range(len(document))]
    finally:
        document.close()
    text = "\n\n".join(page for page in pages if page)
    if not text:
        raise AttachmentError(
            f"{path.name} has pictures of text but no text; have its text recognised first (OCR)"
        )
    return _bounded(text, path)


def _page_text(document: object, number: int) -> str:
    from pypdfium2 import PdfiumError

    try:
        page = document[number]  # type: ignore[index]
        text: str = page.get_textpage().get_text_range()
    except PdfiumError:
        return ""  # one damaged page is no reason to refuse the others
    return text.replace("\r\n", "\n").replace("\ufffe", "-").strip()


def docx_text(path: Path) -> str:
    """Paragraphs and tables of a Word document, in their order."""
    _refuse_bombs(path)
    import docx
    from docx.opc.exceptions import PackageNotFoundError
    from docx.table import Table

    try:
        document = docx.Document(str(path))
        parts = [
            _table_text(part) if isinstance(part, Table) else part.text
            for part in document.iter_inner_content()
        ]
    except (
        PackageNotFoundError,
        KeyError,
        ValueError,
        AttributeError,
        zipfile.BadZipFile,
        zlib.error,
        SyntaxError,  # lxml's own errors of XML
    ) as error:
        raise AttachmentError(f"{path.name} is damaged, or no Word document") from error
    text = "\n\n".join(part for part in parts if part.strip())
    if not text:
        raise AttachmentError(f"{path.name} has no text")
    return _bounded(text, path)


def _table_text(table: object) -> str:
    rows = (
        " | ".join(" ".join(cell.text.split()) for cell in row.cells)
        for row in table.rows  # type: ignore[attr-defined]
    )
    return "\n".join(rows)


def _refuse_bombs(path: Path) -> None:
    """Look at the sizes before anything is unpacked, and at what is unpacked, since sizes may lie."""
    try:
        with zipfile.ZipFile(path) as archive:
            left = _MOST_UNPACKED
            for member in archive.infolist():
                large = member.file_size > _RATIO_COUNTS_FROM
                if large and member.file_size > _MOST_RATIO * max(1, member.compress_size):
                    raise _bomb(path)
                for piece in _pieces(archive, member):
                    left -= len(piece)
                    if left < 0:
                        raise _bomb(path)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise AttachmentError(f"{path.name} is damaged, or no Word document") from error


def _pieces(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Iterator[bytes]:
    with archive.open(member) as file:
        while piece := file.read(1 << 20):
            yield piece


def _bomb(path: Path) -> AttachmentError:
    return AttachmentError(f"{path.name} unpacks to far more than a document has; it is not opened")


def _bounded(text: str, path: Path) -> str:
    if len(text) > MOST_CHARS:
        raise AttachmentError(
            f"{path.name} has {len(text)} characters of text, the limit is {MOST_CHARS}; attach a part of it"
        )
    return text
