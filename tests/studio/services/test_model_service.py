"""ModelService against a scripted engine: loading, what replaces what, fetching, and errors as notices."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from engine.api import EngineState, LoadModel, LoadOptions, ModelChanged, ModelInfo, UnloadModel
from engine.client import EngineClient
from engine.errors import CorruptModel, ModelUnavailable, NotEnoughMemory
from fakes.chat_rig import until
from fakes.fake_engine import TINY_MODEL, FakeEngine
from studio.models.load_choices import LoadChoices
from studio.models.model_library import ModelFacts, ModelSource
from studio.paths import ModelCaches
from studio.services.load_settings_store import LoadSettingsStore
from studio.services.model_catalog import read_catalog
from studio.services.model_facts import ModelFactsReader
from studio.services.model_fetcher import ModelFetcher
from studio.services.model_library_service import ModelLibraryService
from studio.services.model_service import ModelService
from studio.services.notice_service import NoticeService
from studio.services.settings_service import SettingsService

HANG = 'import time; print("downloading", flush=True); time.sleep(600)'


@dataclass(slots=True)
class ModelRig:
    engine: FakeEngine
    models: ModelService
    notices: NoticeService
    settings: SettingsService
    library: ModelLibraryService

    @property
    def notice_codes(self) -> list[str]:
        return [notice.code for notice in self.notices.notices.notices]

    def model_file(self, name: str) -> Path:
        self.library.folder.mkdir(parents=True, exist_ok=True)
        path = self.library.folder / f"{name}.gguf"
        path.write_bytes(b"GGUF" + name.encode())
        return path

    def info(self, name: str) -> ModelInfo:
        return inspect(self.library.folder / f"{name}.gguf", name)

    def say(
        self, state: EngineState, model: ModelInfo | None = None, progress: float = 0.0
    ) -> None:
        self.engine.emit(ModelChanged(state=state, model=model, progress=progress))


def inspect(path: Path, name: str) -> ModelInfo:
    if "corrupt" in path.name:
        raise CorruptModel(f"{path.name}: the header ends too early")
    return replace(TINY_MODEL, path=path, name=name)


@asynccontextmanager
async def open_models(tmp_path: Path, *, pip: str = HANG) -> AsyncIterator[ModelRig]:
    engine = FakeEngine(auto=False, ready=False)
    client = EngineClient(engine, asyncio.get_running_loop())
    library = ModelLibraryService(tmp_path / "models", read_catalog(), inspect=inspect)
    settings = SettingsService(tmp_path / "settings.json", environment={}, flags={})
    notices = NoticeService()
    models = ModelService(
        client,
        library,
        ModelFetcher(library, pip=(sys.executable, "-c", pip)),
        settings=settings,
        load_settings=LoadSettingsStore(tmp_path / "load_settings.json", settings),
        facts=ModelFactsReader(inspect, tmp_path / "facts.json"),
        caches=ModelCaches(lm_studio=(tmp_path / "lm-studio",)),
        notices=notices,
    )
    try:
        yield ModelRig(engine, models, notices, settings, library)
    finally:
        await models.close()
        client.close()


def test_a_model_of_the_library_is_loaded_shown_and_remembered(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")

    async def run() -> None:
        async with open_models(tmp_path) as rig:
            path = rig.model_file("Tiny")
            await rig.models.refresh()
            rig.settings.change("engine.ctx_size", 4096)
            loading = asyncio.create_task(rig.models.load("tiny"))
            await until(lambda: rig.engine.commands)
            assert rig.engine.commands == [
                LoadModel(path=path, name="Tiny", options=LoadOptions(pool_tokens=4096))
            ]
            assert (rig.models.state, rig.models.model) == (EngineState.LOADING, rig.info("Tiny"))
            rig.say(EngineState.LOADING, progress=0.5)
            await until(lambda: rig.models.progress == 0.5)
            rig.say(EngineState.READY, rig.info("Tiny"), progress=1.0)
            assert await loading
            assert rig.models.state is EngineState.READY
            assert any(words.startswith("loaded Tiny in ") for words in caplog.messages)
            assert rig.settings.settings.engine.model == str(path), (
                "the library knows it by its file"
            )

    asyncio.run(run())


def test_a_linked_model_is_remembered_by_its_name_also_by_a_new_one(tmp_path: Path) -> None:
    async def run() -> None:
        async with open_models(tmp_path) as rig:
            path = tmp_path / "linked.gguf"
            path.write_bytes(b"GGUF")
            await rig.models.add(path)
            loading = asyncio.create_task(rig.models.load("LINKED"))
            await until(lambda: rig.engine.commands)
            rig.say(EngineState.READY, inspect(path, "linked"))
            assert await loading
            assert rig.settings.settings.engine.model == "linked"
            assert await rig.models.rename("linked", "mine")
            assert rig.settings.settings.engine.model == "mine"

    asyncio.run(run())


def test_a_model_in_use_stays_known_without_its_file_or_the_library(tmp_path: Path) -> None:
    async def run() -> None:
        async with open_models(tmp_path) as rig:
            path = rig.model_file("Tiny")
            loading = asyncio.create_task(rig.models.load("tiny"))
            await until(lambda: rig.engine.commands)
            rig.say(EngineState.READY, rig.info("Tiny"))
            assert await loading
            await rig.models.refresh()
            assert rig.models.outside == ()
            path.unlink()
            await rig.models.refresh()
            (entry,) = rig.models.outside
            assert (entry.path, entry.is_missing, entry.source) == (path, True, ModelSource.OUTSIDE)
            await rig.models.unload()
            rig.say(EngineState.NO_MODEL)
            await until(lambda: rig.models.state is EngineState.NO_MODEL)
            await rig.models.refresh()
            assert rig.models.outside == (entry,), "it was the last one"
            assert not await rig.models.load(rig.settings.settings.engine.model)
            (notice,) = rig.notices.notices.notices
            assert f"there is no file {path}" in notice.detail

    asyncio.run(run())


def test_why_a_model_was_not_loaded_is_no_matter_once_one_is(tmp_path: Path) -> None:
    async def run() -> None:
        async with open_models(tmp_path) as rig:
            rig.model_file("one")
            rig.model_file("corrupt")
            assert not await rig.models.load("absent")
            assert not await rig.models.load("corrupt")
            rig.engine.emit(
                ModelChanged(state=EngineState.FAILED, model=None, error=NotEnoughMemory("90 GiB"))
            )
            await until(lambda: len(rig.notice_codes) == 3)
            rig.say(EngineState.LOADING, rig.info("one"))
            rig.say(EngineState.READY, rig.info("one"))
            await until(lambda: rig.models.state is EngineState.READY)
            assert rig.notice_codes == []
            assert await rig.models.add(rig.library.folder / "corrupt.gguf") is None
            rig.say(EngineState.LOADING, rig.info("one"))
            await until(lambda: rig.models.state is EngineState.LOADING)
            rig.say(EngineState.READY, rig.info("one"))
            await until(lambda: rig.models.state is EngineState.READY)
            assert rig.notice_codes == ["model_corrupt"], "that was about no load"

    asyncio.run(run())


@pytest.mark.parametrize("wanted", ["one", "two"])
def test_a_load_that_the_engine_refuses_leaves_the_model_that_is_there(
    tmp_path: Path, wanted: str
) -> None:
    async def run() -> None:
        async with open_models(tmp_path) as rig:
            for name in ("one", "two"):
                rig.model_file(name)
            rig.say(EngineState.READY, rig.info("one"))
            await until(lambda: rig.models.state is EngineState.READY)
            loading = asyncio.create_task(rig.models.load(wanted))
            await until(lambda: rig.engine.commands)
            error = NotEnoughMemory("needs 90 GiB")
            rig.engine.emit(
                ModelChanged(state=EngineState.READY, model=rig.info("one"), error=error)
            )
            assert not await loading
            assert rig.models.state is EngineState.READY
            assert rig.models.model == rig.info("one")
            assert rig.notice_codes == ["not_enough_memory"]

    asyncio.run(run())


def test_a_file_outside_the_library_is_remembered_by_its_path(tmp_path: Path) -> None:
    async def run() -> None:
        async with open_models(tmp_path) as rig:
            path = tmp_path / "outside.gguf"
            path.write_bytes(b"GGUF")
            loading = asyncio.create_task(rig.models.load(str(path)))
            await until(lambda: rig.engine.commands)
            rig.say(EngineState.READY, inspect(path, "outside"))
            assert await loading
            assert rig.settings.settings.engine.model == str(path)

    asyncio.run(run())


@pytest.mark.parametrize("name", ["absent", "corrupt"])
def test_what_cannot_be_read_never_reaches_the_engine(tmp_path: Path, name: str) -> None:
    async def run() -> None:
        async with open_models(tmp_path) as rig:
            rig.model_file("corrupt")
            assert not await rig.models.load(name)
            assert rig.engine.commands == []
            assert rig.notice_codes == [
                {"absent": "model_not_found", "corrupt": "model_corrupt"}[name]
            ]

    asyncio.run(run())


def test_a_load_that_fails_says_why(tmp_path: Path) -> None:
    async def run() -> None:
        async with open_models(tmp_path) as rig:
            rig.model_file("huge")
            loading = asyncio.create_task(rig.models.load("huge"))
            await until(lambda: rig.engine.commands)
            error = NotEnoughMemory("needs 90 GiB")
            rig.engine.emit(ModelChanged(state=EngineState.FAILED, model=None, error=error))
            assert not await loading
            assert (rig.models.state, rig.models.status.error) == (EngineState.FAILED, error)
            assert rig.notice_codes == ["not_enough_memory"]
            assert rig.settings.settings.engine.model == ""

    asyncio.run(run())


def test_the_last_of_two_loads_wins_and_the_end_of_the_first_is_not_taken_for_it(
    tmp_path: Path,
) -> None:
    async def run() -> None:
        async with open_models(tmp_path) as rig:
            rig.model_file("one")
            rig.model_file("two")
            first = asyncio.create_task(rig.models.load("one"))
            await until(lambda: len(rig.engine.commands) == 1)
            second = asyncio.create_task(rig.models.load("two"))
            assert not await first
            await until(lambda: len(rig.engine.commands) == 2)
            rig.say(EngineState.NO_MODEL)
            rig.say(EngineState.LOADING, progress=0.25)
            await until(lambda: rig.models.progress == 0.25)
            assert rig.models.model == rig.info("two")
            rig.say(EngineState.READY, rig.info("two"))
            assert await second

    asyncio.run(run())


def test_a_model_is_coming_from_the_wish_for_it_to_its_end(tmp_path: Path) -> None:
    async def run() -> None:
        async with open_models(tmp_path) as rig:
            rig.model_file("Tiny")
            assert not rig.models.is_coming
            loading = asyncio.create_task(rig.models.load("Tiny"))
            await asyncio.sleep(0)
            assert rig.models.state is EngineState.NO_MODEL, "its files are being read"
            assert rig.models.is_coming
            await until(lambda: rig.engine.commands)
            assert rig.models.is_coming
            rig.say(EngineState.READY, rig.info("Tiny"))
            assert await loading
            assert not rig.models.is_coming
            with rig.models.expecting():
                assert rig.models.is_coming
            assert not await rig.models.load("corrupt")
            assert not rig.models.is_coming

    asyncio.run(run())


def test_unloading_ends_a_load(tmp_path: Path) -> None:
    async def run() -> None:
        async with open_models(tmp_path) as rig:
            rig.model_file("one")
            loading = asyncio.create_task(rig.models.load("one"))
            await until(lambda: rig.engine.commands)
            await rig.models.unload()
            assert not await loading
            assert rig.engine.commands[-1] == UnloadModel()
            rig.say(EngineState.NO_MODEL)
            await until(lambda: rig.models.state is EngineState.NO_MODEL)
            assert rig.models.model is None

    asyncio.run(run())


def test_a_fetch_is_shown_and_can_be_cancelled(tmp_path: Path) -> None:
    async def run() -> None:
        async with open_models(tmp_path) as rig:
            fetch = asyncio.create_task(rig.models.fetch("smollm2-135m"))
            await until(lambda: rig.models.fetching and rig.models.fetching.total_bytes)
            assert await rig.models.fetch("smollm2-135m") is None
            assert rig.notice_codes == ["fetch_failed"]
            rig.models.cancel_fetch()
            assert await fetch is None
            assert rig.models.fetching is None
            assert rig.notice_codes[0] == "fetch_cancelled"

    asyncio.run(run())


def test_closing_ends_a_fetch(tmp_path: Path) -> None:
    async def run() -> None:
        async with open_models(tmp_path) as rig:
            fetch = asyncio.create_task(rig.models.fetch("smollm2-135m"))
            await until(lambda: rig.models.fetching and rig.models.fetching.total_bytes)
        assert await fetch is None

    asyncio.run(run())


def test_the_library_is_scanned_after_every_change(tmp_path: Path) -> None:
    async def run() -> None:
        async with open_models(tmp_path) as rig:
            told: list[int] = []
            rig.models.library_changed.connect(lambda: told.append(len(rig.models.entries)))
            path = tmp_path / "linked.gguf"
            path.write_bytes(b"GGUF")
            assert await rig.models.add(path) is not None
            assert await rig.models.remove("linked")
            assert not await rig.models.remove("linked")
            assert (told[0], told[-1]) == (1, 0)
            assert rig.notice_codes == ["model_not_found"]
            rig.model_file("one")
            await rig.models.refresh()
            num_told = len(told)
            await rig.models.refresh()
            assert len(told) == num_told, "nothing is told that is not new"
            assert told[-1] == 1

    asyncio.run(run())


def test_what_was_said_about_there_being_no_model_goes_when_it_no_longer_holds(
    tmp_path: Path,
) -> None:
    async def run() -> None:
        async with open_models(tmp_path) as rig:
            for state in (EngineState.LOADING, EngineState.READY, EngineState.FAILED):
                rig.notices.report(ModelUnavailable("choose one first"))
                rig.say(state, TINY_MODEL)
                await until(lambda state=state: rig.models.state is state)
                assert rig.notice_codes == []

    asyncio.run(run())


def test_facts_follow_the_library_and_say_what_is_not_sound(tmp_path: Path) -> None:
    async def run() -> None:
        async with open_models(tmp_path) as rig:
            good, bad = rig.model_file("good"), rig.model_file("corrupt")
            await rig.models.refresh()
            assert rig.models.facts[good] == ModelFacts(info=rig.info("good"))
            assert rig.models.facts[bad].problem == "corrupt.gguf: the header ends too early"
            assert rig.notice_codes == [], "a file that is not used yet is no news"

    asyncio.run(run())


def test_what_is_set_for_a_model_counts_whenever_it_is_loaded(tmp_path: Path) -> None:
    async def run() -> None:
        async with open_models(tmp_path) as rig:
            path = rig.model_file("one")
            rig.models.load_settings.change(path, LoadChoices(parallel=2, pool_tokens=512))
            loading = asyncio.create_task(rig.models.load("one"))
            await until(lambda: rig.engine.commands)
            assert rig.engine.commands[0].options == LoadOptions(parallel=2, pool_tokens=512)
            rig.say(EngineState.READY, rig.info("one"))
            assert await loading

    asyncio.run(run())


def test_found_models_are_linked_renamed_and_followed(tmp_path: Path) -> None:
    async def run() -> None:
        async with open_models(tmp_path) as rig:
            there = tmp_path / "lm-studio" / "pub" / "repo" / "Found.gguf"
            there.parent.mkdir(parents=True)
            there.write_bytes(b"GGUF")
            await rig.models.look_around()
            (found,) = rig.models.found
            entry = await rig.models.add_found(found)
            assert entry is not None
            assert (entry.path, rig.models.found) == (there, ())
            rig.models.load_settings.change(there, LoadChoices(parallel=2))
            assert await rig.models.rename("Found", "Mine")
            assert not await rig.models.rename("Mine", " ")
            moved = tmp_path / "elsewhere.gguf"
            there.rename(moved)
            await rig.models.refresh()
            assert rig.models.entries[0].is_missing
            assert await rig.models.relocate("Mine", moved)
            (entry,) = rig.models.entries
            assert (entry.name, entry.path, entry.is_missing) == ("Mine", moved, False)
            assert rig.models.load_settings.choices(moved) == LoadChoices(parallel=2)
            assert await rig.models.remove("Mine")
            assert moved.exists(), "a linked file is only forgotten"

    asyncio.run(run())


def test_a_folder_of_models_is_added_whole(tmp_path: Path) -> None:
    async def run() -> None:
        async with open_models(tmp_path) as rig:
            for name in ("a.gguf", "deep/b.gguf"):
                path = tmp_path / "mine" / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(b"GGUF")
            assert await rig.models.add_folder(tmp_path / "mine") == 2
            assert [entry.name for entry in rig.models.entries] == ["a", "b"]
            assert rig.notice_codes == []

    asyncio.run(run())


def test_of_a_folder_it_is_said_what_cannot_be_used_and_that_there_is_nothing(
    tmp_path: Path,
) -> None:
    async def run() -> None:
        async with open_models(tmp_path) as rig:
            folder = tmp_path / "mine"
            folder.mkdir()
            assert await rig.models.add_folder(folder) == 0
            (notice,) = rig.notices.notices.notices
            assert notice.detail == f"there is no model in {folder}; choose another folder"
            for name in ("corrupt-1.gguf", "sound.gguf", "corrupt-2.gguf", "corrupt-3.gguf"):
                (folder / name).write_bytes(b"GGUF")
            assert await rig.models.add_folder(folder) == 1
            (notice, _) = rig.notices.notices.notices
            assert "corrupt-1.gguf" in notice.detail
            assert f"2 more in {folder} cannot be used either" in notice.detail

    asyncio.run(run())
