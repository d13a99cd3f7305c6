"""The settings' page of tool servers: what is declared, how each stands, a test that shows its tools. GUI thread."""

from __future__ import annotations

from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QVBoxLayout,
    QWidget,
)
from shiboken6 import isValid

from studio.models.errors import ToolServerError
from studio.models.tool_servers import ToolFacts, ToolServer
from studio.services.tools.server_json import parse_servers
from studio.services.tools.tool_service import ToolService
from studio.views.context import Context
from studio.views.dialogs.confirm import Question, confirm
from studio.views.elided_label import ElidedLabel
from studio.views.error_words import error_sentence
from studio.views.inputs import CheckBox
from studio.views.labels import dress, line
from studio.views.state_mark import StateMark
from studio.views.status_words import Tone
from studio.views.tool_words import link_words, place_words, tools_words
from studio.views.tools.server_form import ServerForm
from studio.views.words import tr


class ServersPage(QWidget):
    """A change counts at once; a server that runs is stopped, and started anew when a chat uses it."""

    keys: tuple[str, ...] = ()

    def __init__(self, context: Context, tools: ToolService, parent: QWidget) -> None:
        super().__init__(parent)
        self._context = context
        self._tools = tools
        self.rows: dict[str, ServerRow] = {}
        self.form = ServerForm(self)
        self.form.wanted.connect(self._add)
        self.form.pasted.connect(self._paste)
        self._list = QVBoxLayout()
        self._list.setSpacing(8)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(12)
        words = tr(
            "Servers give chats tools over the Model Context Protocol: files, searches, programs. One is started only "
            "when it is switched on and a chat uses it, and each call of a tool asks you first."
        )
        layout.addWidget(line(words, "body", self))
        layout.addLayout(self._list)
        title = QLabel(tr("Add a server"), self)
        title.setObjectName("title")
        layout.addWidget(title)
        layout.addWidget(self.form)
        disconnects = (
            tools.store.changed.connect(self.refresh),
            tools.changed.connect(self._on_status),
        )
        self.destroyed.connect(lambda: [disconnect() for disconnect in disconnects])
        self.refresh()

    def refresh(self) -> None:
        """Show the servers there are; rows of those that are as they were stay, with what they say."""
        if not isValid(self):
            return
        servers = self._tools.store.servers
        switched = next((name for name, row in self.rows.items() if row.switch.hasFocus()), "")
        for name in [name for name, row in self.rows.items() if row.server not in servers]:
            row = self.rows.pop(name)
            self._list.removeWidget(row)
            row.hide()
            row.deleteLater()
        for place, server in enumerate(servers):
            if server.name not in self.rows:
                row = ServerRow(server, self._context, self._tools, self)
                self.rows[server.name] = row
                self._list.insertWidget(place, row)
        if switched in self.rows:
            self.rows[switched].switch.setFocus()  # the keyboard stays where it was

    def _on_status(self, name: str) -> None:
        if isValid(self) and name in self.rows:
            self.rows[name].refresh()

    def _add(self, server: ToolServer) -> None:
        self._take((server,))

    def _paste(self, text: str) -> None:
        try:
            servers = parse_servers(text)
        except ToolServerError as error:
            self.form.show_problem(error_sentence(error))
            return
        self._take(servers)

    def _take(self, servers: tuple[ToolServer, ...]) -> None:
        try:
            self._tools.store.add(servers)
        except ToolServerError as error:
            self.form.show_problem(error_sentence(error))
            return
        self.form.clear()


class ServerRow(QFrame):
    """One server: switch, state, test, removal."""

    def __init__(
        self, server: ToolServer, context: Context, tools: ToolService, page: ServersPage
    ) -> None:
        super().__init__(page)
        self.setObjectName("card")
        self.server = server
        self._context = context
        self._tools = tools
        self.switch = CheckBox(server.name, self)
        self.switch.setChecked(server.is_on)
        self.switch.setAccessibleName(tr("Switched on: {name}").format(name=server.name))
        self.switch.toggled.connect(self._switch)
        place = ElidedLabel(self)
        place.setObjectName("secondary")
        place.set_text(place_words(server))
        self._mark = StateMark(context.theme, self)
        self._state = line("", "secondary", self)
        self.test = self._button(tr("Test"), tr("Test: {name}"))
        self.test.clicked.connect(self._start_test)
        self.remove = self._button(tr("Remove…"), tr("Remove: {name}"))
        self.remove.clicked.connect(self._ask_removal)
        self._found = QWidget(self)
        self._found_column = QVBoxLayout(self._found)
        self._found_column.setContentsMargins(0, 4, 0, 0)
        self._found_column.setSpacing(4)
        self._found.hide()
        self._lay_out(place)
        self.refresh()

    def refresh(self) -> None:
        """Say how the server stands now."""
        words = link_words(self.server, self._tools.status(self.server.name))
        self._show(words.text, "failed" if words.tone is Tone.FAILED else "secondary")
        self._mark.show_state(words)

    def _show(self, text: str, name: str) -> None:
        self._state.setText(text)
        dress(self._state, name)

    def _switch(self, is_on: bool) -> None:
        try:
            self._tools.store.switch(self.server.name, is_on=is_on)
        except ToolServerError as error:
            self._context.services.notices.report(error)

    def _start_test(self) -> None:
        self.test.setEnabled(False)
        self._show(tr("Starting"), "secondary")
        self._context.tasks.start(self._test())

    async def _test(self) -> None:
        try:
            found = await self._tools.test(self.server)
        except ToolServerError as error:
            if isValid(self):
                self._show_tools(())
                self._show(error_sentence(error), "failed")
        else:
            if isValid(self):
                self._show(
                    tr("It works: {tools}").format(tools=tools_words(len(found))), "secondary"
                )
                self._show_tools(found)
        finally:
            if isValid(self):
                self.test.setEnabled(True)

    def _show_tools(self, tools: tuple[ToolFacts, ...]) -> None:
        while (item := self._found_column.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.deleteLater()
        for one in tools:
            about = " ".join((one.description or one.title).split())
            label = ElidedLabel(self._found)
            label.setObjectName("secondary")
            label.set_text(f"{one.name} · {about}" if about else one.name)
            self._found_column.addWidget(label)
        self._found.setVisible(bool(tools))

    def _ask_removal(self) -> None:
        question = Question(
            text=tr("Remove the server “{name}”?").format(name=self.server.name),
            detail=tr("Chats that use it go on without its tools."),
            do=tr("Remove"),
        )
        confirm(question, self._remove, self.window())

    def _remove(self) -> None:
        try:
            self._tools.store.remove(self.server.name)
        except ToolServerError as error:
            self._context.services.notices.report(error)

    def _button(self, text: str, spoken: str) -> QPushButton:
        button = QPushButton(text, self)
        button.setAutoDefault(False)
        button.setAccessibleName(spoken.format(name=self.server.name))
        return button

    def _lay_out(self, place: QLabel) -> None:
        state = QHBoxLayout()
        state.setSpacing(6)
        state.addWidget(self._mark)
        state.addWidget(self._state, 1)
        words = QVBoxLayout()
        words.setSpacing(2)
        words.addWidget(self.switch)
        words.addWidget(place)
        words.addLayout(state)
        head = QHBoxLayout()
        head.addLayout(words, 1)
        head.addWidget(self.test)
        head.addWidget(self.remove)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(16, 12, 12, 12)
        layout.addLayout(head)
        layout.addWidget(self._found)
