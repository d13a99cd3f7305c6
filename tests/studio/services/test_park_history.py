"""The history of the pool: lanes from moves, who was waited for, waits that held, what more memory would save."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path

import pytest

from engine.api import LoadOptions, Parked, PoolUsage, Started
from engine.client import EngineClient
from engine.runs import Holding, ParkCause, ParkReason, RunState, WaitKind
from fakes.builders import make_request
from fakes.chat_rig import ChatRig, open_chats, until
from fakes.fake_engine import FakeEngine
from fakes.runs import make_run, make_wait
from studio.models.request_log import RequestLog, RequestRow
from studio.models.timeline import Lane, Saving, Shortage, Span, Stretch, Tally, saving_of
from studio.services.park_history import KEPT_S, MOST_SPANS, ParkHistory
from studio.services.run_service import RunService

Q, W, P, B = Stretch.QUEUED, Stretch.WORKING, Stretch.PARKED, Stretch.COMING_BACK
POOL = PoolUsage(total_pages=64, free_pages=0, page_tokens=32, page_bytes=1 << 20)


class Stage:
    """A history over a scripted engine, and its clock."""

    def __init__(self, rig: ChatRig) -> None:
        self.rig, self.engine, self.now_s = rig, rig.engine, 100.0
        client = EngineClient(rig.engine, asyncio.get_running_loop())
        self.history = ParkHistory(client, RunService(client, rig.chats), clock=lambda: self.now_s)

    async def after(self, seconds: float, do: Callable[[], object]) -> None:
        self.now_s += seconds
        do()
        await asyncio.sleep(0)

    def park(
        self, request_id: str, *for_ids: str, cause: ParkCause = ParkCause.PAGES_SHORT
    ) -> None:
        reason = ParkReason(cause=cause, for_ids=for_ids)
        self.engine.emit(Parked(request_id=request_id, held_tokens=9, place=1, reason=reason))

    def lane(self, owner: str) -> Lane:
        """That of a chat by its key, or of the program whose request it is."""
        (lane,) = (
            lane
            for lane in self.history.lanes()
            if lane.key == owner or lane.spans[-1].request_id == owner
        )
        return lane

    def spans(self, key: str) -> list[tuple[Stretch, float, float | None]]:
        lane = self.lane(key)
        return [(one.stretch, one.start_s, one.end_s) for one in lane.spans]

    def last(self, key: str) -> Span:
        lane = self.lane(key)
        return lane.spans[-1]


def play(folder: Path, story: Callable[[Stage], Coroutine[None, None, None]]) -> None:
    async def run() -> None:
        async with open_chats(folder / "history.sqlite", FakeEngine(auto=False)) as rig:
            stage = Stage(rig)
            await story(stage)
            stage.history.close()

    asyncio.run(run())


def test_moves_become_spans_and_a_chats_replies_share_a_lane(tmp_path: Path) -> None:
    async def story(stage: Stage) -> None:
        engine = stage.engine
        chat, _, first = await stage.rig.ask("One")
        await stage.after(1, lambda: engine.start(first))
        await stage.after(2, lambda: stage.park(first, "chatcmpl-abc"))
        await stage.after(3, lambda: engine.restore(first))
        await stage.after(4, lambda: engine.finish(first))
        await until(lambda: chat.running_message is None)
        _, _, second = await stage.rig.ask("Two", chat)
        await stage.after(5, lambda: engine.start(second))
        assert stage.spans(f"chat-{chat.chat_id}") == [
            (W, 101, 103), (P, 103, 106), (W, 106, 110), (W, 115, None),
        ]  # fmt: skip
        longest = stage.history.longest_wait()
        assert longest is not None
        assert (longest.name, longest.seconds) == ("One", 3)
        assert longest.others == ("API request abc",)

    play(tmp_path, story)


def test_a_return_that_computes_again_is_told_until_it_writes(tmp_path: Path) -> None:
    async def story(stage: Stage) -> None:
        engine = stage.engine
        await stage.after(0, lambda: engine.submit(make_request(request_id="a")))
        engine.start("a")
        await stage.after(1, lambda: stage.park("a"))
        await stage.after(1, lambda: engine.restore("a", recomputed_tokens=50))
        stage.now_s += 2
        engine.publish(make_run("a", RunState.READING))
        stage.history.look()
        assert stage.last("a").stretch is B
        engine.publish(make_run("a", RunState.WRITING))
        stage.now_s += 1
        stage.history.look()
        assert stage.spans("a")[-2:] == [(B, 102, 105), (W, 105, None)]

    play(tmp_path, story)


def test_a_place_in_line_is_seen_and_names_who_is_before_it(tmp_path: Path) -> None:
    async def story(stage: Stage) -> None:
        engine = stage.engine
        wait = make_wait(WaitKind.BEHIND_OTHERS, ahead=("chatcmpl-first",))
        engine.publish(replace(make_run("b", RunState.QUEUED, wait=wait), waited_s=4.0))
        stage.history.look()
        assert stage.spans("b") == [(Q, 96, None)]
        assert stage.last("b").others == ("API request first",)
        engine.submit(make_request(request_id="b"))
        started = Started(request_id="b", prompt_tokens=5, cached_tokens=0, queued_s=10.0)
        await stage.after(6, lambda: engine.emit(started))
        assert stage.spans("b") == [(Q, 96, 106), (W, 106, None)]

    play(tmp_path, story)


@pytest.mark.parametrize(("latest_s", "held"), [(10.0, 1), (4.6, 1), (4.0, 0)])
def test_waits_are_held_against_what_was_told_first(
    tmp_path: Path, latest_s: float, held: int
) -> None:
    async def story(stage: Stage) -> None:
        engine = stage.engine
        engine.submit(make_request(request_id="a"))
        engine.start("a")
        wait = make_wait()
        engine.publish(make_run("a", RunState.PARKED, wait=wait, expected_wait_s=(1.0, latest_s)))
        await stage.after(1, lambda: stage.park("a"))
        engine.publish(make_run("a", RunState.PARKED, wait=wait, expected_wait_s=(1.0, 99.0)))
        stage.history.look()
        await stage.after(5, lambda: engine.restore("a"))
        assert stage.history.tally == Tally(1, held)

    play(tmp_path, story)


def test_what_is_parked_by_hand_or_stopped_while_it_waits_is_no_wait_that_was_told(
    tmp_path: Path,
) -> None:
    async def story(stage: Stage) -> None:
        engine = stage.engine
        for name in "ab":
            engine.submit(make_request(request_id=name))
            engine.start(name)
        await asyncio.sleep(0)
        held = make_wait(WaitKind.HELD_BY_USER, place=0)
        engine.publish(
            make_run("a", RunState.PARKED, wait=held),
            make_run("b", RunState.PARKED, wait=make_wait(), expected_wait_s=(1.0, 9.0)),
        )
        await stage.after(1, lambda: stage.park("a", cause=ParkCause.BY_USER))
        await stage.after(1, lambda: stage.park("b"))
        engine.publish(make_run("a", RunState.PARKED, wait=held))
        await stage.after(1, lambda: engine.finish("b"))
        await stage.after(50, lambda: engine.restore("a"))
        assert stage.history.tally == Tally()
        longest = stage.history.longest_wait()
        assert longest is not None
        assert longest.seconds == 1

    play(tmp_path, story)


def test_what_is_old_and_what_is_too_much_is_let_go_of(tmp_path: Path) -> None:
    async def story(stage: Stage) -> None:
        engine = stage.engine
        engine.submit(make_request(request_id="old"))
        engine.start("old")
        await stage.after(1, lambda: engine.finish("old"))
        engine.submit(make_request(request_id="a"))
        engine.start("a")
        await asyncio.sleep(0)
        for _ in range(MOST_SPANS):
            await stage.after(0.01, lambda: stage.park("a"))
            await stage.after(0.01, lambda: engine.restore("a"))
        num_spans = sum(len(lane.spans) for lane in stage.history.lanes())
        assert MOST_SPANS - 400 <= num_spans <= MOST_SPANS + 1
        stage.now_s += KEPT_S + 100
        assert [lane.spans[-1].request_id for lane in stage.history.lanes()] == ["a"]
        assert len(stage.spans("a")) == 1, "what lasts stays"

    play(tmp_path, story)


def test_seconds_that_a_larger_pool_would_have_saved() -> None:
    shortages = [Shortage(10, 4.0, 2, 30), Shortage(20, 1.0, 1, 5), Shortage(30, 2.0, 1, 300)]
    assert saving_of(shortages, 0) == Saving(11.0, 0.0)
    assert saving_of(shortages, 30) == Saving(11.0, 9.0)
    assert saving_of(shortages, 1000) == Saving(11.0, 11.0)
    assert saving_of([], 5) == Saving()


def test_what_waits_for_room_lacks_the_pages_of_all_who_want_them(tmp_path: Path) -> None:
    async def story(stage: Stage) -> None:
        engine = stage.engine
        engine._snapshot = replace(
            engine.snapshot(),
            pool=POOL,
            options=LoadOptions(parallel=4),
            running=1,
            holdings=(Holding(request_ids=("a",), pages=60),),
            runs=(
                make_run("a"),
                make_run("b", RunState.PARKED, wait=make_wait(pages_needed=20)),
                make_run("c", RunState.QUEUED, wait=make_wait(WaitKind.NO_SEAT)),
            ),
        )
        stage.history.look()
        stage.now_s += 3
        assert stage.history.saving(15 << 20) == Saving(3.0, 0.0)
        assert stage.history.saving(16 << 20) == Saving(3.0, 3.0)

    play(tmp_path, story)


def test_a_program_has_a_lane_for_its_requests_and_one_more_for_each_at_the_same_time(
    tmp_path: Path,
) -> None:
    async def story(stage: Stage) -> None:
        engine = stage.engine
        for name in ("chatcmpl-a", "chatcmpl-b"):
            engine.submit(make_request(request_id=name))
            await stage.after(1, lambda name=name: engine.start(name))
        await stage.after(1, lambda: engine.finish("chatcmpl-a"))
        engine.submit(make_request(request_id="chatcmpl-c"))
        await stage.after(1, lambda: engine.start("chatcmpl-c"))
        lanes = stage.history.lanes()
        assert [lane.name for lane in lanes] == ["API request c", "API request b"], "as in the list"
        ids = [[span.request_id for span in lane.spans] for lane in lanes]
        assert ids == [["chatcmpl-a", "chatcmpl-c"], ["chatcmpl-b"]]

    play(tmp_path, story)


def test_programs_go_by_the_names_of_their_keys(tmp_path: Path) -> None:
    async def run() -> None:
        async with open_chats(tmp_path / "history.sqlite", FakeEngine(auto=False)) as rig:
            client, log = EngineClient(rig.engine, asyncio.get_running_loop()), RequestLog()
            for number, key in enumerate(("editor", "nightly", "editor")):
                row = RequestRow(
                    row_id=number, started_s=0.0, method="POST", path="/", client=key, key=key
                )
                log.put(replace(row, run_ids=(f"r{number}",)))
            history = ParkHistory(client, RunService(client, rig.chats, log))
            for number in range(3):
                rig.engine.submit(make_request(request_id=f"r{number}"))
                rig.engine.start(f"r{number}")
                rig.engine.finish(f"r{number}")
            await asyncio.sleep(0)
            assert [lane.name for lane in history.lanes()] == ["editor", "nightly"]
            history.close()

    asyncio.run(run())
