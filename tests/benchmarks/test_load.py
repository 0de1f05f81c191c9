"""Fifty readers and two hundred API requests a second while trials are written: errors, memory, waits.

COMPILEWATCH_LOAD_S says for how many seconds; a minute unless told otherwise.
"""

from __future__ import annotations

import asyncio
import http.client
import os
import random
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from dashboard.links import Page
from db.session import open_database
from db.store import save_trials
from tests.benchmarks.websocket_reader import reading
from tests.builders import make_history
from tests.dashboard.serving import ROOT, Served, served

pytestmark = pytest.mark.benchmark

SECONDS = float(os.environ.get("COMPILEWATCH_LOAD_S", "60"))
READERS = 50
REQUESTS_PER_S = 200
# Each address may send 20 requests a second, so that many come from as many addresses.
ADDRESSES = [f"127.0.0.{number}" for number in range(2, 14)]
PATHS = ["/api/v1/runs", "/api/v1/trials?limit=20", "/api/v1/series?limit=20", "/healthz", "/metrics"]
PAGES = [Page.OVERVIEW, Page.TRENDS, Page.MODES, Page.UPGRADE, Page.REGRESSIONS, Page.RUNS]
THINKING_S = (5.0, 15.0)
BUSY = 429


@dataclass
class Seen:
    """What came of everything that was sent."""

    statuses: Counter[int] = field(default_factory=Counter)
    answered_s: list[float] = field(default_factory=list)
    pages_s: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    rss_mib: list[float] = field(default_factory=list)
    saved_ms: list[float] = field(default_factory=list)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[Served, str]]:
    url = f"sqlite:///{tmp_path / 'load.db'}"
    with open_database(url, migrate=True) as database:
        save_trials(database, make_history(workloads=("bert-base", "resnet-50", "mlp", "elementwise")))
    with served(url, tmp_path / "log") as running:
        yield running, url


@pytest.mark.timeout(SECONDS + 600)
def test_many_readers_and_programs_while_trials_are_written(server: tuple[Served, str]) -> None:
    running, url = server
    seen = Seen()
    command = [sys.executable, "-m", "tests.benchmarks.load_writer", url, str(SECONDS)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as writer:
        end = time.monotonic() + SECONDS
        threads = [threading.Thread(target=_ask, args=(running, each, end, seen)) for each in ADDRESSES]
        threads.append(threading.Thread(target=_watch, args=(running.pid, end, seen)))
        for thread in threads:
            thread.start()
        asyncio.run(_read_all(running.port, end, seen))
        for thread in threads:
            thread.join()
        assert writer.stdout is not None
        seen.saved_ms = [float(line) for line in writer.stdout]
        assert writer.wait() == 0
    _tell(seen)
    assert seen.errors == []
    assert set(seen.statuses) <= {200, BUSY}


def _ask(running: Served, address: str, end: float, seen: Seen) -> None:
    chance = random.Random(address)
    every_s = len(ADDRESSES) / REQUESTS_PER_S
    connection = http.client.HTTPConnection(
        "127.0.0.1", running.port, timeout=60, source_address=(address, 0)
    )
    try:
        while (began := time.monotonic()) < end:
            connection.request("GET", chance.choice(PATHS))
            answer = connection.getresponse()
            answer.read()
            seen.statuses[answer.status] += 1
            seen.answered_s.append(time.monotonic() - began)
            time.sleep(max(0.0, every_s - (time.monotonic() - began)))
    except OSError as error:
        seen.errors.append(f"{address}: {error}")
    finally:
        connection.close()


def _watch(pid: int, end: float, seen: Seen) -> None:
    while time.monotonic() < end:
        seen.rss_mib.append(psutil.Process(pid).memory_info().rss / 2**20)
        time.sleep(2)


async def _read_all(port: int, end: float, seen: Seen) -> None:
    await asyncio.gather(*(_read(port, number, end, seen) for number in range(READERS)))


async def _read(port: int, number: int, end: float, seen: Seen) -> None:
    chance = random.Random(number)
    await asyncio.sleep(chance.uniform(0, THINKING_S[1]))
    try:
        async with reading(port) as reader:
            while time.monotonic() < end:
                ran = await reader.run(chance.choice(PAGES))
                seen.pages_s.append(ran.seconds)
                await asyncio.sleep(chance.uniform(*THINKING_S))
    except (AssertionError, OSError, TimeoutError) as error:
        seen.errors.append(f"reader {number}: {error!r}")


def _tell(seen: Seen) -> None:
    answered, pages = sorted(seen.answered_s), sorted(seen.pages_s)
    half = len(seen.rss_mib) // 2
    print(f"\n{SECONDS:.0f} s, {READERS} readers, {REQUESTS_PER_S} requests/s offered")
    print(
        f"API: {len(answered) / SECONDS:.0f} answers/s, median {statistics.median(answered) * 1000:.0f} ms, "
        f"p99 {answered[int(len(answered) * 0.99)] * 1000:.0f} ms, by status {dict(seen.statuses)}"
    )
    print(
        f"Pages: {len(pages)} runs, median {statistics.median(pages):.2f} s, "
        f"p99 {pages[int(len(pages) * 0.99)]:.2f} s; {len(seen.errors)} errors"
    )
    print(
        f"Memory of the server: {statistics.median(seen.rss_mib[:half]):.0f} MiB in the first half, "
        f"{statistics.median(seen.rss_mib[half:]):.0f} MiB in the second, at most {max(seen.rss_mib):.0f} MiB"
    )
    saved = sorted(seen.saved_ms)
    print(
        f"Writer: {len(saved)} trials, median {statistics.median(saved):.0f} ms a save, "
        f"longest {saved[-1]:.0f} ms"
    )
