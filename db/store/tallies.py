"""What follows from the trials of a transaction elsewhere: how many of each, and the newest ones."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    Update,
    and_,
    bindparam,
    case,
    or_,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite

from compilewatch.db.engine.writing import upsert
from compilewatch.db.records.trial import FailureKind, Status
from compilewatch.db.store.trial_rows import COUNTED, DIMENSIONS, TrialRows
from compilewatch.db.tables.run_parts import RUN_PART
from compilewatch.db.tables.trials import LATEST, TRIAL

# What a dimension was last called, and the column of a trial that says it.
_LAST_CALLED = {"machine": ("name", "machine_name"), "build": ("label", "build_label")}


@dataclass
class _Tally:
    """What a transaction adds to one row of a dimension: the parameters of its `_tally_update`."""

    more: int
    more_failed: int
    more_cancelled: int
    first: datetime
    last: datetime
    called: str | None


class Tallies:
    """Counts the new trials of one transaction; `write` stores what they change."""

    def __init__(self) -> None:
        self._tallies: dict[str, dict[str, _Tally]] = {name: {} for name in COUNTED}
        self._newest: dict[str, tuple[datetime, str]] = {}
        self._run_parts: dict[tuple[str, str, str], tuple[int, datetime, datetime]] = {}

    def add(self, new: TrialRows) -> None:
        """Count one trial. Of two that were seen last at one moment the one that came later names its machine
        and build.
        """
        began: datetime = new.row["started_at"]
        cancelled = new.row["failure_kind"] == FailureKind.CANCELLED
        failed = new.row["status"] == Status.FAILED and not cancelled
        for name, tallies in self._tallies.items():
            key = getattr(new.keys, name)
            called = new.row[_LAST_CALLED[name][1]] if name in _LAST_CALLED else None
            known = tallies.setdefault(key, _Tally(0, 0, 0, began, began, called))
            known.more += 1
            known.more_failed += failed
            known.more_cancelled += cancelled
            known.first = min(known.first, began)
            if began >= known.last:
                known.last, known.called = began, called
        part = new.keys.run, new.keys.machine, new.keys.build
        so_far, earliest, latest = self._run_parts.get(part, (0, began, began))
        self._run_parts[part] = so_far + 1, min(earliest, began), max(latest, began)
        # A failure is a result; a trial that a person cancelled says nothing about its case.
        if not cancelled:
            newest = began, new.keys.run
            self._newest[new.keys.series] = max(self._newest.get(new.keys.series, newest), newest)

    def write(self, connection: Connection) -> None:
        """Add to the tallies, newest runs and parts that are stored."""
        for name, tallies in self._tallies.items():
            if tallies:
                added = [{"key": key, **vars(tally)} for key, tally in tallies.items()]
                connection.execute(_tally_update(name), added)
        if self._newest:
            rows = [
                {"series_id": series_id, "run_id": run_id, "started_at": started_at}
                for series_id, (started_at, run_id) in self._newest.items()
            ]
            connection.execute(_newest_upsert(connection), rows)
        if self._run_parts:
            names = ("run_id", "machine_id", "build_id", "trials", "first_seen_at", "last_seen_at")
            parts = [dict(zip(names, (*key, *more), strict=True)) for key, more in self._run_parts.items()]
            connection.execute(_run_parts_upsert(connection), parts)


@cache
def _tally_update(name: str) -> Update:
    table = DIMENSIONS[name]
    moment = TRIAL.c.started_at.type
    first: BindParameter[Any] = bindparam("first", type_=moment)
    last: BindParameter[Any] = bindparam("last", type_=moment)
    columns = table.c
    values: dict[str, Any] = {
        "trials": columns.trials + bindparam("more"),
        "failed_trials": columns.failed_trials + bindparam("more_failed"),
        "cancelled_trials": columns.cancelled_trials + bindparam("more_cancelled"),
        "first_seen_at": _earlier(columns.first_seen_at, first),
        "last_seen_at": _later(columns.last_seen_at, last),
    }
    if name in _LAST_CALLED:
        called = columns[_LAST_CALLED[name][0]]
        values[called.name] = case((columns.last_seen_at > last, called), else_=bindparam("called"))
    return update(table).where(columns[f"{name}_id"] == bindparam("key")).values(values)


def _run_parts_upsert(connection: Connection) -> sqlite.Insert | postgresql.Insert:
    """Add trials to what a run, a machine and a build have in common."""
    statement = upsert(connection, RUN_PART)
    offered, stored = statement.excluded, RUN_PART.c
    return statement.on_conflict_do_update(
        index_elements=["run_id", "machine_id", "build_id"],
        set_={
            "trials": stored.trials + offered.trials,
            "first_seen_at": _earlier(stored.first_seen_at, offered.first_seen_at),
            "last_seen_at": _later(stored.last_seen_at, offered.last_seen_at),
        },
    )


def _earlier(stored: ColumnElement[Any], new: ColumnElement[Any]) -> ColumnElement[Any]:
    return case((stored < new, stored), else_=new)


def _later(stored: ColumnElement[Any], new: ColumnElement[Any]) -> ColumnElement[Any]:
    return case((stored > new, stored), else_=new)


def _newest_upsert(connection: Connection) -> sqlite.Insert | postgresql.Insert:
    """Replace a series' newest run by a newer one, in whatever order runs arrive."""
    statement = upsert(connection, LATEST)
    offered = statement.excluded
    newer = or_(
        offered.started_at > LATEST.c.started_at,
        and_(offered.started_at == LATEST.c.started_at, offered.run_id > LATEST.c.run_id),
    )
    return statement.on_conflict_do_update(
        index_elements=["series_id"],
        set_={"run_id": offered.run_id, "started_at": offered.started_at},
        where=newer,
    )
