"""Confirm before alarm: a suspicion is measured again, on fresh interleaved trials, and then decided.

What is suspicious, and what fresh trials show of it, is decided in `db.judge.decide_again`.
"""

from __future__ import annotations

from enum import StrEnum

from compilewatch.db.judge.compare.sides import CODE
from compilewatch.db.judge.decide_again import is_measured_again, is_reproduced
from compilewatch.db.judge.policy import Policy
from compilewatch.db.judge.results import CaseKey, Comparison, Result, Row
from compilewatch.db.judge.sentences import not_reproduced
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


_Key = tuple[tuple[str, str], Metric]


def outcomes(plan: ConfirmationPlan, fresh: Comparison | None) -> tuple[Confirmation, ...]:
    """What became of every suspicion of `plan` by `fresh`, the comparison over the fresh trials of just these
    cases (`is_reproduced`); None when no fresh trial arrived. What they do not show is `noise`.
    """
    rows: dict[_Key, Row] = {}
    again: dict[_Key, bool | None] = {}
    if fresh is not None:
        rows = {(row.case.ids, row.metric): row for row in fresh.rows}
        measured = {key: row for key, row in rows.items() if min(row.trials) > 0}
        again = {key: is_reproduced(row, fresh.policy) for key, row in measured.items()}
    return tuple(
        _outcome(suspicion, metric, rows.get(key), again.get(key))
        for suspicion in plan.suspicions
        for metric in suspicion.metrics
        for key in [(suspicion.case.ids, metric)]
    )


def _outcome(suspicion: Suspicion, metric: Metric, row: Row | None, again: bool | None) -> Confirmation:
    """`again`: whether `row`, on fresh trials alone, shows it again; None where too few arrived."""
    outcome, cause, reason = Outcome.NOT_MEASURED, None, "Too few fresh trials of both sides arrived."
    if row is not None and again is True:
        outcome, cause, reason = Outcome.CONFIRMED, row.cause, row.reason
    elif row is not None and again is False:
        outcome, cause = Outcome.NOT_REPRODUCED, CauseClass.NOISE
        reason = not_reproduced(row.trials, row.reason)
    return Confirmation(
        case=suspicion.case, metric=metric, outcome=outcome, cause=cause, row=row, reason=reason
    )
