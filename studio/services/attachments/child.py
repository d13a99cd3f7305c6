"""Reads documents in a process that may crash, hang or run out of memory without harming Layby. Worker thread; no Qt.

The answer comes as JSON, not as pickled objects: what the child says is data.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
from multiprocessing.connection import Connection
from pathlib import Path

from engine.system_faults import system_fault
from studio.models.attachment import AttachmentKind
from studio.models.errors import AttachmentError
from studio.services.attachments import documents

PATIENCE_S = 60.0
_MOST_MEMORY = 2 << 30


def read_in_child(path: Path, kind: AttachmentKind, *, patience_s: float = PATIENCE_S) -> str:
    """The text of a PDF or Word file. Raises AttachmentError."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(
        target=_answer, args=(sender, str(path), kind.value), name="layby-document", daemon=True
    )
    process.start()
    sender.close()
    try:
        if not receiver.poll(patience_s):
            raise AttachmentError(
                f"{path.name} took longer than {patience_s:.0f} s to read; attach a part of it"
            )
        answer = json.loads(receiver.recv_bytes())
    except EOFError as error:
        raise AttachmentError(
            f"{path.name} could not be read: its reader broke down over it"
        ) from error
    finally:
        process.kill()
        process.join()
        process.close()
        receiver.close()
    if "error" in answer:
        raise AttachmentError(str(answer["error"]))
    return str(answer["text"])


def _answer(sender: Connection, path: str, kind: str) -> None:
    """In the child."""
    _bound_memory()
    read = documents.pdf_text if kind == AttachmentKind.PDF.value else documents.docx_text
    try:
        answer = {"text": read(Path(path))}
    except AttachmentError as error:
        answer = {"error": str(error)}
    except MemoryError:
        answer = {"error": f"{Path(path).name} needs more memory than a document may"}
    except OSError as error:
        answer = {"error": f"{Path(path).name} cannot be read: {system_fault(error)}"}
    sender.send_bytes(json.dumps(answer).encode())


def _bound_memory() -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):  # not on every system
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
