"""Scenes that are dialogs beside the main window."""

from __future__ import annotations

import errno
from dataclasses import replace
from pathlib import Path

from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QFileDialog,
    QMessageBox,
    QWidget,
)

from fakes.fake_engine import TINY_MODEL
from fakes.fake_window import ENTRY, Stage, until
from fakes.scenes.talk import PROMPT, do
from studio.models.downloads import Download, DownloadState, FileProgress, Offer, RemoteFile
from studio.models.errors import FetchUnavailable
from studio.models.model_library import Finder, FoundModel, ModelFacts, ModelSource
from studio.models.server_keys import KeyPlan, Lane
from studio.models.tool_servers import LinkState, LinkStatus
from studio.services.hub_search import HubModel
from studio.services.tools.link_faults import link_fault, told
from studio.views.actions import CommandId
from studio.views.compare.compare_dialog import CompareDialog
from studio.views.dialogs.about import AboutDialog
from studio.views.settings.dialog import SettingsDialog
from studio.views.tools.server_form import ServerForm
from studio.views.tools.servers_page import ServersPage

INFO = replace(
    TINY_MODEL,
    parameters=135_000_000,
    size_bytes=98_000_000,
    license="mit",
    kv_values_per_token=11520,
)


async def settings(stage: Stage, *, page: str) -> QWidget:
    desk = stage.chats.desk
    assert desk is not None
    if page == "Engine":
        stage.services.settings.change("engine.parallel", 3)
    stage.window.settings_window.open(page=page)
    dialog = stage.window.settings_window.dialog
    assert isinstance(dialog, SettingsDialog)
    servers = dialog.findChild(ServersPage)
    why = link_fault(FileNotFoundError(errno.ENOENT, "", "home-server"))
    desk.service._tell("home", LinkStatus(state=LinkState.FAILED, problem=told("home", why, "")))
    await until(lambda: servers.rows and not stage.window.context.tasks.num_running)
    return dialog


async def server_form(stage: Stage, *, kind: int) -> QWidget:
    dialog = await settings(stage, page="Tool servers")
    form = dialog.findChild(ServerForm)
    form.kind.setCurrentIndex(kind)
    form.add.click()
    return dialog


async def models(stage: Stage, *, page: int) -> QWidget:
    gone = replace(ENTRY, name="gone", path=Path("/media/stick/gone.gguf"), is_missing=True)
    broken = replace(ENTRY, name="broken", path=Path("/models/broken.gguf"))
    own = replace(ENTRY, name="own", path=Path("/models/own.gguf"), source=ModelSource.FETCHED)
    found = FoundModel(
        name="llama3-8b", path=Path("/home/me/blob"), size_bytes=4_700_000_000, finder=Finder.OLLAMA
    )
    stage.models.entries = (ENTRY, own, broken, gone)
    stage.models.found = (found,)
    stage.models.facts = {
        path: ModelFacts(info=INFO) for path in (ENTRY.path, own.path, found.path)
    } | {broken.path: ModelFacts(info=None, problem="tensor count is 0")}
    for key in ("sources.hub", "sources.any_url"):
        stage.services.settings.change(key, True)
    stage.services.downloads.downloads = tuple(downloads())
    do(stage, CommandId.MODELS)
    dialog = stage.window.models_window.dialog
    assert dialog is not None
    dialog.show_page(page)
    repositories = [
        HubModel(repository=f"org/Model-{n}", downloads=10**n, license="mit") for n in (2, 5)
    ]
    for each in repositories:
        dialog.sources.hub._add_repository(each)
    stage.services.downloads.changed.emit()
    dialog.downloads.refresh()
    return dialog


def downloads() -> list[Download]:
    """One in each state."""
    file = RemoteFile(url="https://example.org/m.gguf", file_name="m.gguf", size_bytes=10**9)
    made = []
    for number, state in enumerate(DownloadState):
        offer = Offer(name=f"model-{number}", files=(file,), source="org/Model")
        done = 10**9 if state is DownloadState.DONE else 4 * 10**8
        progress = FileProgress(done_bytes=done, total_bytes=10**9)
        error = FetchUnavailable("the hub did not answer: nothing came for a while")
        made.append(
            Download(
                download_id=str(number),
                offer=offer,
                state=state,
                files=(progress,),
                bytes_per_s=5e6,
                error=error if state in (DownloadState.FAILED, DownloadState.WAITING) else None,
                retry_in_s=8.0,
            )
        )
    return made


async def load_dialog(stage: Stage) -> QWidget:
    window = await models(stage, page=0)
    dialog = window.library.open_load_settings("tiny")  # type: ignore[attr-defined]
    dialog.pool.setValue(8192)
    dialog.parallel.setValue(2)
    dialog.chat_tokens.setValue(2000)
    return dialog


async def question(stage: Stage) -> QWidget:
    window = await models(stage, page=0)
    row = window.library.rows["own"]  # type: ignore[attr-defined]
    row.fill_menu()
    row.menu.actions()[-1].trigger()
    return window.findChild(QMessageBox)


async def server(stage: Stage, *, page: int, program: int = 0) -> QWidget:
    stage.server.keys.create(
        KeyPlan(name="phone", lane=Lane.BACKGROUND, share_percent=50, max_requests=2)
    )
    do(stage, CommandId.SERVER)
    dialog = stage.window.server_window.dialog
    assert dialog is not None
    await stage.server.start()
    dialog.show_page(page)
    dialog.keys.form.name.setText("editor")
    if page == 1:
        dialog.keys.form.make.click()
    dialog.connect_page.program.setCurrentIndex(program)
    return dialog


async def shortcuts(stage: Stage) -> QWidget:
    return stage.window.app.list_shortcuts()


async def file_dialog(stage: Stage, *, command: CommandId) -> QWidget:
    do(stage, command)
    return stage.window.findChild(QFileDialog)


async def comparing(stage: Stage) -> QWidget:
    do(stage, CommandId.COMPARE)
    dialog = stage.window.findChild(CompareDialog)
    for _ in range(2):
        dialog.add_column()
    QTest.keyClicks(dialog.prompt, PROMPT)
    return dialog


async def log_bundle(stage: Stage) -> QWidget:
    do(stage, CommandId.LOG_BUNDLE)
    await until(lambda: stage.window.app.support.dialog)
    assert stage.window.app.support.dialog is not None
    return stage.window.app.support.dialog


async def about(stage: Stage) -> QWidget:
    do(stage, CommandId.ABOUT)
    (dialog,) = stage.window.findChildren(AboutDialog)
    return dialog
