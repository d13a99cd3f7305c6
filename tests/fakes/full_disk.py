"""A program that starts on a disk that is full: run as root of namespaces of its own, with a small disk at FOLDER.

Prints as JSON what could be read, done and told meanwhile, and once there was room again.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

from engine.api import EngineState, ModelChanged
from fakes.chat_rig import ChatRig, open_chats, until
from fakes.fake_engine import TINY_MODEL
from studio.models.errors import StoreError
from studio.services.history_store import HistoryStore

ROOT = Path(__file__).resolve().parents[2]
_MOUNTED = 'mount -t tmpfs -o size=2m tmpfs "$1" && exec "$2" "$3" "$1"'


def story_on_a_full_disk(folder: Path) -> dict[str, Any] | None:
    """What the program printed; None where this system gives nobody a disk of his own."""
    command = ["unshare", "--map-root-user", "--mount", "sh", "-c", _MOUNTED, "sh", str(folder)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])}
    try:
        may = subprocess.run([*command[:3], "true"], capture_output=True, check=False)
    except OSError:
        return None
    if may.returncode:
        return None
    done = subprocess.run(
        [*command, sys.executable, __file__], capture_output=True, env=environment, check=True
    )
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def fill_up(filler: Path) -> None:
    """Leave not a byte."""
    with filler.open("ab", buffering=0) as file:
        for size in (4096, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise


async def _leave_a_chat(path: Path) -> None:
    """As a program that was killed leaves it: its reply is being written."""
    async with open_chats(path) as rig:
        _, reply, request_id = await rig.ask("Where is the key?")
        rig.engine.start(request_id)
        rig.engine.say(request_id, "Under the m")
        await until(lambda: reply.text)
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("UPDATE messages SET status = 'writing' WHERE role = 'assistant'")


def _notices(rig: ChatRig) -> list[tuple[str, str]]:
    return [(one.code, one.detail.partition(";")[2]) for one in rig.notices.notices.notices]


async def _new_history(path: Path) -> str:
    """What is said where there is none yet."""
    store = HistoryStore(path)
    try:
        await store.open()
    except StoreError as error:
        return error.code
    finally:
        await store.close()
    return "opened"


async def _story(folder: Path) -> dict[str, Any]:
    path, filler = folder / "history.db", folder / "filler"
    await _leave_a_chat(path)
    fill_up(filler)
    told: dict[str, Any] = {"new": await _new_history(folder / "new.db")}
    async with open_chats(path) as rig:
        (chat,) = rig.chats.chats
        told["listed"] = chat.last_status and chat.last_status.value
        await rig.chats.open_chat(chat.chat_id)
        told["read"] = [(one.text, one.status.value) for one in chat.messages]
        told["notices"] = _notices(rig)
        made = await rig.chats.new_chat()
        rig.chats.set_draft(made, "kept")
        told["sent"] = await rig.chats.send(made, "keep this in the field")
        early = await rig.chats.new_chat()
        await rig.chats.drafts.queue_for_model(early, "early")
        rig.engine.emit(ModelChanged(state=EngineState.READY, model=TINY_MODEL))
        await until(lambda: early.queued is not None and early.queued.waits_for_store)
        filler.unlink()
        await until(lambda: early.running_message is not None)
        told["early"] = [one.text for one in early.messages]
        await until(lambda: not rig.notices.notices.notices)
        told["later"] = rig.notice_codes
        told["sent later"] = await rig.chats.send(made, "keep this in the field")
    async with open_chats(path) as rig:
        told["kept"] = sorted((one.title, one.draft) for one in rig.chats.chats)
    return told


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(_story(Path(sys.argv[1])))))
