"""Opens the settings, at most once at a time, beside the window. GUI thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtWidgets import QWidget

from studio.models.model_fit import Verdict, plan_fit
from studio.services.machine import look_at_machine
from studio.views.models.model_words import verdict_words
from studio.views.ports import WindowServices
from studio.views.settings.dialog import OwnPage, SettingsDialog
from studio.views.settings.lead_page import Elsewhere
from studio.views.settings.own_note import OwnNote, own_value_words


class SettingsWindow:
    """`dialog` is the open one, or None."""

    def __init__(
        self,
        services: WindowServices,
        parent: QWidget,
        *,
        own_pages: Sequence[OwnPage] = (),
        footer: Callable[[QWidget], QWidget] | None = None,
    ) -> None:
        self._footer = footer
        self.own_pages = own_pages
        self.elsewhere: dict[str, Elsewhere] = {}
        """By group: settings that have their place in another window."""
        self.dialog: SettingsDialog | None = None
        self.lead_to_own: Callable[[str], object] = lambda _key: None
        """Shows what the loaded model has of its own for a setting, by its key."""
        self._services = services
        self._parent = parent

    def open(self, *, page: str = "", setting: str = "") -> None:
        """Show the settings, or bring them to the front; at a page by its title, or at a setting by its key.

        A setting whose place is elsewhere is shown there.
        """
        if (place := self.elsewhere.get(setting.partition(".")[0])) is not None:
            place.open(setting)
            return
        if self.dialog is None:
            self.dialog = SettingsDialog(
                self._services.settings,
                self._services.notices,
                self._parent,
                own_pages=self.own_pages,
                footer=self._footer,
                note=self._make_note,
                shortage=self._shortage,
            )
            self.dialog.finished.connect(self._on_finished)
        if page:
            self.dialog.show_page(page)
        self.dialog.show()
        if setting:
            self.dialog.show_setting(setting)
        self.dialog.activateWindow()

    def open_where_it_counts(self, setting: str) -> None:
        """Show a setting; or the loaded model's own, if it has one."""
        if own_value_words(self._services.models, setting):
            self.lead_to_own(setting)
        else:
            self.open(setting=setting)

    def close(self) -> None:
        """Close the settings if they are open."""
        if self.dialog is not None:
            self.dialog.close()

    def _make_note(self, key: str, parent: QWidget) -> QWidget:
        return OwnNote(key, self._services.models, self.lead_to_own, parent)

    def _shortage(self) -> str:
        """What is missing for the loaded model with these settings, if anything is."""
        model = self._services.models.model
        if model is None:
            return ""
        machine = look_at_machine(self._services.runs.snapshot())
        fit = plan_fit(model, self._services.settings.settings.load_options(), machine)
        return verdict_words(fit) if fit.verdict is Verdict.TOO_LARGE else ""

    def _on_finished(self) -> None:
        self.dialog = None
