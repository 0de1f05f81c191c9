"""One strategy against another, of one build: the judge of two builds, with strategies for its sides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from pandas import DataFrame

from compilewatch.db.judge.compare.judge_sides import judge_sides
from compilewatch.db.judge.compare.sides import Selection, VerdictError
from compilewatch.db.judge.compare.upgrade import compare_builds
from compilewatch.db.judge.policy import Policy
from compilewatch.db.judge.results import Comparison, Row
from compilewatch.db.metrics.trial_times import with_pooled_eager
from compilewatch.db.records.strategies import sort_key
from compilewatch.db.records.trial import CacheState, StrategyKind
from compilewatch.db.records.vocabulary import Metric

_FILLED = (CacheState.WARM, CacheState.PORTABLE, CacheState.PACKAGED)
"""What a process that compiled nothing itself found on disk."""


def compare_strategies(
    trials: DataFrame,
    base: str,
    head: str,
    policy: Policy | None = None,
    *,
    machine_id: str | None = None,
) -> Comparison:
    """Judge strategy `head` against `base` over the workloads that have both: slower is *regressed*.

    `trials`: a trials frame (`db.queries.trials.trials_frame`) of one build a machine. Where a run measured
    both in rounds, its trials took turns. Cache state and scope are what is compared and need not agree.
    Raises VerdictError where a side has no trial.
    """
    return compare_builds(*_as_sides(with_pooled_eager(trials), base, head), policy, machine_id=machine_id)


def _as_sides(trials: DataFrame, base: str, head: str) -> tuple[DataFrame, Selection, Selection]:
    """The trials of both strategies as those of two builds."""
    for name in (base, head):
        if not (trials["strategy"] == name).any():
            measured = ", ".join(sorted(set(trials["strategy"]), key=sort_key))
            raise VerdictError(f"Nothing was measured with {name}.", f"Measured with {measured}.")
    both = trials[trials["strategy"].isin((base, head))]
    sides = both.assign(
        build_id=both["strategy"],
        strategy_id=f"{head} against {base}",
        strategy=head,
        strategy_kind=StrategyKind.COMPILE.value,
        cache=CacheState.COLD.value,
        scope="full",
    )
    before, after = (Selection(name=name, build_ids=(name,)) for name in (base, head))
    return sides, before, after


@dataclass(frozen=True)
class Difference:
    """How the latency of `row.strategy` differs from that of `base` on one workload."""

    base: str
    row: Row


def differences(trials: DataFrame, policy: Policy | None = None) -> Iterator[Difference]:
    """Every pair of strategies of `trials` that a workload has, in the order of strategies."""
    names = sorted(set(trials["strategy"]), key=sort_key)
    for base, head in combinations(names, 2):
        yield from _in_latency(trials, base, head, policy)


def from_cache(trials: DataFrame, policy: Policy | None = None) -> Iterator[Difference]:
    """Of every strategy that starts from a filled cache or a package against the same from an empty cache."""
    filled = trials.loc[trials["cache"].isin([each.value for each in _FILLED]), "strategy"]
    names = set(trials["strategy"])
    for head in sorted(set(filled), key=sort_key):
        base = next((name for name in _cold_names(head) if name in names), None)
        if base is not None:
            yield from _in_latency(trials, base, head, policy)


def _in_latency(trials: DataFrame, base: str, head: str, policy: Policy | None) -> Iterator[Difference]:
    """The rows of `compare_strategies` on latency alone, and nothing else of it."""
    judged = judge_sides(*_as_sides(trials, base, head), policy or Policy())
    yield from (Difference(base, row) for row in judged.measured_rows((Metric.LATENCY,)))


def _cold_names(filled: str) -> tuple[str, ...]:
    """What the strategy is called that compiles the same; a package is compiled as `default` is."""
    parts = [part for part in filled.split("+") if part not in (*map(str, _FILLED), "precompiled")]
    return "+".join(parts), "default"
