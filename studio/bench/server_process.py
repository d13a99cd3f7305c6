"""Servers to measure, each in a process of its own: `layby serve`, or a llama-server that the user has.

Started and ended by the caller's thread; what they log goes to a file that is read only when one does not start.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import IO

import httpx
import psutil

from engine.system_faults import system_fault
from studio.bench.plan import BenchPlan
from studio.bench.scenarios import warm_up
from studio.models.errors import StudioError

OURS, THEIRS = "layby", "llama-server"
_START_TIMEOUT_S = 300.0
_STOP_TIMEOUT_S = 30.0
_POLL_S = 0.02
_LOG_TAIL = 800


@dataclass(frozen=True, slots=True)
class Server:
    """One that listens and has its model loaded."""

    url: str
    started_s: float
    """When its command was given, on `time.perf_counter`."""
    process: psutil.Process

    @property
    def resident_bytes(self) -> int:
        return int(self.process.memory_info().rss)

    def cpu_s(self) -> float:
        """Seconds of processor time it has used."""
        times = self.process.cpu_times()
        return float(times.user + times.system)

    def idle_share(self, seconds: float) -> float:
        """Share of one core that it uses while nobody asks anything, over so many seconds."""
        before = self.cpu_s()
        time.sleep(seconds)
        return (self.cpu_s() - before) / seconds


@contextmanager
def layby_server(plan: BenchPlan, pool_tokens: int, *flags: str) -> Iterator[Server]:
    """`layby serve` with a pool of this size. Raises StudioError when it does not start."""
    command = [sys.executable, "-m", "studio", "serve", "-m", str(plan.model)]
    command += ["--host", "127.0.0.1", "--port", "0", "-c", str(pool_tokens)]
    command += ["-np", str(plan.load.num_chats), *plan.server_flags, *flags]
    with _running(command) as (process, log, started_s):
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line.startswith("listening on "):
            raise _not_started("layby serve", process, log)
        url = line.removeprefix("listening on ").strip()
        yield Server(url, started_s, psutil.Process(process.pid))


@contextmanager
def llama_server(plan: BenchPlan, pool_tokens: int) -> Iterator[Server]:
    """The user's llama-server on the same file, threads, seats and pool. Raises StudioError when it does not start."""
    assert plan.llama_server is not None
    port = _free_port()
    command = [str(plan.llama_server), "-m", str(plan.model), "--host", "127.0.0.1"]
    command += ["--port", str(port), "-c", str(pool_tokens), "-np", str(plan.load.num_chats)]
    command += ["--kv-unified"]  # one pool for all seats, as ours is
    if plan.options.threads:
        command += ["-t", str(plan.options.threads), "-tb", str(plan.options.threads)]
    with _running(command) as (process, log, started_s):
        url = f"http://127.0.0.1:{port}"
        while not _is_healthy(url):
            if process.poll() is not None or time.perf_counter() - started_s > _START_TIMEOUT_S:
                raise _not_started(str(plan.llama_server), process, log)
            time.sleep(_POLL_S)
        yield Server(url, started_s, psutil.Process(process.pid))


@contextmanager
def all_servers(plan: BenchPlan, pool_tokens: int) -> Iterator[dict[str, Server]]:
    """Ours, and the one to compare with where there is one, by name, warm; both run, whoever is asked."""
    with ExitStack() as stack:
        servers = {OURS: stack.enter_context(layby_server(plan, pool_tokens))}
        if plan.llama_server is not None:
            servers[THEIRS] = stack.enter_context(llama_server(plan, pool_tokens))
        for server in servers.values():
            warm_up(server.url, plan)
        yield servers


@contextmanager
def _running(
    command: list[str],
) -> Iterator[tuple[subprocess.Popen[str], IO[bytes], float]]:
    with tempfile.TemporaryFile() as log:
        started_s = time.perf_counter()
        try:
            process = subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=log)
        except OSError as error:
            raise StudioError(f"{command[0]} cannot be started: {system_fault(error)}") from error
        with process:
            try:
                yield process, log, started_s
            finally:
                process.terminate()
                try:
                    process.wait(_STOP_TIMEOUT_S)
                except subprocess.TimeoutExpired:
                    process.kill()


def _not_started(name: str, process: subprocess.Popen[str], log: IO[bytes]) -> StudioError:
    process.kill()
    process.wait()
    log.seek(0)
    tail = log.read().decode(errors="replace").strip()[-_LOG_TAIL:]
    return StudioError(f"{name} did not start: {tail or f'exit code {process.returncode}'}")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


def _is_healthy(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health", timeout=2.0, trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False
