"""PostgreSQL that goes away or takes no writes while trials end."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pytest

from tests.qa.faults.conftest import ROUNDS, Tally
from tests.qa.faults.invariants import expect_all_is_well
from tests.qa.faults.place import Place, Told, database_of, measure, spec_of, work


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
