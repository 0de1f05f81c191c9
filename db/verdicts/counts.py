"""What is counted, not timed: graph breaks, recompiles, and whether a case passes. Compared exactly."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from statistics import median

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas import DataFrame

from db.metrics.eligibility import failure_kinds, passed_mask
from db.metrics.groups import Bools, Floats, Ints, floats
from db.records import NumericsStatus
from db.units import words
from db.verdicts.vocabulary import Metric, Verdict

_COLUMNS = {Metric.GRAPH_BREAKS: "graph_breaks", Metric.RECOMPILES: "recompiles"}


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
    """Graph breaks, recompiles and the pass set of every case, as far as both sides know them.

    A case that ran on both sides has no row for its pass set where a side's numbers were never checked.

    `trials` has column `side`; `case` is the number of each trial's case.
    """
    places = _places(case * 2 + trials["side"].to_numpy(dtype=np.int64), 2 * cases)
    rows = []
    passed = passed_mask(trials)
    for metric, column in _COLUMNS.items():
        counts = np.where(passed, floats(trials[column]), np.nan)
        for number in range(cases):
            base, head = (known(counts, places[2 * number + side]) for side in (0, 1))
            if len(base) and len(head):
                rows.append(compare_counts(number, metric, base, head))
    kinds, checked = failure_kinds(trials).to_numpy(dtype=object), checked_mask(trials)
    for number in range(cases):
        mine = places[2 * number : 2 * number + 2]
        outcomes = [outcome_of(passed[m], checked[m], kinds[m[~passed[m]]]) for m in mine]
        told = all(o.known for o in outcomes) or any(o.failed for o in outcomes)
        if told and all(o.trials for o in outcomes):
            rows.append(compare_outcomes(number, *outcomes))
    return rows


def _places(cell: Ints, cells: int) -> list[Ints]:
    """The positions of the trials of each cell, in their order. `cell` numbers that of every trial."""
    ends = np.cumsum(np.bincount(cell, minlength=cells))
    return [part.astype(np.int64) for part in np.split(np.argsort(cell, kind="stable"), ends[:-1])]


def checked_mask(trials: DataFrame) -> Bools:
    """One flag per trial: it ran, and somebody looked at its numbers. Imported results often say nothing."""
    status = trials["numerics_status"]
    unsaid = status.isna() | (status.astype("str") == NumericsStatus.NOT_CHECKED.value)
    return ~unsaid.to_numpy(dtype=np.bool_)


def known(values: Floats, chosen: Bools | Ints) -> Floats:
    """The values of the chosen trials, by flags or by positions, that are numbers."""
    mine = values[chosen]
    return mine[np.isfinite(mine)]


def compare_counts(case: int, metric: Metric, base: Floats, head: Floats) -> Counted:
    """Regressed when every head trial counts more than every base trial. Counts that vary between trials of
    one build and overlap cannot be told apart.
    """
    low, high = (float(base.min()), float(base.max())), (float(head.min()), float(head.max()))
    if high[0] > low[1]:
        verdict = Verdict.REGRESSED
    elif high[1] < low[0]:
        verdict = Verdict.IMPROVED
    else:
        verdict = Verdict.UNCHANGED if low == high else Verdict.INCONCLUSIVE
    reason = f"{_range(low)} to {_range(high)}, compared exactly."
    if verdict is Verdict.INCONCLUSIVE:
        reason = (
            f"The count varies between trials: {_range(low)} on the base side, {_range(high)} on the head."
        )
    return Counted(
        case=case,
        metric=metric,
        base=median(base.tolist()),
        head=median(head.tolist()),
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
    most = Counter("failed" if pd.isna(kind) else str(kind) for kind in kinds).most_common(1)
    return CaseOutcome(
        trials=len(passed),
        checked=int(np.count_nonzero(checked)),
        failed=int(np.count_nonzero(~passed)),
        kind=most[0][0] if most else "",
    )


def compare_outcomes(case: int, base: CaseOutcome, head: CaseOutcome) -> Counted:
    """Pass to fail is a regression, fail to pass an improvement; failing in some trials only is neither."""
    if base.failed in (0, base.trials) and head.failed in (0, head.trials):
        fails_before, fails_now = base.failed > 0, head.failed > 0
        if fails_before == fails_now:
            verdict = Verdict.UNCHANGED
        else:
            verdict = Verdict.REGRESSED if fails_now else Verdict.IMPROVED
    else:
        verdict = Verdict.INCONCLUSIVE
    before, now = "Passed" if base.checked else "Ran", "passes" if head.checked else "runs"
    reason = {
        Verdict.UNCHANGED: "Fails on both sides." if base.failed else "Passes on both sides.",
        Verdict.REGRESSED: f"{before} on the base side, fails now: {words(head.word)}.",
        Verdict.IMPROVED: f"Failed on the base side ({words(base.word)}), {now} now.",
        Verdict.INCONCLUSIVE: f"Fails in some trials only: base {words(base.word)}, head {words(head.word)}.",
    }[verdict]
    return Counted(
        case=case,
        metric=Metric.NUMERICS,
        base=base.word,
        head=head.word,
        verdict=verdict,
        trials=(base.trials, head.trials),
        suspected=verdict is Verdict.INCONCLUSIVE,
        reason=reason,
    )
