"""A program that streams three chats through ChatService until it is killed: the child of the crash test.

Prints one line for every token once its message has it: chat id, characters so far, seconds on the clock.
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

from fakes.chat_rig import open_chats
from studio.models.chat import Message
from studio.services.chat_saver import SAVE_INTERVAL_S

TOKEN_INTERVAL_S = 0.005


def tell(message: Message) -> None:
    sys.stdout.write(f"{message.chat_id} {len(message.text)} {time.monotonic()}\n")
    sys.stdout.flush()


async def stream_forever(path: Path) -> None:
    async with open_chats(path, save_interval_s=SAVE_INTERVAL_S) as rig:
        rig.chats.message_changed.connect(tell)
        request_ids = [(await rig.ask(f"prompt {number}"))[2] for number in range(3)]
        for request_id in request_ids:
            rig.engine.start(request_id)
        for step in range(1_000_000):
            for request_id in request_ids:
                rig.engine.say(request_id, f"w{step} ")
            await asyncio.sleep(TOKEN_INTERVAL_S)


if __name__ == "__main__":
    asyncio.run(stream_forever(Path(sys.argv[1])))
