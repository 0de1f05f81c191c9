"""`/healthz` and `/metrics`: is the database there, how old are results, what waits, what is silent."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from dashboard.read.database import read_version, reader
from dashboard.text.rows import rows_of
from db import __version__
from db.engine.session import Database
from db.errors import DatabaseError
from db.queries import facets
from db.queries.fleet import has_queue, queue_lengths
from db.queries.schedules import host_healths, requests_by_state, schedule_watches, silent_schedules

_LOG = logging.getLogger("compilewatch.dashboard")
_EXPOSITION = "text/plain; version=0.0.4; charset=utf-8"
_EXPLAINED = {
    "info": "This release.",
    "database_reachable": "1 while the database can be read.",
    "data_version": "Grows with every write.",
    "trials": "Stored trials by status.",
    "last_result_age_seconds": "Since the newest trial of a machine began.",
    "requests": "Run requests that are not done, by state.",
    "fleet_jobs": "Jobs in the queue of the fleet, by machine type; todo waits, doing runs.",
    "schedule_silent": "1 while a schedule has produced nothing for its period.",
    "spool_trials": "Trials on a host's disk that wait for the database.",
    "spool_bytes": "What they take up.",
    "database_errors": "How often the database failed a host's service since that was started.",
    "host_age_seconds": "Since a host's service or worker last said how it is.",
}
Samples = Sequence[tuple[Mapping[str, str], float]]
"""Labels and value of each sample of a gauge."""

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
        gauges = dict(_gauges(reader(), datetime.now(UTC)))
        reachable = 1
    except DatabaseError:
        gauges, reachable = {}, 0
    about: dict[str, Samples] = {
        "info": [({"version": __version__}, 1)],
        "database_reachable": [({}, reachable)],
    }
    lines = [line for name, samples in (about | gauges).items() for line in _gauge_lines(name, samples)]
    return PlainTextResponse("\n".join(lines) + "\n", media_type=_EXPOSITION, headers=_HEADERS)


def _gauges(database: Database, now: datetime) -> Iterator[tuple[str, Samples]]:
    machines, healths = facets.machines(database), host_healths(database)
    silent = {watch.schedule for watch in silent_schedules(database, now)}
    failed, cancelled = int(machines["failed_trials"].sum()), int(machines["cancelled_trials"].sum())
    passed = int(machines["trials"].sum()) - failed - cancelled
    yield "data_version", [({}, read_version())]
    by_status = {"ok": passed, "failed": failed, "cancelled": cancelled}
    yield "trials", [({"status": status}, count) for status, count in by_status.items()]
    yield (
        "last_result_age_seconds",
        [
            (
                {"machine_id": row["machine_id"], "machine": row["machine"]},
                (now - datetime.fromisoformat(row["last_seen_at"])).total_seconds(),
            )
            for row in rows_of(machines)
            if row["last_seen_at"] is not None
        ],
    )
    by_state = requests_by_state(database)
    yield "requests", [({"state": state.value}, count) for state, count in by_state.items()]
    if has_queue(database):
        lengths = queue_lengths(database)
        yield "fleet_jobs", [({"queue": queue, "status": each}, n) for (queue, each), n in lengths.items()]
    yield "schedule_silent", [({"schedule": n}, int(n in silent)) for n in schedule_watches(database)]
    for name in ("spool_trials", "spool_bytes", "database_errors"):
        yield name, [({"host": each.host}, getattr(each, name)) for each in healths]
    ages = [({"host": each.host}, (now - each.seen_at).total_seconds()) for each in healths]
    yield "host_age_seconds", ages


def _gauge_lines(name: str, samples: Samples) -> Iterator[str]:
    """One gauge in Prometheus's text format 0.0.4."""
    yield f"# HELP compilewatch_{name} {_EXPLAINED[name]}"
    yield f"# TYPE compilewatch_{name} gauge"
    for labels, value in samples:
        pairs = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        yield f"compilewatch_{name}{{{pairs}}} {value}" if pairs else f"compilewatch_{name} {value}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
