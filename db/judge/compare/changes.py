"""Regressions of many cases that one step of the build brought, as one change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from compilewatch.db.columns.metrics import METRICS
from compilewatch.db.judge.compare.recorded_regressions import Regression, side_title
from compilewatch.db.judge.results import Row
from compilewatch.db.records.ids import identity
from compilewatch.db.records.vocabulary import Metric, Verdict
from compilewatch.db.units import first_of, percent, plural

_MOST_NAMED = 3
_Step = tuple[tuple[str, str | None, str | None], ...]


@dataclass(frozen=True)
class Change:
    """What one step, from `base` to `head`, did to the same metric of all of `rows`, in one direction, on all
    of `machines`; the row that moved most comes first. `regressions` are what is recorded of them and `steps`
    how many steps were timed with the head of each, in the order of the rows; `change_id` is the same however
    many cases join it.
    """

    base: str
    head: str
    metric: Metric
    verdict: Verdict
    rows: tuple[Row, ...]
    machines: tuple[str, ...]
    regressions: tuple[Regression, ...]
    steps: tuple[int, ...]
    change_id: str

    @property
    def workloads(self) -> tuple[str, ...]:
        """Those hit, the one that moved most first."""
        return tuple(dict.fromkeys(row.workload for row in self.rows))

    @property
    def strategies(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(row.strategy for row in self.rows))

    @property
    def worst(self) -> Row:
        return self.rows[0]

    @property
    def median_change(self) -> float | None:
        """Of the relative changes; None where what moved is no number."""
        changes = [row.change for row in self.rows if row.change is not None]
        return median(changes) if changes else None

    @property
    def lost_ns(self) -> float:
        """By how much a step of each case takes longer now, all together, in ns; 0 of other metrics."""
        return sum(map(self._longer_ns, self.rows))

    @property
    def cost_ns(self) -> float:
        """What it has cost: by how much a step takes longer, times the steps timed with it, in ns."""
        return sum(self._longer_ns(row) * steps for row, steps in zip(self.rows, self.steps, strict=True))

    def _longer_ns(self, row: Row) -> float:
        if self.metric is Metric.LATENCY and isinstance(row.base, int | float):
            return float(row.head) - row.base if isinstance(row.head, int | float) else 0.0
        return 0.0

    @property
    def who(self) -> str:
        """Which cases are hit: "mlp with default", "2 workloads with 5 strategies, 10 cases: mlp, cnn"."""
        if len(self.rows) == 1:
            return f"{self.worst.workload} with {self.worst.strategy}"
        names = first_of(self.workloads, _MOST_NAMED)
        strategies = self.strategies
        by = f"with {strategies[0] if len(strategies) == 1 else plural(len(strategies), 'strategy')}"
        if len(self.workloads) == 1:
            return f"{names} {by}, {plural(len(self.rows), 'case')}"
        return f"{plural(len(self.workloads), 'workload')} {by}, {plural(len(self.rows), 'case')}: {names}"

    @property
    def sentence(self) -> str:
        """All of it in a line: who is hit, by how much, by which step, and where."""
        far = _how_far(self.worst)
        middle = self.median_change
        if len(self.rows) > 1 and middle is not None:
            far = f"worst {far}, median {percent(middle, signed=True)}"
        step = f", {self.base} to {self.head}"
        machines = first_of(self.machines, _MOST_NAMED)
        return f"{self.who}: {METRICS[self.metric].word} {far}{step}{f' on {machines}' if machines else ''}"


def _how_far(row: Row) -> str:
    return f"{row.base} to {row.head}" if row.change is None else percent(row.change, signed=True)


def changes_of(
    regressions: Iterable[Regression], steps: Mapping[str, int] | None = None
) -> tuple[Change, ...]:
    """`regressions` by what moved them: the same parts of the build from the same versions to the same, the
    same metric and the same direction are one change, on whatever machines. Where no part differs it is one
    between the same two sides of one machine. The dearest first, by time a step and `steps`, those timed with
    the head of each regression, by its id; of metrics that are no latency what moved most.
    """
    found: dict[str, list[Regression]] = {}
    for each in regressions:
        step = _step(each) or (each.machine_id, each.base_key, each.head_key)
        what = {"step": step, "metric": each.row.metric.value, "verdict": each.row.verdict.value}
        found.setdefault(identity(what), []).append(each)
    changes = [_change(change_id, each, steps or {}) for change_id, each in found.items()]
    return tuple(
        sorted(changes, key=lambda each: (-each.cost_ns, -each.lost_ns, -abs(each.worst.log_change)))
    )


def _step(regression: Regression) -> _Step:
    base, head = regression.base.components, regression.head.components
    named = ((name, base.get(name), head.get(name)) for name in sorted(regression.changed_components))
    return tuple(each for each in named if each[1] != each[2])


def _change(change_id: str, regressions: Sequence[Regression], steps: Mapping[str, int]) -> Change:
    ordered = sorted(regressions, key=lambda each: -abs(each.row.log_change))
    first = ordered[0]
    base, head = (side_title(side, first.changed_components) for side in (first.base, first.head))
    return Change(
        base=base,
        head=head,
        metric=first.row.metric,
        verdict=first.row.verdict,
        rows=tuple(each.row for each in ordered),
        machines=tuple(sorted({each.machine or "" for each in ordered} - {""})),
        regressions=tuple(ordered),
        steps=tuple(steps.get(each.regression_id, 0) for each in ordered),
        change_id=change_id,
    )
