"""The page that says how programs are told about the server: pick one, copy, paste. GUI thread."""

from __future__ import annotations

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPlainTextEdit, QPushButton, QWidget

from engine.api import EngineState
from studio.models.snippets import SNIPPETS
from studio.views.context import Context
from studio.views.inputs import QuietList
from studio.views.labels import line
from studio.views.paged_dialog import page_column
from studio.views.words import tr


class ConnectPage(QWidget):
    """A key that has just been made is filled in until the window is closed."""

    def __init__(self, context: Context, parent: QWidget) -> None:
        super().__init__(parent)
        self._server = context.services.server
        self._settings = context.services.settings
        self._models = context.services.models
        self._secret = ""
        title = QLabel(tr("Connect a program"), self)
        title.setObjectName("heading")
        self.program = QuietList(self)
        self.program.setAccessibleName(tr("Program"))
        self.program.addItems([snippet.program for snippet in SNIPPETS])
        self.program.currentIndexChanged.connect(self.refresh)
        self.copy = QPushButton(tr("Copy"), self)
        self.copy.setAutoDefault(False)
        self.copy.clicked.connect(self._copy)
        self._where = line("", "secondary", self)
        self._hint = line("", "waiting", self)
        self.text = QPlainTextEdit(self)
        self.text.setObjectName("snippet")
        self.text.setReadOnly(True)
        self.text.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.text.setAccessibleName(tr("What to paste"))
        self.text.setFont(context.theme.code_font())
        label = QLabel(tr("Program"), self)
        label.setBuddy(self.program)
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addWidget(label)
        row.addWidget(self.program)
        row.addStretch(1)
        row.addWidget(self.copy)
        column = page_column(self)
        column.addWidget(title)
        column.addLayout(row)
        column.addWidget(self._where)
        column.addWidget(self.text, 1)
        column.addWidget(self._hint)
        self._disconnects = (
            self._server.changed.connect(self.refresh),
            self._server.keys.changed.connect(self.refresh),
            self._models.changed.connect(self.refresh),
        )
        self.refresh()

    def close_page(self) -> None:
        """Follow the services no longer, and forget the key."""
        self._secret = ""
        for disconnect in self._disconnects:
            disconnect()

    def use_key(self, secret: str) -> None:
        """Fill in a key that has just been made."""
        self._secret = secret
        self.refresh()

    def refresh(self) -> None:
        """Fill in what is known now."""
        snippet = SNIPPETS[max(0, self.program.currentIndex())]
        text = snippet.filled(self._base(), self._key(), self._model())
        if text != self.text.toPlainText():
            self.text.setPlainText(text)
            self.copy.setText(tr("Copy"))
        self._where.setText(tr(snippet.where))
        hint = self._hint_words(text)
        self._hint.setText(hint)
        self._hint.setVisible(bool(hint))

    def _base(self) -> str:
        if (address := self._server.address) is not None:
            return address
        server = self._settings.settings.server
        return f"http://{server.host}:{server.port}"

    def _key(self) -> str:
        if self._secret:
            return self._secret
        server = self._settings.settings.server
        return _your_key() if server.api_key or self._server.keys.keys else ""

    def _model(self) -> str:
        model = self._models.model
        if self._models.state is EngineState.READY and model is not None:
            return model.name
        there = (entry.name for entry in self._models.entries if not entry.is_missing)
        return next(there, "")

    def _hint_words(self, text: str) -> str:
        if self._server.address is None:
            return tr("The server is off: programs reach it once it is started.")
        if _your_key() in text:
            return tr("Put your key where {place} stands; it cannot be shown again.").format(
                place=_your_key()
            )
        return ""

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.text.toPlainText())
        self.copy.setText(tr("Copied"))


def _your_key() -> str:
    """Stands where a key is needed that cannot be shown again."""
    return tr("YOUR-KEY")
