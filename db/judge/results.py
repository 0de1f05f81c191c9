"""What the judge returns: frozen, printable as JSON, complete enough to freeze in a report."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from pydantic import Field

from compilewatch.db.columns.metrics import is_counted
from compilewatch.db.judge.decide import counts_as, group_of, group_of_several, verdict_of_case
from compilewatch.db.judge.policy import Policy
from compilewatch.db.records.fields import Closed
from compilewatch.db.records.vocabulary import Bound, CauseClass, Design, Metric, Verdict, WhoMoved


class Result(Closed):
    """Base of everything the judge returns: immutable and closed, so that it can be frozen and read back."""


class CaseKey(Result):
    """A case as people name it, with what pins it down.

    `source_kind` and `source_name` say where the newest of its trials comes from, as a trial's record does;
    None in what an earlier release recorded. `timing_method` is that of this trial.
    """

    workload: str
    strategy: str
    workload_id: str
    strategy_id: str
    strategy_kind: str | None = None
    task: str | None = None
    batch_size: int | None = None
    shape: dict[str, int] = Field(default={})
    dtype: str | None = None
    cache: str | None = None
    source_kind: str | None = None
    source_name: str | None = None
    timing_method: str | None = None

    @property
    def ids(self) -> tuple[str, str]:
        """Of workload and strategy."""
        return self.workload_id, self.strategy_id


class Row(Result):
    """The verdict on one metric of one matched case.

    `base` and `head` are in the metric's unit: the geometric mean over the trials that were compared (of a
    break-even in parts of a step, "never" where the side as a whole has none; a status word for numerics).
    `change` is head / base - 1, positive when the number grew; `interval` its bounds at `Policy.confidence`.
    `eager_change` and `compiled_change` are relative latency changes, in rows of device time and device
    speedup those of device time. `bound` says what the case waits for; `device_change` and `issue_change` are
    what each clock says of it; `cycles_change` is that of device time in cycles, where the SM clock moved.
    All of them are None where a GPU's clocks were not taken apart. `unseen` are the trials a side that a
    change of `Policy.advice_effect` would take, where those are too many. `visible_change` is the smallest
    relative one that would have been decided had this case alone changed. `until_decided`: trials of the head
    were added and judged as they came.
    """

    case: CaseKey
    metric: Metric
    unit: str
    base: float | str | None
    head: float | str | None
    change: float | None = None
    interval: tuple[float, float] | None = None
    p_value: float | None = None
    q_value: float | None = None
    verdict: Verdict
    suspected: bool = False
    who_moved: WhoMoved | None = None
    cause: CauseClass | None = None
    eager_change: float | None = None
    compiled_change: float | None = None
    bound: Bound | None = None
    device_change: float | None = None
    issue_change: float | None = None
    cycles_change: float | None = None
    trials: tuple[int, int]
    more_trials: int | None = None
    unseen: int | None = None
    significance_threshold: float | None = None
    visible_change: float | None = None
    until_decided: bool = False
    design: Design
    reason: str

    @property
    def workload(self) -> str:
        return self.case.workload

    @property
    def strategy(self) -> str:
        return self.case.strategy

    @property
    def log_change(self) -> float:
        """log(head / base), 0 where there is no number."""
        return 0.0 if self.change is None else math.log1p(self.change)

    @property
    def moved(self) -> str | None:
        """ "slower" or "faster" where the build did that, else None."""
        return counts_as(self)

    @property
    def fails(self) -> bool:
        """Whether this is about a pass set that fails on the head side, in some trials at least."""
        is_pass_set = self.metric is Metric.NUMERICS and isinstance(self.head, str)
        return is_pass_set and self.head not in PASSING

    @property
    def never_passes(self) -> bool:
        """Whether this is about a pass set that fails on both sides, which says nothing of either."""
        return self.fails and self.base not in PASSING


PASSING = ("pass", "ran, numbers not checked")
"""How a case ended that did not fail, as its pass set says it."""


class LeftOut(Result):
    """A case that entered no comparison, and why. `fields` names what differs when not comparable;
    `source_kind` and `source_name` are as in `CaseKey`.
    """

    workload: str
    strategy: str
    verdict: Verdict
    reason: str
    fields: tuple[str, ...] = ()
    cause: CauseClass | None = None
    source_kind: str | None = None
    source_name: str | None = None


class LatencyChange(Result):
    """Geometric mean of head / base, as a relative change with its interval at `Policy.confidence`, over
    `cases` cases of `workloads` workloads, each weighted by the precision of its own change.
    """

    cases: int
    workloads: int
    change: float
    interval: tuple[float, float] | None


class GeomeanChange(Result):
    """Geometric mean speedup over the matched set (cases that passed on both sides), the naive one (each
    side its own set) beside it; None where no case has a speedup. `latency` is the change of latency over the
    matched cases, all together, the compiled and the eager ones; None where none of them was timed. `speedup`
    is the change of speedup, `device_time` that of the compiled ones on the device.
    """

    base: float | None = None
    head: float | None = None
    naive_base: float | None = None
    naive_head: float | None = None
    cases: int = 0
    naive_base_cases: int = 0
    naive_head_cases: int = 0
    latency: LatencyChange | None = None
    compiled_latency: LatencyChange | None = None
    eager_latency: LatencyChange | None = None
    speedup: LatencyChange | None = None
    device_time: LatencyChange | None = None


class BuildSide(Result):
    """One side of a comparison. `components` maps torch, cuda, driver ... to the versions seen."""

    name: str
    build_ids: tuple[str, ...]
    run_ids: tuple[str, ...]
    components: dict[str, str | None]


class AdviceStep(Result):
    """Trials to add on both sides: `more_trials` a side of the case that wants most, `trials` of all cases
    and both sides together. `hours` by the trials that are stored, None where none says how long it took.
    """

    cases: int
    more_trials: int
    trials: int
    hours: float | None


class Advice(Result):
    """What more trials would help latency and speedup: first every case to the smallest number that is
    judged, then to a change of `Policy.advice_effect`. `unseen` cases are too noisy for that.
    """

    smallest: AdviceStep | None
    target: AdviceStep | None
    unseen: int
    sentences: tuple[str, ...]


class Tally(Result):
    """What became of the cases of a comparison in one metric, `metric`, each in one group only: `failing` on
    the head side, else `slower`, `faster`, `set_aside` (what moved is the machine's), `undecided` or
    `unchanged`; and those `missing` on the head side, which were not compared.

    `slower_by` and `faster_by` count by every metric the cases that pass and moved in it, for the worse and
    for the better. What earlier releases recorded has no `metric`: a case moved there where any metric did.
    """

    metric: Metric | None = None

    slower: int = 0
    faster: int = 0
    unchanged: int = 0
    undecided: int = 0
    set_aside: int = 0
    failing: int = 0
    missing: int = 0
    slower_by: dict[Metric, int] = Field(default={})
    faster_by: dict[Metric, int] = Field(default={})

    @property
    def compared(self) -> int:
        """All but the missing ones."""
        return self.slower + self.faster + self.unchanged + self.undecided + self.set_aside + self.failing


class Comparison(Result):
    """The upgrade verdict between two builds on one machine.

    `canary_change` is the relative change of the machine's canaries; on a GPU of those that measure the
    device, and `host_canary_change` of the one that measures the host. `timing` names how GPU times were
    taken, empty on a CPU. `wild_trials` of the compared ones are set aside (`db.metrics.eligibility`).
    `asked` are rows of further metrics, of which verdict and tally know nothing.
    """

    base: BuildSide
    head: BuildSide
    machine_id: str | None
    machine: str | None
    matched: int
    total: int
    left_out: tuple[LeftOut, ...]
    geomean: GeomeanChange
    rows: tuple[Row, ...]
    verdict: Verdict
    changed_components: tuple[str, ...]
    canary_change: float | None
    host_canary_change: float | None = None
    timing: tuple[str, ...] = ()
    wild_trials: int = 0
    advice: Advice | None = None
    said: tuple[str, ...] = ()
    sentences: tuple[str, ...]
    policy: Policy
    asked: tuple[Row, ...] = ()

    def with_requested(self) -> Comparison:
        """With the rows of further metrics among its rows: for tables of them, not for what counts rows."""
        return self.model_copy(update={"rows": (*self.rows, *self.asked)})

    @property
    def counts(self) -> dict[Verdict, int]:
        """How many rows got each verdict. A case has one row for each of its metrics."""
        verdicts = Counter(row.verdict for row in self.rows)
        return {verdict: verdicts[verdict] for verdict in Verdict}

    @property
    def tally(self) -> Tally:
        """The tally of the first metric that was compared, which is latency wherever steps were timed."""
        judged = {row.metric for row in self.rows if not is_counted(row.metric)}
        in_order = (*Metric, *sorted(judged))
        return self.tally_of(next((metric for metric in in_order if metric in judged), Metric.LATENCY))

    def tally_of(self, metric: Metric) -> Tally:
        """What became of the cases in `metric`; every door that counts cases prints such a tally."""
        cases = self.by_case((*self.rows, *self.asked))
        groups = Counter(self.groups(metric).values())
        groups["missing"] = sum(case.verdict is Verdict.MISSING for case in self.left_out)
        moved = {"slower": Counter[Metric](), "faster": Counter[Metric]()}
        for rows in cases.values():
            if not any(row.fails for row in rows):
                for row in rows:
                    moved.get(row.moved or "", Counter()).update([row.metric])
        by_metric = {f"{group}_by": dict(sorted(counts.items())) for group, counts in moved.items()}
        return Tally.model_validate({"metric": metric, **groups, **by_metric})

    def groups(self, metric: Metric) -> dict[tuple[str, str], str]:
        """The group of each case in the tally of `metric`, by ids of workload and strategy."""
        cases = self.by_case((*self.rows, *self.asked))
        return {case: group_of(rows, metric) for case, rows in cases.items()}

    def tally_of_workloads(self, metric: Metric) -> Tally:
        """What became of the workloads in `metric`, each in the group of its cases that counts most."""
        of_workload: dict[str, list[str]] = {}
        for (workload_id, _), group in self.groups(metric).items():
            of_workload.setdefault(workload_id, []).append(group)
        return Tally.model_validate(
            {"metric": metric, **Counter(group_of_several(groups) for groups in of_workload.values())}
        )

    @property
    def case_verdicts(self) -> dict[tuple[str, str], Verdict]:
        """The worst verdict of each case, by workload and strategy id (`verdict_of_case`)."""
        verdicts = {case: verdict_of_case(rows) for case, rows in self.by_case(self.rows).items()}
        return {case: verdict for case, verdict in verdicts.items() if verdict is not None}

    @staticmethod
    def by_case(rows: Iterable[Row]) -> dict[tuple[str, str], list[Row]]:
        """`rows` by ids of workload and strategy."""
        cases: dict[tuple[str, str], list[Row]] = {}
        for row in rows:
            cases.setdefault(row.case.ids, []).append(row)
        return cases

    def to_json(self) -> dict[str, Any]:
        """The document `compare --json` prints, without its `schema` key."""
        document = self.model_dump(mode="json", exclude={"rows", "asked", "policy"})
        for part in ("rows", "asked"):
            document[part] = [
                {"workload": row.workload, "strategy": row.strategy, **row.model_dump(mode="json")}
                for row in getattr(self, part)
            ]
        document["counts"] = {verdict.value: count for verdict, count in self.counts.items()}
        cases = Counter(self.case_verdicts.values())
        document["case_counts"] = {verdict.value: cases[verdict] for verdict in Verdict}
        document["tally"] = self.tally.model_dump(mode="json")
        document["policy"] = self.policy.to_json()
        return document


class ChangeEvent(Result):
    """A change announced in a series' history, or the withdrawal of one.

    `index` is the first point of the new level in the series as given; `announced_at` the index of the
    point whose arrival showed it; `before` and `after` are levels in the metric's unit, words for the pass
    set. `p_value` is corrected for the number of positions; what is counted exactly has none and no interval.
    `revises` names the event whose verdict this one replaces.
    """

    event_id: str
    series_id: str | None
    metric: Metric
    machine_id: str | None = None
    workload: str | None = None
    strategy: str | None = None
    strategy_kind: str | None = None
    build_id: str | None = None
    run_id: str | None = None
    at: datetime | None = None
    index: int
    announced_at: int
    before: float | str
    after: float | str
    change: float | None
    interval: tuple[float, float] | None
    p_value: float | None
    verdict: Verdict
    changed_components: tuple[str, ...] = ()
    confounded: bool = False
    revises: str | None = None
    reason: str

    @property
    def log_step(self) -> float:
        """log(after / before) of two levels; 0 where they are words or none."""
        if isinstance(self.before, str) or isinstance(self.after, str):
            return 0.0
        return math.log(self.after / self.before) if self.before > 0 and self.after > 0 else 0.0
