"""Changed settings of parking reach the engine at once; a budget that memory lowers is told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from engine.api import DiskTrouble, EngineState, ModelChanged
from engine.client import EngineClient
from engine.errors import ParkDiskFailed
from engine.runs import ParkUsage, SetParkBudget, SetVictimPolicy
from fakes.fake_engine import TINY_MODEL, FakeEngine
from studio.models.park_settings import ParkPolicy
from studio.services.notice_service import NoticeService
from studio.services.park_service import BUDGET_LOWERED, ParkService
from studio.services.settings_service import SettingsService

MIB = 1 << 20


class Rig:
    """The service on an engine that notes what it is asked."""

    def __init__(self, path: Path) -> None:
        self.engine = FakeEngine(auto=False)
        self.notices = NoticeService()
        self.settings = SettingsService(path / "settings.json", environment={}, flags={})
        self.client = EngineClient(self.engine, asyncio.get_running_loop())
        self.service = ParkService(self.client, self.settings, self.notices)

    async def load(self, state: EngineState, *, most_mib: int) -> None:
        """A model's state, as the loop hears of it, with what memory allows for parked chats."""
        self.engine.publish(parks=ParkUsage(most_budget_bytes=most_mib * MIB))
        heard = asyncio.Event()
        disconnect = self.client.on_model_changed(lambda _: heard.set())
        self.engine.emit(ModelChanged(state=state, model=TINY_MODEL))
        await heard.wait()
        disconnect()

    @property
    def lowered(self) -> list[str]:
        return [each.detail for each in self.notices.notices.notices if each.code == BUDGET_LOWERED]


def play(path: Path, scene: Callable[[Rig], object]) -> Rig:
    async def run() -> Rig:
        rig = Rig(path)
        result = scene(rig)
        if asyncio.iscoroutine(result):
            await result
        rig.client.close()
        return rig

    return asyncio.run(run())


def test_budget_and_policy_are_sent_when_they_change_and_only_then(tmp_path: Path) -> None:
    def scene(rig: Rig) -> None:
        rig.settings.change("appearance.text_size", 20)
        rig.settings.change("park.ram_mib", 100)
        rig.settings.change("park.policy", ParkPolicy.COST)
        rig.settings.change("park.ram_mib", -1)
        rig.settings.change("park.ram_mib", 0)

    assert play(tmp_path, scene).engine.commands == [
        SetParkBudget(budget_bytes=100 * MIB),
        SetVictimPolicy(name="cost"),
        SetParkBudget(budget_bytes=-1),
        SetParkBudget(budget_bytes=0),
    ]


def test_nothing_is_sent_after_the_end(tmp_path: Path) -> None:
    def scene(rig: Rig) -> None:
        rig.service.close()
        rig.settings.change("park.ram_mib", 100)

    assert play(tmp_path, scene).engine.commands == []


def test_a_lowered_budget_is_told_and_the_notice_goes_with_the_model(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await rig.load(EngineState.READY, most_mib=8192)
        assert rig.lowered == []
        await rig.load(EngineState.READY, most_mib=3000)
        (words,) = rig.lowered
        assert "3,000 MiB instead of 8,192 MiB" in words
        await rig.load(EngineState.NO_MODEL, most_mib=0)
        assert rig.lowered == []

    play(tmp_path, scene)


def test_no_limit_and_off_are_never_called_lowered(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        for mib in (-1, 0):
            rig.settings.change("park.ram_mib", mib)
            await rig.load(EngineState.READY, most_mib=1)
            assert rig.lowered == []

    play(tmp_path, scene)


def test_a_budget_that_is_lowered_while_the_model_runs_is_told_too(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await rig.load(EngineState.READY, most_mib=9000)
        rig.settings.change("park.ram_mib", 10_000)
        assert "9,000 MiB instead of 10,000 MiB" in rig.lowered[0]
        rig.settings.change("park.ram_mib", 100)
        assert rig.lowered == []

    play(tmp_path, scene)


def test_without_a_model_nothing_is_called_lowered(tmp_path: Path) -> None:
    def scene(rig: Rig) -> None:
        rig.settings.change("park.ram_mib", 10_000)

    assert play(tmp_path, scene).lowered == []


def test_trouble_with_the_disk_is_told_until_a_model_is_ready_without(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        heard = asyncio.Event()
        rig.client.on_disk_trouble(lambda _: heard.set())
        rig.engine.emit(DiskTrouble(error=ParkDiskFailed("the folder is full")))
        await heard.wait()
        (notice,) = rig.notices.notices.notices
        assert (notice.code, notice.detail) == ("park_disk_failed", "the folder is full")
        await rig.load(EngineState.READY, most_mib=8192)
        assert rig.notices.notices.notices == ()

    play(tmp_path, scene)
