"""Pages that show records rather than cases, as the parts of a report: regressions, one trial, runs."""

from __future__ import annotations

from datetime import UTC, datetime

import pandas as pd

from dashboard import inbox, run_rows, theme, upgrade_rows
from dashboard.api.representation import rows_of
from dashboard.charts import samples as samples_charts
from dashboard.charts import side_strips
from dashboard.data import (
    filters_of,
    read_choices,
    read_hosts,
    read_machines,
    read_newest_trials,
    read_noise,
    read_regressions,
    read_runs,
    read_trial,
    read_trials,
)
from dashboard.links import Link
from dashboard.reports.content import Chart, Figures, Lines, ReportError, Section
from dashboard.reports.found import Frozen, newest_builds, nothing_fits
from dashboard.reports.svg import draw
from dashboard.reports.tables import table_of
from dashboard.shaping import row_dicts
from dashboard.snapshots import Snapshot
from dashboard.verdict_words import interval_title
from db import units
from db.errors import NotFoundError
from db.identities import build_identity
from db.metrics.summary import summarize_samples
from db.queries.cold_start import phases_of
from db.queries.filters import Filters
from db.queries.regressions import RegressionState
from db.records import Trial
from db.verdicts.vocabulary import METRIC_NAMES

NEWEST_RUNS = 200
MOST_TRIALS = 500
"""As many as the page lists."""
_INBOX = {
    "state": "State",
    "workload": "Workload",
    "strategy": "Strategy",
    "metric": "Figure",
    "base": "Base",
    "head": "Head",
    "change": "Change",
    "interval": interval_title(None),
    "cause": "Cause",
    "from": "From",
    "to": "To",
    "machine": "Machine",
    "by": "Last said by",
    "note": "Note",
}
_CASE = {
    "metric": "Figure",
    "base": "Base",
    "head": "Head",
    "change": "Change",
    "interval": interval_title(None),
    "verdict": "Verdict",
    "moved": "Who moved",
    "reason": "Why",
}
_NUMBERS = ("base", "head", "change", "interval")


def regressions(snapshot: Snapshot, link: Link) -> Frozen:
    """The inbox under the filters of `link`, and for each chosen regression its evidence and story."""
    recorded = read_regressions(snapshot)
    shown = inbox.chosen(recorded, link)
    if not shown:
        raise nothing_fits()
    table = inbox.inbox_table(shown)
    parts: tuple[Section, ...] = (table_of(table, _INBOX, title="Recorded regressions", numeric=_NUMBERS),)
    for each in recorded:
        if each.regression.regression_id in link.regression:
            parts += _regression(snapshot, each)
    builds = dict.fromkeys(
        build
        for each in shown
        for side in (each.regression.head, each.regression.base)
        for build in side.build_ids
    )
    documents = [each.regression.model_dump(mode="json") for each in shown]
    known = read_choices(snapshot).builds
    return Frozen(parts, link, tuple(key for key in builds if key in known), {"regressions": documents})


def _regression(snapshot: Snapshot, each: RegressionState) -> tuple[Section, ...]:
    found = each.regression
    row = found.row
    title = f"{METRIC_NAMES[row.metric]} of {row.workload} with {row.strategy}"
    sides = (found.base, found.head)
    runs = (*found.base.run_ids, *found.head.run_ids)
    machines = (found.machine_id,) if found.machine_id else ()
    trials = read_trials(snapshot, Filters(machines=machines, runs=runs))
    strip = side_strips.frame(
        [side_strips.side_trials(trials, side, row.case) for side in sides], row.case, row.metric
    )
    parts: tuple[Section, ...] = (
        table_of(upgrade_rows.case_table([row]), _CASE, title=title, numeric=_NUMBERS),
    )
    if len(strip):
        strategies = tuple(theme.ordered(strip["strategy"]))
        lanes = tuple(dict.fromkeys(strip["lane"]))
        parts += (
            Chart(
                title=f"{title}: the trials of both sides",
                caption="A point is a trial, the upright line the median of them.",
                alt=f"{title}, every trial of the base side and of the head side",
                svg=draw(
                    side_strips.spec(lanes, strategies, row.metric),
                    {"main": strip, "middles": side_strips.middles(strip)},
                ),
            ),
        )
    story = inbox.story(each)
    story = story.assign(at=[units.moment(at) for at in story["at"]])
    said = {"at": "When", "state": "State", "by": "By", "note": "Note"}
    return (*parts, table_of(story, said, title="Who said what"))


