"""Export and import as the user meets them: which file, and what came of it. GUI thread."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QObject, QStandardPaths, QTimer
from PySide6.QtWidgets import QFileDialog, QWidget

from engine.system_faults import system_fault
from studio.models.chat import NEW_CHAT_TITLE, Conversation, MessageStatus
from studio.models.errors import ExchangeError, SettingError
from studio.models.notices import Notice, NoticeAction, NoticeLevel
from studio.services.chat_prompt import full_title
from studio.services.exchange.importing import ImportReport, ImportRun
from studio.services.exchange.markdown_file import Labels, file_name, to_markdown
from studio.services.safe_file import write_atomically
from studio.views.context import Context
from studio.views.dialogs.file_dialog import file_dialog
from studio.views.pdf_file import to_pdf
from studio.views.status_words import title_words
from studio.views.words import count, plural, tr

_IMPORTED = "chats_imported"
_EXPORTED = "chats_exported"
_FOLDER = "window.export_folder"
_STAY_MS = 10_000
"""So long it is said where a chat was exported to."""


class ExchangeActions(QObject):
    """Dialogs do not block; failures become notices."""

    def __init__(self, context: Context, window: QWidget) -> None:
        super().__init__(window)
        self._context = context
        self._window = window
        self._chats = context.services.chats
        self._shown: Conversation | None = None
        self._imports: list[ImportRun] = []
        """Those that go on or wait."""
        self._one_import = asyncio.Lock()
        self._report = ImportReport()
        """What came of those before that went on together."""
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(_STAY_MS)
        self._timer.timeout.connect(self._stop_saying)

    def show_chat(self, chat: Conversation | None) -> None:
        """Another chat may be on screen: what was said about an export ends then."""
        if chat is not self._shown:
            self._shown = chat
            self._stop_saying()

    def export_chat(self, chat: Conversation) -> QFileDialog:
        """Ask where to, in which form, and write one chat."""
        dialog = self._ask_for_target(tr("Export the chat"), file_name(_title(chat)) + ".md")
        dialog.fileSelected.connect(
            lambda path: self._start_export([chat], Path(path), dialog.selectedNameFilter())
        )
        return dialog

    def export_all(self) -> QFileDialog:
        """Ask for a file, and write all chats with all their versions; temporary ones stay out."""
        chats = [chat for chat in self._chats.chats if not chat.is_temporary]
        return self._ask_for_one_file(tr("Export all chats"), chats)

    def export_chats(self, chats: Sequence[Conversation]) -> QFileDialog:
        """Ask where to, and write these: one in any form, several into one file with all their versions."""
        if len(chats) == 1:
            return self.export_chat(chats[0])
        title = plural(len(chats), "Export 1 chat", "Export {count} chats")
        return self._ask_for_one_file(title, chats)

    def import_chats(self) -> QFileDialog:
        """Ask for a file, and add its chats."""
        dialog = self._dialog(tr("Import chats"), QFileDialog.AcceptMode.AcceptOpen)
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.setNameFilters([tr("Chats of Layby or ChatGPT (*.json *.zip)")])
        dialog.fileSelected.connect(lambda path: self.import_file(Path(path)))
        dialog.open()
        return dialog

    def import_file(self, path: Path) -> None:
        """Add the chats of a file."""
        self._context.tasks.start(self._import(path))

    def stop_import(self) -> None:
        """End the import that goes on, and those that wait for it; what is in stays."""
        for run in self._imports:
            run.stop()

    async def export(self, chats: Sequence[Conversation], path: Path) -> None:
        """Write chats in the form that the file's ending names, and say so. Raises ExchangeError, StoreError."""
        words = tr("Writing {name}").format(name=path.name)
        if len(chats) > 1:
            words = plural(len(chats), "Exporting 1 chat", "Exporting {count} chats")
        self._timer.stop()
        notices = self._context.services.notices
        notices.show(Notice(code=_EXPORTED, level=NoticeLevel.INFO, text=words, is_progress=True))
        try:
            await self._write(chats, path)
        except BaseException:
            self._stop_saying()
            raise
        self._say(_EXPORTED, tr("Exported to {path}").format(path=path))
        self._timer.start()

    async def _write(self, chats: Sequence[Conversation], path: Path) -> None:
        exchange = self._chats.exchange
        match path.suffix.lower():
            case ".json":
                await exchange.export_json(chats, path)
            case ".pdf":
                await exchange.loaded(chats)
                page = to_markdown(chats[0], _labels())
                family = self._context.theme.font(12).family()
                await asyncio.to_thread(_write_pdf, path, page, full_title(chats[0]), family)
            case _:
                await exchange.export_markdown(chats, path, labels=_labels())

    def _start_export(self, chats: Sequence[Conversation], path: Path, chosen: str) -> None:
        if not path.suffix:
            path = path.with_suffix(_suffix_of(chosen))
        self._remember(path.parent)
        self._context.tasks.start(self.export(chats, path))

    async def _import(self, path: Path) -> None:
        """One file after another: a chat that two have is added once."""
        notices, run = self._context.services.notices, ImportRun()
        self._imports.append(run)
        try:
            async with self._one_import:
                notices.show(_progress(path, run))
                run.changed.connect(lambda: notices.update(_progress(path, run)))
                report = await self._chats.exchange.import_file(path, run)
        finally:
            self._imports.remove(run)
            notices.resolve(_IMPORTED)
        self._report += report
        self._say(_IMPORTED, report_words(self._report))
        if not self._imports:
            self._report = ImportReport()

    def _ask_for_one_file(self, title: str, chats: Sequence[Conversation]) -> QFileDialog:
        dialog = self._dialog(title, QFileDialog.AcceptMode.AcceptSave)
        dialog.setNameFilters([tr("Layby's chats (*.json)")])
        dialog.setDefaultSuffix("json")
        dialog.selectFile("layby-chats.json")
        dialog.fileSelected.connect(lambda path: self._start_export(chats, Path(path), ""))
        dialog.open()
        return dialog

    def _ask_for_target(self, title: str, name: str) -> QFileDialog:
        dialog = self._dialog(title, QFileDialog.AcceptMode.AcceptSave)
        dialog.setNameFilters(
            [tr("Markdown (*.md)"), tr("Layby's chats (*.json)"), tr("PDF (*.pdf)")]
        )
        dialog.setDefaultSuffix("md")
        dialog.filterSelected.connect(
            lambda chosen: dialog.setDefaultSuffix(_suffix_of(chosen).removeprefix("."))
        )
        dialog.selectFile(name.removesuffix(".md"))
        dialog.open()
        return dialog

    def _dialog(self, title: str, mode: QFileDialog.AcceptMode) -> QFileDialog:
        dialog = file_dialog(self._window, title)
        dialog.setAcceptMode(mode)
        dialog.setDirectory(str(self._folder()))
        return dialog

    def _folder(self) -> Path:
        """Where the last export went, or the user's documents, or else what is the user's, as far as they are there."""
        last = self._context.services.settings.settings.window.export_folder
        documents = QStandardPaths.StandardLocation.DocumentsLocation
        places = (last, QStandardPaths.writableLocation(documents))
        return next((Path(one) for one in places if one and Path(one).is_dir()), Path.home())

    def _remember(self, folder: Path) -> None:
        try:
            self._context.services.settings.change(_FOLDER, str(folder))
        except SettingError as error:
            self._context.services.notices.report(error)

    def _stop_saying(self) -> None:
        self._timer.stop()
        self._context.services.notices.resolve(_EXPORTED)

    def _say(self, code: str, text: str) -> None:
        self._context.services.notices.show(Notice(code=code, level=NoticeLevel.INFO, text=text))


