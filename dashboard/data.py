"""What the pages read: the database at one data version, through caches keyed by that version.

Nothing here writes or migrates. Cached frames are shared between sessions and must not be changed.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time
from functools import lru_cache
from threading import Lock, Thread
from typing import Literal, ParamSpec, TypeVar, cast

import pandas as pd
import streamlit as st

from dashboard import shaping
from dashboard.choices import NEWEST_RUNS, Choices, NamedBuilds, choices, named_builds
from dashboard.foreign_text import escaped
from dashboard.kept import Kept
from dashboard.links import Link, Page
from dashboard.pace import Pace
from dashboard.policy import policy_in_force
from db.errors import CompilewatchError
from db.hosts import HostState
from db.metrics.canaries import without_canaries
from db.queries import activity, facets, hosts, records, schedule, trials
from db.queries import run_parts as parts
from db.queries.comparison import comparison_frame
from db.queries.filters import Filters
from db.queries.newest_trials import count_trials, newest_trials_frame
from db.queries.regressions import RegressionState, standing_regressions
from db.queries.reports import reports_revision
from db.queries.series import measured_workloads
from db.queries.version import data_version
from db.records import SourceKind, Status, Task, Trial
from db.requests import UNFINISHED, RequestState, RunRequest
from db.schedules import Firing, Schedule
from db.session import Database, open_database
from db.verdicts.noise_floor import NOISE_SUITE, NOISE_WORKLOAD, NoiseFloor, noise_floor
from db.verdicts.results import Comparison
from db.verdicts.sides import Selection
from db.verdicts.upgrade import compare_builds

DATABASE_VARIABLE = "COMPILEWATCH_DATABASE_URL"
DEFAULT_DATABASE_URL = "sqlite:///compilewatch.db"
RECENT_RUNS = 30
"""How many runs a small history shows: as many points as a sparkline has room for."""
_NOISE_RUNS = 50

_LOG = logging.getLogger("compilewatch.dashboard")

P = ParamSpec("P")
T = TypeVar("T")


# For every string that came from outside.
plain = escaped


_open: dict[str, Database] = {}
_kept: dict[str, Kept] = {}
_opening = Lock()


def _database(url: str) -> Database:
    with _opening:
        if url not in _open:
            _open[url] = open_database(url, read_only=True)
        return _open[url]


def _kept_of(url: str) -> Kept:
    with _opening:
        return _kept.setdefault(url, Kept())


def close_databases() -> None:
    """Close what was opened for reading, and forget what was kept of it; a later read opens it again."""
    with _opening:
        _kept.clear()
        while _open:
            _open.popitem()[1].close()


def database_url() -> str:
    return os.environ.get(DATABASE_VARIABLE, DEFAULT_DATABASE_URL)


def reader() -> Database:
    """The database, open for reading, shared by all threads. Raises DatabaseError."""
    return _database(database_url())


def read_version() -> int:
    """The data version now. Raises DatabaseError when the database cannot be read."""
    return data_version(reader())


PACE = Pace()


def drawn_version() -> int:
    """The data version that pages are drawn of now: the newest, as far as `dashboard.pace` keeps up with it.

    Raises DatabaseError when the database cannot be read.
    """
    return PACE.take(database_url(), read_version())


def pulse_of(page: Page) -> Callable[[], object]:
    """What tells whether a page would look different now: the data version, and what it does not count.

    The queue, the hosts, reports and sign-offs are no measurements and leave the data version as it is.
    """
    beside = _BESIDE_THE_DATA.get(page)
    return drawn_version if beside is None else lambda: (drawn_version(), beside(reader()))


_BESIDE_THE_DATA: dict[Page, Callable[[Database], object]] = {
    Page.RUNS: activity.service_pulse,
    Page.REPORTS: reports_revision,
    Page.UPGRADE: activity.sign_off_pulse,
}


@dataclass(frozen=True)
class Snapshot:
    """The database at one data version; part of every cache key."""

    url: str
    version: int

    @classmethod
    def now(cls) -> Snapshot:
        return cls(database_url(), drawn_version())


def remembered(prepare: Callable[P, T]) -> Callable[P, T]:
    """Cache what `prepare` makes of its arguments, which hold a `Snapshot`; shared between sessions.

    Kept until another version of the data is drawn.
    """
    cached = st.cache_resource(max_entries=128, show_spinner=False)(PACE.timed(prepare))
    PACE.at_another(cached.clear)
    return cast(Callable[P, T], cached)


@dataclass(frozen=True)
class _Builds:
    """The builds of a database as `known`, so that their names are made again only when one comes."""

    url: str
    known: tuple[tuple[object, ...], ...]


@lru_cache(maxsize=4)
def _named_builds(builds: _Builds) -> NamedBuilds:
    return named_builds(facets.builds(_database(builds.url)))


@remembered
def read_choices(snapshot: Snapshot) -> Choices:
    """What there is to choose from."""
    database = _database(snapshot.url)
    return choices(
        machines=facets.machines(database),
        builds=_named_builds(_Builds(snapshot.url, facets.known_builds(database))),
        workloads=facets.workloads(database),
        strategies=facets.strategies(database),
        suites=facets.suites(database),
        runs=facets.runs(database, newest=NEWEST_RUNS),
        oldest_run_at=facets.oldest_run_at(database),
    )


@remembered
def read_trials(snapshot: Snapshot, filters: Filters) -> pd.DataFrame:
    """One row per trial, as `db.queries.trials.trials_frame` returns them, with labels added."""
    kept = _kept_of(snapshot.url)
    return shaping.with_labels(kept.trials(_database(snapshot.url), snapshot.version, filters))


@remembered
def read_cases(snapshot: Snapshot, filters: Filters) -> pd.DataFrame:
    """One row per case and build, as `db.metrics.cases.summarize_cases` returns them."""
    kept = _kept_of(snapshot.url)
    return shaping.with_labels(kept.cases(_database(snapshot.url), snapshot.version, filters))


def _cases_of(frame: pd.DataFrame, filters: Filters) -> pd.DataFrame:
    """`frame` without the machine's control series, unless workloads were chosen by name."""
    return frame if filters.workloads else without_canaries(frame)


