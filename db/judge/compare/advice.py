"""What to measure next, in plain steps: the smallest number of trials, then a fixed target, in hours."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from pandas import DataFrame

from compilewatch.db import units
from compilewatch.db.judge.policy import Policy
from compilewatch.db.judge.results import Advice, AdviceStep, CaseKey, Row
from compilewatch.db.judge.words.sentences import whole_percent
from compilewatch.db.metrics.groups import Floats, Groups, Ints, floats
from compilewatch.db.records.vocabulary import Metric, Verdict

ADVISED = (Metric.LATENCY, Metric.SPEEDUP)
"""Metrics that advice plans trials for: compile cost and memory come with the same trials."""


def trial_seconds(trials: DataFrame, case: Ints, cases: int) -> Floats:
    """What one trial of each side of each case took together, by the stored trials; NaN where unknown.

    `trials` with column `side`; `case` the number of each trial's case. The median of each side is taken, and
    that of the other one where a side has no end stored.
    """
    waits = floats((trials["ended_at"] - trials["started_at"]).dt.total_seconds())
    side = trials["side"].to_numpy(dtype=np.int64)
    median = Groups(case * 2 + side, 2 * cases).present(waits).quantile(0.5).reshape(cases, 2)
    mirrored = np.where(np.isnan(median), median[:, ::-1], median)
    seconds: Floats = mirrored.sum(axis=1)
    return seconds


def advice(rows: Sequence[Row], keys: Sequence[CaseKey], seconds: Floats, policy: Policy) -> Advice | None:
    """None where nothing is open. `seconds`: as `trial_seconds`, in the order of `keys`."""
    open_rows = [row for row in rows if row.metric in ADVISED and row.verdict is Verdict.INCONCLUSIVE]
    if not open_rows:
        return None
    cost = {key.ids: each for key, each in zip(keys, seconds.tolist(), strict=True)}
    fewest = policy.minimum_trials
    below = [row for row in open_rows if row.more_trials and min(row.trials) + row.more_trials <= fewest]
    waiting = {row.case.ids for row in below}
    planned = [row for row in open_rows if row.more_trials and row.case.ids not in waiting]
    smallest, target = _step(below, cost), _step(planned, cost)
    unseen = len({row.case.ids for row in open_rows if row.unseen})
    return Advice(
        smallest=smallest,
        target=target,
        unseen=unseen,
        sentences=tuple(_sentences(smallest, target, unseen, policy)),
    )


def _step(rows: Iterable[Row], cost: dict[tuple[str, str], float]) -> AdviceStep | None:
    more: dict[tuple[str, str], int] = {}
    for row in rows:
        more[row.case.ids] = max(more.get(row.case.ids, 0), row.more_trials or 0)
    if not more:
        return None
    known = [cost[case] for case in more if math.isfinite(cost[case])]
    typical = float(np.median(known)) if known else math.nan
    seconds = sum(n * (cost[case] if math.isfinite(cost[case]) else typical) for case, n in more.items())
    return AdviceStep(
        cases=len(more),
        more_trials=max(more.values()),
        trials=2 * sum(more.values()),
        hours=seconds / 3600.0 if known else None,
    )


def _sentences(
    smallest: AdviceStep | None, target: AdviceStep | None, unseen: int, policy: Policy
) -> Iterable[str]:
    if smallest is not None:
        yield f"{_measure(smallest)} first: fewer than {policy.minimum_trials} a side are never judged."
    if target is not None:
        odds = f"{whole_percent(policy.advice_effect)} with {whole_percent(policy.advice_power)} power"
        yield f"{_measure(target)}{' then' if smallest else ''} to see a change of {odds}."
    if unseen:
        size = whole_percent(policy.advice_effect)
        wanted = f"it takes more than {units.plural(policy.advice_trials, 'trial')} a side"
        yield f"In {units.plural(unseen, 'case')} this clock cannot show {size}: {wanted}."


def _measure(step: AdviceStep) -> str:
    takes = "" if step.hours is None else f" (about {units.duration(step.hours * 3.6e12)})"
    more = units.plural(step.more_trials, "more trial")
    return f"Measure {more} a side of {units.plural(step.cases, 'case')}{takes}"
