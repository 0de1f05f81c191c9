"""`/healthz` and `/metrics`: is the database there, how old are results, what waits, what is silent."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from dashboard.api.representation import rows_of
from dashboard.read.database import read_version, reader
from db import __version__
from db.engine.session import Database
from db.errors import DatabaseError
from db.queries import facets
from db.queries.fleet import has_queue, queue_lengths
from db.queries.schedules import host_healths, requests_by_state, schedule_watches, silent_schedules

_LOG = logging.getLogger("compilewatch.dashboard")
_EXPOSITION = "text/plain; version=0.0.4; charset=utf-8"


# Between a program and this server; the server itself tells an answer again for a second.
_HEADERS = {"Cache-Control": "no-cache"}


def health(_: Request) -> Response:
    """200 with the data version, or 503 where the database cannot be read."""
    try:
        return JSONResponse({"status": "ok", "data_version": read_version()}, headers=_HEADERS)
    except DatabaseError as error:
        # Everybody may ask, and the reason names the database's address.
        _LOG.warning("the database cannot be read: %s", error.message)
        body = {"status": "unavailable", "message": "The database cannot be read."}
        return JSONResponse(body, status_code=503, headers=_HEADERS)


def metrics(_: Request) -> Response:
    """Always 200: that the database cannot be read is a value, not a failure to tell it."""
    try:
        lines = list(_metric_lines(reader(), datetime.now(UTC)))
    except DatabaseError:
        lines = list(_database(reachable=False))
    return PlainTextResponse("\n".join(lines) + "\n", media_type=_EXPOSITION, headers=_HEADERS)


def _metric_lines(database: Database, now: datetime) -> Iterator[str]:
    machines = facets.machines(database)
    yield from _database(reachable=True)
    yield from _metric("compilewatch_data_version", "Grows with every write.", [({}, read_version())])
    failed, cancelled = int(machines["failed_trials"].sum()), int(machines["cancelled_trials"].sum())
    yield from _metric(
        "compilewatch_trials",
        "Stored trials by status.",
        [
            ({"status": "ok"}, int(machines["trials"].sum()) - failed - cancelled),
            ({"status": "failed"}, failed),
            ({"status": "cancelled"}, cancelled),
        ],
    )
    yield from _metric(
        "compilewatch_last_result_age_seconds",
        "Since the newest trial of a machine began.",
        [
            (
                {"machine_id": row["machine_id"], "machine": row["machine"]},
                (now - datetime.fromisoformat(row["last_seen_at"])).total_seconds(),
            )
            for row in rows_of(machines)
            if row["last_seen_at"] is not None
        ],
    )
    yield from _queues(database)
    yield from _schedules(database, now)
    yield from _hosts(database, now)


def _queues(database: Database) -> Iterator[str]:
    yield from _metric(
        "compilewatch_requests",
        "Run requests that are not done, by state.",
        [({"state": state.value}, count) for state, count in requests_by_state(database).items()],
    )
    if has_queue(database):
        yield from _metric(
            "compilewatch_fleet_jobs",
            "Jobs in the queue of the fleet, by machine type; todo waits, doing runs.",
            [
                ({"queue": queue, "status": status}, count)
                for (queue, status), count in queue_lengths(database).items()
            ],
        )


def _schedules(database: Database, now: datetime) -> Iterator[str]:
    silent = {watch.schedule for watch in silent_schedules(database, now)}
    yield from _metric(
        "compilewatch_schedule_silent",
        "1 while a schedule has produced nothing for its period.",
        [({"schedule": name}, int(name in silent)) for name in schedule_watches(database)],
    )


def _hosts(database: Database, now: datetime) -> Iterator[str]:
    healths = host_healths(database)
    for name, explained, value in (
        ("compilewatch_spool_trials", "Trials on a host's disk that wait for the database.", "spool_trials"),
        ("compilewatch_spool_bytes", "What they take up.", "spool_bytes"),
        (
            "compilewatch_database_errors",
            "How often the database failed a host's service since that was started.",
            "database_errors",
        ),
    ):
        yield from _metric(name, explained, [({"host": each.host}, getattr(each, value)) for each in healths])
    yield from _metric(
        "compilewatch_host_age_seconds",
        "Since a host's service or worker last said how it is.",
        [({"host": each.host}, (now - each.seen_at).total_seconds()) for each in healths],
    )


def _database(*, reachable: bool) -> Iterator[str]:
    yield from _metric("compilewatch_info", "This release.", [({"version": __version__}, 1)])
    yield from _metric(
        "compilewatch_database_reachable", "1 while the database can be read.", [({}, int(reachable))]
    )


def _metric(name: str, explained: str, samples: list[tuple[Mapping[str, str], float]]) -> Iterator[str]:
    """One gauge in Prometheus's text format 0.0.4."""
    yield f"# HELP {name} {explained}"
    yield f"# TYPE {name} gauge"
    for labels, value in samples:
        pairs = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        yield f"{name}{{{pairs}}} {value}" if pairs else f"{name} {value}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
