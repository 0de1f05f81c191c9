"""A job of 256 ranks that tells a dashboard how it is: batches of the real client over HTTP, on SQLite.

Seconds of a busy machine say little: what is printed is over one batch alone, in the same run.
"""

from __future__ import annotations

import http.client
import json
import statistics
import time
import tracemalloc
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import pytest

from compilewatch.db.engine.session import open_database
from compilewatch.db.records.access import Scope, Token, new_secret, secret_hash
from compilewatch.db.service.jobs import JOB_STATES
from compilewatch.db.service.tokens import TOKENS
from compilewatch.runner import compilewatch_recorder as recorder
from tests.dashboard.serving import served

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(1800)]

RANKS, HOSTS, ROUNDS = 256, 32, 3
EVENT = {"began_ns": 1, "cost_ns": 2_000_000_000, "what": "forward (model.py:120)", "request": "batch 24"}
REASON = "tensor 'features' size mismatch at index 0. expected 8, actual 24"


def report(rank: int) -> dict[str, Any]:
    """As a rank has it that compiled 20 times after it was ready: as large as a batch gets."""
    events = [EVENT | {"number": number, "reason": REASON} for number in range(1, recorder._EVENTS + 1)]
    return {
        **{"process": f"{rank:032x}", "job": "many", "host": f"gpu-{rank // 8}", "launch": "one"},
        **{"rank": rank, "ready": True, "ended": False, "steps": 10_000},
        **{"compiling": None, "compiling_ns": None, "since_step_ns": 4_000_000},
        **{"compiles_after_ready": 20, "cost_after_ready_ns": 40_000_000_000},
        **{"cache_hits": 1, "cache_misses": 20, "cache_bypasses": 0, "dropped": 0, "events": events},
    }


def client(address: str, secret: str, rank: int, *, behind_one_address: bool = False) -> recorder._Reporter:
    """As a rank on its host has it: 32 hosts are 32 addresses of the loopback."""
    reporter = recorder._Reporter(address, secret, lambda: report(rank), RANKS)

    class Connection(http.client.HTTPConnection):
        def __init__(self, *positional: Any, **named: Any) -> None:
            host = "127.0.0.1" if behind_one_address else f"127.0.1.{rank // (RANKS // HOSTS)}"
            super().__init__(*positional, **named | {"source_address": (host, 0)})

    class Handler(urllib.request.HTTPHandler):
        def http_open(self, request: urllib.request.Request) -> Any:
            return self.do_open(Connection, request)

    reporter._opener = urllib.request.build_opener(recorder._NoRedirects, Handler)
    return reporter


def with_token(url: str) -> str:
    secret = new_secret()
    token = Token(
        token_id="jobs",
        name="jobs",
        secret_hash=secret_hash(secret),
        scopes=(Scope.JOBS,),
        created_at=datetime.now(UTC),
        created_by="ann",
    )
    with open_database(url, migrate=True) as database:
        TOKENS.add(database, token)
    return secret


def test_batches_of_many_ranks(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'own.db'}"
    secret = with_token(url)
    with served(url, tmp_path / "log") as server, ThreadPoolExecutor(RANKS) as threads:
        clients = [client(server.origin, secret, rank) for rank in range(RANKS)]

        def tell(client: recorder._Reporter) -> tuple[bool, float]:
            began = time.perf_counter()
            return client._tell(300), time.perf_counter() - began

        def worked_ms() -> float:
            return 1e3 * sum(process.cpu_times()[:2])

        process = psutil.Process(server.pid)
        tell(clients[0])
        before_ms = worked_ms()
        alone = [tell(clients[0])[1] for _ in range(50)]
        alone_ms = (worked_ms() - before_ms) / len(alone)
        before = process.memory_info().rss
        batch = len(json.dumps(report(255)))
        print(f"\na batch: {batch:,} bytes; alone the dashboard works {alone_ms:.1f} ms for it")
        for number in range(ROUNDS):
            before_ms = worked_ms()
            told = list(threads.map(tell, clients))
            each_ms = (worked_ms() - before_ms) / RANKS
            waits = sorted(each for _, each in told)
            print(
                f"round {number}: {sum(is_sent for is_sent, _ in told)} of {RANKS} taken at once, "
                f"{each_ms / alone_ms:.2f} of the work of one alone each; "
                f"slowest {waits[-1] / statistics.median(alone):.0f} batches alone"
            )
        print(f"memory of the dashboard: {(process.memory_info().rss - before) / 2**20:+.1f} MiB")
        for path in ("/api/v1/jobs", "/metrics"):
            began = time.perf_counter()
            answer = server.get(path)
            took = time.perf_counter() - began
            print(
                f"{path}: {len(answer.body):,} bytes in {took / statistics.median(alone):.1f} batches alone"
            )
    with open_database(url) as database:
        states = JOB_STATES.all(database)
    assert sorted(each.rank or 0 for each in states) == list(range(RANKS))
    assert sum(each.compiles_after_ready for each in states) == 20 * RANKS


def test_many_ranks_behind_one_address_for_two_minutes(tmp_path: Path) -> None:
    """As of a cluster behind one address, which has a rate: who seems silent, where the machine has time."""
    url = f"sqlite:///{tmp_path / 'own.db'}"
    secret = with_token(url)
    with served(url, tmp_path / "log") as server:
        clients = [client(server.origin, secret, rank, behind_one_address=True) for rank in range(RANKS)]
        for each in clients:
            each.start()
        began = time.monotonic()
        while (after := time.monotonic() - began) < 120:
            time.sleep(15)
            with open_database(url) as database:
                states = JOB_STATES.all(database)
            now = datetime.now(UTC)
            if not states:
                continue
            ages = sorted((now - each.seen_at).total_seconds() for each in states)
            taken = sum(each.sequence for each in states)
            live = sum(each.is_live(now) for each in states)
            print(
                f"\nafter {after + 15:.0f} s: {live} of {RANKS} live, "
                f"heard of {ages[len(ages) // 2]:.0f} s ago in the middle, {ages[-1]:.0f} s at most; "
                f"{taken} batches sent",
                end="",
            )
        for each in clients:
            each.end()
        for each in clients:
            each.join(10)
    assert len(states) == RANKS


def test_what_a_rank_holds_and_writes(tmp_path: Path) -> None:
    """Memory and file of a rank that compiles ever anew, of which nobody takes the batches."""
    recorder.start("many", directory=tmp_path)
    current = recorder._current
    assert current is not None
    recorder.ready()
    tracemalloc.start()
    held = []
    for number in range(20_000):
        current._note_late(f"function {number}", REASON, number, number + 1)
        if number in (999, 19_999):
            held.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    recorder.stop()
    print(f"\nheld after 1,000 and 20,000 events: {held[0]:,} and {held[1]:,} bytes")
    assert held[1] < held[0] + 10_000
