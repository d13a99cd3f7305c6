"""Every window, page, panel and menu leaves a picture, and what can be told of one without eyes is told here.

Scenarios leave pictures of their own; `fakes.scenes` opens what none of them passes. In the last test the program
speaks a language whose sentences are German ones with a mark that nobody sees: what has none was never given to `tr`.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QSize
from PySide6.QtWidgets import QApplication, QDialog, QFileDialog, QMessageBox, QScrollArea, QWidget

from fakes.fake_window import Stage, open_stage
from fakes.faults import faults_of, unmarked
from fakes.scenes import SCENES
from fakes.scenes.in_window import ODD_TITLES
from fakes.scenes.talk import TITLES, talk
from fakes.shots import shoot
from studio.models.snippets import SNIPPETS
from studio.models.window_settings import Language
from studio.views.chat import formulas
from studio.views.chat.typesetting import Typesetter
from studio.views.dialogs.about import facts
from studio.views.translation import Catalogue, read_catalogue

Play = Callable[[Coroutine[Any, Any, None]], None]

SMALL = QSize(624, 352)
"""What a screen of 1280 x 800 has for a dialog at 200 %."""
MARK = "\u2060"
"""Has no width."""
KEYS = r"\b(Ctrl|Shift|Alt|Enter|Tab|Esc|Del)\b"
"""They are Qt's to translate."""
NAMES = (
    *facts().splitlines(), *TITLES, *" ".join(ODD_TITLES).split(), *(snippet.program for snippet in SNIPPETS),
    "Layby", "SmolLM2 135M Instruct, Q4_1", "Ollama", "tiny", "F32", "own", "gone", "broken", "llama3-8b", "model",
    "org/Model", "tensor count is 0", "home-server", "home", "phone", "editor", "py",
    "notes.txt", "trip.py", "A report with a rather long name of last summer.md", "uvx mcp-server-time",
    "KEY=value", "Authorization: Bearer", '{"mcpServers": {"files": {"command": "npx", "args"',
)  # fmt: skip
"""What the scenes' things are called, and examples of what is to be typed."""
LONGEST_FIRST = sorted(map(re.escape, NAMES), key=len, reverse=True)
DATA = re.compile("|".join((*LONGEST_FIRST, KEYS, r"/\S.*", r"https?:\S*")), re.IGNORECASE)
"""What stands on windows that is no sentence of ours."""


class LentTypesetter:
    """Typesets with another one's child, which lives on."""

    def __init__(self, of: Typesetter) -> None:
        self.typeset = of.typeset

    def close(self) -> None:
        """The formula that is being set is set to its end."""


@pytest.fixture(scope="module", autouse=True)
def _one_typesetter() -> Iterator[None]:
    """Every scene has the same formulas, and to start their typesetter takes longer than most scenes."""
    shared = Typesetter()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(formulas, "Typesetter", lambda: LentTypesetter(shared))
        yield
    shared.close()


@pytest.fixture
def marked(qapp: QApplication) -> Iterator[None]:
    """The program speaks German with marks."""
    table = read_catalogue(Language.GERMAN)
    catalogue = Catalogue({key: MARK + value for key, value in table.items()}, qapp)
    qapp.installTranslator(catalogue)
    yield
    qapp.removeTranslator(catalogue)


@asynccontextmanager
async def opened(folder: Path, scene: str) -> AsyncIterator[tuple[Stage, QWidget]]:
    """What the scene shows, drawn."""
    async with open_stage(folder, titles=TITLES) as stage:
        await talk(stage)
        shown = await SCENES[scene](stage)
        shown.ensurePolished()
        if not shown.isVisible():  # a menu: nothing pops up in tests
            shown.resize(shown.sizeHint())
        await stage.settle()
        yield stage, shown
        for widget in QApplication.topLevelWidgets():
            if isinstance(widget, QDialog):
                widget.done(0)
            elif widget is not stage.window:
                widget.close()


def scrolled(window: QWidget) -> Iterator[int]:
    """One step after another down the page on screen, the first at its top."""
    areas = [
        area
        for area in window.findChildren(QScrollArea)
        if area.objectName() in ("settingsArea", "inspectorArea") and area.isVisible()
    ]
    yield 1
    for area in areas:
        bar, step = area.verticalScrollBar(), 1
        while bar.value() < bar.maximum():
            bar.setValue(bar.value() + bar.pageStep())
            step += 1
            yield step


def told(window: QWidget) -> list[str]:
    """What is wrong with it; the dialog for files is Qt's own here, and the desktop's elsewhere."""
    return [] if isinstance(window, QFileDialog) else faults_of(window)


@pytest.mark.parametrize("scene", SCENES)
def test_nothing_is_cut_nameless_covered_or_out_of_place(
    play: Play, tmp_path: Path, scene: str
) -> None:
    async def story() -> None:
        async with opened(tmp_path, scene) as (_, window):
            for step in scrolled(window):
                shoot(window, scene if step == 1 else f"{scene}-{step}")
            assert told(window) == []

    play(story())


@pytest.mark.parametrize("scene", SCENES)
def test_every_sentence_is_translated_and_has_its_room_in_german_on_any_screen(
    play: Play, tmp_path: Path, marked: None, scene: str
) -> None:
    async def story() -> None:
        async with opened(tmp_path, scene) as (stage, window):
            wrong = unmarked(window, MARK, DATA) if not isinstance(window, QFileDialog) else []
            wrong += told(window)
            if isinstance(window, QDialog) and not isinstance(window, QFileDialog | QMessageBox):
                window.resize(SMALL)
                await stage.settle()
                wrong += [f"small: {one}" for one in told(window)]
                if window.size() != SMALL:
                    wrong.append(f"larger than a small screen: {window.size()}")
            assert not wrong, "\n".join(wrong)

    play(story())
