"""What the page Runs says: what is measured now and what comes next, fleet, machines, and every run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pandas as pd

from compilewatch.dashboard.links.links import Link, Page
from compilewatch.dashboard.pages.runs.fleet import fleet, liveness
from compilewatch.dashboard.pages.runs.jobs import running_jobs
from compilewatch.dashboard.parts import parts
from compilewatch.dashboard.parts.parts import (
    Empty,
    Leads,
    Lines,
    PageContent,
    PageHeadline,
    Part,
    Table,
    TableColumn,
    informative,
    notes,
)
from compilewatch.dashboard.read.data import (
    read_choices,
    read_choices_on,
    read_machines,
    read_noise_floors,
    read_regressions,
    read_runs,
)
from compilewatch.dashboard.read.database import reader
from compilewatch.dashboard.read.shaping import joined, number
from compilewatch.dashboard.read.versions import cached
from compilewatch.dashboard.verdicts import inbox
from compilewatch.db import units
from compilewatch.db.cells import rows_of
from compilewatch.db.judge.statistics.noise_floor import NoiseFloor
from compilewatch.db.metrics.groups import row_dicts
from compilewatch.db.queries.facets import silent
from compilewatch.db.records.hosts import HostDevice, HostState, JobState
from compilewatch.db.records.requests import (
    INTERRUPTED,
    UNFINISHED,
    Firing,
    RequestSpec,
    RequestState,
    RunRequest,
    RunStatus,
    Schedule,
)
from compilewatch.db.records.trial import SourceKind
from compilewatch.db.service import requests as run_requests
from compilewatch.db.service import schedules
from compilewatch.db.service.fleet import fleet_workers, launches
from compilewatch.db.service.hosts import HOSTS, unserved
from compilewatch.db.service.jobs import shown_jobs
from compilewatch.db.service.regressions import RegressionState
from compilewatch.db.verdicts.noise_floors import floor_text

NOW, RUNS, MACHINES = "runs-now", "runs-table", "runs-machines"
QUEUE, SCHEDULES = "runs-queue", "runs-schedules"
_STATES_MEAN = (
    "Unannounced: measured trials without the announcement of a run, as a file holds them that "
    "compilewatch import brought in. Imported: results of another tool."
)
_QUEUE = {
    "state": TableColumn("State", pinned=True),
    "kind": TableColumn("Why"),
    "what": TableColumn("What"),
    **parts.texts({"machine": "Machine", "asked_by": "Requested by"}),
    "asked_at": TableColumn("Requested (UTC)", kind="moment"),
    **parts.texts({"owner": "Measured by", "unserved": "Waits", "note": "Note", "request_id": "Request"}),
}
_SCHEDULES = {
    "name": TableColumn("Schedule", pinned=True),
    **parts.texts({"state": "State", "cron": "Cron", "timezone": "Time zone", "suite": "Suite"}),
    "machine": TableColumn("Machine"),
    "next_run_at": TableColumn("Next firing (UTC)", kind="moment"),
    "then": TableColumn("The four after it (UTC)"),
    "last_fired_at": TableColumn("Last firing (UTC)", kind="moment"),
    **parts.texts({"outcome": "Its outcome", "changed_by": "Last paused or resumed by"}),
}
_FAILED_AND_CANCELLED = {
    "failed": TableColumn("Failed", kind="number"),
    "cancelled": TableColumn(
        "Cancelled", kind="number", explained="Trials that somebody stopped. They have not failed."
    ),
}
_MACHINES = {
    "machine": replace(parts.MACHINE, pinned=True),
    "last_seen_at": TableColumn("Last result (UTC)", kind="moment"),
    **parts.texts({"device": "Device", "service": "Service"}),
    "service_seen_at": TableColumn("Last heartbeat of the service (UTC)", kind="moment"),
    "disk": TableColumn("Disk"),
    "devices": TableColumn("GPUs while idle", wide=True),
    "trials": TableColumn("Trials", kind="number"),
    **_FAILED_AND_CANCELLED,
    **parts.hidden(
        {
            "noise": TableColumn(
                "Smallest detectable change", explained="Its noise floor: what five trials a side show."
            ),
            **parts.quantities("bytes", {"device_memory": "Device memory"}),
            "cpu": TableColumn("CPU"),
            "threads": TableColumn("Threads", kind="number"),
            **parts.quantities("bytes", {"memory": "Memory"}),
            "first_seen_at": TableColumn("First result (UTC)", kind="moment"),
            "machine_id": TableColumn("Id"),
        }
    ),
}
_RUNS = {
    "started_at": TableColumn("Started (UTC)", kind="moment"),
    **parts.quantities("ns", {"took": "Took"}),
    "state": TableColumn("State", explained=_STATES_MEAN),
    "suite": TableColumn("Suite"),
    "machine": parts.MACHINE,
    "build": TableColumn("Build", leads=Leads(Page.OVERVIEW, {"machine": "machine_id", "build": "build_id"})),
    "progress": TableColumn("Stored of planned", kind="share", form="%.0f %%"),
    "passed": TableColumn("Passed", kind="number", explained="Trials."),
    **_FAILED_AND_CANCELLED,
    "planned": TableColumn("Planned", kind="number"),
    "regressed": TableColumn(
        "Inbox",
        explained="Changes for the worse with this run on their new side, and how many are open.",
        leads=Leads(Page.REGRESSIONS, {"machine": "machine_id", "head": "build_id"}),
    ),
    "asked_by": TableColumn("Asked by"),
    "label": TableColumn("Label"),
    **parts.hidden({"trials": TableColumn("Trials", kind="number")}),
    "run_id": TableColumn("Run", leads=Leads(Page.TRIAL, {"run": "run_id", "machine": "machine_id"})),
}

_STATES = {
    RunStatus.RUNNING.value: "▶ running",
    RunStatus.FINISHED.value: "✓ finished",
    RunStatus.CANCELLED.value: "✗ cancelled",
    INTERRUPTED: "■ interrupted",
}
_NOT_ANNOUNCED = "○ unannounced"
"""Its trials came without the announcement of a run, as those of a file that `compilewatch import` read."""


def page(link: Link) -> PageContent:
    """What runs now, what comes next, the fleet, machines, and the runs under machine and suite of `link`.

    Not cached: the queue, the hosts and the time change without new data.
    """
    now, database = datetime.now(UTC), reader()
    rows = _with_people(_without_silent(_rows(link.machine, link.suite), now))
    jobs = shown_jobs(database, now)
    return PageContent(
        (
            *_running([] if rows.empty else row_dicts(rows[rows["running"]]), jobs, now),
            *running_jobs(jobs, now),
            *_every_run(rows),
            *_machines(tuple(host_words(each, now) for each in HOSTS.all(database))),
            *_queue(),
            *_schedules(),
            *fleet(fleet_workers(database), launches(database), now),
        ),
        link,
        builds=() if rows.empty else tuple(dict.fromkeys(build for each in rows["builds"] for build in each)),
        data=lambda: {"runs": rows_of(chosen(link.machine, link.suite)[0])},
    )


def _without_silent(rows: pd.DataFrame, now: datetime) -> pd.DataFrame:
    """`rows` with those interrupted that fell silent since they were read."""
    if rows.empty:
        return rows
    stopped = rows["running"] & silent(rows, now)
    return rows.assign(
        running=rows["running"] & ~stopped, state=rows["state"].mask(stopped, _STATES[INTERRUPTED])
    )


def _with_people(rows: pd.DataFrame) -> pd.DataFrame:
    """`rows` with who asked for each run, and what the inbox has of it."""
    if rows.empty:
        return rows
    requests = run_requests.requests(reader(), limit=NEWEST)
    asked_by = {run_id: each.asked_by for each in requests for run_id in each.run_ids}
    recorded: dict[str, list[RegressionState]] = {}
    for state in read_regressions():
        for run_id in state.regression.head.run_ids:
            recorded.setdefault(run_id, []).append(state)
    found = {run_id: inbox.changes(states) for run_id, states in recorded.items()}
    said = {
        run_id: f"{units.plural(len(each), 'change')}, {units.count(sum(one.is_open for one in each))} open"
        for run_id, each in found.items()
    }
    return rows.assign(asked_by=rows["run_id"].map(asked_by), regressed=rows["run_id"].map(said))


@cached
def _rows(machine: str | None, suite: str | None) -> pd.DataFrame:
    runs, places = chosen(machine, suite)
    builds = {each: read_choices_on(each).builds for each in places["machine_id"].unique()}
    return run_rows(runs, places, read_choices().machines, builds)


def _running(rows: Sequence[Mapping[str, Any]], jobs: Sequence[JobState], now: datetime) -> tuple[Part, ...]:
    live = sum(each.is_live(now) for each in jobs)
    of_jobs = f"{units.plural(live, 'process')} of jobs in production" if live else ""
    if not rows:
        nothing = f"Nothing is measured now; {of_jobs} run{'s' if live == 1 else ''}"
        return (PageHeadline(nothing if live else "Nothing runs now", key=NOW),)
    lines = tuple(f"{progress_words(row)} (run {row['run_id']})" for row in rows)
    shares = tuple(0.0 if pd.isna(row["progress"]) else float(row["progress"]) / 100 for row in rows)
    return (
        PageHeadline(f"{units.plural(len(rows), 'run')}{f', {of_jobs}' if live else ''} now", key=NOW),
        Lines(lines, shares=shares, key="runs-progress"),
    )


def _queue() -> tuple[Part, ...]:
    requests, rest = listed_requests()
    rows = request_rows(requests, unserved(reader(), requests, datetime.now(UTC)))
    if rows.empty:
        return notes(["No request waits. Ask above, or with compilewatch request create."])
    alt = "Run requests: those being measured, the queue in its order, and those that ended last"
    return (Table(QUEUE, alt, rows, informative(_QUEUE, rows), title="Queue", note=rest or ""),)


def _schedules() -> tuple[Part, ...]:
    rows = schedule_rows(schedules.SCHEDULES.all(reader()), schedules.last_firings(reader()))
    if rows.empty:
        return notes(["No schedule is stored. Add one to the configuration of the measuring host."])
    alt = "Schedules with their next five firings and the last one"
    return (Table(SCHEDULES, alt, rows, informative(_SCHEDULES, rows), title="Schedules"),)


@cached
def _machines(hosts: tuple[HostWords, ...]) -> tuple[Part, ...]:
    noise = read_noise_floors()
    rows = machine_rows(read_machines(), hosts, noise)
    note = "" if noise else "No machine has a noise floor yet. Measure one: compilewatch doctor --validate."
    alt = "Every machine with its device, service, noise floor, disk and GPU state"
    return parts.table(MACHINES, alt, rows, informative(_MACHINES, rows), title="Machines", note=note)


def _every_run(rows: pd.DataFrame) -> tuple[Part, ...]:
    if rows.empty:
        return (Empty("No run fits these filters.", "Widen them above."),)
    note = f"The newest {NEWEST} are listed." if len(rows) >= NEWEST else ""
    alt = "Every run with its state, suite, machine, build, stored and failed trials"
    columns = informative(_RUNS, rows)
    return (Table(RUNS, alt, rows, columns, title="Runs, newest first", note=note),)


def run_rows(
    runs: pd.DataFrame,
    places: pd.DataFrame,
    machines: Mapping[str, str],
    builds: Mapping[str, Mapping[str, str]],
) -> pd.DataFrame:
    """One row per run, in the order given, with its machine and build by name and its progress.

    `builds`: machine id -> build id -> what tells the build from others of that machine.

    `progress` is the share of the planned trials that are stored, in percent; missing where none was planned.
    `opens` is the run with the machine that its trials are shown on, `builds` are the ids of its builds.
    """
    by_run: dict[str, list[dict[str, Any]]] = {}
    for part in row_dicts(places):
        by_run.setdefault(part["run_id"], []).append(part)
    rows = []
    for run in row_dicts(runs):
        mine = by_run.get(run["run_id"], [])
        names = [builds.get(part["machine_id"], {}).get(part["build_id"], part["build_id"]) for part in mine]
        ids = dict.fromkeys(part["machine_id"] for part in mine)
        where = {
            "opens": (run["run_id"], mine[0]["machine_id"] if mine else None),
            "machine_id": mine[0]["machine_id"] if mine else None,
            "build_id": mine[0]["build_id"] if len(mine) == 1 else None,
            "builds": tuple(dict.fromkeys(part["build_id"] for part in mine)),
            "machine": joined(machines.get(each, each) for each in ids) if ids else None,
            "build": joined(dict.fromkeys(names)) if names else None,
        }
        rows.append(_run_row(run) | where)
    return pd.DataFrame(rows)


def _run_row(run: Mapping[str, Any]) -> dict[str, Any]:
    planned, stored = number(run["planned_trials"]), float(run["trials"])
    status = run["status"] if isinstance(run["status"], str) else None
    began, last = run["started_at"], run["last_seen_at"]
    return {
        "run_id": run["run_id"],
        "started_at": run["started_at"],
        "last_seen_at": run["last_seen_at"],
        "state": _STATES[status] if status else _unannounced(run["source"]),
        "running": status == RunStatus.RUNNING.value,
        "suite": run["suite"],
        "label": run["label"],
        "took": None if pd.isna(last) or last <= began else (last - began).total_seconds() * 1e9,
        "trials": int(stored),
        "passed": int(stored) - int(run["failed_trials"]) - (_some(run["cancelled_trials"]) or 0),
        "planned": None if planned is None else int(planned),
        "failed": int(run["failed_trials"]),
        "cancelled": _some(run["cancelled_trials"]),
        "progress": min(100.0, 100 * stored / planned) if planned else None,
    }


def _some(count: object) -> int | None:
    """A count that is shown only where there is one."""
    return int(whole) or None if (whole := number(count)) is not None else None


def _unannounced(source: str) -> str:
    """Results of other tools name their format; our own records do not tell by which way they came."""
    return _NOT_ANNOUNCED if source == SourceKind.MEASURED else f"↓ imported from {source}"


def progress_words(row: Mapping[str, Any]) -> str:
    """What a running run has done so far."""
    planned = number(row["planned"])
    trials = units.plural(row["trials"], "trial")
    if planned is not None:
        trials = f"{units.count(row['trials'])} of {units.plural(int(planned), 'trial')}"
    sentence = f"{row['suite'] or 'no suite'}: {trials}"
    if row["failed"]:
        sentence += f", {units.count(row['failed'])} failed"
    if row.get("cancelled") and not pd.isna(row["cancelled"]):
        sentence += f", {units.count(row['cancelled'])} cancelled"
    last = row["started_at"] if pd.isna(row["last_seen_at"]) else row["last_seen_at"]
    if planned is not None and 0 < row["trials"] < planned:
        left = (last - row["started_at"]) / row["trials"] * (planned - row["trials"])
        sentence += f"; about {units.duration(left.total_seconds() * 1e9)} left at this pace"
    return sentence


# What the service of a host last said, in words; missing where it did not tell.
_OF_HOST = ("service", "service_seen_at", "disk", "devices")
HostWords = tuple[str, str, datetime, str | None, str | None]
"""The name of a host, and `_OF_HOST`."""


def host_words(host: HostState, now: datetime) -> HostWords:
    """A host as it is at `now`."""
    service = liveness(host.seen_at, host.stopped_at, now)
    return host.name, service, host.seen_at, _disk_words(host), device_words(host.devices)


def machine_rows(
    machines: pd.DataFrame, hosts: Sequence[HostWords], noise: Mapping[str, Sequence[NoiseFloor]]
) -> pd.DataFrame:
    """One row per machine, the one seen last first, then hosts whose service never measured anything.

    `noise` maps machine ids to their noise floors. What no host reported is missing.
    """
    words_of = {name: dict(zip(_OF_HOST, words, strict=True)) for name, *words in hosts}
    no_words = dict.fromkeys(_OF_HOST)
    rows = [
        {
            "machine": row["machine"],
            **words_of.get(row["machine"], no_words),
            "noise": floor_text(noise.get(row["machine_id"], ())) or None,
            "device": row["device_name"],
            "cpu": row["cpu_name"],
            "threads": row["threads"],
            "memory": number(row["ram_bytes"]),
            "device_memory": number(row["device_memory_bytes"]),
            "trials": int(row["trials"]),
            "failed": int(row["failed_trials"]),
            "cancelled": _some(row["cancelled_trials"]),
            "first_seen_at": row["first_seen_at"],
            "last_seen_at": row["last_seen_at"],
            "machine_id": row["machine_id"],
        }
        for row in row_dicts(machines.sort_values("last_seen_at", ascending=False))
    ]
    measured = set(machines["machine"])
    rows += [
        {"machine": name, **words, "noise": None} for name, words in words_of.items() if name not in measured
    ]
    return pd.DataFrame(rows)


def _disk_words(host: HostState) -> str | None:
    if host.free_bytes is None:
        return None
    return f"{units.size(host.free_bytes)} free of {units.size(host.total_bytes)}"


def device_words(devices: Sequence[HostDevice] | None) -> str | None:
    """The state of every GPU of a host in one line; None where nobody asked, "none" where there is none."""
    if devices is None:
        return None
    return "; ".join(map(_device_words, devices)) or "no GPU"


def _device_words(device: HostDevice) -> str:
    words = [device.name or "GPU"]
    if device.temperature_c is not None:
        words.append(f"{device.temperature_c:.0f} °C")
    if device.utilization_percent is not None:
        words.append(f"{device.utilization_percent:.0f} % busy")
    if device.power_w is not None:
        limit = f" of {device.power_limit_w:.0f}" if device.power_limit_w is not None else ""
        words.append(f"{device.power_w:.0f}{limit} W")
    if device.used_bytes is not None:
        words.append(f"{units.size(device.used_bytes)} of {units.size(device.total_bytes)} used")
    if device.throttle_reasons:
        words.append(f"slowed by {joined(reason.replace('_', ' ') for reason in device.throttle_reasons)}")
    if device.uncorrected_ecc_errors:
        words.append(units.plural(device.uncorrected_ecc_errors, "uncorrected memory error"))
    return ", ".join(words)


def schedule_rows(schedules: Sequence[Schedule], last: Mapping[str, Firing]) -> pd.DataFrame:
    """One row per schedule."""
    return pd.DataFrame(
        [
            {
                "name": schedule.name,
                "cron": schedule.spec.cron,
                "timezone": schedule.spec.timezone,
                "suite": schedule.spec.suite,
                "machine": schedule.spec.machine or "any",
                "state": "‖ paused" if schedule.paused else "▶ active",
                "next_run_at": schedule.next_run_at,
                "then": _following(schedule),
                "changed_by": schedule.changed_by,
                "last_fired_at": last[schedule.name].fire_at if schedule.name in last else None,
                "outcome": last[schedule.name].outcome.value if schedule.name in last else None,
            }
            for schedule in schedules
        ]
    )


def _following(schedule: Schedule) -> str | None:
    """The firings after the next one, as a service planned them."""
    later = (schedule.upcoming or ())[1:]
    return ", ".join(f"{at.astimezone(UTC):%m-%d %H:%M}" for at in later) or None


def request_rows(requests: Sequence[RunRequest], unserved: Mapping[str, str]) -> pd.DataFrame:
    """One row per run request, in the order given; `unserved` says by id why nobody takes one."""
    return pd.DataFrame(
        [
            {
                "state": request.state.value,
                "kind": request.kind.value,
                "what": _request_words(request.spec),
                "machine": request.spec.machine or "any",
                "asked_by": request.asked_by,
                "asked_at": request.asked_at,
                "owner": request.owner,
                "unserved": unserved.get(request.request_id),
                "note": request.history[-1].note if request.history else None,
                "request_id": request.request_id,
            }
            for request in requests
        ]
    )


def _request_words(spec: RequestSpec) -> str:
    """What a request wants measured."""
    words = [f"suite {spec.suite}"] if spec.suite else []
    words += (
        [joined(f"{workload} with {strategy}" for workload, strategy in spec.cases)] if spec.cases else []
    )
    words += [joined(spec.workloads)] if spec.workloads else []
    words += [f"with {joined(spec.strategies)}"] if spec.strategies else []
    words += [f"on {joined(spec.builds)}"] if spec.builds else []
    words += [units.plural(spec.trials, "trial")] if spec.trials else []
    return ", ".join(words) or "everything configured"


# Which runs and run requests are shown, and in how many rows.

NEWEST = 200
QUEUED_REQUESTS = 200
ENDED_REQUESTS = 10


def chosen(machine: str | None, suite: str | None) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Of the `NEWEST` runs those of one machine and of one suite, None for any, and the builds of all."""
    runs, places = read_runs(NEWEST)
    if machine is not None:
        runs = runs[runs["run_id"].isin(places.loc[places["machine_id"] == machine, "run_id"])]
    if suite is not None:
        runs = runs[runs["suite"] == suite]
    return runs, places


def listed_requests() -> tuple[list[RunRequest], str | None]:
    """What is being measured, the first of the queue in its order, and the requests that ended last; and a
    sentence about those that wait and are not shown, if any.
    """
    database = reader()
    ended = tuple(state for state in RequestState if state not in UNFINISHED)
    queued = run_requests.queue(database, limit=QUEUED_REQUESTS)
    done = run_requests.requests(database, states=ended, limit=ENDED_REQUESTS)
    shown = [*run_requests.running_requests(database), *queued, *done]
    if len(queued) < QUEUED_REQUESTS:
        return shown, None
    waiting = run_requests.requests_by_state(database)[RequestState.QUEUED] - len(queued)
    rest = f"The first {len(queued)} of the queue are listed; {units.count(waiting)} more wait."
    return shown, rest if waiting > 0 else None
