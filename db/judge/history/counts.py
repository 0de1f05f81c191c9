"""Steps of what is counted, not timed: graph breaks, recompiles, the pass set, and cases that are missing."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from pandas import DataFrame

from compilewatch.db.judge.compare.measured import (
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
from compilewatch.db.metrics.groups import Bools, Floats, Groups, floats
from compilewatch.db.records.ids import identity
from compilewatch.db.records.trial import FailureKind
from compilewatch.db.records.vocabulary import Metric, Verdict

_Case = tuple[str, str]


@dataclass(frozen=True)
class _Trials:
    """What is read of each of the `rows`, trials from the oldest on: how it ended and what it counted."""

    rows: DataFrame
    passed: Bools
    checked: Bools
    kinds: np.ndarray[Any, np.dtype[np.object_]]
    counts: dict[Metric, Floats]

    @classmethod
    def of(cls, rows: DataFrame) -> Self:
        passed = passed_mask(rows)
        counts = {m: np.where(passed, floats(rows[column]), np.nan) for m, column in COUNTS.items()}
        kinds = failure_kinds(rows).to_numpy(dtype=object)
        return cls(rows, passed, checked_mask(rows), kinds, counts)


@dataclass(frozen=True)
class _Run:
    """One run of one series: where in `trials` its trials stand, the newest of them last."""

    trials: _Trials
    places: list[int]

    def counted(self, metric: Metric) -> Floats:
        return known(self.trials.counts[metric], self.places)

    def outcome(self) -> CaseOutcome:
        passed, kinds = self.trials.passed[self.places], self.trials.kinds[self.places]
        return outcome_of(passed, self.trials.checked[self.places], kinds[~passed])

    @property
    def row(self) -> dict[str, Any]:
        newest = _row(self.trials.rows, self.places[-1])
        return newest | {"last_started_at": newest["started_at"]}


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
    each = _Trials.of(varying)
    by_series = varying.groupby("series_id", sort=True).indices.items()
    events = [
        e for name, places in by_series for e in _of_series(each, list(places), in_turns=name in in_turns)
    ]
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


def _of_series(trials: _Trials, places: Sequence[int], *, in_turns: bool) -> Iterator[ChangeEvent]:
    runs = _runs(trials, places, in_turns=in_turns)
    for metric in COUNTS:
        counted = [(i, run, counts) for i, run in enumerate(runs) if len(counts := run.counted(metric))]
        for (_, old, before), (i, new, after) in itertools.pairwise(counted):
            step = compare_counts(0, metric, before, after)
            if step.verdict in MOVED:
                yield _event(step, old.row, new.row, i)
    outcomes = [(i, run, run.outcome()) for i, run in enumerate(runs)]
    decided = [each for each in outcomes if each[2].failed in (0, each[2].trials)]
    for (_, old, base), (i, new, head) in itertools.pairwise(decided):
        step = compare_outcomes(0, base, head)
        if step.verdict in MOVED:
            yield _event(step, old.row, new.row, i)


def _runs(trials: _Trials, places: Sequence[int], *, in_turns: bool) -> list[_Run]:
    """The runs of a series, whose trials stand at `places`, by their newest trials, or by turns."""
    run_ids = trials.rows["run_id"].array
    by_run: dict[str, list[int]] = {}
    for place in places:
        mine = by_run.pop(run_ids[place], [])
        mine.append(place)
        by_run[run_ids[place]] = mine
    runs = [_Run(trials, mine) for mine in by_run.values()]
    if not in_turns:
        return runs
    newest = trials.rows.iloc[[run.places[-1] for run in runs]].assign(run=range(len(runs)))
    newest = newest.rename(columns={"started_at": "last_started_at"}).reset_index(drop=True)
    ordered = in_reading_order(newest, trials.rows.iloc[[*places]])
    return [runs[number] for number in ordered["run"]]


_OF_AN_EVENT = {*LABELS, *COMPONENTS, LIBRARIES, "started_at"}
_NEEDED = {*_OF_AN_EVENT, *COUNTS.values(), "trial_id", "ended_at"}
_NEEDED |= {"status", "failure_kind", "numerics_status"}


def _needed(trials: DataFrame) -> DataFrame:
    """What is read of them, of a hundred columns."""
    return trials[[name for name in trials if name in _NEEDED]]


def _row(rows: DataFrame, place: int) -> dict[str, Any]:
    """What an event says of a row."""
    return {str(name): rows[name].iat[place] for name in rows if name in _OF_AN_EVENT}


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
