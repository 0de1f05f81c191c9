"""Trials as the parts of a report: the list of them, or all that one told."""

from __future__ import annotations

from dashboard.api.representation import rows_of
from dashboard.data import filters_of, read_choices, read_newest_trials, read_trial
from dashboard.links import Link
from dashboard.prepared.trial import figures, only_a_summary
from dashboard.prepared.trial_list import FIGURES, MOST_ROWS, trial_rows
from dashboard.reports.content import Figures, Lines, ReportError, Section
from dashboard.reports.found import Frozen, newest_builds, nothing_fits
from dashboard.reports.tables import table_of
from dashboard.reports.trial_parts import trial_parts
from dashboard.snapshots import Snapshot
from db import units
from db.errors import NotFoundError
from db.identities import build_identity
from db.metrics.samples_taken import samples_taken
from db.records import Trial

_LIST = {
    "workload": "Workload",
    "strategy": "Strategy",
    "status": "Status",
    "why": "Failure",
    **FIGURES,
    "bound": "Timing",
    "build": "Build",
    "started": "Started",
}


def frozen(snapshot: Snapshot, link: Link) -> Frozen:
    """One trial where `link` names one, else the newest `MOST_ROWS` that its filters let through."""
    if link.trial:
        try:
            return _one(read_trial(snapshot, link.trial), link)
        except NotFoundError as error:
            raise ReportError(error.message, error.next_step) from error
    frame, total = read_newest_trials(snapshot, filters_of(link), MOST_ROWS)
    if frame.empty:
        raise nothing_fits()
    table = trial_rows(frame, read_choices(snapshot).builds)
    table = table.assign(started=[units.moment(at) for at in table["started"]])
    more = len(frame) < total
    title = f"The newest {len(frame)} of {units.count(total)} trials" if more else "Trials, newest first"
    parts = (table_of(table, _LIST, title=title, numeric=FIGURES),)
    return Frozen(parts, link, newest_builds(frame, "started_at"), {"trials": rows_of(frame.iloc[::-1])})


def _one(record: Trial, link: Link) -> Frozen:
    return Frozen(
        (_figures(record), _taken(record), *trial_parts(record)),
        link,
        (build_identity(record.build),),
        {"trial": record.model_dump(mode="json")},
    )


def _figures(record: Trial) -> Section:
    suspect = record.device_state is not None and record.device_state.suspect
    status = f"{record.status.value}, suspect" if suspect else record.status.value
    return Figures(
        figures=(
            ("Case", f"{record.workload.name} with {record.strategy.name}"),
            ("Status", status),
            *((title, text) for title, text, _ in figures(record)),
        )
    )


def _taken(record: Trial) -> Section:
    """When it ran, and how its samples were taken."""
    took = record.ended_at - record.started_at if record.ended_at else None
    lasted = f", took {units.duration(took.total_seconds() * 1e9)}" if took else ""
    lines = [f"In run {record.run_id}, started {units.moment(record.started_at)}{lasted}."]
    if record.sampling is not None:
        text = samples_taken(record.sampling)
        lines.append(f"{text[0].upper()}{text[1:]}.")
    if not record.latency_samples_ns and record.summary is not None:
        lines.append(only_a_summary(record.summary))
    return Lines(lines=tuple(lines))