def report_words(report: ImportReport) -> str:
    """What came of an import, in a sentence."""
    parts = [plural(report.num_new, "1 chat imported", "{count} chats imported")]
    if report.num_known:
        parts.append(plural(report.num_known, "1 was here already", "{count} were here already"))
    if report.num_broken:
        parts.append(
            plural(
                report.num_broken,
                "1 entry was damaged and left out",
                "{count} entries were damaged and left out",
            )
        )
    if report.num_empty:
        parts.append(
            plural(
                report.num_empty,
                "1 had not a word in it",
                "{count} had not a word in them",
            )
        )
    if report.num_left:
        parts.append(
            plural(
                report.num_left,
                "1 was left out, as you stopped it",
                "{count} were left out, as you stopped it",
            )
        )
    return "; ".join(parts) + "."


def _progress(path: Path, run: ImportRun) -> Notice:
    """How far an import is."""
    text = tr("Reading {name}").format(name=path.name)
    if run.num_chats:
        words = tr("Importing chats: {done} of {total}")
        text = words.format(done=count(run.num_done), total=count(run.num_chats))
    return Notice(
        code=_IMPORTED,
        level=NoticeLevel.INFO,
        text=text,
        action=NoticeAction.STOP_IMPORT,
        is_progress=True,
    )


def _title(chat: Conversation) -> str:
    """All of it, or what a chat without one is called in the user's language."""
    return title_words(chat) if chat.title == NEW_CHAT_TITLE else full_title(chat)


def _suffix_of(name_filter: str) -> str:
    """The ending in a dialog's filter: ".json" of "Chats (*.json)"."""
    for suffix in (".json", ".pdf"):
        if f"*{suffix}" in name_filter:
            return suffix
    return ".md"


def _labels() -> Labels:
    return Labels(
        you=tr("You"),
        reply=tr("Reply"),
        system=tr("System prompt"),
        attachment=tr("Attachment"),
        tool=tr("Tool"),
        cut_off={
            MessageStatus.STOPPED: tr("stopped"),
            MessageStatus.LENGTH: tr("ended at the length limit"),
            MessageStatus.INTERRUPTED: tr("interrupted"),
            MessageStatus.FAILED: tr("failed"),
        },
    )


def _write_pdf(path: Path, page: str, title: str, family: str) -> None:
    try:
        write_atomically(path, to_pdf(page, title, family))
    except OSError as error:
        raise ExchangeError(
            f"{path} cannot be written: {system_fault(error)}; choose another place"
        ) from error