def trial(snapshot: Snapshot, link: Link) -> Frozen:
    """One trial where `link` names one, else the newest `MOST_TRIALS` that its filters let through."""
    if link.trial:
        try:
            return _one_trial(read_trial(snapshot, link.trial), link)
        except NotFoundError as error:
            raise ReportError(error.message, error.next_step) from error
    newest, total = read_newest_trials(snapshot, filters_of(link), MOST_TRIALS)
    frame = newest.iloc[::-1]
    if frame.empty:
        raise nothing_fits()
    table = pd.DataFrame(
        [
            {
                "workload": row["workload_label"],
                "strategy": row["strategy"],
                "status": row["status"],
                "latency": units.duration(row["latency_ns"]),
                "eager": units.duration(row["control_latency_ns"]),
                "first": units.duration(row["time_to_first_result_ns"]),
                "peak": units.size(row["peak_bytes"]),
                "started": units.moment(row["started_at"]),
            }
            for row in row_dicts(frame)
        ]
    )
    titles = {
        "workload": "Workload",
        "strategy": "Strategy",
        "status": "Status",
        "latency": "Latency",
        "eager": "Eager latency",
        "first": "Time to first result",
        "peak": "Peak memory",
        "started": "Started",
    }
    numbers = ("latency", "eager", "first", "peak")
    more = len(frame) < total
    title = f"The newest {len(frame)} of {units.count(total)} trials" if more else "Trials, newest first"
    parts = (table_of(table, titles, title=title, numeric=numbers),)
    return Frozen(parts, link, newest_builds(frame, "started_at"), {"trials": rows_of(frame)})


def _one_trial(record: Trial, link: Link) -> Frozen:
    parts: list[Section] = [_trial_figures(record)]
    if record.failure is not None:
        kind = record.failure.kind.value.replace("_", " ")
        parts.append(Lines(title=f"Failed: {kind}", lines=(record.failure.message,)))
    if record.samples_ns:
        name, control = record.strategy.name, record.control_samples_ns
        strategies = tuple(theme.ordered([name, *([samples_charts.CONTROL] if control else [])]))
        parts.append(
            Chart(
                title="Every sample as measured",
                caption="Eager and compiled in alternation. Dashed: medians.",
                alt="Latency of every sample in the order measured",
                svg=draw(
                    samples_charts.over_time(strategies),
                    {
                        "main": samples_charts.frame(record.samples_ns, control, name),
                        "medians": samples_charts.medians(record.samples_ns, control, name),
                    },
                ),
            )
        )
    if record.cold_start is not None:
        phases = [
            {"phase": phase, "time": units.duration(ns)}
            for phase, ns in phases_of(record.cold_start.model_dump(mode="json"))
            if ns
        ]
        titles = {"phase": "Phase", "time": "Time"}
        frame = pd.DataFrame(phases, columns=list(titles))
        parts.append(table_of(frame, titles, title="Cold start", numeric=("time",)))
    document = {"trial": record.model_dump(mode="json")}
    return Frozen(tuple(parts), link, (build_identity(record.build),), document)


def _trial_figures(record: Trial) -> Figures:
    own, control = summarize_samples(record.samples_ns), summarize_samples(record.control_samples_ns)
    latency, eager = (found.latency_ns if found else None for found in (own, control))
    peak = record.memory.peak_bytes if record.memory else None
    first = record.cold_start.total_ns if record.cold_start else None
    return Figures(
        figures=(
            ("Case", f"{record.workload.name} with {record.strategy.name}"),
            ("Status", record.status.value),
            ("Latency (p50)", units.duration(latency)),
            ("Speedup", units.ratio(eager / latency if latency and eager else None)),
            ("First result after", units.duration(first)),
            ("Peak memory", units.size(peak)),
        )
    )


def runs(snapshot: Snapshot, link: Link) -> Frozen:
    """The runs under the filters of `link`, and every machine."""
    choices = read_choices(snapshot)
    found, where = read_runs(snapshot, NEWEST_RUNS)
    if link.machine is not None:
        found = found[found["run_id"].isin(where.loc[where["machine_id"] == link.machine, "run_id"])]
    if link.suite is not None:
        found = found[found["suite"] == link.suite]
    if found.empty:
        raise nothing_fits()
    rows = run_rows.run_rows(found, where, choices.machines, choices.builds)
    rows = rows.assign(started=[units.moment(at) for at in rows["started_at"]])
    titles = {
        "started": "Started",
        "state": "State",
        "suite": "Suite",
        "machine": "Machine",
        "build": "Build",
        "trials": "Trials",
        "failed": "Failed",
        "run_id": "Run",
    }
    hosts = run_rows.host_words(read_hosts(), datetime.now(UTC))
    machines = run_rows.machine_rows(read_machines(snapshot), hosts, read_noise(snapshot))
    of_machine = {"machine": "Machine", "device": "Device", "cpu": "CPU", "noise": "Shows changes from"}
    parts: tuple[Section, ...] = (
        table_of(rows, titles, title="Runs, newest first", numeric=("trials", "failed")),
        table_of(machines, of_machine, title="Machines", numeric=("noise",)),
    )
    shown = where[where["run_id"].isin(found["run_id"])]
    builds = tuple(dict.fromkeys(shown["build_id"]))
    return Frozen(parts, link, builds, {"runs": rows_of(found)})