@remembered
def newest_build(snapshot: Snapshot, filters: Filters) -> str | None:
    """The build of the newest trial among those that `filters` let through."""
    return parts.newest_build(_database(snapshot.url), filters)


@remembered
def read_measured_builds(snapshot: Snapshot, filters: Filters) -> list[str]:
    """The builds of the trials that `filters` let through, the one measured last first."""
    return parts.measured_builds(_database(snapshot.url), filters)


@remembered
def read_workloads(snapshot: Snapshot, filters: Filters) -> pd.DataFrame:
    """One row per workload of those trials, with labels added, as `measured_workloads` returns them."""
    found = measured_workloads(_database(snapshot.url), filters)
    return shaping.with_labels(_cases_of(found, filters))


def of_workload(snapshot: Snapshot, filters: Filters, label: str) -> Filters:
    """`filters` narrowed to the workload called `label` under them, and to its namesakes of other sizes."""
    known = read_workloads(snapshot, filters)
    names = known.loc[known["workload_label"] == label, "workload"]
    return replace(filters, workloads=(label,) if names.empty else (str(names.iloc[0]),))


@remembered
def read_comparison(
    snapshot: Snapshot, filters: Filters, base: str, head: str, by: Literal["build", "run"] = "build"
) -> Comparison:
    """The verdict on build or run `head` against `base`, on the machine that `filters` name.

    Raises VerdictError where the two cannot be set against each other.
    """
    names = read_choices(snapshot).builds if by == "build" else {}
    first, second = (
        Selection.model_validate({"name": names.get(key, key), f"{by}_ids": (key,)}) for key in (base, head)
    )
    machine = filters.machines[0] if filters.machines else None
    database, kept = _database(snapshot.url), _kept_of(snapshot.url)
    if filters.builds or filters.runs:
        found = comparison_frame(database, first, second, filters, machine_id=machine)
    else:
        found = kept.comparison(database, snapshot.version, (first, second), filters, machine)
    return compare_builds(found, first, second, policy_in_force(), history=found, machine_id=machine)


@remembered
def read_regressions(snapshot: Snapshot) -> tuple[RegressionState, ...]:
    """Every recorded regression that no later verdict replaced, oldest first."""
    return standing_regressions(_database(snapshot.url))


