"""kill -9 while three chats stream: prompts, and the text up to the last second, are there afterwards."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

from fakes import crash_writer
from fakes.chat_rig import open_chats, read_rows
from studio.models.chat import MessageStatus

ROOT = Path(__file__).resolve().parents[3]
STREAM_S = 2.5
"""Long enough for the last second to be some later one than the first."""


def stream_and_kill(path: Path) -> dict[int, list[tuple[float, int]]]:
    """(seconds, characters) of every token of every chat that the child had before it was killed."""
    process = subprocess.Popen(
        [sys.executable, crash_writer.__file__, str(path)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])},
    )
    assert process.stdout is not None
    grown: dict[int, list[tuple[float, int]]] = {}
    started_s = None
    try:
        for line in process.stdout:
            chat_id, characters, moment_s = line.split()
            grown.setdefault(int(chat_id), []).append((float(moment_s), int(characters)))
            started_s = started_s or float(moment_s)
            if float(moment_s) - started_s > STREAM_S:
                break
    finally:
        process.kill()
        process.stdout.close()
        process.wait()
    return grown


def test_a_killed_program_loses_no_more_than_the_last_second(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    grown = stream_and_kill(path)
    assert len(grown) == 3
    whole = "".join(f"w{step} " for step in range(100_000))

    async def reopen() -> None:
        async with open_chats(path) as rig:
            assert len(rig.chats.chats) == 3
            for chat in rig.chats.chats:
                await rig.chats.open_chat(chat.chat_id)
                prompt, reply = chat.messages
                assert prompt.text == f"prompt {chat.chat_id - 1}"
                assert reply.status is MessageStatus.INTERRUPTED
                assert whole.startswith(reply.text)
                killed_s = grown[chat.chat_id][-1][0]
                older = [
                    length for moment_s, length in grown[chat.chat_id] if moment_s < killed_s - 1.0
                ]
                assert len(reply.text) >= older[-1] > 0
        assert rig.notice_codes == []

    asyncio.run(reopen())
    assert read_rows(path, "PRAGMA integrity_check") == [("ok",)]
    assert not list(tmp_path.glob("*.broken*"))
