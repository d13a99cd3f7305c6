"""The server's switch and where it listens; what is wrong, and a way on, in place. GUI thread."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QMessageBox, QPushButton, QVBoxLayout, QWidget

from studio.models.errors import PortTaken
from studio.models.server_settings import is_loopback_host
from studio.models.setting_field import SettingField
from studio.models.settings import all_settings
from studio.services.server_service import ServerState
from studio.views.context import Context
from studio.views.dialogs.confirm import Question, confirm, give_room
from studio.views.error_words import error_sentence
from studio.views.labels import line
from studio.views.paged_dialog import page_column, scrolled
from studio.views.settings.restore_button import RestoreButton
from studio.views.settings.setting_row import SettingRow
from studio.views.words import plural, tr

_GROUP = "server"
_FIRST = ("server.host", "server.port", "server.is_enabled", "server.loads_models")
"""What is wanted most often; the others follow as they are declared."""


class ServerPage(QWidget):
    """`rows` by the setting's key."""

    keys_wanted = Signal()

    def __init__(self, context: Context, parent: QWidget) -> None:
        super().__init__(parent)
        self._context = context
        self._server = context.services.server
        self._settings = context.services.settings
        inner = QWidget(self)
        column = page_column(inner)
        self._title = line("", "heading", inner)
        self._state = line("", "body", inner)
        self.switch = _button("", self._on_switch, inner)
        self.switch.setObjectName("primary")
        self.now = _button(tr("Stop now"), self._stop_now, inner)
        self.restart = _button(tr("Start again with the new settings"), self._on_restart, inner)
        self._problem = line("", "failed", inner)
        self.way_on = _button("", self._on_way_on, inner)
        self._reach = line("", "waiting", inner)
        self._lay_out_head(column)
        self.rows: dict[str, SettingRow] = {}
        for declared in sorted(all_settings(), key=_place_of):
            if declared.group == _GROUP and not declared.info.is_hidden:
                self.rows[declared.key] = row = SettingRow(declared, self._settings, inner)
                column.addWidget(row)
        self.defaults = RestoreButton(self._settings, context.services.notices, inner)
        self.defaults.show_keys(tuple(self.rows))
        column.addWidget(self.defaults, 0, Qt.AlignmentFlag.AlignLeft)
        column.addStretch(1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        self._area = scrolled(tr("Server"), inner, self)
        layout.addWidget(self._area)
        self._disconnects = (
            self._server.changed.connect(self.refresh),
            self._server.keys.changed.connect(self.refresh),
            self._settings.changed.connect(lambda _settings: self._on_settings()),
        )
        context.watch.ticked.connect(self._on_tick)
        self.refresh()

    def _lay_out_head(self, column: QVBoxLayout) -> None:
        words = QVBoxLayout()
        words.addWidget(self._title)
        words.addWidget(self._state)
        head = QHBoxLayout()
        head.setSpacing(8)
        head.addLayout(words, 1)
        for button in (self.restart, self.now, self.switch):
            head.addWidget(button)
        problem = QHBoxLayout()
        problem.setSpacing(8)
        told = QVBoxLayout()
        told.addWidget(self._problem)
        told.addWidget(self._reach)
        problem.addLayout(told, 1)
        problem.addWidget(self.way_on)
        column.addLayout(head)
        column.addLayout(problem)
        column.addSpacing(4)

    def close_page(self) -> None:
        """Follow the services no longer."""
        self._context.watch.ticked.disconnect(self._on_tick)
        for disconnect in self._disconnects:
            disconnect()

    def show_setting(self, key: str) -> None:
        """Let the keyboard change one of its settings."""
        self._area.ensureWidgetVisible(self.rows[key], 0, 24)
        self.rows[key].editor.setFocus(Qt.FocusReason.OtherFocusReason)

    def refresh(self) -> None:
        """Show the server's state."""
        state, address = self._server.state, self._server.address
        self._title.setText(_title(state))
        self._state.setText(self._state_words())
        self.switch.setText(tr("Stop") if address is not None else tr("Start"))
        self.switch.setAccessibleName(
            tr("Stop the local server") if address is not None else tr("Start the local server")
        )
        self.switch.setVisible(state is not ServerState.FINISHING)
        self.now.setVisible(state is ServerState.FINISHING)
        may_restart = self._server.needs_restart and not self._lacks_key()  # or it would only end
        self.restart.setVisible(may_restart and state is ServerState.ON)
        self._show_problem()
        self._show_reach()

    def _on_settings(self) -> None:
        for row in self.rows.values():
            row.refresh()
        self.defaults.refresh()
        self.refresh()

    def _on_tick(self) -> None:
        if self._server.state is ServerState.FINISHING:  # one more of them may have ended
            self._state.setText(self._state_words())

    def _state_words(self) -> str:
        server = self._server
        if server.state is ServerState.FINISHING:
            return plural(
                len(server.requests_under_way()),
                "It takes no more requests. 1 is still being answered.",
                "It takes no more requests. {count} are still being answered.",
            )
        if server.address is not None:
            return tr("Programs reach it at {address}").format(address=f"{server.address}/v1")
        return tr(
            "Programs on this computer can use your model while it is on. It is off until you start it."
        )

    def _show_problem(self) -> None:
        problem = self._server.problem
        is_told = problem is not None and self._server.address is None
        text = error_sentence(problem) if problem is not None and is_told else ""
        self._problem.setText(text)
        self._problem.setVisible(bool(text))
        words = self._way_on_words() if text or self._lacks_key() else ""
        self.way_on.setText(words)
        self.way_on.setVisible(bool(words))

    def _way_on_words(self) -> str:
        problem = self._server.problem
        if isinstance(problem, PortTaken):
            if problem.free_port:
                return tr("Use port {port}").format(port=problem.free_port)
            return tr("Use any free port")
        return tr("Make a key") if self._lacks_key() else ""

    def _on_way_on(self) -> None:
        problem = self._server.problem
        if isinstance(problem, PortTaken):
            self._context.tasks.start(self._server.start_at(problem.free_port))
        else:
            self.keys_wanted.emit()

    def _lacks_key(self) -> bool:
        server = self._settings.settings.server
        has_key = bool(server.api_key) or bool(self._server.keys.keys)
        return not is_loopback_host(server.host) and not has_key

    def _show_reach(self) -> None:
        """Who can reach the server with these settings, where that is not only this computer."""
        host = self._settings.settings.server.host
        text = ""
        if self._lacks_key():
            words = tr(
                "{host} can be reached by other computers, so programs need a key. Make one first; without it the "
                "server does not start."
            )
            text = "" if self._problem.text() else words.format(host=host)  # once is enough
        elif not is_loopback_host(host):
            text = tr("Other computers in your network can reach it, with a key.")
        self._reach.setText(text)
        self._reach.setVisible(bool(text))

    def _on_switch(self) -> None:
        """Not disabled on the way: the keyboard would be moved into the next field."""
        if self._server.state not in (ServerState.ON, ServerState.OFF):
            return
        if self._server.address is None:
            self._context.tasks.start(self._server.start())
        elif under_way := len(self._server.requests_under_way()):
            self.ask_how_to_stop(under_way)
        else:
            self._context.tasks.start(self._server.stop())

    def _stop_now(self) -> None:
        self._context.tasks.start(self._server.stop())

    def _on_restart(self) -> None:
        if under_way := len(self._server.requests_under_way()):
            question = Question(
                text=_under_way_words(under_way),
                detail=tr("Starting again ends them."),
                do=tr("Start again"),
            )
            confirm(question, self._restart, self)
        else:
            self._restart()

    def _restart(self) -> None:
        self._context.tasks.start(self._server.restart())

    def ask_how_to_stop(self, under_way: int) -> QMessageBox:
        """Requests are being answered: let them finish, or end them."""
        box = QMessageBox(self)
        box.setText(_under_way_words(under_way))
        box.setInformativeText(
            tr("Finishing takes no more requests and stops with the last of these.")
        )
        role = QMessageBox.ButtonRole
        finish = box.addButton(tr("Finish first"), role.AcceptRole)
        now = box.addButton(tr("Stop now"), role.DestructiveRole)
        cancel = box.addButton(tr("Cancel"), role.RejectRole)
        box.setDefaultButton(finish)
        box.setEscapeButton(cancel)
        tasks = self._context.tasks
        finish.clicked.connect(lambda: tasks.start(self._server.finish()))
        now.clicked.connect(lambda: tasks.start(self._server.stop()))
        box.finished.connect(box.deleteLater)
        give_room(box)
        box.open()
        return box


def _under_way_words(number: int) -> str:
    return plural(number, "1 request is being answered.", "{count} requests are being answered.")


def _place_of(declared: SettingField) -> int:
    return _FIRST.index(declared.key) if declared.key in _FIRST else len(_FIRST)


def _button(text: str, do: Callable[[], None], parent: QWidget) -> QPushButton:
    button = QPushButton(text, parent)
    button.setAutoDefault(False)
    button.clicked.connect(do)
    return button


def _title(state: ServerState) -> str:
    match state:
        case ServerState.OFF:
            return tr("The server is off")
        case ServerState.STARTING:
            return tr("The server is starting")
        case ServerState.ON:
            return tr("The server is on")
        case ServerState.FINISHING:
            return tr("The server is finishing")
        case ServerState.STOPPING:
            return tr("The server is stopping")
