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
from studio.views.model_selector import ModelSelector
from studio.views.words import tr

_LEAST_TITLE_PX = 54
_USUAL_TITLE_PX = 160
"""Where this and the model's whole name have no room, both give way."""


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
        layout.setSpacing(4)
        layout.addWidget(self._sidebar)
        layout.addSpacing(4)
        layout.addWidget(self._title)  # no stretch: it would be the first to be cut
        layout.addStretch(1)
        layout.addWidget(self.selector)
        layout.addWidget(self._split)
        layout.addWidget(inspector)

    def set_title(self, title: str) -> None:
        self._title.set_text(title)
        self._bound_title()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._bound_title()

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:  # the model's name may be another
            self._bound_title()
        return super().event(event)

    def _bound_title(self) -> None:
        """The title gives way first: a layout would take as much of the model's name as of it, however long it is."""
        title_px = min(self._title.sizeHint().width(), self._title.maximumWidth())
        others_px = self.sizeHint().width() - title_px
        most_px = max(_USUAL_TITLE_PX, self.width() - others_px)
        if most_px != self._title.maximumWidth():
            self._title.setMaximumWidth(most_px)

    def set_can_split(self, *, can_split: bool) -> None:
        self._split.setEnabled(can_split)
