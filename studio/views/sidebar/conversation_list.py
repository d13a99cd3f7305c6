"""The side bar: a new chat, a search over titles, and the list of chats. GUI thread."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QModelIndex, QPoint, QSize, QSortFilterProxyModel, Qt, Signal
from PySide6.QtGui import QContextMenuEvent, QFocusEvent, QKeyEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QLabel,
    QLineEdit,
    QListView,
    QPushButton,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from studio.models.chat import Conversation
from studio.views.actions import CommandId
from studio.views.context import Context
from studio.views.icons import palette_icon
from studio.views.key_hints import hint
from studio.views.sidebar.chat_menu import ChatMenu
from studio.views.sidebar.conversation_model import ChatRole, ConversationModel
from studio.views.sidebar.conversation_row import ConversationRow
from studio.views.words import tr

WIDTH_PX = 280
_ICON_PX = 18


class Sidebar(QWidget):
    """`chosen` carries the chat to be shown."""

    chosen = Signal(object)
    new_wanted = Signal()
    delete_wanted = Signal(object)
    """The chat that the keyboard stands on, or whose menu it was."""
    split_wanted = Signal(object)

    def __init__(self, context: Context, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("sidebar")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setFixedWidth(WIDTH_PX)
        self._context = context
        self._open: Conversation | None = None
        self._new = _NewButton(self)
        self._new.clicked.connect(self.new_wanted)
        self._search = _SearchField(self)
        self._search.textChanged.connect(self._on_search)
        self._search.down_pressed.connect(self._enter_list)
        self._search.returnPressed.connect(self._pick_first)
        self._model = ConversationModel(
            context.services.chats, context.watch, context.figures, rename=self._rename, parent=self
        )
        self._rows = QSortFilterProxyModel(self)
        self._rows.setSourceModel(self._model)
        self._rows.setFilterCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
        self._list = _ChatList(self)
        self._list.setModel(self._rows)
        self._list.setItemDelegate(ConversationRow(context.theme, self._list))
        self._list.picked.connect(self._on_picked)
        self._list.delete_pressed.connect(lambda: self.delete_wanted.emit(self.current_chat()))
        self._list.menu_wanted.connect(self._open_menu)
        self._menu = ChatMenu(self)
        self._menu.rename_wanted.connect(self.edit_title)
        self._menu.delete_wanted.connect(self.delete_wanted)
        self._menu.split_wanted.connect(self.split_wanted)
        self._nothing = QLabel(tr("No chat has this in its title"), self)
        self._nothing.setObjectName("secondary")
        self._nothing.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self._nothing.hide()
        head = QVBoxLayout()
        head.setContentsMargins(12, 12, 12, 8)
        head.setSpacing(8)
        head.addWidget(self._new)
        head.addWidget(self._search)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(head)
        layout.addWidget(self._nothing)
        layout.addWidget(self._list, 1)

    def close_sidebar(self) -> None:
        """Follow the services no longer."""
        self._model.close()

    def set_open(self, chat: Conversation | None, *, can_split: bool) -> None:
        """Mark the chat in the active pane, and let the keyboard start from it."""
        self._menu.set_can_split(can_split=can_split)
        if chat is self._open:
            return  # the keyboard may have gone elsewhere in the list since
        self._open = chat
        self._model.set_open(chat)
        if chat is not None:
            self._list.setCurrentIndex(self._rows.mapFromSource(self._model.index_of(chat)))

    def focus_search(self) -> None:
        self._search.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self._search.selectAll()

    def current_chat(self) -> Conversation | None:
        """The chat that the keyboard stands on, if the list has the focus."""
        return self._list.currentIndex().data(ChatRole.CHAT) if self._list.hasFocus() else None

    def edit_title(self, chat: Conversation) -> None:
        """Let the user write another title, in the row."""
        index = self._rows.mapFromSource(self._model.index_of(chat))
        if index.isValid():
            self._list.scrollTo(index)
            self._list.edit(index)

    def _rename(self, chat: Conversation, title: str) -> None:
        self._context.tasks.start(self._context.services.chats.rename(chat, title))

    def _on_search(self, text: str) -> None:
        self._rows.setFilterFixedString(text)
        self._nothing.setVisible(self._rows.rowCount() == 0 and bool(text))

    def _enter_list(self) -> None:
        self._list.setCurrentIndex(self._rows.index(0, 0))
        self._list.setFocus(Qt.FocusReason.TabFocusReason)

    def _pick_first(self) -> None:
        if self._rows.rowCount():
            self._on_picked(self._rows.index(0, 0))

    def _open_menu(self, index: QModelIndex, spot: QPoint) -> None:
        self._menu.open_for(index.data(ChatRole.CHAT), spot)

    def _on_picked(self, index: QModelIndex) -> None:
        self.chosen.emit(index.data(ChatRole.CHAT))


class _ChatList(QListView):
    """A list that one click or Enter picks from."""

    picked = Signal(QModelIndex)
    delete_pressed = Signal()
    menu_wanted = Signal(QModelIndex, QPoint)
    """A row, and where on the screen its menu belongs."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("conversations")
        self.setAccessibleName(tr("Chats"))
        self.setUniformItemSizes(True)
        self.setMouseTracking(True)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setSelectionMode(QAbstractItemView.SelectionMode.NoSelection)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.clicked.connect(self.picked)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        is_enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if is_enter and self.currentIndex().isValid():
            self.picked.emit(self.currentIndex())
        elif event.key() == Qt.Key.Key_Delete:
            self.delete_pressed.emit()
        else:
            super().keyPressEvent(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        if event.reason() is QContextMenuEvent.Reason.Mouse:
            index, spot = self.indexAt(event.pos()), event.globalPos()
        else:
            index = self.currentIndex()
            spot = self.viewport().mapToGlobal(self.visualRect(index).center())
        if index.isValid():
            self.menu_wanted.emit(index, spot)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        if event.reason() is not Qt.FocusReason.MouseFocusReason:
            self.scrollTo(self.currentIndex())  # or nothing on screen would show the focus


class _NewButton(QPushButton):
    """A button with words beside its icon, which follows the theme."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(tr("New chat"), parent)
        self.setObjectName("newChat")
        hint(self, tr("New chat"), CommandId.NEW_CHAT)
        self.setIconSize(QSize(_ICON_PX, _ICON_PX))
        self.setIcon(palette_icon("plus", self.palette()))

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self.setIcon(palette_icon("plus", self.palette()))


class _SearchField(QLineEdit):
    """Escape empties it, Down leaves it for the list."""

    down_pressed = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._glass = self.addAction(
            palette_icon("search", self.palette()), QLineEdit.ActionPosition.LeadingPosition
        )
        self.setPlaceholderText(tr("Search"))
        self.setAccessibleName(tr("Search chats by title"))
        self.setClearButtonEnabled(True)
        for button in self.findChildren(QToolButton):
            button.setAccessibleName(tr("Search"))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape and self.text():
            self.clear()
        elif event.key() == Qt.Key.Key_Down:
            self.down_pressed.emit()
        else:
            super().keyPressEvent(event)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self._glass.setIcon(palette_icon("search", self.palette()))
