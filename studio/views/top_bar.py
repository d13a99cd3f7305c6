"""The bar above the chats: side bar switch, title, model, split, the chat's settings. GUI thread."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QWidget

from studio.views.actions import CommandId
from studio.views.context import Context
from studio.views.elided_label import ElidedLabel
from studio.views.icon_button import IconButton
from studio.views.key_hints import hint
from studio.views.model_selector import LEAST_PX, ModelSelector
from studio.views.words import tr

_LEAST_TITLE_PX = 54
_USUAL_TITLE_PX = 160
"""Where this and the model's whole name have no room, both give way."""
_GAP_PX = 4


class TopBar(QWidget):
    """The title stands here while there is one pane; with several, each pane has its own."""

    sidebar_wanted = Signal()
    split_wanted = Signal()
    inspector_wanted = Signal()

    def __init__(self, context: Context, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("topBar")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._sidebar = IconButton("sidebar", "", self)
        self._sidebar.set_label(tr("Side bar"))
        hint(self._sidebar, tr("Side bar"), CommandId.SIDEBAR)
        self._sidebar.clicked.connect(self.sidebar_wanted)
        self._title = ElidedLabel(self, least_px=_LEAST_TITLE_PX)
        self._title.setObjectName("title")
        self.selector = ModelSelector(context, self)
        self._split = IconButton("split", "", self)
        self._split.set_label(tr("Split: show another chat beside this one"))
        hint(self._split, tr("Split: show another chat beside this one"), CommandId.SPLIT)
        self._split.clicked.connect(self.split_wanted)
        inspector = IconButton("sliders", tr("Chat settings"), self)
        hint(inspector, tr("Chat settings"), CommandId.INSPECTOR)
        inspector.clicked.connect(self.inspector_wanted)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(8, 6, 8, 6)
        layout.setSpacing(_GAP_PX)
        layout.addWidget(self._sidebar)
        layout.addSpacing(4)
        layout.addWidget(self._title)  # no stretch: it would be the first to be cut
        layout.addStretch(1)
        layout.addWidget(self.selector)
        layout.addWidget(self._split)
        layout.addWidget(inspector)

    def set_title(self, title: str) -> None:
        self._title.set_text(title)
        self._share_room()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._share_room()

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:  # the title, or the model, is another one
            self._share_room()
        return super().event(event)

    def _share_room(self) -> None:
        """The title gives way first, however long it is, but has what the model's name makes no use of."""
        room_px = self._split.x() - self._title.x() - 2 * _GAP_PX
        title_px = max(_USUAL_TITLE_PX, room_px - self.selector.sizeHint().width())
        title_px = min(title_px, self._title.sizeHint().width())
        model_px = self.selector.fitted_px(max(room_px - title_px, LEAST_PX))
        self.selector.setMaximumWidth(model_px)
        self._title.setMaximumWidth(max(title_px, room_px - model_px))

    def set_can_split(self, *, can_split: bool) -> None:
        self._split.setEnabled(can_split)
