"""The page on which models are got: a list of sources, each switched on by the user, and what each offers. GUI thread.

Nothing is looked up before somebody searches.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)
from shiboken6 import isValid

from studio.models.downloads import Offer
from studio.models.errors import LibraryError, SettingError, StudioError
from studio.models.setting_field import SettingValue
from studio.models.settings import setting_field
from studio.services.hub_search import HubModel, offer_of_address
from studio.views.context import Context
from studio.views.elided_label import ElidedLabel
from studio.views.error_words import error_sentence
from studio.views.inputs import CheckBox
from studio.views.labels import line
from studio.views.models.model_words import license_words, offer_words
from studio.views.paged_dialog import page_column, scrolled
from studio.views.settings.setting_words import help_words
from studio.views.words import count, size, tr


class SourcesPage(QWidget):
    """`get` is called with what the user wants."""

    def __init__(self, context: Context, machine: str, parent: QWidget) -> None:
        super().__init__(parent)
        self._context = context
        inner = QWidget(self)
        column = page_column(inner)
        title = QLabel(tr("Get models"), inner)
        title.setObjectName("heading")
        column.addWidget(title)
        column.addWidget(line(machine, "body", inner))
        self.suggested = _SuggestedSource(context, inner)
        self.hub = _HubSource(context, inner)
        self.address = _AddressSource(context, inner)
        for source in self._sources:
            column.addWidget(source)
        column.addStretch(1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        self._area = scrolled(tr("Get models"), inner, self)
        layout.addWidget(self._area)
        self._disconnects = (
            context.services.settings.changed.connect(lambda _settings: self.refresh()),
            context.services.models.library_changed.connect(self.suggested.refresh),
            context.services.models.fetch_changed.connect(self.suggested.refresh),
        )
        self.refresh()

    def close_page(self) -> None:
        """Follow the services no longer."""
        for disconnect in self._disconnects:
            disconnect()

    def refresh(self) -> None:
        """Show which sources are on."""
        for source in self._sources:
            source.refresh()

    def show_setting(self, key: str) -> None:
        """Let the keyboard switch a source, by its setting's key."""
        source = next(each for each in self._sources if each.key == key)
        source.switch.setFocus(Qt.FocusReason.OtherFocusReason)
        self._area.ensureWidgetVisible(source, 0, 24)

    @property
    def _sources(self) -> tuple[_Source, ...]:
        return self.suggested, self.hub, self.address


