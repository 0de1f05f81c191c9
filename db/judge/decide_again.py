"""A verdict seen again: what is measured again, what fresh trials show of it, and what a later row makes of
one that is recorded or accepted.

Each rule takes rows that `db.judge.decide` decided. What becomes of a recorded regression by them is
`db.judge.compare.recorded_regressions`, of a suspicion `db.judge.compare.confirmation`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from compilewatch.db.columns.metrics import is_counted
from compilewatch.db.judge.decide import TIMED, counts_as, counts_as_regression, is_worse
from compilewatch.db.judge.policy import Policy
from compilewatch.db.records.vocabulary import CauseClass, Verdict

if TYPE_CHECKING:
    from compilewatch.db.judge.results import Row

# What is measured again before anybody is told.


def is_measured_again(row: Row, policy: Policy, *, undecided: bool = False) -> bool:
    """Whether fresh trials must confirm what looks worse: a regression of the build that was tested (what is
    counted exactly needs none), or a suspicion. With `undecided` also a time of a step that nobody could
    decide, where it moved by the smallest change that counts.
    """
    if not is_worse(row):
        return False
    if row.verdict is Verdict.REGRESSED:
        return counts_as_regression(row) and row.p_value is not None
    if row.verdict is not Verdict.INCONCLUSIVE:
        return False
    return row.suspected or (undecided and _moved_enough(row, policy))


def needs_no_confirmation(row: Row) -> bool:
    """Counts that are the same in every trial of a side are facts, not estimates."""
    return is_counted(row.metric) and not row.suspected


def is_reproduced(row: Row, policy: Policy) -> bool | None:
    """Whether `row`, judged on fresh trials alone, shows again what was suspected; None where too few of them
    arrived to say so.

    They alone decide: the luck that made a case suspicious is not counted twice.
    """
    if counts_as_regression(row):
        return True
    is_comparable = row.verdict is Verdict.INCONCLUSIVE or is_decided_otherwise(row)
    return False if is_comparable and min(row.trials) >= policy.minimum_trials else None


def _moved_enough(row: Row, policy: Policy) -> bool:
    if row.metric not in TIMED or row.change is None:
        return False
    return abs(row.change) >= policy.for_case(row.workload, row.strategy, row.metric).minimum_effect


def undecided_time(rows: Sequence[Row]) -> Row | None:
    """Of the rows of one case that of its latency, else of its speedup, which is not decided. A case that is
    slower in either is decided; any other one once both are.
    """
    timed = sorted((row for row in rows if row.metric in TIMED), key=lambda row: TIMED.index(row.metric))
    if any(counts_as(row) == "slower" for row in timed):
        return None
    return next((row for row in timed if row.verdict is Verdict.INCONCLUSIVE), None)


# What a later row says of a recorded one.

_SAME_STEP_WITHIN = 0.5
"""Of the log change: a step seen from another base may differ by so much and be the same one."""


def is_same_step(row: Row, known: Row) -> bool:
    """Whether `row`, against another base, shows no more than what is recorded of the same head as `known`.

    What is half as large again is another step besides.
    """
    if not counts_as_regression(row):
        return False
    if row.change is None or known.change is None or row.metric is not known.metric:
        return True
    new, old = (abs(math.log1p(max(each, -0.999))) for each in (row.change, known.change))
    return new <= old * (1.0 + _SAME_STEP_WITHIN)


def _is_within(row: Row, accepted: Row) -> bool:
    """Whether it moved the same way as what somebody accepted, and no further than the far end of the
    interval of then; without a number on either side, to the same end.
    """
    if row.change is None or accepted.change is None:
        return row.change is accepted.change and row.head == accepted.head
    ends = [math.log1p(max(each, -0.999)) for each in (accepted.change, *(accepted.interval or ()))]
    most = max(end / accepted.log_change for end in ends) * abs(accepted.log_change)
    return row.log_change * accepted.log_change > 0 and abs(row.log_change) <= most


def is_within_accepted(rows: Sequence[Row], accepted: Sequence[Row]) -> bool:
    """Whether `rows`, of one event and the one first that speaks for it, show no more than was `accepted` of
    the case: up to the far end of the interval of then, in every metric that was seen then.
    """
    by_metric = {row.metric: row for row in accepted}
    counted = [row for row in rows if counts_as_regression(row)]
    is_accepted = bool(counted) and counted[0].metric in by_metric
    return is_accepted and all(
        _is_within(row, by_metric[row.metric]) for row in counted if row.metric in by_metric
    )


def once_accepted(row: Row) -> Row:
    """What somebody accepted is decided, and no regression."""
    return row.model_copy(update={"verdict": Verdict.UNCHANGED})


def is_decided_otherwise(row: Row) -> bool:
    """Whether it is shown to be no regression: the same, or better."""
    return row.verdict in (Verdict.UNCHANGED, Verdict.IMPROVED)


def takes_back(row: Row, recorded: Row) -> bool:
    """Whether `row`, of the same sides, takes a recorded regression back: it is decided otherwise, or cannot
    tell although it rests on more trials or would have shown the recorded change. So a quick comparison never
    revises a thorough one.
    """
    if row.verdict is Verdict.INCONCLUSIVE:
        return _rests_on_more(row, recorded) or _would_show(row, recorded)
    return is_decided_otherwise(row)


def is_gone(row: Row, recorded: Row) -> bool | None:
    """Whether `row`, of a later build against the base of then, no longer shows what is `recorded`; None
    where it cannot tell.

    What is left of a step may be too small to be told from nothing: then it is gone where a change like the
    recorded one would have been seen.
    """
    if counts_as_regression(row):
        return False
    if is_decided_otherwise(row):
        return True
    is_open = row.verdict is Verdict.INCONCLUSIVE and row.cause is not CauseClass.MACHINE
    return True if is_open and _would_show(row, recorded) else None


def _would_show(row: Row, recorded: Row) -> bool:
    """Whether a change like the recorded one would have been seen, and less than half of it is there."""
    visible = row.visible_change is not None and math.log1p(row.visible_change) <= abs(recorded.log_change)
    return visible and abs(row.log_change) < abs(recorded.log_change) / 2.0


def _rests_on_more(row: Row, than: Row) -> bool:
    return row.trials != than.trials and all(
        new >= old for new, old in zip(row.trials, than.trials, strict=True)
    )
