"""Confirm before alarm: a suspicion is measured again, on fresh interleaved trials, and then decided.

Judging the fresh trials alone keeps the second look independent of the first: the luck that made a case
suspicious is not counted twice.
"""

from __future__ import annotations

from enum import StrEnum

from db.verdicts.policy import Policy
from db.verdicts.results import CaseKey, Comparison, Result, Row
from db.verdicts.vocabulary import CauseClass, Metric, Verdict


class Outcome(StrEnum):
    CONFIRMED = "confirmed"
    NOT_REPRODUCED = "not reproduced"
    NOT_MEASURED = "not measured"


class Suspicion(Result):
    """A case that looks changed. `regressed` says whether for the worse; `metrics` are those that look so,
    the least likely by chance first.
    """

    case: CaseKey
    metrics: tuple[Metric, ...]
    regressed: bool
    p_value: float | None


class ConfirmationPlan(Result):
    """What the runner should measure: `trials_per_side` interleaved trials of each case on each of
    `build_ids` (base first). `over_budget` are the suspicions that must wait.
    """

    machine_id: str
    build_ids: tuple[str, ...]
    trials_per_side: int
    suspicions: tuple[Suspicion, ...]
    over_budget: tuple[Suspicion, ...]

    @property
    def trials(self) -> int:
        return len(self.suspicions) * len(self.build_ids) * self.trials_per_side


class Confirmation(Result):
    """The decision on one metric of one suspicion. `row` is the verdict on the fresh trials alone."""

    case: CaseKey
    metric: Metric
    outcome: Outcome
    cause: CauseClass | None
    row: Row | None
    reason: str


def suspicions(comparison: Comparison, *, regressions_only: bool = True) -> tuple[Suspicion, ...]:
    """Suspected cases, the least likely by chance first. What is counted exactly needs no second look,
    unless it varies between trials.
    """
    by_case: dict[tuple[str, str], list[Row]] = {}
    for row in comparison.rows:
        if _is_suspicious(row):
            by_case.setdefault(_ids(row.case), []).append(row)
    found = []
    for rows in by_case.values():
        rows.sort(key=_strength)
        worse = any(_looks_worse(row) for row in rows)
        if worse or not regressions_only:
            found.append(
                Suspicion(
                    case=rows[0].case,
                    metrics=tuple(row.metric for row in rows),
                    regressed=worse,
                    p_value=rows[0].p_value,
                )
            )
    return tuple(sorted(found, key=lambda s: 1.0 if s.p_value is None else s.p_value))


def _is_suspicious(row: Row) -> bool:
    return row.suspected or (row.verdict in (Verdict.REGRESSED, Verdict.IMPROVED) and row.p_value is not None)


def _strength(row: Row) -> float:
    return 1.0 if row.p_value is None else row.p_value


def _looks_worse(row: Row) -> bool:
    if row.change is None:
        return True
    return (row.change < 0) if row.metric is Metric.SPEEDUP else (row.change > 0)


def plan_confirmation(
    comparison: Comparison, *, base_available: bool = True, policy: Policy | None = None
) -> ConfirmationPlan | None:
    """Which trials to run, within the budget of the policy; None when nothing is suspected.

    With `base_available` False only the head can be measured again: the fresh head trials then meet the old
    base trials, as sides from different runs.
    """
    policy = policy or comparison.policy
    found = suspicions(comparison)
    if not found or comparison.machine_id is None:
        return None
    builds = comparison.base.build_ids[-1:] if base_available else ()
    builds += comparison.head.build_ids[-1:]
    affordable = policy.confirm.budget_trials // (len(builds) * policy.confirm.fresh_trials)
    return ConfirmationPlan(
        machine_id=comparison.machine_id,
        build_ids=builds,
        trials_per_side=policy.confirm.fresh_trials,
        suspicions=found[:affordable],
        over_budget=found[affordable:],
    )


def decide(plan: ConfirmationPlan, fresh: Comparison | None) -> tuple[Confirmation, ...]:
    """Decide every suspicion of `plan` by `fresh`, the comparison over the fresh trials of just these cases.

    Confirmed: the fresh trials alone give the verdict that was suspected. Everything else that was measured
    is not reproduced, its cause `noise`. `fresh` is None when no fresh trial arrived.
    """
    rows = {} if fresh is None else {(_ids(row.case), row.metric): row for row in fresh.rows}
    return tuple(
        _decide_one(suspicion, metric, rows.get((_ids(suspicion.case), metric)))
        for suspicion in plan.suspicions
        for metric in suspicion.metrics
    )


def _ids(case: CaseKey) -> tuple[str, str]:
    return case.workload_id, case.strategy_id


def _decide_one(suspicion: Suspicion, metric: Metric, row: Row | None) -> Confirmation:
    wanted = Verdict.REGRESSED if suspicion.regressed else Verdict.IMPROVED
    if row is None or min(row.trials) == 0:
        outcome, cause, reason = Outcome.NOT_MEASURED, None, "No fresh trial of both sides arrived."
    elif row.verdict is wanted:
        outcome, cause, reason = Outcome.CONFIRMED, row.cause, row.reason
    else:
        outcome, cause = Outcome.NOT_REPRODUCED, CauseClass.NOISE
        reason = f"{row.trials[0]} and {row.trials[1]} fresh trials do not show it: {row.reason}"
    return Confirmation(
        case=suspicion.case, metric=metric, outcome=outcome, cause=cause, row=row, reason=reason
    )
