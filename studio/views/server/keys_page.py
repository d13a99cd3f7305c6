"""The page of keys: a list, and a form that makes one. GUI thread.

A secret is shown once: until it was copied and the page is left, or the window is closed.
"""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QGuiApplication, QHideEvent
from PySide6.QtWidgets import (
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from studio.models.errors import SettingError
from studio.models.server_keys import MOST_REQUESTS, KeyPlan, Lane, ServerKey
from studio.views.context import Context
from studio.views.dialogs.confirm import Question, confirm
from studio.views.elided_label import ElidedLabel
from studio.views.error_words import error_sentence
from studio.views.inputs import QuietList, QuietNumber
from studio.views.labels import line
from studio.views.paged_dialog import card, page_column, scrolled
from studio.views.words import percent, tr


class KeysPage(QWidget):
    """`created` carries the secret of a new key."""

    created = Signal(str)

    def __init__(self, context: Context, parent: QWidget) -> None:
        super().__init__(parent)
        self._context = context
        self._store = context.services.server.keys
        inner = QWidget(self)
        column = page_column(inner)
        title = QLabel(tr("Keys"), inner)
        title.setObjectName("heading")
        column.addWidget(title)
        column.addWidget(
            line(
                tr(
                    "A key tells programs apart: which of them goes first, how much of the pool it may hold, how many "
                    "requests it may have at once. Once there is a key, every program needs one."
                ),
                "body",
                inner,
            )
        )
        self.form = _KeyForm(inner)
        self.form.wanted.connect(self._create)
        column.addWidget(self.form)
        self.secret = _SecretCard(inner)
        column.addWidget(self.secret)
        self._list = QVBoxLayout()
        self._list.setSpacing(8)
        column.addLayout(self._list)
        column.addStretch(1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        self._area = scrolled(tr("Keys"), inner, self)
        self._area.verticalScrollBar().rangeChanged.connect(self._bring_secret)
        layout.addWidget(self._area)
        self._rows: list[QFrame] = []
        self._disconnect = self._store.changed.connect(self.refresh)
        self.refresh()

    def close_page(self) -> None:
        """Follow the service no longer, and forget the secret."""
        self.secret.forget()
        self._disconnect()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        if not self.secret.is_only_here:
            self.secret.forget()

    def refresh(self) -> None:
        """Show the keys there are."""
        for row in self._rows:
            row.deleteLater()
        self._rows = [self._row(key) for key in self._store.keys]
        for row in self._rows:
            self._list.addWidget(row)

    def revoke(self, key: ServerKey) -> None:
        """Ask, then let the key open nothing any more."""
        question = Question(
            text=tr("Revoke the key “{name}”?").format(name=key.name),
            detail=tr("Programs that use it are refused from now on."),
            do=tr("Revoke"),
        )
        confirm(question, lambda: self._revoke(key), self)

    def _revoke(self, key: ServerKey) -> None:
        try:
            self._store.revoke(key.key_id)
        except SettingError as error:
            self._context.services.notices.report(error)
            return
        if key.name == self.secret.name:
            self.secret.forget()

    def _create(self, plan: KeyPlan) -> None:
        if self.secret.is_only_here:
            words = tr("Copy the key “{name}” first: it could not be shown again.")
            self.form.show_problem(words.format(name=self.secret.name))
            return
        try:
            key, secret = self._store.create(plan)
        except SettingError as error:
            self.form.show_problem(error_sentence(error))
            return
        self.form.clear()
        self.secret.show_secret(key.name, secret)
        self._bring_secret()
        self.created.emit(secret)

    def _bring_secret(self) -> None:
        """Into sight, also when the page has grown by it."""
        if self.secret.is_only_here:
            self._area.ensureWidgetVisible(self.secret, 0, 12)

    def _row(self, key: ServerKey) -> QFrame:
        frame, column = card(self)
        name = ElidedLabel(frame)
        name.setObjectName("title")
        name.set_text(key.name)
        revoke = QPushButton(tr("Revoke…"), frame)
        revoke.setAutoDefault(False)
        revoke.setAccessibleName(tr("Revoke: {name}").format(name=key.name))
        revoke.clicked.connect(lambda: self.revoke(key))
        words = QVBoxLayout()
        words.setSpacing(2)
        words.addWidget(name)
        words.addWidget(line(key_words(key), "secondary", frame))
        row = QHBoxLayout()
        row.addLayout(words, 1)
        row.addWidget(revoke)
        column.addLayout(row)
        return frame


class _KeyForm(QFrame):
    """Name, lane, share and cap of a key to come."""

    wanted = Signal(object)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("card")
        self.name = QLineEdit(self)
        self.name.setPlaceholderText(tr("editor"))
        self.name.returnPressed.connect(self._ask)
        self.lane = QuietList(self)
        for lane in Lane:
            self.lane.addItem(lane_words(lane), lane)
        self.lane.setCurrentIndex(self.lane.findData(Lane.NORMAL))
        self.share = QuietNumber(self)
        self.share.setRange(1, 100)
        self.share.setValue(100)
        self.share.setSuffix(tr("{figure}%").format(figure=""))
        self.most = QuietNumber(self)
        self.most.setRange(0, MOST_REQUESTS)
        self.most.setSpecialValueText(tr("no limit"))
        self.make = QPushButton(tr("Make a key"), self)
        self.make.setObjectName("primary")
        self.make.setAutoDefault(False)
        self.make.clicked.connect(self._ask)
        self._problem = line("", "failed", self)
        self._problem.hide()
        grid = QGridLayout(self)
        grid.setContentsMargins(16, 12, 16, 12)
        grid.setHorizontalSpacing(16)
        grid.setVerticalSpacing(12)
        fields = (
            (tr("Name"), self.name),
            (tr("Lane"), self.lane),
            (tr("Share of the pool"), self.share),
            (tr("Requests at once"), self.most),
        )
        for place, (title, field) in enumerate(fields):
            label = QLabel(title, self)
            label.setObjectName("secondary")
            label.setBuddy(field)
            field.setAccessibleName(title)
            cell = QVBoxLayout()
            cell.setSpacing(4)
            cell.addWidget(label)
            cell.addWidget(field)
            row, column = divmod(place, 2)
            grid.addLayout(cell, row, column)
            grid.setColumnStretch(column, 1)
        grid.addWidget(self._problem, 2, 0, 1, 2)
        grid.addWidget(self.make, 3, 0, 1, 2, Qt.AlignmentFlag.AlignRight)

    def show_problem(self, text: str) -> None:
        self._problem.setText(text)
        self._problem.show()

    def clear(self) -> None:
        self.name.clear()
        self._problem.hide()

    def _ask(self) -> None:
        self.wanted.emit(
            KeyPlan(
                name=self.name.text(),
                lane=self.lane.currentData(),
                share_percent=self.share.value(),
                max_requests=self.most.value(),
            )
        )


class _SecretCard(QFrame):
    """The secret of the key just made, and its `name`: the only time that it can be copied."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("card")
        self.name = ""
        self.is_only_here = False
        """It is shown and was not copied yet, neither from here nor in a text that holds it."""
        QGuiApplication.clipboard().dataChanged.connect(self._on_copied)
        self._words = line("", "waiting", self)
        self.field = QLineEdit(self)
        self.field.setReadOnly(True)
        self.field.setAccessibleName(tr("The new key"))
        copy = QPushButton(tr("Copy"), self)
        copy.setAutoDefault(False)
        copy.setAccessibleName(tr("Copy the new key"))
        copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(self.field.text()))
        row = QHBoxLayout()
        row.addWidget(self.field, 1)
        row.addWidget(copy)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 12, 16, 12)
        column.addWidget(self._words)
        column.addLayout(row)
        self.hide()

    def show_secret(self, name: str, secret: str) -> None:
        self._words.setText(
            tr(
                "The key “{name}” is shown only now. Copy it into the program that is to use it."
            ).format(name=name)
        )
        self.name, self.is_only_here = name, True
        self.field.setText(secret)
        self.show()
        self.field.setFocus()
        self.field.setSelection(len(secret), -len(secret))  # its beginning is what is seen

    def forget(self) -> None:
        self.name, self.is_only_here = "", False
        self.field.clear()
        self.hide()

    def _on_copied(self) -> None:
        if self.is_only_here:
            self.is_only_here = self.field.text() not in QGuiApplication.clipboard().text()


def lane_words(lane: Lane) -> str:
    """A lane as lists show it."""
    match lane:
        case Lane.INTERACTIVE:
            return tr("Interactive: goes first")
        case Lane.NORMAL:
            return tr("Normal")
        case Lane.BACKGROUND:
            return tr("Background: goes last")


def key_words(key: ServerKey) -> str:
    """What a key may do, and how its owner knows it."""
    parts = [lane_words(key.lane)]
    if key.share_percent < 100:
        parts.append(tr("up to {share} of the pool").format(share=percent(key.share_percent / 100)))
    if key.max_requests:
        parts.append(tr("up to {number} requests at once").format(number=key.max_requests))
    parts.append(tr("ends in {hint}").format(hint=key.hint))
    return " · ".join(parts)
