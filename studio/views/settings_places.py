"""Where the settings are that have their place in another window than the settings', and the way there. GUI thread."""

from __future__ import annotations

from studio.views.paged_dialog import DialogOpener
from studio.views.settings.dialog import OwnPage
from studio.views.settings.lead_page import Elsewhere, LeadPage
from studio.views.settings.settings_window import SettingsWindow
from studio.views.words import tr


def lead_from(settings: SettingsWindow, *, server: DialogOpener, models: DialogOpener) -> None:
    """Let the settings, and whoever looks for one of these, lead to those windows."""
    of_server = Elsewhere(
        tr(
            "The local server has a window of its own: address and port, keys, what programs have asked, and how to "
            "connect one."
        ),
        tr("Open the local server"),
        lambda setting: server.open(setting=setting),
    )
    of_models = Elsewhere(
        tr(
            "Models have a window of their own: the library, where models may be got from, downloads, and how each "
            "one is loaded."
        ),
        tr("Open the models"),
        lambda setting: models.open(setting=setting),
    )
    settings.lead_to_own = of_models.open
    settings.elsewhere = {"server": of_server, "sources": of_models}
    settings.own_pages = (
        *settings.own_pages,
        OwnPage("Server", lambda parent: LeadPage(of_server, parent)),
        OwnPage("Models", lambda parent: LeadPage(of_models, parent)),
    )
