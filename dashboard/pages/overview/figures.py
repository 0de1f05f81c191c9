"""The figures under the verdict of the Overview."""

from __future__ import annotations

from collections.abc import Sequence

from compilewatch.dashboard.pages.overview import headline
from compilewatch.dashboard.parts.parts import Figure, Figures
from compilewatch.db import units
from compilewatch.db.judge.results import Tally
from compilewatch.db.people.regressions import RegressionState
from compilewatch.db.records.people import TriageState

_LEAST_CHANGE = 5e-4
"""A smaller change is said to be none."""


def figures(
    means: Sequence[headline.TaskMean],
    since: str | None,
    tally: Tally,
    covered: headline.Coverage,
    regressions: Sequence[RegressionState],
    *,
    failing: int,
    any_recorded: bool,
) -> Figures:
    """Cases slower, failing and measured, open regressions, and the mean speedup of each task."""
    return Figures(
        (
            Figure(
                "Cases slower",
                f"{units.count(tally.slower)} of {units.count(tally.compared)}"
                if tally.compared
                else units.MISSING,
                "In latency, against the build named above. Upgrade has each of them.",
                f"{units.count(tally.undecided)} undecided" if tally.compared else "not compared",
                "bad" if tally.slower else "",
            ),
            Figure(
                "Failing cases",
                units.count(failing),
                "Cases of the newest run with at least one failed trial. Each is listed with its reason.",
                "see the list" if failing else "all of the newest run passed",
                "bad" if failing else "",
            ),
            Figure(
                "Open regressions",
                units.count(len(regressions)),
                "Recorded on this machine after a run or by a gate, and closed by nobody.",
                _owners(regressions, any_recorded=any_recorded),
                "bad" if regressions else "",
            ),
            *(_mean(each, since) for each in means),
            Figure(
                "Compiled cases measured",
                f"{covered.compared} of {covered.wanted}",
                "Those with a speedup, above 1 or below, out of those of this build or the one before.",
            ),
        ),
        key="figures",
    )


def _mean(item: headline.TaskMean, since: str | None) -> Figure:
    over = units.plural(item.workloads, "workload")
    change, beside, explained = item.change, over, ""
    if change is not None:
        beside = units.percent(change, signed=True) if abs(change) >= _LEAST_CHANGE else "no change"
        explained = f" The change is that since {since} over {units.plural(item.matched, 'workload')}."
    return Figure(
        f"{item.task.value.capitalize()}, best choice",
        units.ratio(item.now),
        f"Geometric mean speedup over {over}, each with its fastest strategy. Eager is one of them, "
        f"and is 1: code slower than that is not chosen, so it is no part of the change.{explained}",
        beside,
    )


def _owners(regressions: Sequence[RegressionState], *, any_recorded: bool) -> str:
    if not regressions:
        return "all are closed" if any_recorded else "none ever recorded"
    waiting = sum(each.state is not TriageState.ACKNOWLEDGED for each in regressions)
    return f"{units.count(waiting)} without owner" if waiting else "all have an owner"
