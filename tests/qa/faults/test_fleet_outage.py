"""PostgreSQL away for a minute in the middle of a fleet's work, and the disk of a worker's spool full."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from compilewatch.db.engine.session import open_database
from compilewatch.db.queries.records import trial_records
from compilewatch.db.queries.selection import Filters
from compilewatch.db.records.requests import RequestKind, RequestSpec, RequestState
from compilewatch.db.service.requests import new_request, requests, save_request
from tests.postgres import OwnServer, Unavailable, own_server
from tests.qa.faults.small_disk import small_disk
from tests.runner.fleet_processes import Host, service, wait_until, worker

TRIALS = 60
AWAY_S = 60.0


@pytest.fixture
def server() -> Iterator[OwnServer]:
    try:
        with own_server() as running:
            yield running
    except Unavailable as reason:
        pytest.skip(f"needs PostgreSQL: {reason}")


def count(url: str) -> int:
    with open_database(url) as database:
        return sum(1 for _ in trial_records(database, Filters()))


def ask(url: str) -> None:
    spec = RequestSpec(suite="quick", trials=TRIALS)
    request = new_request("one", RequestKind.MANUAL, spec, by="ann", at=datetime.now(UTC))
    with open_database(url) as database:
        save_request(database, request)


def is_finished(url: str) -> bool:
    with open_database(url) as database:
        (request,) = requests(database)
    return request.state is RequestState.FINISHED


def stop_all(hosts: list[Host]) -> None:
    for host in hosts:
        host.stop(signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_minute_without_the_database_loses_nothing(server: OwnServer, tmp_path: Path) -> None:
    open_database(server.url, migrate=True).close()
    hosts = [service(tmp_path / "service", server.url)]
    hosts += [worker(tmp_path / f"gpu-{n}", server.url, seconds=0.5) for n in (1, 2)]
    full_host = hosts[2]
    with small_disk(full_host.directory / "data", "1m") as disk, disk.full():
        for host in hosts:
            host.start()
        try:
            ask(server.url)
            wait_until(lambda: count(server.url) >= 6, 90, hosts[1].said())
            server.stop(signal.SIGQUIT)
            time.sleep(AWAY_S)
            server.start()
            wait_until(lambda: is_finished(server.url), 180, hosts[0].said())
            assert count(server.url) == TRIALS
            for host in hosts:
                assert host.stop() == 0, host.said()
        finally:
            stop_all(hosts)
    for host in hosts:
        said = [line for line in host.said().splitlines() if line.endswith("Waiting for it.")]
        back = [line for line in host.said().splitlines() if "database is back" in line]
        assert (len(said), len(back)) == (1, 1), host.said()
    assert "No worker is alive" not in hosts[0].said()
    assert "Traceback" not in "".join(host.said() for host in hosts)
    spooled = [path for host in hosts for path in (host.directory / "data" / "spool").glob("*.json")]
    assert spooled == []
    assert "went straight to the database" in full_host.said()
    for host in hosts:
        print(f"\n{host.directory.name}:")
        print("\n".join(line for line in host.said().splitlines() if "WARNING" in line or "ERROR" in line))
