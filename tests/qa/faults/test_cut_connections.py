"""PostgreSQL ends the connection of a run at each of its statements in turn, once, and the run goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest
from sqlalchemy import Connection, Engine, event

from compilewatch.db.errors import DatabaseError
from tests.qa.faults.conftest import Tally
from tests.qa.faults.invariants import expect_all_is_well
from tests.qa.faults.place import Place, Told, measure, spec_of

_TRIALS = 2


@dataclass
class Cut:
    """Ends the connection from a second one, before statement or commit number `at` (from 1) is sent."""

    admin_url: str
    at: int | None
    said: list[str] = field(default_factory=list)

    def before(self, connection: Connection, text: str) -> None:
        self.said.append(" ".join(text.split())[:70])
        if len(self.said) == self.at:
            driver: Any = connection.connection.driver_connection
            with psycopg.connect(self.admin_url, autocommit=True) as admin:
                ended = admin.execute("SELECT pg_terminate_backend(%s, 5000)", [driver.info.backend_pid])
                assert ended.fetchone() == (True,)


@contextmanager
def _cutting(cut: Cut) -> Iterator[Cut]:
    def statement(connection: Connection, _cursor: object, text: str, *_: object) -> None:
        cut.before(connection, text)

    def commit(connection: Connection) -> None:
        cut.before(connection, "COMMIT")

    event.listen(Engine, "before_cursor_execute", statement)
    event.listen(Engine, "commit", commit)
    try:
        yield cut
    finally:
        event.remove(Engine, "before_cursor_execute", statement)
        event.remove(Engine, "commit", commit)


def _run(place: Place, run_id: str, cut: Cut) -> tuple[list[str], bool]:
    """The trials that were said to be finished, and whether the run was refused before any of them."""
    told = Told()
    refused = False
    with _cutting(cut):
        try:
            measure(place, run_id, [spec_of(place, run_id, "none") for _ in range(_TRIALS)], told)
        except DatabaseError:
            refused = True
    return [trial.trial_id for trial in told.trials], refused


def _cut_at(
    place: Place, admin_url: str, tally: Tally, numbered: Callable[[str], str], chosen: Callable[[int], range]
) -> None:
    _run(place, numbered("warm"), Cut(admin_url, None))
    whole = Cut(admin_url, None)
    acknowledged, _ = _run(place, numbered("whole"), whole)
    failures, refusals = [], 0
    for at in chosen(len(whole.said)):
        cut = Cut(admin_url, at)
        try:
            with tally.fault("PostgreSQL", "connection ended at a statement"):
                finished, refused = _run(place, numbered("run"), cut)
                assert len(cut.said) >= at
                assert refused or len(finished) == _TRIALS
                # A run is refused only before it begins to measure: nothing was promised.
                assert not (refused and finished)
                refusals += refused
                acknowledged += finished
                expect_all_is_well(place, acknowledged)
        except AssertionError as failure:
            failures.append(f"{at} of {len(whole.said)}, {cut.said[at - 1 : at]}: {failure}")
    print(f"{len(whole.said)} statements, {refusals} runs refused before they began")
    assert not failures, "\n".join(failures)


@pytest.mark.faults
@pytest.mark.timeout(1800)
def test_the_connection_is_ended_at_each_statement(
    server_place: Place, postgres_url: str, tally: Tally, numbered: Callable[[str], str]
) -> None:
    _cut_at(server_place, postgres_url, tally, numbered, lambda count: range(1, count + 1))


def test_the_connection_is_ended_at_some_statements(
    server_place: Place, postgres_url: str, tally: Tally, numbered: Callable[[str], str]
) -> None:
    _cut_at(server_place, postgres_url, tally, numbered, lambda count: range(count // 4, count, count // 2))
