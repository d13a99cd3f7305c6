"""The transcript under load: a chat of 5,000 messages opened, scrolled and typed into; four panes that stream at once.

Run: QT_QPA_PLATFORM=offscreen PYTHONPATH=. python tests/bench/bench_transcript.py [--tokens-per-s 60]. Not collected by
pytest. CPU is this process's own, so the shares hold beside other work; how late ticks are does not.
"""
# ruff: noqa: T201 - the table is the point

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QEventLoop, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QHBoxLayout, QPlainTextEdit, QVBoxLayout, QWidget

from studio.models.chat import Conversation, Message, MessageStatus, Role
from studio.models.settings import Theme as ThemeChoice
from studio.views.chat.chat_view import ChatView
from studio.views.chat.formulas import Formulas
from studio.views.chat.kit import Kit
from studio.views.chat.slices import Slices
from studio.views.frame_ticker import FrameTicker
from studio.views.theme import Theme

MESSAGES, CHARS_A_TOKEN, PANES, STREAM_S, TICK_MS = 5000, 4, 4, 10.0, 5
WORDS = ("the", "of", "and", "model", "pool", "page", "token", "answer", "river", "house", "light")


def sentence(words: int) -> str:
    return " ".join(random.choice(WORDS) for _ in range(words)).capitalize() + "."


def reply(number: int) -> str:
    """Some 200 tokens: paragraphs, a list, now and then code and formulas."""
    parts = [sentence(45), f"- {sentence(9)}\n- **{sentence(3)}** {sentence(9)}", sentence(60)]
    if number % 5 == 0:
        parts.append('```python\ndef f(x):\n    """Doc."""\n    return x + 1  # more\n```')
    if number % 7 == 0:
        parts.append(rf"So $x_{number % 50}^2 + y_i$ is $\frac{{a}}{{b}}$ at last.")
    return "\n\n".join(parts)


def long_chat(chat_id: int, messages: int) -> Conversation:
    chat = Conversation(chat_id, "Long", 0.0, 0.0, is_loaded=True)
    for number in range(messages):
        role = Role.ASSISTANT if number % 2 else Role.USER
        text = reply(number) if number % 2 else sentence(25)
        chat.messages.append(Message(number + 1, chat_id, role, text, 0.0))
    return chat


def rss_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def run_for(seconds: float) -> None:
    loop = QEventLoop()
    QTimer.singleShot(round(seconds * 1e3), loop.quit)
    loop.exec()


class Lateness:
    """How late a timer of TICK_MS comes: what anybody who types would feel."""

    def __init__(self) -> None:
        self._late: list[float] = []
        self._last = time.perf_counter()
        self._timer = QTimer()
        self._timer.setInterval(TICK_MS)
        self._timer.timeout.connect(self._tick)

    def during(self, work: Callable[[], None]) -> str:
        self._late, self._last = [], time.perf_counter()
        self._timer.start()
        work()
        self._timer.stop()
        late = sorted(self._late)
        p50, p99 = late[len(late) // 2], late[int(len(late) * 0.99)]
        return f"ticks late p50 {p50:4.1f}  p99 {p99:5.1f}  worst {late[-1]:5.1f} ms ({len(late)})"

    def _tick(self) -> None:
        now = time.perf_counter()
        self._late.append(max(0.0, (now - self._last) * 1e3 - TICK_MS))
        self._last = now


def open_and_scroll(kit: Kit, lateness: Lateness) -> None:
    page, ticker = QWidget(), None
    page.resize(1000, 800)
    field = QPlainTextEdit(page)
    layout = QVBoxLayout(page)
    layout.addWidget(field)
    page.show()
    run_for(0.2)
    chat = long_chat(1, MESSAGES)
    tokens = sum(len(message.text) for message in chat.messages) // CHARS_A_TOKEN
    before_mb, began_s, cpu_s = rss_mb(), time.perf_counter(), time.process_time()
    ticker = FrameTicker(page)
    view = ChatView(chat, kit, ticker, page)
    layout.insertWidget(0, view)
    view.show()
    QApplication.processEvents()
    view.grab()
    took_ms = (time.perf_counter() - began_s) * 1e3
    cpu_ms = (time.process_time() - cpu_s) * 1e3
    print(f"{MESSAGES} messages, {tokens} tokens: open {took_ms:.0f} ms (CPU {cpu_ms:.0f} ms)")
    run_for(1.0)
    bar = view.verticalScrollBar()

    def scroll() -> None:
        for _ in range(250):
            bar.setValue(bar.value() - 120)
            run_for(0.02)

    def jump() -> None:
        for _ in range(60):
            bar.setValue(random.randrange(bar.maximum()))
            run_for(0.05)

    def type_in() -> None:
        for _ in range(100):
            QTest.keyClicks(field, "word ")
            run_for(0.01)

    for name, steps, work in (("scroll", 250, scroll), ("jump", 60, jump), ("type", 500, type_in)):
        cpu_s = time.process_time()
        told = lateness.during(work)
        cpu_ms = (time.process_time() - cpu_s) * 1e3 / steps
        print(f"  {name:<7}{told}, CPU {cpu_ms:.1f} ms a step")
    print(
        f"  memory of the transcript {rss_mb() - before_mb:.0f} MB, {view.rows.num_views} widgets of rows"
    )
    view.close_view()
    page.close()


def stream(kit: Kit, lateness: Lateness, tokens_per_s: float) -> None:
    page = QWidget()
    page.resize(1600, 900)
    row = QHBoxLayout(page)
    ticker, panes = FrameTicker(page), []
    for number in range(PANES):
        chat = long_chat(number + 1, 60)
        answer = Message(1000, number + 1, Role.ASSISTANT, "", 0.0, MessageStatus.WRITING)
        chat.messages.append(answer)
        view = ChatView(chat, kit, ticker, page)
        row.addWidget(view)
        panes.append((view, answer, "\n\n".join(reply(n) for n in range(60)), random.random()))
    page.show()
    run_for(1.5)
    started_s = time.perf_counter()

    def feed() -> None:
        """As the engine does: every step gives each chat a token."""
        for view, answer, text, _ in panes:
            due = int((time.perf_counter() - started_s) * tokens_per_s) * CHARS_A_TOKEN
            if due > len(answer.text):
                answer.text = text[:due]
                view.mark_changed(answer.message_id)

    feeder = QTimer()
    feeder.setInterval(round(1e3 / tokens_per_s))
    feeder.timeout.connect(feed)
    feeder.start()
    cpu_s, began_s = time.process_time(), time.perf_counter()
    told = lateness.during(lambda: run_for(STREAM_S))
    share = (time.process_time() - cpu_s) / (time.perf_counter() - began_s)
    feeder.stop()
    print(f"{PANES} panes at {tokens_per_s:.0f} tokens/s each: {share:.0%} of a core")
    print(f"  {told}, {ticker.num_flushes / STREAM_S:.0f} frames/s")
    for view, *_ in panes:
        view.close_view()
    page.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens-per-s", type=float, default=60.0)
    given = parser.parse_args()
    random.seed(1)
    app = QApplication([])
    theme = Theme(app)
    theme.apply(ThemeChoice.LIGHT, 14)
    owner = QWidget()
    kit = Kit(theme, Formulas(owner), Slices(owner))
    lateness = Lateness()
    open_and_scroll(kit, lateness)
    stream(kit, lateness, given.tokens_per_s)
    kit.formulas.close()
    theme.close()


if __name__ == "__main__":
    main()
