"""Scenes that are menus, filled as for popping up."""

from __future__ import annotations

from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QContextMenuEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QApplication,
    QMenu,
    QMenuBar,
    QWidget,
)

from fakes.fake_window import Stage, until
from fakes.scenes.dialogs import models
from fakes.scenes.in_window import folders, inspector, pool
from fakes.scenes.talk import TITLES, list_of, row_of
from studio.views.chat.code_block import CodeBlock
from studio.views.inspector.inspector import Inspector
from studio.views.model_selector import ModelSelector
from studio.views.monitor.status_line import StatusLine
from studio.views.sidebar.chat_menu import ChatMenu


async def menu_of_model(stage: Stage) -> QWidget:
    window = await models(stage, page=0)
    row = window.library.rows["tiny"]  # type: ignore[attr-defined]
    row.fill_menu()
    return row.menu


async def menu_of_chat(stage: Stage, *, name: str = TITLES[-1]) -> QWidget:
    if name == "Work":
        await folders(stage)
    if name == TITLES[-1]:
        await pool(stage)
    rows, spot = list_of(stage), row_of(stage, name)
    reason = QContextMenuEvent.Reason.Mouse
    event = QContextMenuEvent(reason, spot, rows.viewport().mapToGlobal(spot))
    QApplication.sendEvent(rows.viewport(), event)
    return stage.window.findChild(ChatMenu)


async def menu_of_message(stage: Stage) -> QWidget:
    block = stage.window.panes.active.findChild(CodeBlock)
    event = QContextMenuEvent(QContextMenuEvent.Reason.Mouse, QPoint(4, 4), QPoint(5, 5))
    port = block.text_edit.viewport()
    before = set(stage.window.findChildren(QMenu))
    QApplication.sendEvent(port, event)
    return next(menu for menu in stage.window.findChildren(QMenu) if menu not in before)


async def menu_of_run(stage: Stage) -> QWidget:
    await pool(stage)
    row = stage.window.pool_panel.rows["chatcmpl-3f2a1b9c"]
    found = row.more_button.menu_of_run
    assert isinstance(found, QMenu)
    return found


async def menu(stage: Stage, *, place: int) -> QWidget:
    action = stage.window.findChild(QMenuBar).actions()[place]
    found = action.menu()
    assert isinstance(found, QMenu)
    return found


async def menu_of_models(stage: Stage) -> QWidget:
    await models(stage, page=0)
    stage.window.models_window.close()
    selector = stage.window.findChild(ModelSelector)
    selector.click()
    return selector.menu_of_models


async def menu_of_server(stage: Stage) -> QWidget:
    await stage.server.start()
    line = stage.window.findChild(StatusLine)
    line._address.click()
    return line.server_menu


async def picked(stage: Stage) -> QWidget:
    control = Qt.KeyboardModifier.ControlModifier
    for name in TITLES[:2]:
        port = list_of(stage).viewport()
        QTest.mouseClick(port, Qt.MouseButton.LeftButton, control, row_of(stage, name))
    await until(lambda: len(list_of(stage).selected_chats()) == 3)
    return await menu_of_chat(stage, name=TITLES[0])


async def menu_of_presets(stage: Stage) -> QWidget:
    await inspector(stage)
    bar = stage.window.findChild(Inspector).preset_bar
    bar.fill_menu()
    return bar.menu_of_presets
