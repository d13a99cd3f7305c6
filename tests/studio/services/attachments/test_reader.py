"""Files become attachments by what they are, and those that cannot are refused in words that help."""

from __future__ import annotations

import io
import os
import sys
import zipfile
from pathlib import Path

import docx
import pytest
from PySide6.QtWidgets import QApplication

from studio.models.attachment import AttachmentKind
from studio.models.errors import AttachmentError
from studio.services.attachments import child, documents
from studio.services.attachments.reader import MOST_TEXT_BYTES, read_attachment
from studio.views.pdf_file import to_pdf


def put(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def word_file(path: Path) -> Path:
    document = docx.Document()
    document.add_heading("Report", 1)
    document.add_paragraph("First paragraph, größer.")
    table = document.add_table(rows=1, cols=2)
    table.rows[0].cells[0].text, table.rows[0].cells[1].text = "left", "right"
    document.add_paragraph("Last paragraph.")
    document.save(str(path))
    return path


def small_pdf(*, is_locked: bool) -> bytes:
    """A page with nothing on it; or one that asks for a password, as its key is none for an empty one."""
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] >>",
        b"<< /Filter /Standard /V 1 /R 2 /P -4 /O <" + b"41" * 32 + b"> /U <" + b"42" * 32 + b"> >>",
    ]  # fmt: skip
    out = io.BytesIO(b"")
    out.write(b"%PDF-1.4\n")
    places = []
    for number, body in enumerate(objects, start=1):
        places.append(out.tell())
        out.write(b"%d 0 obj\n%b\nendobj\n" % (number, body))
    start, lock = out.tell(), b"/Encrypt 4 0 R " if is_locked else b""
    out.write(b"xref\n0 5\n0000000000 65535 f \n")
    out.write(b"".join(b"%010d 00000 n \n" % place for place in places))
    out.write(
        b"trailer << /Size 5 /Root 1 0 R %b/ID [<00><00>] >>\nstartxref\n%d\n%%%%EOF"
        % (lock, start)
    )
    return out.getvalue()


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.py", AttachmentKind.CODE),
        ("A.TSX", AttachmentKind.CODE),
        ("notes.txt", AttachmentKind.TEXT),
        ("README", AttachmentKind.TEXT),
        ("table.csv", AttachmentKind.TEXT),
    ],
)
def test_text_and_code(tmp_path: Path, name: str, kind: AttachmentKind) -> None:
    path = put(tmp_path, name, "größer\r\nals".encode())
    found = read_attachment(path)
    assert (found.name, found.kind, found.text) == (name, kind, "größer\nals")
    assert found.path == str(path)


def test_a_pdf_gives_its_text_whatever_it_is_called(qapp: QApplication, tmp_path: Path) -> None:
    data = to_pdf("# Title\n\nThe quick brown fox.", "Title", qapp.font().family())
    found = read_attachment(put(tmp_path, "strange.dat", data))
    assert found.kind is AttachmentKind.PDF
    assert "quick brown fox" in found.text


def test_a_word_file_gives_paragraphs_and_tables_in_order(tmp_path: Path) -> None:
    found = read_attachment(word_file(tmp_path / "a.docx"))
    assert found.kind is AttachmentKind.DOCX
    words = ["Report", "First paragraph, größer.", "left | right", "Last paragraph."]
    assert found.text == "\n\n".join(words)


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("a.png", b"\x89PNG\r\n\x1a\n" + bytes(20), "cannot see"),
        ("photo.txt", b"\xff\xd8\xff\xe0" + bytes(20), "cannot see"),
        ("a.bin", bytes(500), "no text, PDF or Word file"),
        ("empty.txt", b"  \n", "is empty"),
        ("none.txt", b"", "is empty"),
        ("a.pdf", b"%PDF-1.4 but no more", "damaged"),
        ("locked.pdf", small_pdf(is_locked=True), "password"),
        ("large.txt", b"x" * (MOST_TEXT_BYTES + 1), "the limit is 5 MB"),
    ],
)
def test_what_cannot_be_attached_says_why(
    tmp_path: Path, name: str, data: bytes, words: str
) -> None:
    with pytest.raises(AttachmentError, match=words) as caught:
        read_attachment(put(tmp_path, name, data))
    assert str(caught.value).startswith(name)


def test_a_scan_without_text_says_so(tmp_path: Path) -> None:
    path = put(tmp_path, "scan.pdf", small_pdf(is_locked=False))
    with pytest.raises(AttachmentError, match="recognised first \\(OCR\\)"):
        read_attachment(path)


def test_folders_archives_and_files_that_are_gone(tmp_path: Path) -> None:
    archive = tmp_path / "a.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("a.txt", "x")
    for path, words in (
        (tmp_path, "no file"),
        (archive, "unpack it"),
        (tmp_path / "gone.txt", "no file"),
    ):
        with pytest.raises(AttachmentError, match=words):
            read_attachment(path)


@pytest.mark.skipif(
    sys.platform == "win32" or os.geteuid() == 0, reason="nothing is unreadable here"
)
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    path = put(tmp_path, "secret.txt", b"x")
    path.chmod(0)
    with pytest.raises(AttachmentError, match="cannot be read"):
        read_attachment(path)


def test_bombs_are_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = tmp_path / "bomb.docx"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("word/document.xml", b"<x>" + bytes(30_000_000))
    with pytest.raises(AttachmentError, match="unpacks to far more"):
        documents.docx_text(bomb)
    monkeypatch.setattr(documents, "_MOST_UNPACKED", 1000)
    with pytest.raises(AttachmentError, match="unpacks to far more"):
        documents.docx_text(word_file(tmp_path / "a.docx"))


@pytest.mark.parametrize("cut", [0.2, 0.6, 0.95])
def test_damaged_word_files_are_told(tmp_path: Path, cut: float) -> None:
    whole = word_file(tmp_path / "a.docx").read_bytes()
    path = put(tmp_path, "cut.docx", whole[: int(len(whole) * cut)])
    with pytest.raises(AttachmentError):
        documents.docx_text(path)


def test_entities_of_word_files_are_not_followed(tmp_path: Path) -> None:
    secret = put(tmp_path, "secret.txt", b"TOP SECRET")
    source, path = word_file(tmp_path / "a.docx"), tmp_path / "b.docx"
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name == "word/document.xml":
                entity = f'<!DOCTYPE d [<!ENTITY e SYSTEM "{secret.as_uri()}">]><w:document'
                data = data.replace(b"<w:document", entity.encode(), 1)
                data = data.replace(b"Last paragraph.", b"&e;")
            new.writestr(name, data)
    try:
        text = documents.docx_text(path)
    except AttachmentError:
        return
    assert "TOP SECRET" not in text


def test_a_reader_that_hangs_is_ended(tmp_path: Path) -> None:
    with pytest.raises(AttachmentError, match="took longer"):
        child.read_in_child(word_file(tmp_path / "a.docx"), AttachmentKind.DOCX, patience_s=0.0)
