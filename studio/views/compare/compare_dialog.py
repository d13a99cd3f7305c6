"""Asks what is to be compared: a prompt, and the settings of each column. GUI thread."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtWidgets import (
    QHBoxLayout,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from studio.models.chat import Conversation
from studio.models.chat_settings import ChatSettings
from studio.services.compare_service import MAX_COLUMNS
from studio.services.preset_service import PresetService
from studio.views.compare.column_editor import ColumnEditor
from studio.views.compare.share_words import share_words
from studio.views.dialogs.dialog import Dialog
from studio.views.inputs import LinesField, on_ctrl_enter
from studio.views.labels import line
from studio.views.paged_dialog import scrolled
from studio.views.word_button import WordButton
from studio.views.words import tr

_WIDTH_PX = 620
_LEAST_PROMPT_LINES = 2
_PROMPT_LINES = 5
_LEAST_AREA_PX = 40
_EDGE_PX = 2
"""Of the area around the columns."""
_FRAME_PX = 60
"""The dialog's frame and title bar, whose size is not known before it is shown."""
_FIRST_TEMPERATURES = (0.0, 0.8, 1.2, 0.4)


class CompareDialog(Dialog):
    """`wanted` carries the prompt and a tuple of ChatSettings, once; then the dialog closes."""

    wanted = Signal(str, object)

    def __init__(self, chat: Conversation, presets: PresetService, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(tr("Compare settings"))
        self.setMinimumWidth(_WIDTH_PX)
        self._chat = chat
        self._presets = presets
        self._fitting_px = self.height()
        """As high as it was made, unless the user has made it higher since."""
        self.columns: list[ColumnEditor] = []
        self.prompt = LinesField(_PROMPT_LINES, self)
        self.prompt.setPlainText(chat.draft)
        self.prompt.setAccessibleName(tr("Prompt"))
        self.prompt.setPlaceholderText(tr("The prompt that all columns are asked"))
        self.prompt.textChanged.connect(self._refresh)
        self._rows = QVBoxLayout()
        self._rows.setSpacing(8)
        self._rows.setContentsMargins(0, 0, 0, 0)
        self._rows.setAlignment(Qt.AlignmentFlag.AlignTop)
        page = QWidget(self)
        page.setLayout(self._rows)
        page.installEventFilter(self)
        self._area = scrolled(tr("Columns"), page, self)
        self._area.setMinimumHeight(_LEAST_AREA_PX)
        self.shares = line("", "secondary", self)
        """Which columns read as one."""
        self._add = WordButton("plus", tr("Add a column"), self)
        self._add.setObjectName("link")
        self._add.clicked.connect(self.add_column)
        self._do = QPushButton(tr("Compare"), self)
        self._do.setObjectName("primary")
        self._do.setDefault(True)
        self._do.clicked.connect(self._on_done)
        on_ctrl_enter(self, self._do.click)  # from the prompt, too
        self._lay_out()
        for _ in range(2):
            self.add_column()

    def add_column(self) -> None:
        """One more column, with another temperature than those before it."""
        if len(self.columns) < MAX_COLUMNS:
            mine = self._chat.settings
            heat = _FIRST_TEMPERATURES[len(self.columns)]
            settings = replace(mine, sampling=replace(mine.sampling, temperature=heat))
            editor = ColumnEditor(settings, self._choices(), self)
            editor.removed.connect(lambda: self._remove(editor))
            editor.changed.connect(self._refresh)
            self.columns.append(editor)
            self._rows.addWidget(editor)
            self._refresh()

    def _remove(self, editor: ColumnEditor) -> None:
        self.columns.remove(editor)
        self._rows.removeWidget(editor)
        editor.hide()
        editor.deleteLater()
        self._refresh()

    def _choices(self) -> list[tuple[str, ChatSettings]]:
        """Where a column's settings may come from."""
        named = [(preset.name, preset.settings) for preset in self._presets.presets]
        return [
            (tr("Settings of this chat"), self._chat.settings),
            (tr("Default"), ChatSettings()),
            *named,
        ]

    def _refresh(self) -> None:
        num_columns = len(self.columns)
        for place, editor in enumerate(self.columns, start=1):
            editor.set_place(place, can_remove=num_columns > 2)
        self._add.setEnabled(num_columns < MAX_COLUMNS)
        has_prompt = bool(self.prompt.toPlainText().strip() or self._chat.draft_attachments)
        self._do.setEnabled(has_prompt)
        self.shares.setText(share_words([editor.settings() for editor in self.columns]))
        self._give_room()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """What the columns take is known once they are dressed and shown."""
        if event.type() in (QEvent.Type.LayoutRequest, QEvent.Type.Show):
            self._give_room()
        return False

    def _give_room(self) -> None:
        """The columns are seen whole, unless the dialog would outgrow the screen: then they scroll.

        Before they do, the prompt keeps no more room than its text takes.
        """
        if self.layout() is None:
            return
        most_px = self.screen().availableGeometry().height() - _FRAME_PX
        shorter_px = self.prompt.px_of(_PROMPT_LINES) - self.prompt.minimumHeight()
        is_low = self._wanted_px() + shorter_px > most_px
        num_lines = max(_LEAST_PROMPT_LINES, self.prompt.num_written()) if is_low else _PROMPT_LINES
        self.prompt.set_lines(min(num_lines, _PROMPT_LINES))
        fitting_px = min(self._wanted_px(), most_px)
        if self.height() < fitting_px or self.height() == self._fitting_px:
            self.resize(self.width(), fitting_px)
        self._fitting_px = self.height()

    def _wanted_px(self) -> int:
        layout = self.layout()
        area = layout.itemAt(layout.indexOf(self._area)) if layout is not None else None
        assert layout is not None
        assert area is not None
        gaps_px = self._rows.spacing() * (len(self.columns) - 1)
        columns_px = sum(editor.sizeHint().height() for editor in self.columns) + gaps_px + _EDGE_PX
        around_px = layout.totalHeightForWidth(self.width()) - area.sizeHint().height()
        return around_px + columns_px

    def _on_done(self) -> None:
        settings = tuple(editor.settings() for editor in self.columns)
        self.wanted.emit(self.prompt.toPlainText(), settings)
        self.close()

    def _lay_out(self) -> None:
        about = line(
            tr("Each column is a chat of its own, with the messages so far."), "secondary", self
        )
        cancel = QPushButton(tr("Cancel"), self)
        cancel.clicked.connect(self.close)
        buttons = QHBoxLayout()
        buttons.addWidget(self._add)
        buttons.addStretch(1)
        buttons.addWidget(cancel)
        buttons.addWidget(self._do)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(24, 20, 24, 20)
        layout.setSpacing(12)
        layout.addWidget(about)
        layout.addWidget(self.prompt)
        layout.addWidget(self._area, 1)
        layout.addWidget(self.shares)
        layout.addSpacing(4)
        layout.addLayout(buttons)
