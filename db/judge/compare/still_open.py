"""What a comparison has not decided, and what more trials by turns would show of it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from compilewatch.db.judge.decide_again import undecided_time
from compilewatch.db.judge.results import Comparison, Row
from compilewatch.db.judge.statistics.looks import standard_error, trials_to_equal, visible_after
from compilewatch.db.records.vocabulary import Design


def still_open(comparison: Comparison) -> tuple[Row, ...]:
    """Of each case that is not decided the row that is open (`undecided_time`)."""
    by_case = comparison.by_case(comparison.rows).values()
    return tuple(row for row in map(undecided_time, by_case) if row is not None)


@dataclass(frozen=True)
class Outlook:
    """What `more` trials a side of an open case would show by the scatter of those there are: changes from
    `visible` on, relative. `equal_after` are the trials a side after which two equal sides are shown to be
    the same within `margin`, None beyond reason.
    """

    row: Row
    more: int
    visible: float
    equal_after: int | None
    margin: float


def outlooks(comparison: Comparison, more: int) -> Iterator[Outlook]:
    """Of every open case that was measured by turns and whose scatter is known."""
    policy = comparison.policy
    rows = [row for row in comparison.rows if row.p_value is not None]
    metrics = len({row.metric for row in rows})
    for row in still_open(comparison):
        trials = min(row.trials)
        if row.design is not Design.INTERLEAVED or row.significance_threshold is None or trials < 2:
            continue
        error = standard_error(math.log1p(row.significance_threshold), trials, policy.confidence)
        thresholds = policy.for_case(row.workload, row.strategy, row.metric)
        cases = sum(each.metric is row.metric for each in rows)
        shown = visible_after(error, trials, trials + more, policy.false_discovery_rate / (metrics * cases))
        margin = math.log1p(thresholds.unchanged_margin)
        yield Outlook(
            row,
            more,
            max(math.expm1(shown), thresholds.minimum_effect),
            trials_to_equal(error, trials, margin, policy.equivalence_level),
            thresholds.unchanged_margin,
        )
