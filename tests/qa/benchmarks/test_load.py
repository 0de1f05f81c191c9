"""Fifty readers and two hundred API requests a second while trials are written: errors, memory, waits.

COMPILEWATCH_LOAD_S says for how many seconds, a minute unless told otherwise; COMPILEWATCH_LOAD_TRIALS_PER_S
how many trials a second, ten unless told otherwise; COMPILEWATCH_LOAD_VIEWS how many pages one process draws
while its memory is looked at.
"""

from __future__ import annotations

import asyncio
import os
import random
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest
from websockets.exceptions import WebSocketException

from compilewatch.dashboard.links.links import Page
from compilewatch.db.engine.session import open_database, sqlite_file
from compilewatch.db.store.trials import save_trials
from tests.dashboard.serving import ROOT, Served, served
from tests.qa.benchmarks.http_poller import Poller
from tests.qa.benchmarks.load_writer import nights
from tests.qa.benchmarks.websocket_reader import reading

pytestmark = pytest.mark.benchmark

SECONDS = float(os.environ.get("COMPILEWATCH_LOAD_S", "60"))
VIEWS = int(os.environ.get("COMPILEWATCH_LOAD_VIEWS", "2000"))
TRIALS_PER_S = float(os.environ.get("COMPILEWATCH_LOAD_TRIALS_PER_S", "10"))
READERS = 50
REQUESTS_PER_S = 200
# An address may send 20 requests a second, so 200 come from twelve; every other one sends entity tags back.
ADDRESSES = [f"127.0.0.{number}" for number in range(2, 14)]
PATHS = [
    "/api/v1/machines",
    "/api/v1/runs",
    "/api/v1/trials?limit=20",
    "/api/v1/series?limit=20",
    "/api/v1/compare?base=torch=2.98.30&head=torch=2.98.31",
    "/api/v1/compare?base=previous&head=latest",
    "/api/v1/break-even",
    "/api/v1/regressions",
    "/badge/mlp/default.svg",
    "/healthz",
    "/metrics",
]
PAGES = [Page.OVERVIEW, Page.WORKLOAD, Page.MODES, Page.UPGRADE, Page.REGRESSIONS, Page.RUNS]
THINKING_S = (5.0, 15.0)
# Pages and comparisons look at the newest 30 runs. There are that many before the first is added, so that the
# memory they need for what they look at does not grow with what the load adds.
NIGHTS = 32
# Caches fill in the first minutes; what grows afterwards is told as a slope.
SETTLED_AFTER = 0.5


@dataclass
class Seen:
    """What came of everything that was sent."""

    statuses: Counter[int] = field(default_factory=Counter)
    answered_s: list[float] = field(default_factory=list)
    pages_s: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    rss_mib: list[tuple[float, float]] = field(default_factory=list)
    log_mib: list[float] = field(default_factory=list)
    saved_ms: list[float] = field(default_factory=list)
    server_cpu_s: float = 0.0
    client_cpu_s: float = 0.0


@pytest.fixture
def server(empty_database_url: str, tmp_path: Path) -> Iterator[tuple[Served, str]]:
    with open_database(empty_database_url, migrate=True) as database:
        for night in nights(NIGHTS, datetime.now(UTC)):
            save_trials(database, night)
    with served(empty_database_url, tmp_path / "log") as running:
        yield running, empty_database_url
    log = (tmp_path / "log").read_text()
    assert "Traceback" not in log, log[-4000:]


@pytest.mark.timeout(SECONDS + 600)
def test_many_readers_and_programs_while_trials_are_written(server: tuple[Served, str], backend: str) -> None:
    running, url = server
    seen = Seen()
    command = [
        sys.executable,
        "-m",
        "tests.qa.benchmarks.load_writer",
        url,
        *map(str, (SECONDS, TRIALS_PER_S)),
    ]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as writer:
        before, mine = psutil.Process(running.pid).cpu_times(), psutil.Process().cpu_times()
        asyncio.run(_all(running, sqlite_file(url), seen))
        after, later = psutil.Process(running.pid).cpu_times(), psutil.Process().cpu_times()
        seen.server_cpu_s = after.user + after.system - before.user - before.system
        seen.client_cpu_s = later.user + later.system - mine.user - mine.system
        assert writer.stdout is not None
        seen.saved_ms = [float(line) for line in writer.stdout]
        assert writer.wait() == 0
    _tell(seen, backend)
    assert seen.errors == []
    assert set(seen.statuses) <= {200, 304}


