"""Which servers' tools a chat may call: a switch for each, in the chat's settings. GUI thread."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QPushButton, QVBoxLayout, QWidget
from shiboken6 import isValid

from studio.models.chat import Conversation
from studio.models.tool_use import ChatTools
from studio.services.chat_service import ChatService
from studio.services.tools.tool_service import ToolService
from studio.views.inputs import CheckBox
from studio.views.labels import line
from studio.views.words import plural, tr


class ToolChoice(QWidget):
    """`settings_wanted` asks for the page on which servers are declared."""

    settings_wanted = Signal()

    def __init__(self, chats: ChatService, tools: ToolService, parent: QWidget) -> None:
        super().__init__(parent)
        self._chats = chats
        self._tools = tools
        self._chat: Conversation | None = None
        self.switches: dict[str, CheckBox] = {}
        self._list = QVBoxLayout()
        self._list.setSpacing(0)
        self._none = line(tr("No server of tools is switched on."), "secondary", self)
        self._always = line("", "secondary", self)
        self.forget = QPushButton(tr("Ask again"), self)
        self.forget.setObjectName("lineLink")
        self.forget.clicked.connect(self._forget)
        self.declare = QPushButton(tr("Tool servers…"), self)
        self.declare.setObjectName("lineLink")
        self.declare.clicked.connect(self.settings_wanted)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        layout.addWidget(self._none)
        layout.addLayout(self._list)
        layout.addWidget(self._always)
        layout.addWidget(self.forget, 0, Qt.AlignmentFlag.AlignLeft)
        layout.addWidget(self.declare, 0, Qt.AlignmentFlag.AlignLeft)
        self._disconnect = tools.store.changed.connect(self._list_servers)
        self._list_servers()

    def close_choice(self) -> None:
        """Follow the services no longer."""
        self._disconnect()

    def show_chat(self, chat: Conversation | None) -> None:
        """Show the choice of this chat; None: of none."""
        self._chat = chat
        tools = chat.tools if chat is not None else ChatTools()
        for name, switch in self.switches.items():
            switch.blockSignals(True)
            switch.setChecked(name in tools.servers)
            switch.blockSignals(False)
        number = len(tools.always)
        self._always.setVisible(number > 0)
        self.forget.setVisible(number > 0)
        words = plural(number, "1 tool runs without asking.", "{count} tools run without asking.")
        self._always.setText(words)
        self._always.setToolTip(", ".join(tool for _, tool in tools.always))

    def take_focus(self) -> None:
        """Put the keyboard on the first switch, or on the way to where servers are declared."""
        first = next(iter(self.switches.values()), self.declare)
        first.setFocus(Qt.FocusReason.OtherFocusReason)

    def _list_servers(self) -> None:
        if not isValid(self):
            return
        for switch in self.switches.values():
            self._list.removeWidget(switch)
            switch.hide()
            switch.deleteLater()
        self.switches = {}
        for server in self._tools.store.servers:
            if server.is_on:
                switch = CheckBox(server.name, self)
                switch.setAccessibleName(tr("Tools of {name}").format(name=server.name))
                switch.toggled.connect(
                    lambda is_on, name=server.name: self._choose(name, is_on=is_on)
                )
                self.switches[server.name] = switch
                self._list.addWidget(switch)
        self._none.setVisible(not self.switches)
        self.show_chat(self._chat)

    def _choose(self, name: str, *, is_on: bool) -> None:
        if self._chat is not None:
            others = tuple(one for one in self._chat.tools.servers if one != name)
            servers = (*others, name) if is_on else others
            self._chats.set_tools(self._chat, replace(self._chat.tools, servers=servers))

    def _forget(self) -> None:
        if self._chat is not None:
            self._chats.set_tools(self._chat, replace(self._chat.tools, always=()))
