"""Every window, page, panel and menu that the program has, each opened on a scripted engine as somebody would see it.

`SCENES` by name: each takes a stage whose first chat has been talked in (`talk`), and returns what is to be looked at.
What a scenario of product.md passes is not repeated here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from PySide6.QtWidgets import QWidget

from fakes.fake_window import Stage
from fakes.scenes.dialogs import (
    about,
    comparing,
    file_dialog,
    load_dialog,
    log_bundle,
    models,
    question,
    server,
    server_form,
    settings,
    shortcuts,
)
from fakes.scenes.in_window import (
    archive,
    attachments,
    edited,
    folders,
    found_in_chat,
    inspector,
    notice,
    odd_titles,
    own_window,
    palette,
    pool,
    searched,
    split,
    temporary,
)
from fakes.scenes.menus import (
    menu,
    menu_of_chat,
    menu_of_message,
    menu_of_model,
    menu_of_models,
    menu_of_presets,
    menu_of_run,
    menu_of_server,
    picked,
)
from studio.models.snippets import SNIPPETS
from studio.views.actions import CommandId

Scene = Callable[[Stage], Awaitable[QWidget]]

SETTINGS_PAGES = (
    "Engine", "Appearance", "Tool servers", "Shortcuts", "Privacy", "Server", "Models",
)  # fmt: skip


MODEL_PAGES = ("library", "sources", "downloads")


SERVER_PAGES = ("server", "keys", "requests")


MENUS = ("file", "chat", "view", "model", "help")


SCENES: dict[str, Scene] = {
    **{
        f"settings-{page.lower().replace(' ', '-')}": partial(settings, page=page)
        for page in SETTINGS_PAGES
    },
    "settings-tool-address": partial(server_form, kind=1),
    "settings-tool-json": partial(server_form, kind=2),
    **{f"models-{name}": partial(models, page=page) for page, name in enumerate(MODEL_PAGES)},
    "models-load": load_dialog,
    "models-menu": menu_of_model,
    "models-question": question,
    **{f"server-{name}": partial(server, page=page) for page, name in enumerate(SERVER_PAGES)},
    **{
        f"server-connect-{place}": partial(server, page=3, program=place)
        for place in range(len(SNIPPETS))
    },
    **{f"menu-{name}": partial(menu, place=place) for place, name in enumerate(MENUS)},
    "menu-of-models": menu_of_models,
    "menu-of-server": menu_of_server,
    "menu-of-chat": menu_of_chat,
    "menu-of-folder": partial(menu_of_chat, name="Work"),
    "menu-of-chats": picked,
    "menu-of-message": menu_of_message,
    "menu-of-run": menu_of_run,
    "menu-of-presets": menu_of_presets,
    "inspector": inspector,
    "pool": pool,
    "shortcuts": shortcuts,
    "palette": partial(palette, typed=""),
    "palette-found": partial(palette, typed="po"),
    "palette-nothing": partial(palette, typed="qqqq"),
    "export": partial(file_dialog, command=CommandId.EXPORT_CHAT),
    "import": partial(file_dialog, command=CommandId.IMPORT),
    "edited": edited,
    "find": found_in_chat,
    "search": partial(searched, words="lisbon"),
    "search-nothing": partial(searched, words="qqqq"),
    "folders": folders,
    "archive": archive,
    "split": split,
    "own-window": own_window,
    "compare": comparing,
    "attachments": attachments,
    "temporary": temporary,
    "notice": notice,
    "log-bundle": log_bundle,
    "about": about,
    "odd-titles": odd_titles,
}