@remembered
def read_runs(snapshot: Snapshot, newest: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The newest runs as `db.queries.facets.runs` returns them, and their machines and builds."""
    database = _database(snapshot.url)
    found = facets.runs(database, newest=newest)
    return found, parts.run_parts(database, found["run_id"])


@remembered
def read_machines(snapshot: Snapshot) -> pd.DataFrame:
    """One row per machine, as `db.queries.facets.machines` returns them."""
    return facets.machines(_database(snapshot.url))


def read_requests(ended: int) -> list[RunRequest]:
    """What is being measured, the queue in its order, and the requests that ended last.

    Not cached: a change of the queue is no new data and leaves the data version as it is.
    """
    database = reader()
    done = schedule.requests(
        database, states=tuple(state for state in RequestState if state not in UNFINISHED), limit=ended
    )
    return [*schedule.running_requests(database), *schedule.queue(database), *done]


def read_schedules() -> tuple[list[Schedule], dict[str, Firing]]:
    """All schedules by name, and the newest firing of each that ever fired. Not cached, as the queue."""
    database = reader()
    return schedule.schedules(database), schedule.last_firings(database)


def read_hosts() -> list[HostState]:
    """Every measuring host as its service last described it. Not cached, as the queue."""
    return hosts.hosts(reader())


@remembered
def read_noise(snapshot: Snapshot) -> dict[str, NoiseFloor]:
    """Machine id -> the smallest change it can show, from its newest run of identical trials."""
    database = _database(snapshot.url)
    # By run, which trials are found by quickly: most are of other suites.
    noisy = tuple(facets.runs(database, newest=_NOISE_RUNS, suite=NOISE_SUITE)["run_id"])
    if not noisy:
        return {}
    identical = Filters(runs=noisy, workloads=(NOISE_WORKLOAD,), statuses=(Status.OK,))
    found = trials.trials_frame(database, identical)
    floors: dict[str, NoiseFloor] = {}
    for machine_id, mine in found.dropna(subset=["latency_ns"]).groupby("machine_id"):
        newest = mine[mine["run_id"] == mine.sort_values("started_at")["run_id"].iloc[-1]]
        floor = noise_floor([float(value) for value in newest["latency_ns"]])
        if floor is not None:
            floors[str(machine_id)] = floor
    return floors


@remembered
def read_points(snapshot: Snapshot, filters: Filters, by: Literal["run", "build"] = "run") -> pd.DataFrame:
    """One row per case and run or build, oldest first, as `db.metrics.trend.series_points` returns them."""
    kept = _kept_of(snapshot.url)
    return shaping.with_labels(kept.points(_database(snapshot.url), snapshot.version, filters, by))


def recent(snapshot: Snapshot, filters: Filters, *, up_to: str | None = None) -> Filters:
    """`filters` narrowed to the newest `RECENT_RUNS` runs, with `up_to` those up to that build's last one."""
    database = _database(snapshot.url)
    if up_to is not None:
        filters = replace(filters, until=parts.last_measured_at(database, replace(filters, builds=(up_to,))))
    began = parts.newest_runs_began(database, filters, RECENT_RUNS)
    if began is None or (filters.since is not None and filters.since > began):
        return filters
    return replace(filters, since=began)


@remembered
def read_newest_trials(snapshot: Snapshot, filters: Filters, limit: int) -> tuple[pd.DataFrame, int]:
    """The newest trials, oldest first, with labels added, and how many there are in all."""
    database = _database(snapshot.url)
    frame = shaping.with_labels(newest_trials_frame(database, filters, limit))
    return frame, count_trials(database, filters)


@remembered
def read_cold_start(snapshot: Snapshot, filters: Filters) -> pd.DataFrame:
    """One row per trial and phase, as `db.queries.trials.cold_start_frame` returns them."""
    return _cases_of(trials.cold_start_frame(_database(snapshot.url), filters), filters)


@remembered
def read_trial(snapshot: Snapshot, trial_id: str) -> Trial:
    """One whole trial. Raises NotFoundError."""
    return records.trial_record(_database(snapshot.url), trial_id)


def filters_of(link: Link) -> Filters:
    """The database filters that a settled link stands for."""
    per_trial = link.page is Page.TRIAL
    return Filters(
        workloads=link.workload,
        # Elsewhere eager must stay in: others are set against it.
        strategies=link.strategy if per_trial else (),
        machines=(link.machine,) if link.machine else (),
        builds=(link.build,) if link.build else (),
        suites=(link.suite,) if link.suite else (),
        tasks=tuple(Task(task) for task in link.task),
        runs=(link.run,) if per_trial and link.run else (),
        since=datetime.combine(link.since, time.min, UTC) if link.since else None,
        until=datetime.combine(link.until, time.max, UTC) if link.until else None,
        statuses=tuple(Status(status) for status in link.status) if per_trial else (),
        sources=tuple(SourceKind(kind) for kind in link.source) if per_trial else (),
    )


def warm() -> None:
    """Import and read what the first page needs, before the first reader comes."""
    from dashboard import app  # noqa: F401

    snapshot = Snapshot.now()
    newest = read_choices(snapshot).newest_machine
    if newest is not None:
        Thread(target=_warm_newest_runs, args=(snapshot, newest), daemon=True).start()


def _warm_newest_runs(snapshot: Snapshot, machine_id: str) -> None:
    """Read what most pages show first, beside the readers that come already."""
    try:
        read_points(snapshot, recent(snapshot, Filters(machines=(machine_id,))))
    except CompilewatchError as error:
        _LOG.warning("the newest runs could not be read ahead: %s", error)
