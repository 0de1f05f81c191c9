"""One strategy against another, of one build: the judge of two builds, with strategies for its sides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from pandas import DataFrame, MultiIndex, Series, concat

from compilewatch.db.columns.trial import COUNTED
from compilewatch.db.judge.compare.judge_sides import judge_sides
from compilewatch.db.judge.compare.sides import Selection, VerdictError
from compilewatch.db.judge.compare.upgrade import compare_builds
from compilewatch.db.judge.policy import Policy
from compilewatch.db.judge.results import Comparison, Row
from compilewatch.db.metrics.trial_times import with_pooled_eager
from compilewatch.db.records.strategies import EAGER, sort_key, whole_of
from compilewatch.db.records.trial import CacheState, StrategyKind
from compilewatch.db.records.vocabulary import Metric, Verdict

_FILLED = (CacheState.WARM, CacheState.PORTABLE, CacheState.PACKAGED)
"""What a process that compiled nothing itself found on disk."""

_OF_EAGER_TOO = (
    *("latency_ns", "samples", "peak_bytes", "timing_method", "unflushed_ns"),
    *("device_ns", "issue_ns", "wall_sync_ns", "wall_pipelined_ns"),
)
"""Columns of a trial of which it has the same of the eager within it, named `control_...`."""
_OF_COMPILING = (
    *("trial_compile_cost_ns", "until_steady_ns", "calls_until_steady", "first_call_ns"),
    *("time_to_first_result_ns", "energy_per_step_j", "numerics_status", *COUNTED),
)
"""Columns of a trial that say nothing of the eager within it."""


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
    Eager is the one that ran within the compiled trials, as in their speedup; where they have none, its own
    trials. Raises VerdictError where a side has no trial.
    """
    return compare_builds(*_as_sides(with_pooled_eager(trials), base, head), policy, machine_id=machine_id)


def workloads_of_both(trials: DataFrame, base: str, head: str) -> int:
    """How many workloads of `trials` both strategies have, eager beside a compiled one included."""
    if EAGER.name in (base, head):
        trials = _with_eager_beside(trials, base if head == EAGER.name else head)
    mine = (set(trials.loc[trials["strategy"] == name, "workload_id"]) for name in (base, head))
    return len(set.intersection(*mine))


def _as_sides(trials: DataFrame, base: str, head: str) -> tuple[DataFrame, Selection, Selection]:
    """The trials of both strategies as those of two builds."""
    if EAGER.name in (base, head):
        trials = _with_eager_beside(trials, base if head == EAGER.name else head)
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


def _with_eager_beside(trials: DataFrame, compiled: str) -> DataFrame:
    """`trials` with the eager of each trial of `compiled` as a trial of its own, instead of those that eager
    had in the same builds on the same workloads. It compiles nothing, so it has no compile cost.
    """
    beside = trials[(trials["strategy"] == compiled) & trials["control_latency_ns"].notna()]
    of_compiling = (*_OF_COMPILING, *(f"control_{name}" for name in _OF_EAGER_TOO))
    nothing = Series(data=False, index=beside.index)
    eager = beside.assign(
        trial_id=beside["trial_id"] + "/eager",
        strategy=EAGER.name,
        **{name: beside[f"control_{name}"] for name in _OF_EAGER_TOO if f"control_{name}" in beside},
        **{name: beside[name].where(nothing) for name in of_compiling if name in beside},
    )
    cases = ["machine_id", "build_id", "workload_id"]
    stands_in = MultiIndex.from_frame(trials[cases]).isin(MultiIndex.from_frame(beside[cases]))
    return concat([trials[~(stands_in & (trials["strategy"] == EAGER.name))], eager], ignore_index=True)


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


UNDECIDED = "undecided"


@dataclass(frozen=True)
class LeftOutPart:
    """What an option or pass of a strategy does on one workload: `cost` and `latency` are those of the
    strategy against the same without it; None where there is no trial to compare.
    """

    workload: str
    strategy: str
    part: str
    cost: Row | None
    latency: Row | None

    @property
    def steps(self) -> float | None:
        """After how many steps its compile time is repaid; None where it gains or costs nothing shown."""
        cost, latency = self.cost, self.latency
        if cost is None or latency is None or latency.verdict is not Verdict.IMPROVED:
            return None
        values = (cost.base, cost.head, latency.base, latency.head)
        if cost.verdict is not Verdict.REGRESSED or not all(isinstance(each, float | int) for each in values):
            return None
        without, whole, slow, fast = map(float, values)  # type: ignore[arg-type]
        return (whole - without) / (slow - fast)

    @property
    def finding(self) -> str:
        """Whether it earns its compile time, as far as its trials decide it."""
        decided = [each for each in (self.latency, self.cost) if each is not None]
        if len(decided) < 2 or any(each.verdict not in _DECIDED for each in decided):
            return UNDECIDED
        gains, costs = ([verdict is each.verdict for each in decided] for verdict in _WAYS)
        if costs[0]:
            return "slows the step down"
        if gains[0]:
            return "earns it" if costs[1] else "gains for nothing"
        if costs[1]:
            return "does not earn it"
        return "saves compile time" if gains[1] else "changes neither"


_WAYS = (Verdict.IMPROVED, Verdict.REGRESSED)
_DECIDED = (*_WAYS, Verdict.UNCHANGED)


def left_out_parts(
    trials: DataFrame, policy: Policy | None = None, whole: str | None = None
) -> Iterator[LeftOutPart]:
    """Of every strategy of `trials` that leaves something out (`default+without:pattern_matcher`) what the
    part does, where the whole was measured too; of the strategy `whole` alone where it is named.
    """
    names = set(trials["strategy"])
    for without in sorted(names, key=sort_key):
        known = whole_of(without)
        if known is None or known[0] not in names or whole not in (None, known[0]):
            continue
        judged = judge_sides(*_as_sides(with_pooled_eager(trials), without, known[0]), policy or Policy())
        rows: dict[str, dict[Metric, Row]] = {}
        for row in judged.measured_rows((Metric.LATENCY, Metric.COMPILE_COST)):
            rows.setdefault(row.workload, {})[row.metric] = row
        for workload, of in sorted(rows.items()):
            yield LeftOutPart(
                workload, *known, cost=of.get(Metric.COMPILE_COST), latency=of.get(Metric.LATENCY)
            )


def _in_latency(trials: DataFrame, base: str, head: str, policy: Policy | None) -> Iterator[Difference]:
    """The rows of `compare_strategies` on latency alone, and nothing else of it."""
    judged = judge_sides(*_as_sides(trials, base, head), policy or Policy())
    yield from (Difference(base, row) for row in judged.measured_rows((Metric.LATENCY,)))


def _cold_names(filled: str) -> tuple[str, ...]:
    """What the strategy is called that compiles the same; a package is compiled as `default` is."""
    parts = [part for part in filled.split("+") if part not in (*map(str, _FILLED), "precompiled")]
    return "+".join(parts), "default"