@pytest.mark.timeout(VIEWS + 600)
def test_memory_after_many_page_views(server: tuple[Served, str], backend: str) -> None:
    """One reader, one page after the other, nothing written: the second half needs no more than the first."""
    running, _ = server
    rss_mib: list[float] = []

    async def read() -> None:
        process = psutil.Process(running.pid)
        async with reading(running.port) as reader:
            for number in range(VIEWS):
                await reader.run(PAGES[number % len(PAGES)])
                rss_mib.append(process.memory_info().rss / 2**20)

    asyncio.run(read())
    half, last = rss_mib[VIEWS // 2], statistics.median(rss_mib[-len(PAGES) :])
    print("\n| database | views | MiB after half | after all | change |")
    print("|---|---|---|---|---|")
    print(f"| {backend} | {VIEWS} | {half:.0f} | {last:.0f} | {last / half - 1:+.1%} |")


async def _all(running: Served, file: Path | None, seen: Seen) -> None:
    began = time.monotonic()
    end = began + SECONDS
    await asyncio.gather(
        _watch(running.pid, file, began, end, seen),
        *(_poll(running.port, number, began, end, seen) for number in range(len(ADDRESSES))),
        *(_read(running.port, number, end, seen) for number in range(READERS)),
    )


async def _poll(port: int, number: int, began: float, end: float, seen: Seen) -> None:
    """Asks at fixed moments; a wait counts from the moment a request was due, so a late answer hides none."""
    chance = random.Random(number)
    every_s = len(ADDRESSES) / REQUESTS_PER_S
    poller = Poller(port, ADDRESSES[number], revalidates=number % 2 == 0)
    due = began + every_s * number / len(ADDRESSES)
    try:
        while due < end:
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            async with asyncio.timeout(60):
                seen.statuses[await poller.get(chance.choice(PATHS))] += 1
            seen.answered_s.append(time.monotonic() - due)
            due += every_s
    except (OSError, TimeoutError) as error:
        seen.errors.append(f"{poller.address}: {error!r}")
    finally:
        poller.close()


async def _watch(pid: int, file: Path | None, began: float, end: float, seen: Seen) -> None:
    log = file.with_name(f"{file.name}-wal") if file else None
    while (now := time.monotonic()) < end:
        seen.rss_mib.append((now - began, psutil.Process(pid).memory_info().rss / 2**20))
        seen.log_mib.append(log.stat().st_size / 2**20 if log and log.exists() else 0.0)
        await asyncio.sleep(2)


async def _read(port: int, number: int, end: float, seen: Seen) -> None:
    chance = random.Random(number)
    await asyncio.sleep(chance.uniform(0, THINKING_S[1]))
    try:
        async with reading(port) as reader:
            while time.monotonic() < end:
                ran = await reader.run(chance.choice(PAGES))
                seen.pages_s.append(ran.seconds)
                await asyncio.sleep(chance.uniform(*THINKING_S))
    except (AssertionError, OSError, TimeoutError, WebSocketException) as error:
        seen.errors.append(f"reader {number}: {error!r}")


def _tell(seen: Seen, backend: str) -> None:
    answered, pages = sorted(seen.answered_s), sorted(seen.pages_s)
    p95_ms, p95_s = answered[int(len(answered) * 0.95)] * 1000, pages[int(len(pages) * 0.95)]
    print("\n| database | seconds | answers, p95 | pages, p95 | errors | MiB, largest |")
    print("|---|---|---|---|---|---|")
    print(
        f"| {backend} | {SECONDS:.0f} | {len(answered)}, {p95_ms:.0f} ms | {len(pages)}, {p95_s:.2f} s "
        f"| {len(seen.errors)} | {max(mib for _, mib in seen.rss_mib):.0f} |"
    )
    print(f"\n{SECONDS:.0f} s, {READERS} readers, {REQUESTS_PER_S} requests/s offered")
    print(
        f"API: {len(answered) / SECONDS:.0f} answers/s, median {statistics.median(answered) * 1000:.1f} ms, "
        f"p99 {answered[int(len(answered) * 0.99)] * 1000:.0f} ms, longest {answered[-1] * 1000:.0f} ms, "
        f"by status {dict(seen.statuses)}"
    )
    print(
        f"Pages: {len(pages)} runs, median {statistics.median(pages):.2f} s, "
        f"p99 {pages[int(len(pages) * 0.99)]:.2f} s, longest {pages[-1]:.2f} s; {len(seen.errors)} errors"
    )
    print(
        f"Processor: server {seen.server_cpu_s / SECONDS:.0%} of one core, "
        f"readers and programs {seen.client_cpu_s / SECONDS:.0%}"
    )
    settled = [each for each in seen.rss_mib if each[0] > SETTLED_AFTER * SECONDS]
    slope = statistics.linear_regression(*zip(*settled, strict=True)).slope
    quarters = [
        statistics.median(mib for at, mib in seen.rss_mib if n <= 4 * at / SECONDS < n + 1) for n in range(4)
    ]
    print(
        f"Memory of the server by quarters: {', '.join(f'{mib:.0f}' for mib in quarters)} MiB, "
        f"at most {max(mib for _, mib in seen.rss_mib):.0f} MiB; second half {slope * 60:+.1f} MiB a minute"
    )
    saved = sorted(seen.saved_ms)
    print(
        f"Writer: {len(saved)} trials, median {statistics.median(saved):.0f} ms a save, "
        f"p99 {saved[int(len(saved) * 0.99)]:.0f} ms, longest {saved[-1]:.0f} ms; "
        f"write-ahead log at most {max(seen.log_mib):.1f} MiB"
    )
