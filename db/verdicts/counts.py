"""What is counted, not timed: graph breaks, recompiles, and whether a case passes. Compared exactly."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas import DataFrame

from db.metrics.eligibility import failure_kinds, passed_mask
from db.metrics.groups import Bools, Floats, Ints, floats
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

    `trials` has column `side`; `case` is the number of each trial's case.
    """
    side = trials["side"].to_numpy(dtype=np.int64)
    rows = []
    for metric, column in _COLUMNS.items():
        counts = np.where(passed_mask(trials), floats(trials[column]), np.nan)
        for number in range(cases):
            base, head = (_known(counts, (case == number) & (side == s)) for s in (0, 1))
            if len(base) and len(head):
                rows.append(_compare_counts(number, metric, base, head))
    passed, kinds = passed_mask(trials), failure_kinds(trials).to_numpy(dtype=object)
    for number in range(cases):
        mine = [(case == number) & (side == s) for s in (0, 1)]
        outcomes = [_outcome(passed[m], kinds[m & ~passed]) for m in mine]
        if all(outcome.trials for outcome in outcomes):
            rows.append(_compare_outcomes(number, *outcomes))
    return rows


def _known(values: Floats, chosen: Bools) -> Floats:
    mine = values[chosen]
    return mine[np.isfinite(mine)]


def _compare_counts(case: int, metric: Metric, base: Floats, head: Floats) -> Counted:
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
        base=float(np.median(base)),
        head=float(np.median(head)),
        verdict=verdict,
        trials=(len(base), len(head)),
        suspected=verdict is Verdict.INCONCLUSIVE,
        reason=reason,
    )


def _range(ends: tuple[float, float]) -> str:
    return f"{ends[0]:.0f}" if ends[0] == ends[1] else f"{ends[0]:.0f} to {ends[1]:.0f}"


@dataclass(frozen=True)
class _Outcome:
    trials: int
    failed: int
    kind: str

    @property
    def word(self) -> str:
        if not self.failed:
            return "pass"
        return self.kind if self.failed == self.trials else f"{self.kind} in {self.failed} of {self.trials}"


def _outcome(passed: Bools, kinds: NDArray[np.object_]) -> _Outcome:
    """`kinds`: the kinds of failure of the trials that failed."""
    most = Counter("failed" if pd.isna(kind) else str(kind) for kind in kinds).most_common(1)
    return _Outcome(len(passed), int(np.count_nonzero(~passed)), most[0][0] if most else "")


def _compare_outcomes(case: int, base: _Outcome, head: _Outcome) -> Counted:
    """Pass to fail is a regression, fail to pass an improvement; failing in some trials only is neither."""
    if base.failed in (0, base.trials) and head.failed in (0, head.trials):
        fails_before, fails_now = base.failed > 0, head.failed > 0
        if fails_before == fails_now:
            verdict = Verdict.UNCHANGED
        else:
            verdict = Verdict.REGRESSED if fails_now else Verdict.IMPROVED
    else:
        verdict = Verdict.INCONCLUSIVE
    reason = {
        Verdict.UNCHANGED: "Fails on both sides." if base.failed else "Passes on both sides.",
        Verdict.REGRESSED: f"Passed on the base side, fails now: {head.word}.",
        Verdict.IMPROVED: f"Failed on the base side ({base.word}), passes now.",
        Verdict.INCONCLUSIVE: f"Fails in some trials only: base {base.word}, head {head.word}.",
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