class _Source(QFrame):
    """A switch with what it means, and, while it is on, `body`."""

    def __init__(self, context: Context, key: str, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("card")
        self.context = context
        self.key = key
        declared = setting_field(key)
        self.switch = CheckBox(tr(declared.info.title), self)
        self.switch.clicked.connect(self._on_clicked)
        self.body = QWidget(self)
        self.column = QVBoxLayout(self.body)
        self.column.setContentsMargins(0, 8, 0, 0)
        self.column.setSpacing(8)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(16, 12, 16, 12)
        layout.setSpacing(4)
        layout.addWidget(self.switch)
        layout.addWidget(line(help_words(declared.info), "secondary", self))
        layout.addWidget(self.body)

    def refresh(self) -> None:
        is_on = bool(self.context.services.settings.settings.value(self.key))
        self.switch.setChecked(is_on)
        self.body.setVisible(is_on)

    def _on_clicked(self, is_on: SettingValue) -> None:
        try:
            self.context.services.settings.change(self.key, is_on)
        except SettingError as error:
            self.context.services.notices.report(error)
        self.refresh()


class _SuggestedSource(_Source):
    """The catalogue."""

    def __init__(self, context: Context, parent: QWidget) -> None:
        super().__init__(context, "sources.suggested", parent)
        self.buttons: dict[str, QPushButton] = {}
        for found in context.services.models.catalog:
            words = f"{size(found.size_bytes)} · {found.license} · " + tr("checked by SHA-256")
            button = _add_offer(self.column, found.title, words, self)
            button.clicked.connect(partial(self._get, found.name))
            self.buttons[found.file_name] = button

    def refresh(self) -> None:
        super().refresh()
        models = self.context.services.models
        here = {entry.path.name for entry in models.entries if not entry.is_missing}
        for file_name, button in self.buttons.items():
            is_here = file_name in here
            button.setText(tr("In the library") if is_here else tr("Get"))
            button.setEnabled(not is_here and models.fetching is None)

    def _get(self, name: str) -> None:
        self.context.model_actions.get(name)


class _HubSource(_Source):
    """A search field, the repositories found, and the models of the one that was opened."""

    def __init__(self, context: Context, parent: QWidget) -> None:
        super().__init__(context, "sources.hub", parent)
        self.field = QLineEdit(self.body)
        self.field.setPlaceholderText(tr("Search for a model, like qwen3 4b"))
        self.field.setAccessibleName(tr("Search the hub"))
        self.field.returnPressed.connect(self._start_search)
        self.button = QPushButton(tr("Search"), self.body)
        self.button.setAutoDefault(False)
        self.button.clicked.connect(self._start_search)
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addWidget(self.field, 1)
        row.addWidget(self.button)
        self.column.addLayout(row)
        self.say = line("", "secondary", self.body)
        self.say.hide()
        self.column.addWidget(self.say)
        self.results = QVBoxLayout()
        self.results.setSpacing(8)
        self.column.addLayout(self.results)

    def _start_search(self) -> None:
        self.context.tasks.start(self.search(self.field.text()))

    async def search(self, text: str) -> None:
        """Ask the hub; what it says, or why it does not, stands under the field."""
        hub = self.context.services.hub
        found = await self._ask(tr("Searching…"), partial(hub.search, text))
        if found is None:
            return
        self._tell("" if found else tr("The hub has no GGUF model of that name."))
        for model in found:
            self._add_repository(model)

    async def open_repository(self, repository: str) -> None:
        """Show the models of one repository."""
        hub = self.context.services.hub
        offers = await self._ask(tr("Looking at its files…"), partial(hub.offers, repository))
        if offers is None:
            return
        self._tell(repository if offers else tr("It has no GGUF model that is complete."))
        for offer in offers:
            button = _add_offer(self.results, offer.name, offer_words(offer), self.body)
            button.clicked.connect(partial(self._get, offer))

    def _add_repository(self, model: HubModel) -> None:
        words = tr("{number} downloads").format(number=count(model.downloads))
        if model.license:
            words += f" · {license_words(model.license)}"
        button = _add_offer(self.results, model.repository, words, self.body)
        button.setText(tr("Show files"))
        button.clicked.connect(
            lambda: self.context.tasks.start(self.open_repository(model.repository))
        )

    def _get(self, offer: Offer) -> None:
        self.context.model_actions.download(offer)

    async def _ask(self, meanwhile: str, ask: Callable[[], tuple]) -> tuple | None:  # type: ignore[type-arg]
        """The answer; None, with the reason in place, where there is none, or nobody is there to see it."""
        self._clear()
        self._tell(meanwhile)
        self.button.setEnabled(False)
        answer, words = None, meanwhile
        try:
            answer = await asyncio.to_thread(ask)
        except StudioError as error:
            words = error_sentence(error)
        if not isValid(self):  # closed meanwhile
            return None
        self._tell(words)
        self.button.setEnabled(True)
        return answer

    def _clear(self) -> None:
        while (item := self.results.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.deleteLater()

    def _tell(self, text: str) -> None:
        self.say.setText(text)
        self.say.setVisible(bool(text))


class _AddressSource(_Source):
    """A field for an address."""

    def __init__(self, context: Context, parent: QWidget) -> None:
        super().__init__(context, "sources.any_url", parent)
        self.field = QLineEdit(self.body)
        self.field.setPlaceholderText("https://…/model.gguf")
        self.field.setAccessibleName(tr("Address of a GGUF file"))
        self.field.returnPressed.connect(self.get)
        button = QPushButton(tr("Download"), self.body)
        button.setAutoDefault(False)
        button.clicked.connect(self.get)
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addWidget(self.field, 1)
        row.addWidget(button)
        self.column.addLayout(row)
        self.problem = line("", "failed", self.body)
        self.problem.hide()
        self.column.addWidget(self.problem)

    def get(self) -> None:
        """Download from the address in the field; what is wrong with it stands under it."""
        try:
            offer = offer_of_address(self.field.text())
        except LibraryError as error:
            self.problem.setText(error_sentence(error))
            self.problem.show()
            return
        self.problem.hide()
        self.field.clear()
        self.context.model_actions.download(offer)


def _add_offer(column: QVBoxLayout, name: str, words: str, parent: QWidget) -> QPushButton:
    """A row with a name, a line and a button, which is returned."""
    frame = QFrame(parent)
    frame.setObjectName("offer")
    title = ElidedLabel(frame)
    title.setObjectName("title")
    title.set_text(name)
    button = QPushButton(tr("Get"), frame)
    button.setAutoDefault(False)
    button.setAccessibleName(tr("Get: {model}").format(model=name))
    texts = QVBoxLayout()
    texts.setSpacing(2)
    texts.addWidget(title)
    texts.addWidget(line(words, "secondary", frame))
    row = QHBoxLayout(frame)
    row.setContentsMargins(0, 8, 0, 0)
    row.setSpacing(8)
    row.addLayout(texts, 1)
    row.addWidget(button)
    column.addWidget(frame)
    return button
