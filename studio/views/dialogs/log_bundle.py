"""The log bundle before it is saved: every file of it, to be read. GUI thread."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QSize, Signal
from PySide6.QtGui import QFontDatabase
from PySide6.QtWidgets import (
    QFileDialog,
    QHBoxLayout,
    QLabel,
    QListWidget,
    QPlainTextEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from studio.services.support_service import BundleFile
from studio.views.dialogs.dialog import Dialog
from studio.views.dialogs.file_dialog import file_dialog
from studio.views.window_size import fit_to_screen
from studio.views.words import size, tr

_MOST_SHOWN_CHARS = 500_000


class LogBundleDialog(Dialog):
    """`save_wanted` carries the path of the zip file."""

    save_wanted = Signal(object)

    def __init__(self, files: Sequence[BundleFile], parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle(tr("Log bundle"))
        fit_to_screen(self, QSize(820, 560))
        self._files = files
        words = QLabel(
            tr(
                "This is all that goes into the bundle: no chats, no prompts, no keys. Layby sends it nowhere; save it "
                "and give it to whom you like."
            ),
            self,
        )
        words.setWordWrap(True)
        self.names = QListWidget(self)
        self.names.setObjectName("settingsPages")
        self.names.setAccessibleName(tr("Files in the bundle"))
        self.names.setFixedWidth(max(220, 13 * self.fontMetrics().height()))
        for file in files:
            self.names.addItem(f"{file.name}   {size(len(file.text.encode()))}")
        self.text = QPlainTextEdit(self)
        self.text.setObjectName("detail")
        self.text.setReadOnly(True)
        self.text.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.text.setAccessibleName(tr("Content of the file"))
        self.text.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.names.currentRowChanged.connect(self._show)
        body = QHBoxLayout()
        body.setSpacing(12)
        body.addWidget(self.names)
        body.addWidget(self.text, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(16, 16, 16, 16)
        layout.setSpacing(12)
        layout.addWidget(words)
        layout.addLayout(body, 1)
        layout.addLayout(self._make_foot())
        self.names.setCurrentRow(0)
        self.finished.connect(self.deleteLater)

    def _make_foot(self) -> QHBoxLayout:
        self.save = QPushButton(tr("Save…"), self)
        self.save.setObjectName("primary")
        self.save.clicked.connect(self._ask_where)
        cancel = QPushButton(tr("Cancel"), self)
        cancel.setObjectName("secondary")
        cancel.clicked.connect(self.reject)
        foot = QHBoxLayout()
        foot.addStretch(1)
        foot.addWidget(cancel)
        foot.addWidget(self.save)
        return foot

    def _show(self, row: int) -> None:
        self.text.setPlainText(self._files[row].text[-_MOST_SHOWN_CHARS:])

    def _ask_where(self) -> None:
        dialog = file_dialog(self, tr("Save the log bundle"))
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setDefaultSuffix("zip")
        dialog.selectFile("layby-logs.zip")
        dialog.fileSelected.connect(lambda path: self.save_wanted.emit(Path(path)))
        dialog.fileSelected.connect(lambda _path: self.accept())
        dialog.open()
