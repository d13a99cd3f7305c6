"""The form that declares a server of tools: a program or an address, or JSON pasted from another program. GUI thread.

Must not import services.
"""

from __future__ import annotations

import shlex

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QFormLayout,
    QFrame,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from studio.models.errors import ToolServerError
from studio.models.tool_servers import ToolServer
from studio.views.error_words import error_sentence
from studio.views.inputs import LinesField, QuietList, on_ctrl_enter
from studio.views.labels import line
from studio.views.words import tr


class ServerForm(QFrame):
    """`wanted` carries a ToolServer, `pasted` the text of what is to be read; the owner says what was wrong."""

    wanted = Signal(object)
    pasted = Signal(str)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("card")
        self.kind = QuietList(self)
        self.kind.addItem(tr("A program on this machine"), "program")
        self.kind.addItem(tr("An address (HTTP)"), "address")
        self.kind.addItem(tr("JSON from another program"), "json")
        self.kind.setAccessibleName(tr("What it is"))
        self.name = self._field(tr("Name"), tr("files"))
        self.command = self._field(tr("Command"), "uvx mcp-server-time")
        self.env = self._lines(3, tr("Variables"), "KEY=value")
        self.url = self._field(tr("Address"), "http://127.0.0.1:8000/mcp")
        self.headers = self._lines(3, tr("Headers"), "Authorization: Bearer …")
        self.json = self._lines(
            6, tr("JSON"), '{"mcpServers": {"files": {"command": "npx", "args": ["…"]}}}'
        )
        self.add = QPushButton(tr("Add"), self)
        self.add.setObjectName("primary")
        self.add.setAutoDefault(False)
        self.add.clicked.connect(self._ask)
        self._problem = line("", "failed", self)
        self._problem.hide()
        on_ctrl_enter(self, self._ask)
        self._rows = QFormLayout()
        self._lay_out()
        self.kind.currentIndexChanged.connect(self._show_kind)
        self._show_kind()

    def show_problem(self, text: str) -> None:
        """Say why it was not taken."""
        self._problem.setText(text)
        self._problem.show()

    def clear(self) -> None:
        """It was taken."""
        for field in (self.name, self.command, self.url):
            field.clear()
        for lines in (self.env, self.headers, self.json):
            lines.clear()
        self._problem.hide()

    def _ask(self) -> None:
        if self.kind.currentData() == "json":
            self.pasted.emit(self.json.toPlainText())
            return
        try:
            server = self._server()
        except ToolServerError as error:
            self.show_problem(error_sentence(error))
            return
        self.wanted.emit(server)

    def _server(self) -> ToolServer:
        """Raises ToolServerError."""
        name = self.name.text().strip()
        if self.kind.currentData() == "address":
            headers = _pairs(self.headers.toPlainText(), ":")
            return ToolServer(name=name, url=self.url.text().strip(), headers=headers, is_on=True)
        try:
            words = shlex.split(self.command.text())
        except ValueError as error:
            raise ToolServerError(
                "the command has a quotation mark that is not closed; close it"
            ) from error
        return ToolServer(
            name=name,
            command=words[0] if words else "",
            args=tuple(words[1:]),
            env=_pairs(self.env.toPlainText(), "="),
            is_on=True,
        )

    def _show_kind(self) -> None:
        kind = self.kind.currentData()
        for field, kinds in (
            (self.name, ("program", "address")),
            (self.command, ("program",)),
            (self.env, ("program",)),
            (self.url, ("address",)),
            (self.headers, ("address",)),
            (self.json, ("json",)),
        ):
            self._rows.setRowVisible(field, kind in kinds)
        self._problem.hide()

    def _field(self, name: str, example: str) -> QLineEdit:
        field = QLineEdit(self)
        field.setAccessibleName(name)
        field.setPlaceholderText(example)
        field.returnPressed.connect(self._ask)
        return field

    def _lines(self, num_lines: int, name: str, example: str) -> LinesField:
        field = LinesField(num_lines, self)
        field.setAccessibleName(name)
        field.setPlaceholderText(example)
        return field

    def _lay_out(self) -> None:
        rows = self._rows
        rows.setHorizontalSpacing(16)
        rows.setVerticalSpacing(8)
        rows.addRow(self._label(tr("What it is")), self.kind)
        for field in (self.name, self.command, self.env, self.url, self.headers, self.json):
            rows.addRow(self._label(field.accessibleName()), field)
        foot = QHBoxLayout()
        foot.addWidget(self._problem, 1)
        foot.addWidget(self.add, 0, Qt.AlignmentFlag.AlignRight)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(16, 12, 16, 12)
        layout.setSpacing(12)
        layout.addLayout(rows)
        layout.addLayout(foot)

    def _label(self, text: str) -> QLabel:
        """As high as a field of one line, so that it stands in the middle of one, and at the first line of another."""
        label = QLabel(text, self)
        label.setObjectName("secondary")
        self.kind.ensurePolished()
        label.setFixedHeight(self.kind.sizeHint().height())
        return label


def _pairs(text: str, mark: str) -> tuple[tuple[str, str], ...]:
    """Raises ToolServerError for a line without the mark."""
    found = []
    for one in filter(None, map(str.strip, text.splitlines())):
        name, separator, value = one.partition(mark)
        if not separator or not name.strip():
            raise ToolServerError(
                f"the line {one!r} has no {mark!r}; write one name and one value on each line"
            )
        found.append((name.strip(), value.strip()))
    return tuple(found)
