"""Tools without servers: what they answer is a test's to say, and when."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

from studio.models.errors import ToolServerError
from studio.models.tool_servers import LinkState, LinkStatus, ToolFacts, ToolServer
from studio.models.tool_settings import ToolSettings
from studio.services.chat_service import ChatTooling
from studio.services.tools.answers import ToolAnswer
from studio.services.tools.tool_service import ToolService

WEATHER = ToolFacts(
    name="weather",
    description="The weather in a city.",
    parameters='{"type": "object", "properties": {"city": {"type": "string"}}}',
)
NOTES = ToolFacts(name="notes", title="Reads notes", description="Reads notes.")


class FakeTools(ToolService):
    """One server, "home", with two tools. `gate` holds calls back until it is set; `called` is what was asked.

    `may_start` holds the server's start back in the same way.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        if self.store.find("home") is None:
            self.store.add((ToolServer(name="home", command="home-server", is_on=True),))
        self.called: list[tuple[str, str, str]] = []
        self.cancelled: list[str] = []
        self.answers: dict[str, ToolAnswer | ToolServerError] = {
            "weather": ToolAnswer(text="7 degrees, rain"),
            "notes": ToolAnswer(text="Buy milk"),
        }
        self.gate = asyncio.Event()
        self.gate.set()
        self.problem = ""
        self.tools: tuple[ToolFacts, ...] = (WEATHER, NOTES)
        self.may_start = asyncio.Event()
        self.may_start.set()

    async def tools_of(self, names: Iterable[str]) -> dict[str, tuple[ToolFacts, ...]]:
        if "home" not in names:
            return {}
        if self.problem:
            self._tell("home", LinkStatus(state=LinkState.FAILED, problem=self.problem))
            return {}
        if not self.may_start.is_set():
            self._tell("home", LinkStatus(state=LinkState.STARTING))
            await self.may_start.wait()
        self._tell("home", LinkStatus(state=LinkState.READY, tools=self.tools))
        return {"home": self.tools}

    async def _open(self, server: ToolServer) -> None:
        await self.tools_of([server.name])

    async def call(
        self, server_name: str, tool: str, arguments: str, *, timeout_s: float
    ) -> ToolAnswer:
        self.called.append((server_name, tool, arguments))
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled.append(tool)
            raise
        answer = self.answers[tool]
        if isinstance(answer, ToolServerError):
            raise answer
        return answer

    async def test(self, server: ToolServer) -> tuple[ToolFacts, ...]:
        await asyncio.sleep(0)
        if self.problem:
            raise ToolServerError(self.problem)
        return (WEATHER, NOTES)

    def tooling(self, settings: ToolSettings | None = None) -> ChatTooling:
        return ChatTooling(service=self, settings=lambda: settings or ToolSettings())
