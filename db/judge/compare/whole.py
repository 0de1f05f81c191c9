"""The comparison as a whole: its verdict, and what to say about it first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from db.judge.policy import Policy
from db.judge.results import Comparison, Row
from db.judge.words import sentences as words
from db.records.trial import StrategyKind
from db.records.vocabulary import CauseClass, Metric, Verdict, WhoMoved

TIMED = (Metric.LATENCY, Metric.SPEEDUP)
_RATIOS = (Metric.SPEEDUP, Metric.DEVICE_SPEEDUP, Metric.BREAK_EVEN)


def counts_as_regression(row: Row) -> bool:
    """A regression of the head build: not one that the canary explains, nor a speedup that fell only because
    eager got faster (nobody waits longer).
    """
    if row.verdict is not Verdict.REGRESSED or row.cause is CauseClass.MACHINE:
        return False
    return not (row.metric in _RATIOS and row.who_moved is WhoMoved.EAGER)


def overall_verdict(rows: Sequence[Row], policy: Policy) -> Verdict:
    """The worst that counts: regressed if any row counts as a regression; inconclusive where the machine
    moved, or where fewer than `policy.decided_share` of the rows, or of those of latency and speedup, are
    decided; else improved, else unchanged.
    """
    if not rows:
        return Verdict.NOT_COMPARABLE
    if any(counts_as_regression(row) for row in rows):
        return Verdict.REGRESSED
    # Counts are always decided: of themselves they must not speak for timings that nobody could judge.
    timed = [row for row in rows if row.metric in TIMED]
    blamed = any(row.cause is CauseClass.MACHINE for row in rows)
    if blamed or not (_decided(rows, policy) and _decided(timed, policy)):
        return Verdict.INCONCLUSIVE
    improved = any(row.verdict is Verdict.IMPROVED for row in rows)
    return Verdict.IMPROVED if improved else Verdict.UNCHANGED


def _decided(rows: Sequence[Row], policy: Policy) -> bool:
    """Whether enough of the rows have a verdict; of none nothing is open, nor where none can be compared."""
    rows = [row for row in rows if row.verdict is not Verdict.NOT_COMPARABLE]
    decided = sum(row.verdict is not Verdict.INCONCLUSIVE for row in rows)
    return decided >= policy.decided_share * len(rows)


def sentences(
    comparison: Comparison, confirmed: Collection[tuple[str, str]] | None = None
) -> tuple[str, ...]:
    """What a reader should know first, most important first.

    `confirmed`: the cases, by workload and strategy id, recorded as confirmed to be slower; None where the
    records were not asked.
    """
    cases = Counter(comparison.case_verdicts.values())
    lines = [
        words.overall(comparison.verdict, matched=comparison.matched, total=comparison.total, cases=cases)
    ]
    lines += _latency(comparison, confirmed)
    mean = comparison.geomean
    if mean.base is not None and mean.head is not None:
        lines.append(words.geometric_mean(mean.base, mean.head, mean.cases))
    lines += _weighted(comparison)
    if any(row.cause is CauseClass.MACHINE for row in comparison.rows):
        lines.append(words.machine_moved(_blamed(comparison)))
    if any(method != "gated" for method in comparison.timing):
        lines.append(words.timed_by(comparison.timing))
    missing = sum(case.verdict is Verdict.MISSING for case in comparison.left_out)
    if missing:
        lines.append(words.missing(missing))
    if len(comparison.changed_components) > 1:
        lines.append(words.confounded(comparison.changed_components))
    return tuple(lines)


def _latency(comparison: Comparison, confirmed: Collection[tuple[str, str]] | None) -> Iterator[str]:
    """Who got slower and who faster, then by how much all of them together."""
    timed = [row for row in comparison.rows if row.metric is Metric.LATENCY]
    if not timed:
        return
    kinds: dict[bool, list[Row]] = {True: [], False: []}
    for row in timed:
        kinds[row.case.strategy_kind == StrategyKind.EAGER.value].append(row)
    slower = [row.case for row in timed if row.verdict is Verdict.REGRESSED]
    known = None if confirmed is None else sum(case.ids in confirmed for case in slower)
    yield words.latency_moved(_moved(kinds[False]), _moved(kinds[True]), known)
    device, issue = (
        [row for row in comparison.rows if row.metric is metric]
        for metric in (Metric.DEVICE_TIME, Metric.ISSUE_TIME)
    )
    if device and issue:
        yield words.clocks_moved(_moved(device), _moved(issue))
    mean = comparison.geomean
    for kind, change in (("compiled", mean.compiled_latency), ("eager", mean.eager_latency)):
        if change is not None:
            yield words.latency_mean(
                change.change, change.interval, change.cases, comparison.policy.confidence, kind
            )


def _weighted(comparison: Comparison) -> Iterator[str]:
    """The means that the unsure cases do not drown; one case is its own mean."""
    mean = comparison.geomean
    for name, change in (("Speedup", mean.speedup), ("Device time", mean.device_time)):
        if change is not None and change.cases > 1:
            yield words.weighted_mean(
                name, change.change, change.interval, change.cases, comparison.policy.confidence
            )


def _blamed(comparison: Comparison) -> float | None:
    """Of the canaries of a GPU the one that moved most; None without one."""
    known = [each for each in (comparison.canary_change, comparison.host_canary_change) if each is not None]
    return max(known, key=abs, default=None)


def _moved(rows: Sequence[Row]) -> words.Moved:
    verdicts = Counter(row.verdict for row in rows)
    return words.Moved(len(rows), slower=verdicts[Verdict.REGRESSED], faster=verdicts[Verdict.IMPROVED])
