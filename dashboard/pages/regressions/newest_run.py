"""Where no regression was ever recorded: what the judge says now of the newest run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from compilewatch.dashboard.links.links import Link, Page
from compilewatch.dashboard.parts import parts, verdict_words
from compilewatch.dashboard.parts.cases import floors_of
from compilewatch.dashboard.parts.parts import (
    CASE_FACTS,
    LEFT_OUT,
    Empty,
    PageContent,
    PageHeadline,
    Part,
    TableColumn,
)
from compilewatch.dashboard.read.data import (
    filters_of,
    read_builds,
    read_choices,
    read_comparison,
    read_newest_two,
    read_points,
    read_suites,
    recent,
)
from compilewatch.dashboard.read.versions import cached
from compilewatch.dashboard.verdicts import inbox, tables
from compilewatch.db import units
from compilewatch.db.judge.compare.sides import VerdictError
from compilewatch.db.judge.results import Comparison
from compilewatch.db.judge.statistics.noise_floor import NoiseFloor
from compilewatch.db.queries.run_parts import run_side
from compilewatch.db.records.trial import SourceKind

_MOST_CANDIDATES = 5
_NO_TRIAL = Empty("No trial fits these filters.", "Widen them above.")
_EXPLAINED = "At the confidence of the policy by which it was judged."


def finding_columns(confidence: float | None) -> dict[str, TableColumn]:
    """The columns of a verdict; `confidence` of its interval, None where it was recorded."""
    changes = tables.change_columns(confidence)
    changes["interval"] = replace(changes["interval"], explained="" if confidence else _EXPLAINED)
    return {
        "workload": parts.WORKLOAD,
        **changes,
        "strategy": TableColumn("Strategy"),
        "metric": TableColumn("Metric"),
        **parts.hidden({**tables.SIDES, "moved": TableColumn("Who moved"), **CASE_FACTS, **tables.TRIALS}),
    }


def newest_run(link: Link) -> PageContent:
    """What the judge says now about the newest run of the machine, as nothing is recorded."""
    choices = read_choices()
    machine = link.machine or choices.newest_machine
    here = Link(page=Page.REGRESSIONS, machine=machine, task=link.task, workload=link.workload)
    stored = read_builds(filters_of(here)) if machine else frozenset()
    if machine is None or not stored:
        return PageContent((_NO_TRIAL,), link)
    builds = tuple(key for key in choices.builds if key in stored)
    name = choices.machines[machine]
    sentence = f"No regression is recorded. This is the newest run on {name} against one before it."
    comparison, why = _comparison(here)
    if comparison is not None and comparison.matched:
        floors = floors_of(machine)
        judged = (*_verdicts_now(comparison, link.strategy, floors), *parts.notes([sentence]))
        return PageContent(judged, link, builds)
    known: tuple[Part, ...] = ()
    if comparison is not None:
        known = (*parts.notes(comparison.sentences), *_left_out(comparison, link.strategy))
    empty = Empty(why, "Measure the same suite once more.")
    return PageContent((empty, *parts.notes([sentence]), *known), link, builds)


@cached
def _comparison(link: Link) -> tuple[Comparison | None, str]:
    """The newest measured run against what `gate` sets it against, else the newest before it that it can be
    compared with, those of its own suite first; of imported ones where nothing was measured. Where there is
    none, why, and the nearest.
    """
    filters = filters_of(link)
    points = read_points(recent(filters), columns=("run_id", "first_started_at"))
    measured = points[points["source_kind"] == SourceKind.MEASURED]
    began = (points if measured.empty else measured).groupby("run_id")["first_started_at"].min()
    runs = began.to_frame("began").sort_values("began", ascending=False)
    runs["suite"] = runs.index.map(read_suites(tuple(runs.index))).fillna("")
    if runs.empty:
        return None, "Of the newest runs none has a result."
    newest, before = read_newest_two(str(runs.index[0]), measured=not measured.empty)
    earlier = runs[~runs.index.isin(newest.run_ids + (before.run_ids if before else ()))]
    alike = earlier["suite"] == runs["suite"].iloc[0]
    others = [run_side(str(run)) for run in (*earlier.index[alike], *earlier.index[~alike])]
    candidates = [*([before] if before else []), *others][:_MOST_CANDIDATES]
    if not candidates:
        return None, "There is no run before the newest one."
    nearest: Comparison | None = None
    for base in candidates:
        try:
            comparison = read_comparison(filters, base, newest)
        except VerdictError:
            continue
        if comparison.matched:
            return comparison, ""
        nearest = nearest or comparison
    number = units.plural(len(candidates), "earlier run")
    why = f"Nothing could be compared: {number}, none with a case comparable to the newest run's."
    return nearest, why


def _verdicts_now(
    comparison: Comparison, wanted: Sequence[str], floors: Sequence[NoiseFloor]
) -> tuple[Part, ...]:
    rows = [
        inbox.finding_row(row, floors)
        for row in comparison.rows
        if row.moved == "slower" and (not wanted or row.strategy in wanted)
    ]
    notes = parts.notes(comparison.sentences)
    if not rows:
        sentence, shown = verdict_words.no_regression(comparison, wanted)
        headline = PageHeadline(sentence, "good" if shown else "warning")
        return (headline, *notes, *_left_out(comparison, wanted))
    columns = finding_columns(comparison.policy.confidence)
    columns |= {**tables.Q_VALUE, "reason": TableColumn("Why", wide=True)}
    alt = "What regressed in the newest run against the one before it"
    return (
        PageHeadline(f"{units.plural(len(rows), 'figure')} regressed in the newest run", "bad"),
        *notes,
        *parts.table("regressions-now", alt, pd.DataFrame(rows), columns),
    )


def _left_out(comparison: Comparison, wanted: Sequence[str]) -> tuple[Part, ...]:
    cases = [case for case in comparison.left_out if not wanted or case.strategy in wanted]
    columns = parts.texts({"workload": "Workload", "strategy": "Strategy"})
    return tables.left_out_parts(LEFT_OUT, cases, columns)
