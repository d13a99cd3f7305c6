"""The newest notice: what happened, what can be done, and a way to put it away. GUI thread."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtWidgets import QFrame, QGridLayout, QLabel, QPushButton, QWidget

from studio.models.notices import Notice, NoticeAction, NoticeLevel
from studio.services.notice_service import NoticeService
from studio.views.error_words import detail_words, with_stop
from studio.views.icon_button import IconButton
from studio.views.icons import pixmap
from studio.views.notices.notice_text import NoticeText
from studio.views.theme import Theme
from studio.views.words import tr

_ICON_PX = 18
_GAP_PX = 12
_BESIDE_PX = 320
"""So wide the words must be for the button to stand beside them; in a narrower bar it stands below."""
_LEAST_LINES = 2
_SHARE = 0.15
"""So much of the window's height the words may take, where that is more than _LEAST_LINES; then they scroll."""


class NoticeBar(QFrame):
    """Hidden while there is no notice. `action_wanted` carries the Notice whose button was pressed."""

    action_wanted = Signal(object)

    def __init__(self, notices: NoticeService, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("notice")
        self._service = notices
        self._theme = theme
        self._notice: Notice | None = None
        self._icon = QLabel(self)
        self._text = NoticeText(self)
        self._text.reflowed.connect(self._fit)
        parent.window().installEventFilter(self)
        self._action = QPushButton(self)
        self._action.clicked.connect(self._on_action)
        self._dismiss = IconButton("close", tr("Dismiss"), self)
        self._dismiss.setObjectName("small")
        self._dismiss.clicked.connect(self._on_dismiss)
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(24, 8, 12, 8)
        self._grid.setHorizontalSpacing(_GAP_PX)
        self._grid.setVerticalSpacing(8)
        self._grid.setColumnStretch(1, 1)
        self._grid.addWidget(self._icon, 0, 0)
        self._grid.addWidget(self._text, 0, 1)
        self._grid.addWidget(self._action, 0, 2)
        self._grid.addWidget(self._dismiss, 0, 3)
        self._is_beside = True
        self._disconnect = notices.notices.changed.connect(self.refresh)
        self.refresh()

    def close_bar(self) -> None:
        """Follow the notices no longer."""
        self._disconnect()

    @property
    def notice(self) -> Notice | None:
        """What is shown."""
        return self._notice

    @property
    def words(self) -> str:
        """What it says."""
        return self._text.toPlainText()

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
        self._text.setPlainText(notice_words(notice))
        words = action_words(notice.action)
        self._action.setText(words)
        self._action.setVisible(bool(words))
        self._draw_icon(notice.level)
        self._fit()

    def _fit(self) -> None:
        """The button beside the words or below them, and the words as high as they are, up to a part of the window."""
        self._place_button()
        room_px = _SHARE * self.window().height()
        if not (self._is_beside or self._action.isHidden()):
            room_px -= self._action.sizeHint().height() + self._grid.verticalSpacing()
        self._text.fit_height(room_px, least_lines=_LEAST_LINES)

    def _place_button(self) -> None:
        margins = self._grid.contentsMargins()
        around_px = margins.left() + _ICON_PX + self._dismiss.sizeHint().width() + margins.right()
        around_px += self._action.sizeHint().width() + 3 * _GAP_PX
        is_beside = self.width() - around_px >= _BESIDE_PX
        if is_beside != self._is_beside:
            self._is_beside = is_beside
            self._grid.removeWidget(self._action)
            place = (0, 2) if is_beside else (1, 1)
            self._grid.addWidget(self._action, *place, Qt.AlignmentFlag.AlignLeft)

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
            notice = self._notice
            self._service.resolve(notice.code)
            self.action_wanted.emit(notice)

    def _on_dismiss(self) -> None:
        if self._notice is not None:
            self._service.resolve(self._notice.code)


def notice_words(notice: Notice) -> str:
    """All that is said, as one sentence, or as one and the lines below it."""
    text = tr(notice.text).rstrip(".")
    detail = detail_words(notice.detail, notice.code)
    if "\n" in detail:
        return f"{text}:\n{detail}"
    if detail:  # may begin with the name of a file
        text = f"{text}: {detail}"
    return with_stop(text)


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
        case NoticeAction.STOP_IMPORT:
            return tr("Stop")
        case NoticeAction.CHOOSE_TOOLS:
            return tr("Choose the tools")
        case NoticeAction.OPEN_TOOL_SERVERS:
            return tr("Open the tool servers")
    return ""
