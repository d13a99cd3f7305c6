"""The bar above the chats: a title of any length leaves the model its name."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fakes.fake_window import open_stage, until
from studio.views.model_selector import ModelSelector
from studio.views.top_bar import TopBar

Play = Callable[[Coroutine[Any, Any, None]], None]
NAME = "SmolLM2 135M Instruct, Q4_1"


@pytest.mark.parametrize("title", ["x" * 5_000, "word " * 1_000])
def test_a_title_of_thousands_of_letters_leaves_the_models_name_whole(
    play: Play, tmp_path: Path, title: str
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("Short",)) as stage:
            model = replace(stage.models.status.model, name=NAME)
            stage.models.status = replace(stage.models.status, model=model)
            stage.models.changed.emit()
            window, chat = stage.window, stage.chats.chats[0]
            bar, selector = window.findChild(TopBar), window.findChild(ModelSelector)
            await until(lambda: NAME in selector.text())
            for width in (1280, 1000):
                window.resize(width, 700)
                await stage.chats.rename(chat, "Short")
                await stage.settle()
                usual_px = selector.width()
                await stage.chats.rename(chat, title)
                await stage.settle()
                assert selector.width() == usual_px
                assert NAME in selector.text()
                assert bar.rect().contains(selector.geometry())

    play(story())
