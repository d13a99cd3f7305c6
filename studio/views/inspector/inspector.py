"""The settings of the chat in the active pane: system prompt, preset, sampling, limits. GUI thread.

What is changed holds for the chat's next reply; there is nothing to confirm.
"""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QRegularExpression, Qt, Signal
from PySide6.QtGui import QRegularExpressionValidator
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from studio.models.chat import Conversation
from studio.models.chat_settings import ChatSettings
from studio.views.context import Context
from studio.views.icon_button import IconButton
from studio.views.inputs import LinesField
from studio.views.inspector.chat_numbers import ChatNumber, chat_numbers
from studio.views.inspector.knob import Knob
from studio.views.inspector.preset_bar import PresetBar
from studio.views.inspector.tool_choice import ToolChoice
from studio.views.words import tr

WIDTH_PX = 320
_SIDE_PX = 16
_MOST_SEED = (1 << 64) - 1


class Inspector(QWidget):
    """Hidden until it is asked for."""

    close_wanted = Signal()
    tool_servers_wanted = Signal()

    def __init__(self, context: Context, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("inspector")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setMinimumWidth(WIDTH_PX)
        self.hide()
        self._presets = context.services.chats.presets
        self._chat: Conversation | None = None
        self.preset_bar = PresetBar(self._presets, context.tasks, self)
        self.system_prompt = LinesField(5, self)
        self.system_prompt.setAccessibleName(tr("System prompt"))
        self.system_prompt.setPlaceholderText(tr("How the model is to answer in this chat"))
        self.system_prompt.textChanged.connect(self._on_prompt)
        self.knobs = [Knob(number, self) for number in chat_numbers()]
        for knob in self.knobs:
            knob.edited.connect(lambda value, number=knob.number: self._on_number(number, value))
        self.seed = QLineEdit(self)
        self.seed.setAccessibleName(tr("Seed"))
        self.seed.setPlaceholderText(tr("another one each time"))
        self.seed.setValidator(QRegularExpressionValidator(QRegularExpression(r"\d{0,20}"), self))
        self.seed.textEdited.connect(self._on_seed)
        self.stop = LinesField(2, self)
        self.stop.setAccessibleName(tr("Stop strings"))
        self.stop.setPlaceholderText(tr("One on each line; \\n is a line break"))
        self.stop.textChanged.connect(self._on_stop)
        self.tools: ToolChoice | None = None
        if (desk := context.services.chats.desk) is not None:
            self.tools = ToolChoice(context.services.chats, desk.service, self)
            self.tools.settings_wanted.connect(self.tool_servers_wanted)
        self.reset = QPushButton(tr("Reset to default"), self)
        self.reset.clicked.connect(self._on_reset)
        self._page = QWidget(self)
        self._lay_out()
        chats = context.services.chats
        self._disconnects = (
            chats.chat_changed.connect(self._on_changed),
            self._presets.changed.connect(self._show),
        )

    def close_inspector(self) -> None:
        """Follow the services no longer."""
        for disconnect in self._disconnects:
            disconnect()
        if self.tools is not None:
            self.tools.close_choice()

    def show_chat(self, chat: Conversation | None) -> None:
        """Show the settings of this chat; None: of none."""
        if chat is not self._chat:
            self._chat = chat
            self._show()

    def show_tools(self) -> None:
        """Put the keyboard where the tools are chosen."""
        if self.tools is not None:
            self.tools.take_focus()
            self._page.adjustSize()  # it may have been hidden until now
            self._area.ensureWidgetVisible(self.tools)

    def _on_changed(self, chat: Conversation) -> None:
        if chat is self._chat:
            self._show()

    def _show(self) -> None:
        """What is shown already stays as it is, cursor and all."""
        chat = self._chat
        self._page.setEnabled(chat is not None)
        self.preset_bar.show_chat(chat)
        if self.tools is not None:
            self.tools.show_chat(chat)
        settings = chat.settings if chat is not None else ChatSettings()
        if self.system_prompt.toPlainText() != settings.system_prompt:
            self._fill(self.system_prompt, settings.system_prompt)
        for knob in self.knobs:
            knob.show_value(knob.number.read(settings))
        seed = settings.sampling.seed
        if _seed_of(self.seed.text()) != seed:
            self.seed.setText("" if seed is None else str(seed))
        if _stop_of(self.stop.toPlainText()) != settings.stop:
            self._fill(self.stop, "\n".join(_escaped(one) for one in settings.stop))
        self.reset.setEnabled(chat is not None and settings != ChatSettings())

    @staticmethod
    def _fill(field: QPlainTextEdit, text: str) -> None:
        field.blockSignals(True)
        field.setPlainText(text)
        field.blockSignals(False)

    def _change(self, settings: ChatSettings) -> None:
        if self._chat is not None:
            self._presets.set_settings(self._chat, settings)

    def _on_prompt(self) -> None:
        if self._chat is not None:
            text = self.system_prompt.toPlainText()
            self._change(replace(self._chat.settings, system_prompt=text))

    def _on_number(self, number: ChatNumber, value: float) -> None:
        if self._chat is not None:
            self._change(number.write(self._chat.settings, value))

    def _on_seed(self, text: str) -> None:
        if self._chat is not None:
            settings = self._chat.settings
            sampling = replace(settings.sampling, seed=_seed_of(text))
            self._change(replace(settings, sampling=sampling))

    def _on_stop(self) -> None:
        if self._chat is not None:
            stop = _stop_of(self.stop.toPlainText())
            self._change(replace(self._chat.settings, stop=stop))

    def _on_reset(self) -> None:
        if self._chat is not None:
            self._presets.apply(self._chat, None)

    def _lay_out(self) -> None:
        title = QLabel(tr("Chat settings"), self)
        title.setObjectName("title")
        close = IconButton("close", tr("Close the chat settings"), self)
        close.setObjectName("small")
        close.clicked.connect(self.close_wanted)
        head = QHBoxLayout()
        head.setContentsMargins(_SIDE_PX, 8, 8, 4)
        head.addWidget(title, 1)
        head.addWidget(close)
        self._page.setObjectName("inspectorPage")
        page = QVBoxLayout(self._page)
        page.setContentsMargins(_SIDE_PX, 0, _SIDE_PX, 16)
        page.setSpacing(4)
        page.addWidget(self._secondary(tr("For the next reply of this chat.")))
        self._add_named(page, tr("Preset"), self.preset_bar)
        self._add_named(page, tr("System prompt"), self.system_prompt)
        for knob in self.knobs:
            page.addSpacing(8)
            page.addWidget(knob)
        if self.tools is not None:
            self._add_named(page, tr("Tools"), self.tools)
        self._add_named(page, tr("Seed"), self.seed)
        self._add_named(page, tr("Stop strings"), self.stop)
        page.addSpacing(16)
        page.addWidget(self.reset)
        page.addStretch(1)
        self._area = area = QScrollArea(self)
        area.setObjectName("inspectorArea")
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        area.setWidgetResizable(True)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setWidget(self._page)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(head)
        layout.addWidget(area, 1)

    def _add_named(self, page: QVBoxLayout, name: str, widget: QWidget) -> None:
        page.addSpacing(8)
        page.addWidget(QLabel(name, self))
        page.addWidget(widget)

    def _secondary(self, text: str) -> QLabel:
        label = QLabel(text, self)
        label.setObjectName("secondary")
        return label


def _seed_of(text: str) -> int | None:
    return min(int(text), _MOST_SEED) if text else None


def _stop_of(text: str) -> tuple[str, ...]:
    lines = (line.replace("\\n", "\n").replace("\\t", "\t") for line in text.splitlines())
    return tuple(dict.fromkeys(line for line in lines if line))


def _escaped(text: str) -> str:
    return text.replace("\n", "\\n").replace("\t", "\\t")
