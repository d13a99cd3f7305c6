"""The newest notice: what happened, what can be done, and a way to put it away. GUI thread."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QScrollArea, QWidget

from studio.models.notices import Notice, NoticeAction, NoticeLevel
from studio.services.notice_service import NoticeService
from studio.views.error_words import detail_words
from studio.views.icon_button import IconButton
from studio.views.icons import pixmap
from studio.views.theme import Theme
from studio.views.words import tr

_ICON_PX = 18
_LEAST_LINES = 2
_SHARE = 0.15
"""So much of the window's height the words may take, where that is more than _LEAST_LINES; then they scroll."""


class NoticeBar(QFrame):
    """Hidden while there is no notice. `action_wanted` carries the NoticeAction of its button."""

    action_wanted = Signal(object)

    def __init__(self, notices: NoticeService, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("notice")
        self._service = notices
        self._theme = theme
        self._notice: Notice | None = None
        self._icon = QLabel(self)
        self._text = QLabel(self)
        self._text.setWordWrap(True)
        self._text.setTextFormat(Qt.TextFormat.PlainText)
        self._text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._area = QScrollArea(self)
        self._area.setObjectName("noticeText")
        self._area.setWidgetResizable(True)
        self._area.setFrameShape(QFrame.Shape.NoFrame)
        self._area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._area.viewport().setAutoFillBackground(False)
        self._area.setWidget(self._text)
        self._area.viewport().installEventFilter(self)
        parent.window().installEventFilter(self)
        self._text.setAutoFillBackground(False)
        self._action = QPushButton(self)
        self._action.clicked.connect(self._on_action)
        self._dismiss = IconButton("close", tr("Dismiss"), self)
        self._dismiss.setObjectName("small")
        self._dismiss.clicked.connect(self._on_dismiss)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(24, 8, 12, 8)
        layout.setSpacing(12)
        layout.addWidget(self._icon)
        layout.addWidget(self._area, 1)
        layout.addWidget(self._action)
        layout.addWidget(self._dismiss)
        self._disconnect = notices.notices.changed.connect(self.refresh)
        self.refresh()

    def close_bar(self) -> None:
        """Follow the notices no longer."""
        self._disconnect()

    @property
    def notice(self) -> Notice | None:
        """What is shown."""
        return self._notice

    def refresh(self) -> None:
        """Show the newest notice there is."""
        notices = self._service.notices.notices
        self._notice = notices[0] if notices else None
        if self._notice is not None:
            self._show(self._notice)
        self.setVisible(self._notice is not None)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize:
            self._fit()
        return super().eventFilter(watched, event)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and self._notice is not None:
            self._draw_icon(self._notice.level)

    def _show(self, notice: Notice) -> None:
        text = tr(notice.text)
        detail = detail_words(notice.detail, notice.code)  # which may begin with the name of a file
        self._text.setText(f"{text.rstrip('.')}: {detail}" if detail else text)
        words = action_words(notice.action)
        self._action.setText(words)
        self._action.setVisible(bool(words))
        self._draw_icon(notice.level)
        self._fit()

    def _fit(self) -> None:
        """As high as the words, up to a part of the window: in a low one the chat below keeps its room."""
        line_px = self._text.fontMetrics().lineSpacing()
        most_px = max(_LEAST_LINES * line_px, round(_SHARE * self.window().height()))
        wanted_px = self._text.heightForWidth(self._area.viewport().width())
        height_px = min(wanted_px, most_px) + 1
        if self._area.height() != height_px:
            self._area.setFixedHeight(height_px)

    def _draw_icon(self, level: NoticeLevel) -> None:
        colors = self._theme.colors
        name, color = {
            NoticeLevel.INFO: ("info", colors.accent),
            NoticeLevel.WARNING: ("warning", colors.waiting),
            NoticeLevel.ERROR: ("error", colors.failed),
        }[level]
        self._icon.setPixmap(pixmap(name, color, _ICON_PX, scale=self.devicePixelRatioF()))

    def _on_action(self) -> None:
        if self._notice is not None:
            action = self._notice.action
            self._service.resolve(self._notice.code)
            self.action_wanted.emit(action)

    def _on_dismiss(self) -> None:
        if self._notice is not None:
            self._service.resolve(self._notice.code)


def action_words(action: NoticeAction) -> str:
    """What the button says; empty for what this window has no button for."""
    match action:
        case NoticeAction.LOAD_MODEL:
            return tr("Choose a model")
        case NoticeAction.GET_MODEL:
            return tr("Get the starter model")
        case NoticeAction.NEW_CHAT:
            return tr("New chat")
        case NoticeAction.OPEN_SETTINGS:
            return tr("Open settings")
        case NoticeAction.LOG_BUNDLE:
            return tr("Create log bundle…")
        case NoticeAction.OPEN_SERVER:
            return tr("Open the server's page")
        case NoticeAction.OPEN_MODELS:
            return tr("Open the models' page")
    return ""
