"""The comparison as a whole: which sentences it says first (worded in `judge.sentences`).

What a comparison has not decided, and what more trials by turns would show of it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from compilewatch.db.judge import sentences as words
from compilewatch.db.judge.decide import TIMED, is_open_with_bound
from compilewatch.db.judge.decide_again import undecided_time
from compilewatch.db.judge.results import Comparison, Row
from compilewatch.db.judge.statistics.looks import standard_error, trials_to_equal, visible_after
from compilewatch.db.records.trial import StrategyKind
from compilewatch.db.records.vocabulary import Design, Metric, Verdict


def headline(
    comparison: Comparison, verdict: Verdict, accepted: Collection[tuple[str, str]] = frozenset()
) -> str:
    """What became of the cases, in a title; `verdict` is that of the whole where the cases `accepted`, by
    workload and strategy id, count no more.
    """
    rows = tuple(row for row in comparison.rows if row.case.ids not in accepted)
    return words.headline(
        comparison.model_copy(update={"rows": rows}).tally,
        compared=comparison.matched,
        is_open=verdict is Verdict.INCONCLUSIVE,
        visible=_visible(comparison, _open_rows(comparison)),
        accepted=len(accepted),
    )


def sentences(
    comparison: Comparison,
    confirmed: Collection[tuple[str, str]] | None = None,
    *,
    advise: bool = True,
    metric: Metric | None = None,
) -> tuple[str, ...]:
    """What a reader should know first, most important first.

    `confirmed`: the cases, by workload and strategy id, recorded as confirmed to be slower; None where the
    records were not asked. Without `advise` nothing is said of what to measure. The cases are counted by
    `metric`, else by the first.
    """
    tally = comparison.tally if metric is None else comparison.tally_of(metric)
    lines = [words.overall(comparison.verdict, tally, matched=comparison.matched, total=comparison.total)]
    lines += words.other_metrics(tally) if tally.compared else ()
    lines += comparison.said
    lines += _largest(comparison, advise=advise)
    lines += _latency(comparison, confirmed)
    mean = comparison.geomean
    if mean.base is not None and mean.head is not None:
        lines.append(words.geometric_mean(mean.base, mean.head, mean.cases))
    lines += _weighted(comparison)
    if tally.set_aside:
        lines.append(words.machine_moved(_blamed(comparison), tally.set_aside))
    if comparison.wild_trials:
        lines.append(words.wild(comparison.wild_trials))
    if any(method != "gated" for method in comparison.timing):
        lines.append(words.timed_by(comparison.timing))
    if tally.missing:
        lines.append(words.missing(tally.missing))
    changed = comparison.changed_components
    if len(changed) > 1:
        lines.append(words.confounded(changed))
    for name in changed if len(changed) == 1 else ():
        versions = (side.components.get(name) for side in (comparison.base, comparison.head))
        lines.append(words.changed_alone(name, *versions))
    return tuple(lines)


_MOST_NAMED = 5
"""So many of the largest changes are named in a sentence; the table has all of them, largest first."""


def _largest(comparison: Comparison, *, advise: bool) -> Iterator[str]:
    """The largest changes of latency and speedup from `Policy.open_change` on, decided or not; then what one
    run a side could have told.
    """
    first = _moved_much(comparison)
    if first:
        yield words.largest(first[:_MOST_NAMED], len(first), comparison.policy.open_change)
    apart = [row for row in _open_rows(comparison) if row.design is Design.SEPARATE_RUNS]
    visible = _visible(comparison, apart)
    if visible is not None:
        moved = any(row.moved and row.metric is Metric.LATENCY for row in comparison.rows)
        others = len(apart) if moved else None
        yield words.from_one_run(visible, others, advise=advise)


def _moved_much(comparison: Comparison) -> list[Row]:
    """Of each case the largest change of latency or speedup from `Policy.open_change` on, largest first."""
    timed = [row for row in comparison.rows if row.metric in TIMED and row.change is not None]
    large = [row for row in timed if abs(row.log_change) >= math.log1p(comparison.policy.open_change)]
    large.sort(key=lambda row: -abs(row.log_change))
    by_case = {row.case.ids: row for row in reversed(large)}
    return sorted(by_case.values(), key=lambda row: -abs(row.log_change))


def _visible(comparison: Comparison, open_rows: Sequence[Row]) -> float | None:
    """The smallest relative change of latency that would have been told: the largest of the cases that moved
    much and are undecided, beside which it stands, else the median of those undecided; no less than what any
    of them moved by. None where all are decided.
    """
    if not open_rows:
        return None
    first = {row.case.ids for row in _moved_much(comparison)}
    shown = [row.visible_change or 0.0 for row in open_rows if row.case.ids in first]
    known = max(shown) if shown else median(row.visible_change or 0.0 for row in open_rows)
    beyond = [row.visible_change or 0.0 for row in open_rows if abs(row.log_change) > math.log1p(known)]
    return max([known, *beyond])


def _open_rows(comparison: Comparison) -> list[Row]:
    timed = [row for row in comparison.rows if row.metric is Metric.LATENCY and row.change is not None]
    return [row for row in timed if is_open_with_bound(row, comparison.policy)]


def _latency(comparison: Comparison, confirmed: Collection[tuple[str, str]] | None) -> Iterator[str]:
    """Who got slower and who faster."""
    timed = [row for row in comparison.rows if row.metric is Metric.LATENCY]
    if not timed:
        return
    kinds: dict[bool, list[Row]] = {True: [], False: []}
    for row in timed:
        kinds[row.case.strategy_kind == StrategyKind.EAGER.value].append(row)
    slower = [row.case for row in timed if row.moved == "slower"]
    known = None if confirmed is None else sum(case.ids in confirmed for case in slower)
    yield words.latency_moved(_moved(kinds[False]), _moved(kinds[True]), known)
    device, issue = (
        [
            row
            for row in comparison.rows
            if row.metric is metric and row.verdict not in (Verdict.NOT_COMPARABLE, Verdict.MISSING)
        ]
        for metric in (Metric.DEVICE_TIME, Metric.ISSUE_TIME)
    )
    if device and issue:
        yield words.clocks_moved(_moved(device), _moved(issue))


def _weighted(comparison: Comparison) -> Iterator[str]:
    """The means that the unsure cases do not drown; one case is its own mean."""
    mean = comparison.geomean
    for name, change in (
        ("Latency", mean.compiled_latency),
        ("Eager latency", mean.eager_latency),
        ("Speedup", mean.speedup),
        ("Device time", mean.device_time),
    ):
        if change is not None and change.cases > 1:
            yield words.weighted_mean(
                name, change.change, change.interval, change.cases, comparison.policy.confidence
            )


def _blamed(comparison: Comparison) -> float | None:
    """Of the canaries of a GPU the one that moved most; None without one."""
    known = [each for each in (comparison.canary_change, comparison.host_canary_change) if each is not None]
    return max(known, key=abs, default=None)


def _moved(rows: Sequence[Row]) -> words.MovedCases:
    ways = Counter(row.moved for row in rows)
    verdicts = Counter(row.verdict for row in rows)
    return words.MovedCases(
        len(rows),
        slower=ways["slower"],
        faster=ways["faster"],
        unchanged=verdicts[Verdict.UNCHANGED],
        undecided=verdicts[Verdict.INCONCLUSIVE],
    )


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
