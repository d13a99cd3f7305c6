"""The button at the top that says which model answers, and its menu: library, catalogue, files. GUI thread."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QEvent, QPoint, QSize, Qt
from PySide6.QtGui import QHelpEvent, QResizeEvent
from PySide6.QtWidgets import QMenu, QSizePolicy, QToolButton, QToolTip, QWidget

from engine.api import EngineState
from studio.views.actions import CommandId
from studio.views.context import Context
from studio.views.icons import palette_icon
from studio.views.key_hints import hint
from studio.views.speech import say
from studio.views.status_words import SEPARATOR
from studio.views.words import percent, size, tr

LEAST_PX = 92
_LEAST_CHARS = 4
_ROUNDING_PX = 3
"""Two ways to measure words differ by so much."""


class ModelSelector(QToolButton):
    """Shows the state of the model service, loading included."""

    def __init__(self, context: Context, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("model")
        self._models = context.services.models
        self._actions = context.model_actions
        self._tasks = context.tasks
        self._frames = context.frames
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.setIconSize(QSize(18, 18))
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self._state = ""
        self._is_loading = False
        hint(self, tr("Choose the model"), CommandId.CHOOSE_MODEL)
        self.menu_of_models = QMenu(self)
        self.menu_of_models.setToolTipsVisible(True)
        self.clicked.connect(self.open_menu)
        self._disconnects = (
            self._models.changed.connect(self._mark),
            self._models.fetch_changed.connect(self._mark),
        )
        self._draw_icon()
        self.refresh()

    def close_selector(self) -> None:
        """Follow the service no longer."""
        for disconnect in self._disconnects:
            disconnect()
        self._frames.unmark(self.refresh)

    def open_menu(self) -> None:
        """Open the menu. `popup`, because a button's own menu would wait in a loop inside the loop."""
        self._tasks.start(self._models.refresh())  # for the next time; the scan may be slow
        self._fill_menu()
        right = self.width() - self.menu_of_models.sizeHint().width()
        self.menu_of_models.popup(self.mapToGlobal(QPoint(right, self.height() + 2)))

    def refresh(self) -> None:
        """Say which model there is, or how far it is."""
        self._tell_when_ready()
        self._state = self._words()
        self.setAccessibleName(tr("Model: {state}").format(state=self._state))
        self._fit()
        self.updateGeometry()

    def sizeHint(self) -> QSize:
        """As wide as it is with the whole name."""
        return super().sizeHint() + QSize(self._px(_text(self._state)) - self._px(self.text()), 0)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint().boundedTo(QSize(LEAST_PX, 1 << 20))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def event(self, event: QEvent) -> bool:
        is_cut = self.text() != _text(self._state)
        if is_cut and event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            QToolTip.showText(event.globalPos(), f"{self._state}\n{self.toolTip()}", self)
            return True
        return super().event(event)

    def fitted_px(self, room_px: int) -> int:
        """How much of this room it takes: no more than what it would show needs."""
        whole_px = self.sizeHint().width()
        spare_px = self._px(_text(self._state)) - self._px(self._shown(room_px))
        return whole_px - max(0, spare_px - _ROUNDING_PX)

    def _fit(self) -> None:
        self.setText(self._shown(self.width()))

    def _shown(self, width_px: int) -> str:
        """As much of the name as there is room for; of a load, how far it is."""
        whole_px = self.sizeHint().width()
        if width_px >= whole_px:
            return _text(self._state)
        room_px = self._px(self._state) - (whole_px - width_px)
        name = self._state.split(SEPARATOR)[-1] if self._is_busy else self._state
        right = Qt.TextElideMode.ElideRight
        shown = self.fontMetrics().elidedText(name, right, room_px)
        says_nothing = shown != name and len(shown) < _LEAST_CHARS
        return _text("" if says_nothing else shown)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self._draw_icon()

    def _px(self, text: str) -> int:
        """As the button measures it."""
        return self.fontMetrics().size(Qt.TextFlag.TextShowMnemonic, text).width()

    @property
    def _is_busy(self) -> bool:
        return self._models.fetching is not None or self._models.state is EngineState.LOADING

    def _mark(self) -> None:
        self._frames.mark(self.refresh)

    def _tell_when_ready(self) -> None:
        """To a screen reader, once: on screen the name takes the place of the share."""
        was_loading, self._is_loading = self._is_loading, self._models.state is EngineState.LOADING
        model = self._models.model
        if was_loading and self._models.state is EngineState.READY and model is not None:
            words = tr("{model} is ready").format(model=model.name)
            say(self, words)

    def _words(self) -> str:
        models = self._models
        if models.fetching is not None:
            return tr("Getting a model · {share}").format(share=percent(models.fetching.share))
        if models.state is EngineState.LOADING:
            return tr("Loading · {share}").format(share=percent(models.progress))
        if models.state is EngineState.READY and models.model is not None:
            return models.model.name
        return tr("Loading a model") if models.is_coming else tr("Choose a model")

    def _fill_menu(self) -> None:
        menu, models = self.menu_of_models, self._models
        menu.clear()
        for entry in (*models.entries, *models.outside):
            amount = tr("Missing") if entry.is_missing else size(entry.size_bytes)
            label = tr("{model}   {size}").format(model=entry.title, size=amount)
            action = menu.addAction(label, partial(self._actions.load, entry.name))
            action.setCheckable(True)
            action.setChecked(models.model is not None and models.model.path == entry.path)
            action.setToolTip(str(entry.path))
            action.setEnabled(not entry.is_missing)
        menu.addSeparator()
        names = {entry.path.name for entry in models.entries if not entry.is_missing}
        for found in models.catalog:
            if found.file_name not in names:
                label = tr("Get {model}   {size}").format(
                    model=found.title, size=size(found.size_bytes)
                )
                menu.addAction(label, partial(self._actions.get, found.name))
        menu.addAction(tr("Use a model file…"), self._actions.choose_file)
        menu.addAction(tr("Use a model folder…"), self._actions.choose_folder)
        menu.addAction(tr("Models and downloads…"), self._actions.library_wanted.emit)
        self._add_ending(menu)

    def _add_ending(self, menu: QMenu) -> None:
        if self._is_busy:
            menu.addSeparator()
            menu.addAction(tr("Cancel"), self._actions.cancel)
        elif self._models.state is EngineState.READY:
            menu.addSeparator()
            menu.addAction(tr("Unload the model"), self._actions.unload)

    def _draw_icon(self) -> None:
        self.setIcon(palette_icon("model", self.palette()))


def _text(name: str) -> str:
    return f"{name}  ▾"
