"""`/healthz` and `/metrics`: is the database there, how old are results, what waits, what is silent, what
compiles in running jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.metrics_core import Metric
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
from compilewatch.db.records.hosts import JobState
from compilewatch.db.service.fleet import has_queue, queue_lengths
from compilewatch.db.service.hosts import HEALTHS
from compilewatch.db.service.jobs import shown_jobs
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
    "job_compiling_seconds": "For how long a process of a job has been compiling; 0 while it is not.",
    "job_age_seconds": "Since a process of a job last said how it is.",
    "job_compiles_after_ready": "What a process of a job compiled after it was ready.",
    "job_compile_after_ready_seconds": "How long that took.",
    "job_cache_hits": "Graphs that the compiler's caches had.",
    "job_cache_misses": "Graphs that they had not.",
    "job_cache_bypasses": "Graphs that they cannot hold.",
    "job_events_dropped": "Events of a job that nobody took in time; its file has them.",
}
_COUNTERS: Mapping[str, Callable[[JobState], float]] = {
    "job_compiles_after_ready": lambda job: job.compiles_after_ready,
    "job_compile_after_ready_seconds": lambda job: job.cost_after_ready_ns / 1e9,
    "job_cache_hits": lambda job: job.cache_hits,
    "job_cache_misses": lambda job: job.cache_misses,
    "job_cache_bypasses": lambda job: job.cache_bypasses,
    "job_events_dropped": lambda job: job.dropped,
}
"""Of each process of a job that was heard of lately; one that is started again counts anew."""
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

    def collect(self) -> Iterator[Metric]:
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
            family = CounterMetricFamily if name in _COUNTERS else GaugeMetricFamily
            gauge = family(f"compilewatch_{name}", _EXPLAINED[name])
            for labels, value in samples:
                suffix = "_total" if name in _COUNTERS else ""
                gauge.add_sample(gauge.name + suffix, dict(labels), value)
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
    yield from _of_jobs(shown_jobs(database, now), now)


def _of_jobs(jobs: Sequence[JobState], now: datetime) -> Iterator[tuple[str, Samples]]:
    labels = [
        {
            "job": each.job,
            "host": each.host,
            "rank": "" if each.rank is None else str(each.rank),
            "process": each.process[:8],
        }
        for each in jobs
    ]

    def compiling_s(job: JobState) -> float:
        since = job.compiling_since if job.is_live(now) else None
        return 0.0 if since is None else max(0.0, (now - since).total_seconds())

    yield "job_compiling_seconds", [(of, compiling_s(job)) for of, job in zip(labels, jobs, strict=True)]
    ages = [(now - job.seen_at).total_seconds() for job in jobs]
    yield "job_age_seconds", list(zip(labels, ages, strict=True))
    for name, value in _COUNTERS.items():
        yield name, [(of, value(job)) for of, job in zip(labels, jobs, strict=True)]
