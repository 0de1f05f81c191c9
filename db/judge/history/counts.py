"""Steps of what is counted, not timed: graph breaks, recompiles, the pass set, and cases that are missing."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from pandas import DataFrame

from compilewatch.db.judge.compare.counts import (
    COUNTS,
    CaseOutcome,
    Counted,
    checked_mask,
    compare_counts,
    compare_outcomes,
    known,
    outcome_of,
)
from compilewatch.db.judge.compare.sides import COMPONENTS, LIBRARIES, NOT_THE_BUILDS_FAULT
from compilewatch.db.judge.decide import MOVED
from compilewatch.db.judge.history.events import LABELS, changed_between, labels
from compilewatch.db.judge.policy import Policy
from compilewatch.db.judge.results import ChangeEvent
from compilewatch.db.judge.sequence import in_reading_order, turns_of_each
from compilewatch.db.metrics.eligibility import failure_kinds, passed_mask, without_canaries
from compilewatch.db.metrics.frames import with_plain_texts
from compilewatch.db.metrics.groups import Bools, Groups, floats
from compilewatch.db.records.ids import identity
from compilewatch.db.records.trial import FailureKind
from compilewatch.db.records.vocabulary import Metric, Verdict

_Case = tuple[str, str]


@dataclass(frozen=True)
class _Run:
    """One run of one series: where in `rows` stands what it is called, and what its trials counted."""

    rows: DataFrame
    place: int
    counts: dict[Metric, np.ndarray[Any, np.dtype[np.float64]]]
    outcome: CaseOutcome

    @property
    def row(self) -> dict[str, Any]:
        return _row(self.rows, self.place)


def exact_events(trials: DataFrame, policy: Policy | None = None) -> tuple[ChangeEvent, ...]:
    """Every step of a count, every pass that became a failure or the reverse, and every case that is missing.

    `trials`: a trials frame of any number of series. Runs are read as `in_reading_order` says. A run's
    count is a range over its trials, and a step is two ranges that do not overlap: exactly the rule of an
    upgrade verdict, from each run to the one before it that knows. Nothing is estimated, so a step is an
    event at once, and stays one.
    """
    policy = policy or Policy()
    outside = trials["failure_kind"].isin([kind.value for kind in NOT_THE_BUILDS_FAULT])
    ran = trials[~outside]
    varying = with_plain_texts(_needed(ran)[_varies(ran)]).sort_values(["started_at", "trial_id"])
    in_turns = set(varying.loc[turns_of_each(varying), "series_id"])
    by_series = varying.groupby("series_id", sort=True)
    events = [e for name, series in by_series for e in _of_series(series, in_turns=name in in_turns)]
    return (*events, *_missing(trials, ran, policy))


def _varies(trials: DataFrame) -> Bools:
    """One flag per trial: those of its series do not all count and end alike. Of most series they do, and no
    run of them needs to be looked at.
    """
    series, passed = Groups.by(trials, ["series_id"]), passed_mask(trials)
    failed = series.sum(~passed)
    varies = (failed > 0) & (series.sum(passed) > 0)
    for column in COUNTS.values():
        counts = floats(trials[column])
        present = series.present(np.where(passed & np.isfinite(counts), counts, np.nan))
        varies |= present.pick(np.zeros_like(present.n)) < present.pick(present.n - 1)
    flags: Bools = varies[series.codes]
    return flags


def _of_series(series: DataFrame, *, in_turns: bool) -> Iterator[ChangeEvent]:
    runs = _runs(series, in_turns=in_turns)
    for metric in COUNTS:
        counted = [(i, run) for i, run in enumerate(runs) if len(run.counts[metric])]
        for (_, old), (i, new) in itertools.pairwise(counted):
            step = compare_counts(0, metric, old.counts[metric], new.counts[metric])
            if step.verdict in MOVED:
                yield _event(step, old.row, new.row, i)
    decided = [(i, run) for i, run in enumerate(runs) if run.outcome.failed in (0, run.outcome.trials)]
    for (_, old), (i, new) in itertools.pairwise(decided):
        step = compare_outcomes(0, old.outcome, new.outcome)
        if step.verdict in MOVED:
            yield _event(step, old.row, new.row, i)


def _runs(ordered: DataFrame, *, in_turns: bool) -> list[_Run]:
    last = ordered.drop_duplicates("run_id", keep="last").rename(columns={"started_at": "last_started_at"})
    passed, checked = passed_mask(ordered), checked_mask(ordered)
    kinds, run = failure_kinds(ordered).to_numpy(dtype=object), ordered["run_id"].to_numpy()
    counts = {m: np.where(passed, floats(ordered[column]), np.nan) for m, column in COUNTS.items()}
    rows = last.reset_index(drop=True)
    if in_turns:
        rows = in_reading_order(rows, ordered)
    runs = []
    for place, run_id in enumerate(rows["run_id"].to_list()):
        mine = run == run_id
        counted = {metric: known(values, mine) for metric, values in counts.items()}
        outcome = outcome_of(passed[mine], checked[mine], kinds[mine & ~passed])
        runs.append(_Run(rows, place, counted, outcome))
    return runs


_OF_AN_EVENT = {*LABELS, *COMPONENTS, LIBRARIES, "started_at"}
_NEEDED = {*_OF_AN_EVENT, *COUNTS.values(), "trial_id", "ended_at"}
_NEEDED |= {"status", "failure_kind", "numerics_status"}


def _needed(trials: DataFrame) -> DataFrame:
    """What is read of them, of a hundred columns."""
    return trials[[name for name in trials if name in _NEEDED]]


def _row(rows: DataFrame, place: int) -> dict[str, Any]:
    """What an event says of a row."""
    wanted = {*_OF_AN_EVENT, "last_started_at"}
    return {str(name): rows[name].iat[place] for name in rows if name in wanted}


def _event(step: Counted, old: dict[str, Any], new: dict[str, Any], index: int) -> ChangeEvent:
    before, after = step.base, step.head
    changed = changed_between(old, new)
    relative = isinstance(before, float) and isinstance(after, float) and before > 0
    unique = {
        "series": str(new["series_id"]),
        "metric": step.metric.value,
        "at": str(new["run_id"]),
        "verdict": step.verdict.value,
    }
    return ChangeEvent(
        event_id=identity(unique),
        metric=step.metric,
        **labels(new),
        index=index,
        announced_at=index,
        before=before,
        after=after,
        change=float(after) / float(before) - 1.0 if relative else None,
        interval=None,
        p_value=None,
        verdict=step.verdict,
        changed_components=changed,
        confounded=len(changed) > 1,
        reason=step.reason,
    )


def _missing(trials: DataFrame, ran: DataFrame, policy: Policy) -> Iterator[ChangeEvent]:
    """Cases that a whole run of their suite left out, at the first such run after each time they ran.

    A run that was cut short, or that holds less than `history.whole_run_share` of the cases that ran before,
    was a part of the suite on purpose: nothing is missing from it.
    """
    cut_short = set(trials.loc[trials["failure_kind"] == FailureKind.CANCELLED.value, "run_id"])
    cases = without_canaries(ran[ran["suite"].notna()], policy.canary_workloads)
    named = cases.sort_values(["started_at", "trial_id"])
    for _, of_suite in named.groupby(["machine_id", "suite"], sort=True):
        suite = _needed(of_suite)
        runs: dict[str, dict[_Case, int]] = {}
        case_of_each = zip(
            *(suite[name].astype(str) for name in ("run_id", "workload", "strategy")), strict=True
        )
        for place, (run, workload, strategy) in enumerate(case_of_each):
            runs.setdefault(run, {})[workload, strategy] = place
        yield from _missing_in_suite(suite, runs, cut_short, policy)


def _missing_in_suite(
    suite: DataFrame, runs: dict[str, dict[_Case, int]], cut_short: set[str], policy: Policy
) -> Iterator[ChangeEvent]:
    """`runs`: in order of time, by run id where in `suite` the newest trial of each of its cases stands."""
    expected: dict[_Case, int] = {}
    for index, (run, cases) in enumerate(runs.items()):
        again = sum(case in cases for case in expected)
        if run not in cut_short and again >= policy.history.whole_run_share * len(expected):
            newest = max(cases.values())
            for case in [each for each in expected if each not in cases]:
                yield _missing_event(_row(suite, expected.pop(case)), _row(suite, newest), index)
        expected |= cases


def _missing_event(row: dict[str, Any], newest: dict[str, Any], index: int) -> ChangeEvent:
    """`row` is the case's last trial, `newest` the last trial of the run that has none of it."""
    here = {name: newest[name] for name in (*COMPONENTS, LIBRARIES, "build_id", "run_id") if name in newest}
    missing = Counted(
        case=0,
        metric=Metric.NUMERICS,
        base="ran",
        head="missing",
        verdict=Verdict.MISSING,
        trials=(1, 0),
        suspected=False,
        reason=f"{row['workload']} / {row['strategy']} ran in the run before and has no trial in this one.",
    )
    return _event(missing, row, row | here | {"last_started_at": newest["started_at"]}, index)
