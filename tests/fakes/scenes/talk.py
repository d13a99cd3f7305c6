"""What every scene begins with, and what several of them do."""

from __future__ import annotations

from PySide6.QtCore import QPoint

from fakes.fake_window import Stage, until
from studio.models.chat import Conversation
from studio.views.actions import CommandId
from studio.views.chat.code_block import CodeBlock
from studio.views.sidebar.chat_list import ChatList

TITLES = ("Recipes", "Mail help", "Trip to Lisbon")


PROMPT = "Plan three days in Lisbon."


REPLY = """Three days, **slowly**, with [tram 28](https://example.org/28):

1. *Alfama* and the castle
2. Belém

| day | place | km |
|---|---|---|
| 1 | Alfama | 4 |
| 2 | Belém | 7 |

```py
for day in range(1, 4):
    print(day)
```

The mean is $\\bar x = \\frac{11}{2}$.
"""


async def talk(stage: Stage) -> Conversation:
    """The first chat with a prompt and a reply that has a bit of everything, drawn."""
    stage.services.settings.change("engine.ctx_size", 2048)  # as is loaded
    chat = stage.chats.chats[0]
    request_id = await stage.ask(chat, PROMPT)
    stage.engine.start(request_id)
    stage.engine.say(request_id, REPLY)
    stage.engine.finish(request_id)
    pane, formulas = stage.window.panes.active, stage.window.context.kit.formulas
    await until(lambda: pane.findChild(CodeBlock) and not formulas.is_busy)
    return chat


def do(stage: Stage, command: CommandId) -> None:
    stage.window.commands[command].trigger()


def list_of(stage: Stage) -> ChatList:
    return stage.window.findChild(ChatList)


def row_of(stage: Stage, text: str) -> QPoint:
    rows = list_of(stage)
    model = rows.model()
    indexes = (model.index(row, 0) for row in range(model.rowCount()))
    return rows.visualRect(next(one for one in indexes if one.data() == text)).center()
