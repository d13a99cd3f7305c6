"""The line at the bottom: how full the pool is, what runs and waits, how fast, the model, the local server. GUI thread.

Drawn when the window's watch has looked. The pool's part is a button that opens the pool panel.
"""

from __future__ import annotations

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtGui import QGuiApplication, QMouseEvent
from PySide6.QtWidgets import QHBoxLayout, QMenu, QPushButton, QSizePolicy, QWidget

from engine.api import EngineSnapshot, EngineState, PoolUsage
from studio.views.actions import CommandId
from studio.views.context import Context
from studio.views.elided_label import ElidedFigures, ElidedLabel
from studio.views.key_hints import hint
from studio.views.monitor.pool_bar import PoolBar
from studio.views.monitor.segments import describe_pool, pool_segments, used_pages
from studio.views.status_words import joined, work_parts
from studio.views.theme import Theme
from studio.views.words import count, memory, rate, tr

_BAR_PX = 140
_BAR_HEIGHT_PX = 8
_LEAST_LETTERS = 8


class StatusLine(QWidget):
    """Always there."""

    pool_wanted = Signal()
    server_wanted = Signal()

    def __init__(self, context: Context, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("statusLine")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._context = context
        self._server = context.services.server
        self._bar = _PoolSummary(context.theme, self)
        self._bar.clicked.connect(self.pool_wanted)
        self._pool = QPushButton(self)
        self._pool.setObjectName("quiet")
        hint(self._pool, tr("Who is in the pool, and who waits"), CommandId.POOL)
        self._pool.clicked.connect(self.pool_wanted)
        self._work = ElidedFigures(self)
        self._model = ModelLabel(self)
        self._model.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self._model.setAlignment(Qt.AlignmentFlag.AlignRight)
        self._address = QPushButton(self)
        self._address.setObjectName("quiet")
        self._address.clicked.connect(self._open_menu)
        self.server_menu = QMenu(self)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(12, 3, 8, 3)
        layout.setSpacing(8)
        layout.addWidget(self._bar)
        layout.addWidget(self._pool)
        layout.addWidget(self._work)
        layout.addWidget(self._model, 1)
        layout.addWidget(self._address)
        self._disconnects = (
            self._server.changed.connect(self._show_server),
            context.services.models.changed.connect(self.refresh),
        )
        context.watch.moved.connect(self._draw)
        context.watch.ticked.connect(self.refresh)
        self._show_server()
        self.refresh()

    def close_line(self) -> None:
        """Follow the services no longer."""
        for disconnect in self._disconnects:
            disconnect()

    def refresh(self) -> None:
        """Show the engine's last snapshot."""
        snapshot = self._context.watch.snapshot
        self._draw()
        if (words := pool_words(snapshot.pool)) != self._pool.text():
            self._pool.setText(words)
        self._work.set_text(work_words(snapshot))
        self._model.set_text(tr("Loading a model") if self._is_loading else model_words(snapshot))

    @property
    def _is_loading(self) -> bool:
        """Also before the engine knows of it."""
        models = self._context.services.models
        is_expected = models.is_coming and models.fetching is None
        return models.state is not EngineState.READY and is_expected

    def _draw(self) -> None:
        watch = self._context.watch
        segments = pool_segments(watch.snapshot, watch.others)
        self._bar.show_segments(segments, describe_pool(watch.snapshot.pool))

    def _show_server(self) -> None:
        address = self._server.address
        if address is None:
            self._address.setText(tr("Server off"))
            self._address.setAccessibleName(tr("Local server: off"))
        else:
            self._address.setText(
                tr("Server {address}").format(address=address.removeprefix("http://"))
            )
            self._address.setAccessibleName(tr("Local server: {address}").format(address=address))

    def _open_menu(self) -> None:
        self._fill_menu()
        size = self.server_menu.sizeHint()
        corner = QPoint(self._address.width() - size.width(), -size.height() - 2)
        self.server_menu.popup(self._address.mapToGlobal(corner))

    def _stop_server(self) -> None:
        """At once if nobody waits for an answer; else the server's window asks how."""
        if self._server.requests_under_way():
            self.server_wanted.emit()
        else:
            self._context.tasks.start(self._server.stop())

    def _fill_menu(self) -> None:
        self.server_menu.clear()
        tasks, address = self._context.tasks, self._server.address
        if address is None:
            start = self.server_menu.addAction(tr("Start the local server"))
            start.triggered.connect(lambda: tasks.start(self._server.start()))
            self.server_menu.addAction(tr("Server, keys, requests…"), self.server_wanted.emit)
            return
        copy = self.server_menu.addAction(tr("Copy the address"))
        copy.triggered.connect(lambda: QGuiApplication.clipboard().setText(f"{address}/v1"))
        self.server_menu.addAction(tr("Server, keys, requests…"), self.server_wanted.emit)
        stop = self.server_menu.addAction(tr("Stop the local server"))
        stop.triggered.connect(self._stop_server)


class ModelLabel(ElidedLabel):
    """What the model is, or nothing where only a scrap of its name would be seen."""

    def shown(self, width: int) -> str:
        shown = super().shown(width)
        return shown if shown == self.text() or len(shown) > _LEAST_LETTERS else ""


class _PoolSummary(PoolBar):
    """The pool in little; clicking it does what the button beside it does."""

    clicked = Signal()

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(tr("Pool"), theme, parent)
        self.set_size(_BAR_PX, _BAR_HEIGHT_PX)
        self.setCursor(Qt.CursorShape.PointingHandCursor)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self.clicked.emit()


def pool_words(pool: PoolUsage) -> str:
    """ "Pool 1,910 of 2,048 tokens in use"."""
    if not pool.total_pages:
        return tr("No pool yet")
    used, total = used_pages(pool) * pool.page_tokens, pool.total_pages * pool.page_tokens
    return tr("Pool {used} of {total} tokens in use").format(used=count(used), total=count(total))


def work_words(snapshot: EngineSnapshot) -> str:
    """ "2 running · 1 waiting · 84 tok/s"; only what there is."""
    words = work_parts(snapshot)
    if snapshot.parked and snapshot.parks.used_bytes:
        words.append(tr("{size} set aside").format(size=memory(snapshot.parks.used_bytes)))
    if snapshot.running and snapshot.tokens_per_s:
        words.append(tr("{speed} tok/s").format(speed=rate(snapshot.tokens_per_s)))
    return " · ".join(words)


def model_words(snapshot: EngineSnapshot) -> str:
    """The state of the model, with what it is where one is loaded."""
    match snapshot.state:
        case EngineState.READY if snapshot.model is not None:
            model = snapshot.model
            is_named = model.quantization.casefold() in model.name.casefold()
            return model.name if is_named else joined(model.name, model.quantization)
        case EngineState.LOADING:
            return tr("Loading a model")
        case EngineState.FAILED:
            return tr("The model did not load")
        case EngineState.STOPPED:
            return tr("The engine has stopped")
    return tr("No model")
