"""Confirm before alarm: a suspicion is measured again, on fresh interleaved trials, and then decided.

Judging the fresh trials alone keeps the confirmation independent of the suspicion: the luck that made a case
suspicious is not counted twice.
"""

from __future__ import annotations

from enum import StrEnum

from compilewatch.db.judge.compare.sides import CODE
from compilewatch.db.judge.decide import counts_as_regression
from compilewatch.db.judge.decide_again import is_measured_again
from compilewatch.db.judge.policy import Policy
from compilewatch.db.judge.results import CaseKey, Comparison, Result, Row
from compilewatch.db.judge.words.sentences import not_reproduced
from compilewatch.db.records.vocabulary import CauseClass, Metric


class Outcome(StrEnum):
    """What became of a suspicion once fresh trials were asked for."""

    CONFIRMED = "confirmed"
    NOT_REPRODUCED = "not reproduced"
    NOT_MEASURED = "not measured"


class Suspicion(Result):
    """A case that looks worse in `metrics`, the least likely by chance first."""

    case: CaseKey
    metrics: tuple[Metric, ...]
    p_value: float | None


class ConfirmationPlan(Result):
    """What should be measured: `trials_per_side` interleaved trials of each case on both builds.
    `over_budget` are the suspicions that must wait.
    """

    trials_per_side: int
    suspicions: tuple[Suspicion, ...]
    over_budget: tuple[Suspicion, ...]

    @property
    def cases(self) -> tuple[tuple[str, str], ...]:
        """Workload and strategy of every suspicion, by name."""
        return tuple((each.case.workload, each.case.strategy) for each in self.suspicions)

    @property
    def trials(self) -> int:
        """How many trials the plan costs, both sides together."""
        return 2 * len(self.suspicions) * self.trials_per_side


class Confirmation(Result):
    """The decision on one metric of one suspicion. `row` is the verdict on the fresh trials alone."""

    case: CaseKey
    metric: Metric
    outcome: Outcome
    cause: CauseClass | None
    row: Row | None
    reason: str


def suspicions(comparison: Comparison, *, undecided: bool = False) -> tuple[Suspicion, ...]:
    """Cases that look worse (`is_measured_again`), the least likely by chance first."""
    by_case: dict[tuple[str, str], list[Row]] = {}
    for row in comparison.rows:
        if is_measured_again(row, comparison.policy, undecided=undecided):
            by_case.setdefault(row.case.ids, []).append(row)
    suspected = []
    for rows in by_case.values():
        rows.sort(key=lambda row: 1.0 if row.p_value is None else row.p_value)
        metrics = tuple(row.metric for row in rows)
        suspected.append(Suspicion(case=rows[0].case, metrics=metrics, p_value=rows[0].p_value))
    return tuple(sorted(suspected, key=lambda s: 1.0 if s.p_value is None else s.p_value))


def plan_confirmation(
    comparison: Comparison, policy: Policy | None = None, *, undecided: bool = False
) -> ConfirmationPlan | None:
    """Which trials to run for the `suspicions`, within the budget of the policy; None without any.

    Two sides of the same builds and code cannot be set up again as two.
    """
    policy = policy or comparison.policy
    same_build = set(comparison.base.build_ids) == set(comparison.head.build_ids)
    if same_build and CODE not in comparison.changed_components:
        return None
    suspected = suspicions(comparison, undecided=undecided)
    affordable = policy.confirm.budget_trials // (2 * policy.confirm.fresh_trials)
    if not suspected[:affordable]:
        return None
    return ConfirmationPlan(
        trials_per_side=policy.confirm.fresh_trials,
        suspicions=suspected[:affordable],
        over_budget=suspected[affordable:],
    )


def decide(plan: ConfirmationPlan, fresh: Comparison | None) -> tuple[Confirmation, ...]:
    """Decide every suspicion of `plan` by `fresh`, the comparison over the fresh trials of just these cases.

    Confirmed: the fresh trials alone say regressed. Everything else that was measured
    is not reproduced, its cause `noise`. `fresh` is None when no fresh trial arrived.
    """
    rows = {} if fresh is None else {(row.case.ids, row.metric): row for row in fresh.rows}
    return tuple(
        _decide_one(suspicion, metric, rows.get((suspicion.case.ids, metric)))
        for suspicion in plan.suspicions
        for metric in suspicion.metrics
    )


def _decide_one(suspicion: Suspicion, metric: Metric, row: Row | None) -> Confirmation:
    if row is None or min(row.trials) == 0:
        outcome, cause, reason = Outcome.NOT_MEASURED, None, "No fresh trial of both sides arrived."
    elif counts_as_regression(row):
        outcome, cause, reason = Outcome.CONFIRMED, row.cause, row.reason
    else:
        outcome, cause = Outcome.NOT_REPRODUCED, CauseClass.NOISE
        reason = not_reproduced(row.trials, row.reason)
    return Confirmation(
        case=suspicion.case, metric=metric, outcome=outcome, cause=cause, row=row, reason=reason
    )
