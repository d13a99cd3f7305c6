"""How one model is loaded, and what that takes: the settings for it alone, over those for all. GUI thread.

The fit under the fields follows every change. What is kept holds for every later load of the model, whoever asks.
"""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TypeVar

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import (
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from engine.api import Device, EngineState, KvType, LoadOptions
from engine.errors import EngineError
from studio.models.capacity import USUAL_CHAT_TOKENS
from studio.models.errors import StudioError
from studio.models.load_choices import SETTING_OF, LoadChoices
from studio.models.model_fit import Verdict, plan_fit
from studio.models.model_library import ModelEntry
from studio.services.machine import look_at_machine
from studio.views.context import Context
from studio.views.dialogs.dialog import Dialog
from studio.views.error_words import error_sentence
from studio.views.inputs import QuietList, QuietNumber
from studio.views.labels import dress, hairline, line
from studio.views.models.model_words import (
    fit_words,
    park_words,
    verdict_words,
)
from studio.views.monitor.history_words import capacity_words
from studio.views.paged_dialog import page_column, scrolled
from studio.views.settings.setting_words import choice_words
from studio.views.window_size import fit_to_screen
from studio.views.words import count, tr

_WIDTH_PX = 760
_FIELD_PX = (200, 380)
"""A field's least and most width."""
_MOST_TOKENS = (1 << 31) - 1

_Kind = TypeVar("_Kind", bound=Enum)


class LoadDialog(Dialog):
    """`choices` are what the fields say; `fields` are the fields by their names there."""

    def __init__(self, context: Context, entry: ModelEntry, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(tr("Load settings of {model}").format(model=entry.title))
        self._context = context
        self._entry = entry
        self._store = context.services.models.load_settings
        self._base = self._store.preview(LoadChoices())
        base = self._base
        pool = count(base.pool_tokens) if base.pool_tokens else tr("what memory allows")
        threads = count(base.threads) if base.threads else tr("one per core")
        self.pool = self._number(-1, _MOST_TOKENS, pool, step=512)
        self.parallel = self._number(0, 256, count(base.parallel))
        self.threads = self._number(-1, 1024, threads)
        self.ram = self._number(-2, 1 << 30, count(base.preempt_ram_mib), step=256)
        self.kv_type = self._list(KvType, self._base.kv_type)
        self.device = self._list(Device, self._base.device)
        self.fields: dict[str, QWidget] = {
            "pool_tokens": self.pool,
            "parallel": self.parallel,
            "threads": self.threads,
            "preempt_ram_mib": self.ram,
            "kv_type": self.kv_type,
            "device": self.device,
        }
        self.chat_tokens = QuietNumber(self)
        self.chat_tokens.setRange(1, 1 << 24)
        self.chat_tokens.setValue(USUAL_CHAT_TOKENS)
        self.chat_tokens.setSingleStep(500)
        self.chat_tokens.setGroupSeparatorShown(True)
        self.chat_tokens.setAccessibleName(tr("Tokens of a chat"))
        self.chat_tokens.valueChanged.connect(self._show_fit)
        self._verdict = line("", "title", self)
        self._needs = line("", "secondary", self)
        self._capacity = line("", "body", self)
        self._parks = line("", "secondary", self)
        self._problem = line("", "failed", self)
        self._problem.hide()
        self._lay_out()
        self._show(self._store.choices(entry.path))
        self._disable_fixed()
        self._show_fit()
        fit_to_screen(self, QSize(_WIDTH_PX, self._height_at(_WIDTH_PX)))

    @property
    def path(self) -> Path:
        """The model's."""
        return self._entry.path

    @property
    def choices(self) -> LoadChoices:
        return LoadChoices(
            pool_tokens=_value_of(self.pool),
            parallel=_value_of(self.parallel),
            threads=_value_of(self.threads),
            preempt_ram_mib=_value_of(self.ram),
            kv_type=self.kv_type.currentData(),
            device=self.device.currentData(),
        )

    def show_setting(self, key: str) -> None:
        """Let the keyboard change the choice that stands before a setting for all, by that one's key."""
        name = next(name for name, of in SETTING_OF.items() if of == key)
        self._area.ensureWidgetVisible(self.fields[name])
        self.fields[name].setFocus(Qt.FocusReason.OtherFocusReason)

    def keep(self) -> bool:
        """Keep the choices for every later load; False, with the reason in place, if they cannot be."""
        try:
            self._store.change(self._entry.path, self.choices)
        except (EngineError, StudioError) as error:
            self._problem.setText(error_sentence(error))
            self._problem.show()
            return False
        self.accept()
        return True

    def keep_and_load(self) -> None:
        if self.keep():
            self._context.model_actions.load(self._entry.name)

    def _number(self, low: int, high: int, base: str, *, step: int = 1) -> QuietNumber:
        """A field whose lowest value, one below what is allowed, means: as for all models."""
        field = QuietNumber(self)
        field.setRange(low, high)
        field.setSingleStep(step)
        field.setGroupSeparatorShown(True)
        field.setKeyboardTracking(False)
        field.setSpecialValueText(tr("As for all: {value}").format(value=base))
        field.valueChanged.connect(self._show_fit)
        return field

    def _list(self, kinds: type[_Kind], base: _Kind) -> QuietList:
        field = QuietList(self)
        words = tr("As for all: {value}").format(value=choice_words(base))
        field.addItem(words, None)
        for kind in kinds:
            field.addItem(choice_words(kind), kind)
        field.currentIndexChanged.connect(self._show_fit)
        field.currentTextChanged.connect(field.setToolTip)
        field.setToolTip(words)
        return field

    def _lay_out(self) -> None:
        page = QWidget(self)
        self._column = column = page_column(page)
        column.addWidget(
            line(
                tr(
                    "For this model alone, every time it is loaded. They stay until you change them."
                ),
                "secondary",
                self,
            )
        )
        column.addLayout(self._fields())
        column.addSpacing(4)
        column.addWidget(self._verdict)
        column.addWidget(self._needs)
        column.addLayout(self._capacity_row())
        column.addWidget(self._parks)
        column.addWidget(self._problem)
        column.addStretch(1)
        self._foot = foot = self._buttons()
        foot.setContentsMargins(24, 12, 24, 20)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        self._area = scrolled(self.windowTitle(), page, self)
        layout.addWidget(self._area, 1)
        layout.addWidget(hairline(self))
        layout.addLayout(foot)

    def _height_at(self, width: int) -> int:
        """With which nothing has to be scrolled."""
        return self._column.totalHeightForWidth(width) + 1 + self._foot.sizeHint().height()

    def _fields(self) -> QGridLayout:
        grid = QGridLayout()
        grid.setHorizontalSpacing(16)
        grid.setVerticalSpacing(8)
        rows = (
            (tr("Pool, in tokens"), self.pool, tr("0: what memory allows")),
            (tr("Requests at once"), self.parallel, ""),
            (
                tr("Memory for parked chats, in MiB"),
                self.ram,
                tr("0: nobody is parked; -1: no limit"),
            ),
            (tr("Keys and values"), self.kv_type, ""),
            (tr("Device"), self.device, ""),
            (tr("Threads"), self.threads, tr("0: one per core")),
        )
        for number, (title, field, hint) in enumerate(rows):
            label = QLabel(title, self)
            label.setBuddy(field)
            label.setWordWrap(True)
            field.setAccessibleName(title)
            field.setAccessibleDescription(hint)
            least_px, most_px = _FIELD_PX
            field.setMinimumWidth(least_px)
            field.setMaximumWidth(most_px)
            grid.addWidget(label, number, 0)
            grid.addWidget(field, number, 1)
            grid.addWidget(line(hint, "secondary", self), number, 2)
        for place, share in enumerate((3, 5, 3)):
            grid.setColumnStretch(place, share)
        return grid

    def _capacity_row(self) -> QHBoxLayout:
        row = QHBoxLayout()
        label = QLabel(tr("Chats of"), self)
        label.setBuddy(self.chat_tokens)
        self.chat_tokens.setSuffix(" " + tr("tokens"))
        self._capacity.setText("\n")  # room for two lines, so that nothing moves when there are
        self._capacity.setMinimumHeight(self._capacity.sizeHint().height())
        row.addWidget(label)
        row.addWidget(self.chat_tokens)
        row.addWidget(self._capacity, 1)
        return row

    def _buttons(self) -> QHBoxLayout:
        reset = QPushButton(tr("As for all models"), self)
        reset.clicked.connect(lambda: self._show(LoadChoices()))
        cancel = QPushButton(tr("Cancel"), self)
        cancel.clicked.connect(self.reject)
        keep = QPushButton(tr("Keep"), self)
        keep.clicked.connect(self.keep)
        is_in_use = self._context.services.models.state is EngineState.LOADING
        load = QPushButton(tr("Keep and load"), self)
        load.setObjectName("primary")
        load.setDefault(True)
        load.setEnabled(not is_in_use)
        load.clicked.connect(self.keep_and_load)
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addWidget(reset)
        row.addStretch(1)
        for button in (cancel, keep, load):
            row.addWidget(button)
        return row

    def _show(self, choices: LoadChoices) -> None:
        _show_value(self.pool, choices.pool_tokens)
        _show_value(self.parallel, choices.parallel)
        _show_value(self.threads, choices.threads)
        _show_value(self.ram, choices.preempt_ram_mib)
        self.kv_type.setCurrentIndex(max(0, self.kv_type.findData(choices.kv_type)))
        self.device.setCurrentIndex(max(0, self.device.findData(choices.device)))

    def _disable_fixed(self) -> None:
        """What a flag or variable has set cannot be set here."""
        for name in self._store.fixed():
            self.fields[name].setEnabled(False)
            self.fields[name].setToolTip(
                tr("Set when Layby was started, so it cannot be changed here.")
            )

    def _show_fit(self) -> None:
        facts = self._context.services.models.facts.get(self._entry.path)
        options = self._options()
        if facts is None or facts.info is None or options is None:
            self._verdict.setText(tr("What it takes will be known once it is loaded"))
            return
        machine = look_at_machine(self._context.watch.snapshot)
        fit = plan_fit(facts.info, options, machine)
        dress(self._verdict, "failed" if fit.verdict is Verdict.TOO_LARGE else "title")
        self._verdict.setText(verdict_words(fit))
        is_known = fit.verdict is not Verdict.UNKNOWN
        self._needs.setText(fit_words(fit) if is_known else "")
        fits = fit.verdict is not Verdict.TOO_LARGE
        chats = fit.capacity(self.chat_tokens.value())
        self._capacity.setText(f"{capacity_words(chats)}." if fits else "")
        self._parks.setText(park_words(fit) if fits else "")

    def _options(self) -> LoadOptions | None:
        try:
            return self._store.preview(self.choices)
        except EngineError:
            return None


def _value_of(field: QuietNumber) -> int | None:
    return None if field.value() == field.minimum() else field.value()


def _show_value(field: QuietNumber, value: int | None) -> None:
    field.setValue(field.minimum() if value is None else value)
