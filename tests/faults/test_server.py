"""PostgreSQL that goes away or takes no writes, and the dashboard killed while the runner writes."""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runner import supervise
from tests.dashboard.serving import served
from tests.faults.conftest import ROUNDS, Tally
from tests.faults.invariants import expect_all_is_well
from tests.faults.place import Place, Told, database_of, measure, new_place, spec_of, work
from tests.faults.runner_process import GRACE_S, running


@pytest.fixture
def server_place(empty_postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    made = new_place(empty_postgres_url, tmp_path / "place")
    monkeypatch.setattr(tempfile, "tempdir", str(made.scratch))
    monkeypatch.setattr(supervise, "GRACE_S", GRACE_S)
    return made


@contextlib.contextmanager
def _altered(admin_url: str, name: str, trouble: str, cure: str) -> Iterator[None]:
    """Change the database `name` for everybody, those who are connected too."""
    import psycopg

    with psycopg.connect(admin_url, autocommit=True) as admin:
        try:
            admin.execute(trouble)
            admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,)
            )
            yield
        finally:
            admin.execute(cure)


@pytest.mark.faults
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("fault", "trouble", "cure"),
    [
        (
            "takes no connections",
            "ALTER DATABASE {} ALLOW_CONNECTIONS false",
            "ALTER DATABASE {} ALLOW_CONNECTIONS true",
        ),
        (
            "read-only",
            "ALTER DATABASE {} SET default_transaction_read_only = on",
            "ALTER DATABASE {} RESET default_transaction_read_only",
        ),
        ("every connection cut once", "SELECT 1", "SELECT 1"),
    ],
)
def test_a_server_in_trouble(
    fault: str,
    trouble: str,
    cure: str,
    server_place: Place,
    postgres_url: str,
    tally: Tally,
    numbered: Callable[[str], str],
) -> None:
    name = server_place.url.partition("?")[0].rpartition("/")[2]
    acknowledged: list[str] = []
    for _ in range(ROUNDS * 2):
        with tally.fault("PostgreSQL", fault):
            run_id, told = numbered("run"), Told()
            measure(server_place, run_id, [])
            specs = [spec_of(server_place, run_id, "none") for _ in range(2)]
            with (
                database_of(server_place) as database,
                _altered(postgres_url, name, trouble.format(name), cure.format(name)),
            ):
                work(server_place, database, specs, told)
            assert len(told.trials) == len(specs)
            acknowledged += [trial.trial_id for trial in told.trials]
            expect_all_is_well(server_place, acknowledged)


@pytest.mark.faults
@pytest.mark.timeout(1800)
def test_the_dashboard_is_killed_while_the_runner_writes(
    place: Place, tally: Tally, numbered: Callable[[str], str], tmp_path: Path
) -> None:
    """The runner does not notice, and the dashboard that is started next shows what there is."""
    acknowledged: list[str] = []
    for number in range(max(2, ROUNDS // 3)):
        with (
            tally.fault("dashboard", "kill -9 while the runner writes"),
            served(place.url, tmp_path / f"log-{number}") as dashboard,
            running(place, numbered("run"), ["slow"] * 3) as runner,
        ):
            assert dashboard.get("/healthz").status == 200
            os.kill(dashboard.pid, signal.SIGKILL)
            assert runner.wait() == 0
            assert len(runner.finished) == 3
            acknowledged += runner.finished
            expect_all_is_well(place, acknowledged)
    with served(place.url, tmp_path / "log") as dashboard:
        assert dashboard.get("/healthz").status == 200
