"""A scripted engine whose model calls a tool."""

from __future__ import annotations

from engine.api import Chat, FinishReason, Request, ToolCallDelta
from fakes.http_driver import WatchedEngine


class CallingEngine(WatchedEngine):
    """Answers every request that offers tools with thoughts, text and a call, until there is a result."""

    def submit(self, request: Request) -> None:
        prompt = request.prompt
        assert isinstance(prompt, Chat)
        if not prompt.tools or prompt.messages[-1].role == "tool":
            super().submit(request)
            return
        self.auto = False
        super().submit(request)
        name = request.request_id
        self.start(name)
        self.write(name, reasoning="Look first.")
        self.write(name, text="I will look.")
        self.write(name, call=ToolCallDelta(index=0, call_id="call_1", name="look"))
        self.write(name, call=ToolCallDelta(index=0, arguments='{"at": '))
        self.write(name, call=ToolCallDelta(index=0, arguments='"sky"}'))
        self.finish(name, FinishReason.TOOL_CALLS)
        self.auto = True
