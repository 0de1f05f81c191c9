"""Recorded regressions as rows of an inbox, and what can be said about one."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import pandas as pd

from compilewatch.dashboard.links.links import Link
from compilewatch.dashboard.parts import verdict_words
from compilewatch.dashboard.parts.parts import CASE_FACTS
from compilewatch.dashboard.verdicts.tables import row_cells
from compilewatch.db import units
from compilewatch.db.columns.metrics import METRICS
from compilewatch.db.judge.compare.recorded_regressions import (
    Change,
    EventSubject,
    Regression,
    changes_of,
    events_of_rows,
    freeze,
    side_title,
)
from compilewatch.db.judge.decide import counts_as_regression
from compilewatch.db.judge.decide_again import is_same_step
from compilewatch.db.judge.results import BuildSide, Comparison, Row
from compilewatch.db.judge.statistics.noise_floor import NoiseFloor
from compilewatch.db.records.people import BY_THE_JUDGE, TriageState
from compilewatch.db.records.vocabulary import Metric
from compilewatch.db.service.regressions import RegressionState

Floors = Mapping[str, Sequence[NoiseFloor]]
_MOST_NAMED = 3
MEANINGS: dict[TriageState, str] = {
    TriageState.NEW: "new and not confirmed yet",
    TriageState.CONFIRMED: "real: fresh trials show it again, or a person says so",
    TriageState.ACKNOWLEDGED: "it has an owner",
    TriageState.EXPECTED: "wanted or accepted: it no longer fails a gate",
    TriageState.FIXED: "a later build repairs it",
    TriageState.FALSE_ALARM: "no regression: it no longer fails a gate",
}
_MARKS = dict(zip(TriageState, "●✗◐○✓∅", strict=True))


def chosen(states: Sequence[RegressionState], link: Link) -> list[RegressionState]:
    """Those that the selectors of `link` let through, what is open first and the newest first within; what a
    later build took back comes last."""
    matches = [
        each
        for each in states
        if link.machine in (None, each.regression.machine_id)
        and _among(link.workload, each.regression.row.workload)
        and _among(link.strategy, each.regression.row.strategy)
        and _among(link.task, each.regression.row.case.task)
        and _among(link.state, each.state.value)
        and _is_side(link.base, link.base_run, each.regression.base)
        and _is_side(link.head, link.head_run, each.regression.head)
    ]
    order = list(TriageState)
    matches.sort(key=lambda each: each.regression.recorded_at, reverse=True)
    return sorted(matches, key=lambda each: (each.is_cured, order.index(each.state)))


@dataclass(frozen=True)
class ListedChange:
    """A change of the inbox: what one step did, and what people said of each case, by its rows."""

    change: Change
    states: tuple[RegressionState, ...]

    @property
    def is_open(self) -> bool:
        return any(each.is_open for each in self.states)

    @property
    def is_cured(self) -> bool:
        """Whether all that is left of it is gone with a later build."""
        return not self.is_open and any(each.is_cured for each in self.states)

    @property
    def is_recorded(self) -> bool:
        """Whether anything of it is recorded, or a comparison only shows it now (`not_recorded`)."""
        return any(each.regression.series_id for each in self.states)

    @property
    def owners(self) -> tuple[str, ...]:
        """Who took a case of it."""
        last = [each.triage[-1] for each in self.states if each.state is TriageState.ACKNOWLEDGED]
        return tuple(dict.fromkeys(event.author for event in last))

    @property
    def now(self) -> str:
        """What later builds say of it, named by their first part: "still there with torch 2.15.0"; by number
        where they disagree.
        """
        states = Counter(each.now.partition(", ")[0] for each in self.states if each.now)
        if len(states) == 1:
            return next(iter(states))
        return ", ".join(f"{units.count(number)} {words}" for words, number in states.most_common())


def changes(states: Sequence[RegressionState]) -> list[ListedChange]:
    """`states` as changes: those open first, then those that look fixed, within the dearest first."""
    by_id = {each.regression.regression_id: each for each in states}
    listed = [
        ListedChange(change, tuple(by_id[each.regression_id] for each in change.regressions))
        for change in changes_of(
            (each.regression for each in states), {key: each.steps for key, each in by_id.items()}
        )
    ]
    return sorted(listed, key=lambda each: (not each.is_open, not each.is_cured))


def not_recorded(
    comparison: Comparison, recorded: Sequence[RegressionState], at: datetime
) -> list[RegressionState]:
    """What `comparison` shows to be worse and `recorded` has no such step of, as one recorded at `at`,
    but without a series
    """
    known: dict[EventSubject, list[Row]] = {}
    for each in recorded:
        if each.regression.machine_id == comparison.machine_id:
            known.setdefault(each.regression.subject, []).append(each.regression.row)
    return [
        RegressionState(freeze(comparison, first, "", at), (), None)
        for subject, (first, *_) in events_of_rows(comparison.rows).items()
        if counts_as_regression(first) and not any(is_same_step(first, row) for row in known.get(subject, ()))
    ]


def changes_table(listed: Sequence[ListedChange]) -> pd.DataFrame:
    """One row per change, in the order given."""
    return pd.DataFrame([_change_row(each) for each in listed])


def _change_row(each: ListedChange) -> dict[str, object]:
    change = each.change
    return {
        "change_id": change.change_id,
        "step": leading(change.head),
        "who": change.who,
        "metric": METRICS[change.metric].name,
        "worst": change.worst.change,
        "median": change.median_change,
        "machines": units.first_of(change.machines, _MOST_NAMED) or units.MISSING,
        "since": units.moment(min(each.recorded_at for each in change.regressions)),
        "now": each.now or units.MISSING,
        "owner": ", ".join(each.owners) or ("nobody" if each.is_open else units.MISSING),
        "states": counted(each.states),
        "base": change.base,
        "head": change.head,
        "cases": len(change.rows),
        "cost": change.cost_ns or None,
    }


def leading(title: str) -> str:
    """The first part of the title of a side, torch where that differs, and how many more there are."""
    first, *more = title.split(", ")
    return f"{first} and {units.plural(len(more), 'more part')}" if more else first


def bisect_command(change: Change) -> str:
    """The command that finds the release of torch which did it, in the case that moved most; empty where both
    sides have the same torch, or no stated one.
    """
    first = change.regressions[0]
    good, bad = (side.components.get("torch") for side in (first.base, first.head))
    if not good or not bad or good == bad:
        return ""
    words = ["compilewatch", "bisect", "--good", f"torch=={good}", "--bad", f"torch=={bad}"]
    return shlex.join([*words, "--workload", change.worst.workload, "--strategy", change.worst.strategy])


def _is_side(build: str | None, runs: Collection[str], side: BuildSide) -> bool:
    """Whether it is of this build, and of one of these runs where some are meant."""
    return (build is None or build in side.build_ids) and (not runs or not {*runs}.isdisjoint(side.run_ids))


def _among(wanted: Sequence[str], value: str | None) -> bool:
    return not wanted or value in wanted


def counted(states: Sequence[RegressionState]) -> str:
    """ "3 confirmed, 1 new, 2 acknowledged": only the states there are, those first that are sure."""
    first = (TriageState.CONFIRMED, *(state for state in TriageState if state is not TriageState.CONFIRMED))
    numbers = {state: sum(each.state is state for each in states) for state in first}
    return ", ".join(f"{units.count(number)} {state.value}" for state, number in numbers.items() if number)


def confirmed_slower(states: Sequence[RegressionState]) -> frozenset[tuple[str, str]]:
    """Workload and strategy id of each case with a confirmed regression in latency or in speedup, which says
    the same of a compiled case.
    """
    return frozenset(
        each.regression.row.case.ids
        for each in states
        if each.state is TriageState.CONFIRMED
        and each.regression.row.metric in (Metric.LATENCY, Metric.SPEEDUP)
    )


def state_text(state: TriageState) -> str:
    """Mark and word."""
    return f"{_MARKS[state]} {state.value}"


def inbox_table(states: Sequence[RegressionState], floors: Floors) -> pd.DataFrame:
    """One row per regression, in the order given. `floors`: machine id -> its noise floors."""
    return pd.DataFrame([_inbox_row(each, floors) for each in states])


def _inbox_row(each: RegressionState, floors: Floors) -> dict[str, object]:
    regression = each.regression
    last = each.triage[-1] if each.triage else None
    return {
        "state": state_text(each.state),
        "now": each.now or units.MISSING,
        "also": ", ".join(map(_figure_and_change, regression.also)) or units.MISSING,
        **finding_row(regression.row, floors.get(regression.machine_id or "", ())),
        "cause": regression.row.cause.value if regression.row.cause else units.MISSING,
        "from": side_title(regression.base, regression.changed_components),
        "to": side_title(regression.head, regression.changed_components),
        "machine": regression.machine,
        "recorded_at": regression.recorded_at,
        "by": last.author if last else units.MISSING,
        "note": (last.note if last else None) or units.MISSING,
        "link": web_link(last.url if last else None),
    }


def finding_row(row: Row, floors: Sequence[NoiseFloor]) -> dict[str, object]:
    """A verdict on one case, in one line. `floors` are the noise floors of its machine."""
    cells = row_cells(row, floors)
    columns = ("metric", "base", "head", "change", "interval", "q", "moved", *CASE_FACTS, "reason")
    return {"workload": row.workload, "strategy": row.strategy, **{name: cells[name] for name in columns}}


def line(each: RegressionState) -> str:
    """A regression in one line: who owns it, and what was said of it last."""
    last = each.triage[-1] if each.triage else None
    by = f" by {last.author}" if last and last.author != BY_THE_JUDGE else ""
    note = f". {last.note}" if last and last.note else ""
    when = units.moment(each.regression.recorded_at)
    now = f", {each.now}" if each.now else ""
    return f"{name(each)}, {each.state.value}{by}, recorded {when}{now}{note}"


def cured_line(each: RegressionState) -> str:
    """What a later build took back, and what is asked for."""
    return f"{name(each)}, {each.now}: close it as fixed"


def name(each: RegressionState) -> str:
    """Which regression it is: its case, figure and change."""
    row = each.regression.row
    return f"{row.workload} with {row.strategy}: {_figure_and_change(row)}"


def _figure_and_change(row: Row) -> str:
    return f"{METRICS[row.metric].word} {verdict_words.change(row)}"


def first_names(states: Sequence[RegressionState], say: Callable[[RegressionState], str] = name) -> list[str]:
    """The first `_MOST_NAMED` as `say` says them, and how many more there are."""
    more = [f"and {units.count(len(states) - _MOST_NAMED)} more"] if len(states) > _MOST_NAMED else []
    return [*map(say, states[:_MOST_NAMED]), *more]


def web_link(url: str | None) -> str | None:
    """`url` where a browser may follow it."""
    return url if url is not None and url.startswith(("https://", "http://")) else None


def story(each: RegressionState) -> dict[str, str]:
    """Who said what when, oldest first, beginning with the verdict itself."""
    found = each.regression
    entries = [(found.recorded_at, TriageState.NEW, "the judge", found.row.reason)]
    for event in each.triage:
        words = filter(None, (event.note or units.MISSING, web_link(event.url)))
        entries.append((event.at, event.state, event.author, " ".join(words)))
    return {
        f"{number}. {units.moment(at)}, {state_text(state)}, {by}": text
        for number, (at, state, by, text) in enumerate(entries, 1)
    }


def compare_command(regression: Regression) -> str:
    """The command that judges the same sides again, on all that is stored of them."""
    words = ["compilewatch", "compare", *_side_names(regression.base, regression.head)]
    words += ["--workload", regression.row.workload, "--strategy", regression.row.strategy]
    return shlex.join(words)


def _side_names(base: BuildSide, head: BuildSide) -> list[str]:
    """What the command line calls them: the only run of each, else its build."""
    within_a_run = base.run_ids == head.run_ids
    return [
        side.run_ids[0] if len(side.run_ids) == 1 and not within_a_run else side.build_ids[0]
        for side in (base, head)
    ]
