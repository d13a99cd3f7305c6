"""The settings: a page for each subject, built from the settings' own declarations. GUI thread.

A change counts as soon as it is made, or says when; there is nothing to confirm. To add a setting, declare it in
`studio.models`; to add a group, name it in PAGES; a page of another make is an OwnPage that `SettingsWindow` is given.
Settings of the server and of where models come from are in those windows, to which pages here lead (`lead_page`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLabel,
    QListWidget,
    QPushButton,
    QScrollArea,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from studio.models.load_choices import SETTING_OF
from studio.models.settings import Settings, all_settings
from studio.services.notice_service import NoticeService
from studio.services.settings_service import SettingsService
from studio.views.dialogs.dialog import Dialog
from studio.views.labels import hairline
from studio.views.settings.capacity_note import CapacityNote
from studio.views.settings.restore_button import RestoreButton
from studio.views.settings.setting_row import SettingRow
from studio.views.window_size import fit_to_screen
from studio.views.words import tr


@dataclass(frozen=True, slots=True)
class Page:
    """A title and the groups of settings that stand on the page, each with a heading of its own ("" for none)."""

    title: str
    groups: tuple[tuple[str, str], ...]


PAGES = (
    Page(
        "Engine",
        (
            ("engine", "Model and pool"),
            ("park", "When the pool is full"),
            ("tools", "Tools in chats"),
        ),
    ),
    Page("Appearance", (("appearance", ""), ("window", "Window"), ("log", "Log"))),
)
_INDENT_PX = 8
"""Room for the ring of what has the keyboard, left of everything on a page."""
_USUAL_EM_PX = 17
"""The height of a line at the usual text size."""


class OwnContent(Protocol):
    """What stands on a page that is not built from settings alone; it is a widget."""

    keys: tuple[str, ...]
    """Of the settings on it."""

    def refresh(self) -> None:
        """Show what is so now; a setting has changed."""


@dataclass(frozen=True, slots=True)
class OwnPage:
    """A page with a content of its own, made when the settings are opened."""

    title: str
    make: Callable[[QWidget], OwnContent]


class SettingsDialog(Dialog):
    """Stays open beside the window; closing it deletes it."""

    def __init__(
        self,
        settings: SettingsService,
        notices: NoticeService,
        parent: QWidget,
        *,
        own_pages: Sequence[OwnPage] = (),
        footer: Callable[[QWidget], QWidget] | None = None,
        note: Callable[[str, QWidget], QWidget] | None = None,
        shortage: Callable[[], str] = lambda: "",
    ) -> None:
        """`note` makes what is said under a setting that a model may have of its own, from the setting's key.

        `shortage`: see CapacityNote.
        """
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(tr("Settings"))
        em = self.fontMetrics().height()
        fit_to_screen(self, QSize(760 + 20 * max(0, em - _USUAL_EM_PX), 620))
        self._settings = settings
        self._notices = notices
        self._note = note
        self._shortage = shortage
        self.rows: dict[str, SettingRow] = {}
        self.pages = QListWidget(self)
        self.pages.setObjectName("settingsPages")
        self.pages.setAccessibleName(tr("Pages"))
        self.pages.setFixedWidth(max(150, 9 * em))
        self._stack = QStackedWidget(self)
        for page in PAGES:
            self.pages.addItem(tr(page.title))
            self._stack.addWidget(self._make_page(page))
        self._own: dict[int, OwnContent] = {}
        for own in own_pages:
            self._own[self._stack.count()] = content = own.make(self)
            self.pages.addItem(tr(own.title))
            self._stack.addWidget(self._make_own_page(own, content))
        self.pages.currentRowChanged.connect(self._stack.setCurrentIndex)
        self._lay_out(footer(self) if footer is not None else None)
        self.pages.currentRowChanged.connect(self._on_page)
        self.pages.setCurrentRow(0)
        self.pages.setFocus()
        self._disconnect = settings.changed.connect(self._on_changed)
        self.finished.connect(lambda _result: self._disconnect())

    def _lay_out(self, footer: QWidget | None) -> None:
        self.restore = RestoreButton(self._settings, self._notices, self)
        close = QPushButton(tr("Close"), self)
        close.setAutoDefault(False)
        close.clicked.connect(self.close)
        foot = QHBoxLayout()
        foot.setContentsMargins(_INDENT_PX, 0, 0, 0)
        foot.addWidget(self.restore)
        foot.addStretch(1)
        foot.addWidget(close)
        right = QVBoxLayout()
        right.setContentsMargins(0, 0, 16, 16)
        right.setSpacing(0)
        right.addWidget(self._stack, 1)
        right.addLayout(edge := QHBoxLayout())
        edge.setContentsMargins(_INDENT_PX, 0, 0, 0)
        edge.addWidget(hairline(self))
        if footer is not None:
            right.addWidget(footer)
        right.addSpacing(12)
        right.addLayout(foot)
        self._column = layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(16)
        layout.addWidget(self.pages)
        layout.addLayout(right, 1)

    def _make_page(self, page: Page) -> QWidget:
        inner = QWidget(self)
        inner.setObjectName("settingsPage")
        column = QVBoxLayout(inner)
        column.setContentsMargins(_INDENT_PX, 16, 16, 16)
        column.setSpacing(16)
        for group, heading in page.groups:
            if heading:
                column.addSpacing(0 if group == page.groups[0][0] else 8)
                title = QLabel(tr(heading), inner)
                title.setObjectName("title")
                column.addWidget(title)
            for declared in all_settings():
                if declared.group == group and not declared.info.is_hidden:
                    row = SettingRow(declared, self._settings, inner)
                    self.rows[declared.key] = row
                    column.addWidget(row)
                    if self._note is not None and declared.key in SETTING_OF.values():
                        row.add_note(self._note(declared.key, row))
                    if declared.key == "engine.ctx_size":
                        self._capacity = CapacityNote(
                            self._settings.settings, row, shortage=self._shortage
                        )
                        row.add_note(self._capacity)
        column.addStretch(1)
        return self._make_area(page.title, inner)

    def _make_own_page(self, page: OwnPage, content: OwnContent) -> QWidget:
        inner = QWidget(self)
        inner.setObjectName("settingsPage")
        column = QVBoxLayout(inner)
        column.setContentsMargins(_INDENT_PX, 16, 16, 16)
        assert isinstance(content, QWidget)
        column.addWidget(content)
        column.addStretch(1)
        return self._make_area(page.title, inner)

    def _make_area(self, title: str, inner: QWidget) -> QScrollArea:
        area = QScrollArea(self)
        area.setObjectName("settingsArea")
        area.setAccessibleName(tr(title))
        area.setWidgetResizable(True)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setWidget(inner)
        return area

    def show_page(self, title: str) -> None:
        """Turn to the page with this (untranslated) title, if there is one."""
        for found in self.pages.findItems(tr(title), Qt.MatchFlag.MatchExactly):
            self.pages.setCurrentItem(found)

    def show_setting(self, key: str) -> None:
        """Turn to the page of a setting and let the keyboard change it. Raises KeyError for one on no page."""
        row = self.rows[key]
        groups = [{group for group, _ in page.groups} for page in PAGES]
        self.pages.setCurrentRow(
            next(place for place, on_it in enumerate(groups) if row.declared.group in on_it)
        )
        area = self._stack.currentWidget()
        assert isinstance(area, QScrollArea)
        self._column.activate()
        area.ensureWidgetVisible(row, 0, 24)
        row.editor.setFocus(Qt.FocusReason.OtherFocusReason)

    def _on_page(self, row: int) -> None:
        self.restore.show_keys(self._keys_on(row))

    def _keys_on(self, page: int) -> tuple[str, ...]:
        if own := self._own.get(page):
            return own.keys
        groups = {group for group, _ in PAGES[page].groups}
        return tuple(key for key, row in self.rows.items() if row.declared.group in groups)

    def _on_changed(self, settings: Settings) -> None:
        for row in self.rows.values():
            row.refresh()
        self._capacity.show_settings(settings)
        for content in self._own.values():
            content.refresh()
        self.restore.refresh()
