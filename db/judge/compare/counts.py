"""What is counted, not timed: graph breaks, recompiles, and whether a case passes: by side, and in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas import DataFrame

from compilewatch.db.columns.metrics import is_counted
from compilewatch.db.columns.source_metrics import metrics_among
from compilewatch.db.judge.decide import decide_count, decide_passes
from compilewatch.db.metrics.eligibility import failure_kinds, passed_mask
from compilewatch.db.metrics.groups import Bools, Floats, Groups, Ints, equal_to, floats
from compilewatch.db.records.trial import NumericsStatus
from compilewatch.db.records.vocabulary import Metric, Verdict
from compilewatch.db.units import words

COUNTS = {
    metric: metric.value for metric in (Metric.GRAPH_BREAKS, Metric.RECOMPILES, Metric.COMPILES_AFTER_READY)
}


@dataclass(frozen=True)
class Counted:
    """One counted metric of one case. `base` and `head` are the counts, or words for the pass set."""

    case: int
    metric: Metric
    base: float | str
    head: float | str
    verdict: Verdict
    trials: tuple[int, int]
    suspected: bool
    reason: str


def count_rows(trials: DataFrame, case: Ints, cases: int) -> list[Counted]:
    """Graph breaks, recompiles, a source's counts and the pass set of every case, as far as both sides know.

    A case that ran on both sides has no row for its pass set where a side's numbers were never checked.

    `trials` has column `side`; `case` is the number of each trial's case.
    """
    cells = Groups(case * 2 + trials["side"].to_numpy(dtype=np.int64), 2 * cases)
    rows = []
    passed = passed_mask(trials)
    stated = {metric: metric for metric in metrics_among(trials.columns) if is_counted(metric)}
    for metric, column in (COUNTS | stated).items():
        counts = _known_by_cell(cells, np.where(passed, floats(trials[column]), np.nan))
        for number, (base, head) in enumerate(zip(counts[::2], counts[1::2], strict=True)):
            if base and head:
                rows.append(compare_counts(number, metric, base, head))
    outcomes = _outcomes(cells, passed, trials)
    for number, (before, now) in enumerate(zip(outcomes[::2], outcomes[1::2], strict=True)):
        is_decided = (before.known and now.known) or before.failed or now.failed
        if is_decided and before.trials and now.trials:
            rows.append(compare_outcomes(number, before, now))
    return rows


def _known_by_cell(cells: Groups, values: Floats) -> list[list[float]]:
    """Of each cell the values that are numbers, ascending."""
    present = cells.present(np.where(np.isfinite(values), values, np.nan))
    ascending, ends = present.values.tolist(), np.cumsum(present.n).tolist()
    return [ascending[start:end] for start, end in pairwise([0, *ends])]


def _outcomes(cells: Groups, passed: Bools, trials: DataFrame) -> list[CaseOutcome]:
    every = np.ones(len(trials), dtype=np.bool_)
    counts = [cells.sum(flags).astype(np.int64) for flags in (every, checked_mask(trials), ~passed)]
    kinds: list[list[Any]] = [[] for _ in range(cells.count)]
    failed = failure_kinds(trials).to_numpy(dtype=object)[~passed].tolist()
    for cell, kind in zip(cells.codes[~passed].tolist(), failed, strict=True):
        kinds[cell].append(kind)
    return [
        CaseOutcome(ran, checked, bad, _most_frequent(mine) if bad else "")
        for (ran, checked, bad), mine in zip(np.transpose(counts).tolist(), kinds, strict=True)
    ]


def checked_mask(trials: DataFrame) -> Bools:
    """One flag per trial: it ran, and somebody looked at its numbers. Imported results often say nothing."""
    status = trials["numerics_status"]
    return ~(status.isna().to_numpy() | equal_to(status, NumericsStatus.NOT_CHECKED.value))


def known(values: Floats, chosen: Bools | Sequence[int]) -> Floats:
    mine = values[chosen]
    return mine[np.isfinite(mine)]


def compare_counts(
    case: int, metric: Metric, base: Sequence[float] | Floats, head: Sequence[float] | Floats
) -> Counted:
    """By `decide_count`, of the ranges of both sides."""
    low, high = (float(min(base)), float(max(base))), (float(min(head)), float(max(head)))
    verdict = decide_count(low, high)
    reason = f"{_range(low)} to {_range(high)}, compared exactly."
    if verdict is Verdict.INCONCLUSIVE:
        both = f"{_range(low)} on the base side, {_range(high)} on the head"
        reason = f"The count varies between trials: {both}."
    return Counted(
        case=case,
        metric=metric,
        base=float(median(base)),
        head=float(median(head)),
        verdict=verdict,
        trials=(len(base), len(head)),
        suspected=verdict is Verdict.INCONCLUSIVE,
        reason=reason,
    )


def _range(ends: tuple[float, float]) -> str:
    return f"{ends[0]:.0f}" if ends[0] == ends[1] else f"{ends[0]:.0f} to {ends[1]:.0f}"


@dataclass(frozen=True)
class CaseOutcome:
    """How the trials of a case ended; `kind` is the most frequent kind of failure."""

    trials: int
    checked: int
    failed: int
    kind: str

    @property
    def known(self) -> bool:
        """Whether it can be said to pass or to fail."""
        return bool(self.checked or self.failed)

    @property
    def word(self) -> str:
        """How they ended, in the fewest words: "pass", "crash", "wrong_result in 1 of 3"."""
        if not self.failed:
            return "pass" if self.checked else "ran, numbers not checked"
        return self.kind if self.failed == self.trials else f"{self.kind} in {self.failed} of {self.trials}"


def outcome_of(passed: Bools, checked: Bools, kinds: NDArray[np.object_]) -> CaseOutcome:
    """`kinds`: the kinds of failure of the trials that failed."""
    return CaseOutcome(
        trials=len(passed),
        checked=int(np.count_nonzero(checked)),
        failed=int(np.count_nonzero(~passed)),
        kind=_most_frequent(kinds),
    )


def _most_frequent(kinds: Iterable[Any]) -> str:
    """Of the kinds of failure of some trials; the first among equals, empty where there is none."""
    counts = Counter("failed" if pd.isna(kind) else str(kind) for kind in kinds)
    return max(counts, key=counts.__getitem__, default="")


def compare_outcomes(case: int, base: CaseOutcome, head: CaseOutcome) -> Counted:
    """By `decide_passes`, of how the trials of both sides ended."""
    verdict = decide_passes((base.failed, base.trials), (head.failed, head.trials))
    return Counted(
        case=case,
        metric=Metric.NUMERICS,
        base=base.word,
        head=head.word,
        verdict=verdict,
        trials=(base.trials, head.trials),
        suspected=verdict is Verdict.INCONCLUSIVE,
        reason=_outcome_reason(verdict, base, head),
    )


def _outcome_reason(verdict: Verdict, base: CaseOutcome, head: CaseOutcome) -> str:
    if verdict is Verdict.UNCHANGED:
        return "Fails on both sides." if base.failed else "Passes on both sides."
    if verdict is Verdict.REGRESSED:
        before = "Passed" if base.checked else "Ran"
        return f"{before} on the base side, fails now: {words(head.word)}."
    if verdict is Verdict.IMPROVED:
        now = "passes" if head.checked else "runs"
        return f"Failed on the base side ({words(base.word)}), {now} now."
    return f"Fails in some trials only: base {words(base.word)}, head {words(head.word)}."
