"""Recorded regressions: a verdict frozen with its sides, and what follows when the next verdict arrives.

Regressions of many cases that one step of the build brought, as one change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from statistics import median
from typing import Annotated

from pydantic import Field

from compilewatch.db.columns.metrics import METRICS
from compilewatch.db.judge.compare.sides import CODE
from compilewatch.db.judge.decide import counts_as_regression
from compilewatch.db.judge.decide_again import is_reproduced, takes_back
from compilewatch.db.judge.policy import Policy
from compilewatch.db.judge.results import BuildSide, Comparison, Result, Row, Tally
from compilewatch.db.judge.sentences import besides, not_reproduced, tallied
from compilewatch.db.records.fields import Name, Text, UtcDatetime
from compilewatch.db.records.identity import component_name
from compilewatch.db.records.ids import identity
from compilewatch.db.records.people import TriageState
from compilewatch.db.records.vocabulary import CauseClass, Metric, Verdict
from compilewatch.db.units import first_of, moment, percent, plural


class TriageEvent(Result):
    """What somebody said of a regression. `url` becomes a link, so it can only lead to the web."""

    state: TriageState
    author: Name
    at: UtcDatetime
    note: Text | None = None
    url: Annotated[str, Field(max_length=2000, pattern=r"^https?://[^\s\x00-\x1f]+$")] | None = None


class EventKind(StrEnum):
    """What an event is about: metrics that move together show one event, not several."""

    TIME = "time"
    COMPILE = "compile"
    MEMORY = "memory"
    GRAPHS = "graphs"
    NUMERICS = "numerics"


_MOVED = {
    **dict.fromkeys(
        (Metric.COMPILE_COST, Metric.TIME_TO_FIRST_RESULT, Metric.COLD_START_CPU), EventKind.COMPILE
    ),
    **dict.fromkeys((Metric.COMPILE_CPU, Metric.COMPILE_INSTRUCTIONS), EventKind.COMPILE),
    Metric.PEAK_MEMORY: EventKind.MEMORY,
    Metric.GRAPH_BREAKS: EventKind.GRAPHS,
    Metric.RECOMPILES: EventKind.GRAPHS,
    Metric.NUMERICS: EventKind.NUMERICS,
}
# Which of an event's metrics speaks for it: what people pay first.
_SPEAKS = (
    *(Metric.LATENCY, Metric.DEVICE_TIME, Metric.SPEEDUP, Metric.COMPILE_COST, Metric.NUMERICS),
    Metric.GRAPH_BREAKS,
)

EventSubject = tuple[str, str, EventKind]
"""Workload id, strategy id and what moved."""


class Regression(Result):
    """One recorded event of one series, as it was then: `row` speaks for it, `also` are other metrics that
    showed it.

    `base_key` and `head_key` come from `side_keys`. A verdict that replaces another counts up `revision` and
    names the old one in `revises`; its verdict may be that nothing changed. `tally` is of all cases that were
    compared then; None in what earlier releases recorded. `found_on` is the pull request or branch on which
    it was found, as the CI or the clone calls it; None elsewhere.
    """

    regression_id: str
    series_id: str
    machine_id: str | None
    machine: str | None
    base_key: str
    head_key: str
    base: BuildSide
    head: BuildSide
    changed_components: tuple[str, ...]
    row: Row
    also: tuple[Row, ...] = ()
    tally: Tally | None = None
    revision: int
    revises: str | None
    recorded_at: UtcDatetime
    found_on: Name | None = None

    @property
    def rows(self) -> tuple[Row, ...]:
        """All that showed it, first the one that speaks for it."""
        return self.row, *self.also

    @property
    def subject(self) -> EventSubject:
        """The case and what moved."""
        return event_subject(self.row)

    @property
    def tally_text(self) -> str | None:
        """The tally in the words of every door."""
        if self.tally is None:
            return None
        return "; ".join(filter(None, (tallied(self.tally), besides(self.tally))))


class FollowUp(StrEnum):
    """What a verdict on a case means for what is recorded about it."""

    RECORD = "record"
    REVISE = "revise"
    CONFIRM = "confirm"


def row_subject(row: Row) -> tuple[str, str, str]:
    """Which case and metric a row is about: workload id, strategy id, metric."""
    return *row.case.ids, row.metric.value


def moved(metric: Metric) -> EventKind:
    """What a change of this metric is about; a break-even follows from the time of a step first."""
    return _MOVED.get(metric, EventKind.TIME)


def event_subject(row: Row) -> EventSubject:
    """Which case and event a row is about."""
    return *row.case.ids, moved(row.metric)


def events_of_rows(rows: Iterable[Row]) -> dict[EventSubject, list[Row]]:
    """`rows` by event, in each the row first that speaks for it: a regression before what is none, then by
    what people pay. A break-even that fell with the cost of compiling alone is of that event.
    """
    found: dict[EventSubject, list[Row]] = {}
    for row in rows:
        found.setdefault(event_subject(row), []).append(row)
    for subject in [each for each in found if each[2] is EventKind.TIME]:
        compiling = found.get((*subject[:2], EventKind.COMPILE))
        regressed = [row.metric for row in found[subject] if counts_as_regression(row)]
        if regressed == [Metric.BREAK_EVEN] and compiling and any(map(counts_as_regression, compiling)):
            compiling += [row for row in found[subject] if row.metric is Metric.BREAK_EVEN]
            found[subject] = [row for row in found[subject] if row.metric is not Metric.BREAK_EVEN]
    return {subject: sorted(each, key=_speaks) for subject, each in found.items() if each}


def _speaks(row: Row) -> tuple[bool, int]:
    place = _SPEAKS.index(row.metric) if row.metric in _SPEAKS else len(_SPEAKS)
    return not counts_as_regression(row), place


def side_keys(comparison: Comparison) -> tuple[str, str]:
    """What was compared: builds and code of each side, or its runs where both sides are of the same.

    So the next run of the same build and code does not raise the same regression once more.
    """
    base, head = comparison.base, comparison.head
    if set(base.build_ids) != set(head.build_ids) or CODE in comparison.changed_components:
        return _side_key(base), _side_key(head)
    return identity({"runs": sorted(base.run_ids)}), identity({"runs": sorted(head.run_ids)})


def _side_key(side: BuildSide) -> str:
    code = side.components.get(CODE)
    return identity({"builds": sorted(side.build_ids), **({"code": code} if code else {})})


def freeze(
    comparison: Comparison,
    row: Row,
    series_id: str,
    recorded_at: datetime,
    *,
    revised: Regression | None = None,
    also: tuple[Row, ...] = (),
    found_on: str | None = None,
) -> Regression:
    """The verdict of `row` as it is recorded, as the successor of `revised` where one is given."""
    base_key, head_key = (revised.base_key, revised.head_key) if revised else side_keys(comparison)
    revision = revised.revision + 1 if revised else 0
    unique = {
        "series": series_id,
        "metric": row.metric.value,
        "base": base_key,
        "head": head_key,
        "revision": revision,
    }
    return Regression(
        regression_id=identity(unique),
        series_id=series_id,
        machine_id=comparison.machine_id,
        machine=comparison.machine,
        base_key=base_key,
        head_key=head_key,
        base=comparison.base,
        head=comparison.head,
        changed_components=comparison.changed_components,
        row=row,
        also=also,
        tally=comparison.tally,
        revision=revision,
        revises=revised.regression_id if revised else None,
        recorded_at=recorded_at,
        found_on=revised.found_on if revised else found_on,
    )


def follow_up(row: Row, comparison: Comparison, standing: Regression | None) -> FollowUp | None:
    """What the verdict `row` means, given the newest recorded one about the same case and sides.

    What the machine explains, or an eager that got faster, is no regression of the build and is not recorded.
    A verdict is revised by one that takes it back (`takes_back`), and confirmed by head trials of other runs
    than those it was found in.
    """
    regressed = counts_as_regression(row)
    if standing is None:
        return FollowUp.RECORD if regressed else None
    if standing.row.verdict is not Verdict.REGRESSED:
        return FollowUp.REVISE if regressed else None
    if regressed:
        fresh = set(comparison.head.run_ids).isdisjoint(standing.head.run_ids)
        return FollowUp.CONFIRM if fresh else None
    return FollowUp.REVISE if takes_back(row, standing.row) else None


def confirmation_of(row: Row, policy: Policy) -> tuple[FollowUp, Row] | None:
    """What `row`, judged on fresh trials alone, means for a suspected regression; None with too few of them
    (`is_reproduced`).

    What the fresh trials do not show is not reproduced, and its cause is noise.
    """
    again = is_reproduced(row, policy)
    if again is None:
        return None
    if again:
        return FollowUp.CONFIRM, row
    reason = not_reproduced(row.trials, row.reason)
    return FollowUp.REVISE, row.model_copy(update={"cause": CauseClass.NOISE, "reason": reason})


def side_title(side: BuildSide, changed_components: tuple[str, ...]) -> str:
    """What a side is, in the parts that differ: "torch 2.13.0, triton 3.6.0"; its runs where none does."""
    named = [name for name in changed_components if side.components.get(name)]
    if named:
        return ", ".join(f"{component_name(name)} {side.components[name]}" for name in named)
    runs = side.run_ids
    return f"run {runs[-1]}" if len(runs) == 1 else f"{plural(len(runs), 'run')} up to {runs[-1]}"


def between(base: str, head: str, machine: str | None, tally: str | None) -> str:
    """ "torch 2.12.0 to torch 2.13.0 on gpu-box: 2 slower (latency 2), ...": titles of both sides, and what
    became of all cases there.
    """
    where = f" on {machine}" if machine else ""
    return f"{base} to {head}{where}" + (f": {tally}" if tally else "")


def tally_lines(regressions: Iterable[Regression]) -> list[str]:
    """A line for each two sides between which something is recorded, newest first, with the newest tally and
    when it was made: trials that came later change what a comparison says now.
    """
    lines: dict[tuple[str, str, str | None], str] = {}
    for each in sorted(regressions, key=lambda each: each.recorded_at, reverse=True):
        if each.tally is not None:
            base, head = (side_title(side, each.changed_components) for side in (each.base, each.head))
            key = (each.base_key, each.head_key, each.machine_id)
            line = between(base, head, each.machine, each.tally_text)
            lines.setdefault(key, f"{line} (as of {moment(each.recorded_at)})")
    return list(lines.values())


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
