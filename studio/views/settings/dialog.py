"""The settings: a page for each subject, built from the settings' own declarations. GUI thread.

A change counts as soon as it is made, or says when; there is nothing to confirm. To add a setting, declare it in
`studio.models`; to add a group, name it in PAGES.
"""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QDialog,
    QHBoxLayout,
    QLabel,
    QListWidget,
    QPushButton,
    QScrollArea,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from studio.models.errors import SettingError
from studio.models.settings import Settings, all_settings
from studio.services.notice_service import NoticeService
from studio.services.settings_service import SettingsService
from studio.views.settings.setting_row import SettingRow
from studio.views.words import tr


@dataclass(frozen=True, slots=True)
class Page:
    """A title and the groups of settings that stand on the page, each with a heading of its own ("" for none)."""

    title: str
    groups: tuple[tuple[str, str], ...]


PAGES = (
    Page("Engine", (("park", "When the pool is full"), ("engine", "Model and pool"))),
    Page("Server", (("server", ""),)),
    Page("Downloads", (("sources", "Where models may come from"),)),
    Page("Appearance", (("appearance", ""), ("log", "Log"))),
)


class SettingsDialog(QDialog):
    """Stays open beside the window; closing it deletes it."""

    def __init__(self, settings: SettingsService, notices: NoticeService, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(tr("Settings"))
        self.resize(760, 620)
        self._settings = settings
        self._notices = notices
        self.rows: dict[str, SettingRow] = {}
        self.pages = QListWidget(self)
        self.pages.setObjectName("settingsPages")
        self.pages.setAccessibleName(tr("Pages"))
        self.pages.setFixedWidth(150)
        self._stack = QStackedWidget(self)
        for page in PAGES:
            self.pages.addItem(tr(page.title))
            self._stack.addWidget(self._make_page(page))
        self.pages.currentRowChanged.connect(self._stack.setCurrentIndex)
        self.pages.setCurrentRow(0)
        self._lay_out()
        self._disconnect = settings.changed.connect(self._on_changed)
        self.finished.connect(lambda _result: self._disconnect())

    def _lay_out(self) -> None:
        restore = QPushButton(tr("Restore the defaults of this page"), self)
        restore.setAutoDefault(False)
        restore.clicked.connect(self._restore)
        close = QPushButton(tr("Close"), self)
        close.setAutoDefault(False)
        close.clicked.connect(self.close)
        foot = QHBoxLayout()
        foot.addWidget(restore)
        foot.addStretch(1)
        foot.addWidget(close)
        right = QVBoxLayout()
        right.setContentsMargins(0, 0, 16, 16)
        right.addWidget(self._stack, 1)
        right.addLayout(foot)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(16)
        layout.addWidget(self.pages)
        layout.addLayout(right, 1)

    def _make_page(self, page: Page) -> QWidget:
        inner = QWidget(self)
        inner.setObjectName("settingsPage")
        column = QVBoxLayout(inner)
        column.setContentsMargins(8, 16, 16, 16)
        column.setSpacing(16)
        for group, heading in page.groups:
            if heading:
                title = QLabel(tr(heading), inner)
                title.setObjectName("title")
                column.addWidget(title)
            for declared in all_settings():
                if declared.group == group and not declared.info.is_hidden:
                    row = SettingRow(declared, self._settings, inner)
                    self.rows[declared.key] = row
                    column.addWidget(row)
        column.addStretch(1)
        area = QScrollArea(self)
        area.setObjectName("settingsArea")
        area.setAccessibleName(tr(page.title))
        area.setWidgetResizable(True)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setWidget(inner)
        return area

    def _restore(self) -> None:
        groups = {group for group, _ in PAGES[self.pages.currentRow()].groups}
        try:
            for key, row in self.rows.items():
                if row.declared.group in groups:
                    self._settings.reset(key)
        except SettingError as error:
            self._notices.report(error)

    def _on_changed(self, _settings: Settings) -> None:
        for row in self.rows.values():
            row.refresh()
