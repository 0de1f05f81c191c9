"""`/healthz` and `/metrics`: is the database there, how old are results, what waits, what is silent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from compilewatch import __version__
from compilewatch.dashboard.http.errors import for_anybody
from compilewatch.dashboard.read.database import read_version, reader
from compilewatch.db.cells import rows_of
from compilewatch.db.engine.session import Database
from compilewatch.db.errors import DatabaseError
from compilewatch.db.queries import facets
from compilewatch.db.service.fleet import has_queue, queue_lengths
from compilewatch.db.service.hosts import HEALTHS
from compilewatch.db.service.requests import requests_by_state
from compilewatch.db.service.schedules import schedule_watches, silent_schedules

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
        body = {"status": "unavailable", "message": for_anybody(error).message}
        return JSONResponse(body, status_code=503, headers=_HEADERS)


def metrics(_: Request) -> Response:
    """Always 200, since Prometheus reads no other answer: that the database cannot be read is a value."""
    body = generate_latest(_Gauges())
    return Response(body, media_type=CONTENT_TYPE_PLAIN_0_0_4, headers=_HEADERS)


class _Gauges(Collector):
    """What is so at this moment."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        try:
            gauges = dict(_gauges(reader(), datetime.now(UTC)))
            reachable = 1
        except DatabaseError:
            gauges, reachable = {}, 0
        about: dict[str, Samples] = {
            "info": [({"version": __version__}, 1)],
            "database_reachable": [({}, reachable)],
        }
        for name, samples in (about | gauges).items():
            gauge = GaugeMetricFamily(f"compilewatch_{name}", _EXPLAINED[name])
            for labels, value in samples:
                gauge.add_sample(gauge.name, dict(labels), value)
            yield gauge


def _gauges(database: Database, now: datetime) -> Iterator[tuple[str, Samples]]:
    machines, healths = facets.machines(database), HEALTHS.all(database)
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
