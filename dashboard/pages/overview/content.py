"""What the Overview is drawn from: this build's cases set against those of the build before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import compress
from typing import Any

import numpy as np
import pandas as pd

from dashboard.charts import sparklines
from dashboard.charts.style import PreparedChart
from dashboard.links.links import Link, Page
from dashboard.pages.overview import charts, headline
from dashboard.pages.regressions import inbox
from dashboard.read.choices import Choices
from dashboard.read.data import (
    filters_of,
    read_cases,
    read_noise_floors,
    read_points,
    read_regressions,
    recent,
)
from dashboard.read.shaping import Aside, Change, asides, not_applicable
from dashboard.read.snapshots import Snapshot, cached
from dashboard.render import theme
from db.metrics.groups import floats, row_dicts
from db.queries.regressions import RegressionState
from db.records.strategies import EAGER
from db.wording import units
from db.wording.marks import bound_cell
from db.wording.noise import floor_sentence

# A row per workload: eager, its best compiled strategy, and that one's history.

HISTORY = 60
_OF_CASES = [
    *("workload_id", "workload_label", "task", "strategy_id", "strategy", "failed_trials"),
    *("latency_ns", "control_latency_ns", "speedup", "speedup_low", "speedup_high"),
    *("break_even", "break_even_steps", "counted_trials", "bound"),
]


def workload_rows(cases: pd.DataFrame, points: pd.DataFrame) -> pd.DataFrame:
    """One row per workload of `cases`, as texts; `points` are the runs from which the history comes."""
    history: dict[tuple[Any, ...], list[float]] = {}
    # In plain lists: a frame per group costs more than all that is done with them.
    of_case = zip(points["workload_id"].tolist(), points["strategy_id"].tolist(), strict=True)
    speedups = floats(points["speedup"])
    known = (~np.isnan(speedups)).tolist()
    for key, speedup in compress(zip(of_case, speedups.tolist(), strict=True), known):
        history.setdefault(key, []).append(speedup)
    by_workload: dict[str, list[dict[str, Any]]] = {}
    for case in row_dicts(cases[_OF_CASES]):
        by_workload.setdefault(case["workload_label"], []).append(case)
    return pd.DataFrame([_row(label, by_workload[label], history) for label in sorted(by_workload)])


def _row(
    label: str, cases: list[dict[str, Any]], history: dict[tuple[Any, ...], list[float]]
) -> dict[str, Any]:
    failing = sum(1 for case in cases if case["failed_trials"] > 0)
    eager_ns = next((case["latency_ns"] for case in cases if case["strategy"] == EAGER.name), None)
    compiled = [case for case in cases if case["strategy"] != EAGER.name and not pd.isna(case["speedup"])]
    row: dict[str, Any] = {"workload": label, "task": cases[0]["task"], "eager": units.duration(eager_ns)}
    if not compiled:
        missing = ("strategy", "speedup", "interval", "latency", "break_even")
        state = f"{failing} failing" if failing else "eager only"
        bound = bound_cell(cases[0]["bound"])
        return row | {"state": state, "history": [], "bound": bound} | dict.fromkeys(missing, units.MISSING)
    best = max(compiled, key=lambda case: float(case["speedup"]))
    steps = int(best["break_even_steps"]) if best["break_even"] == "steps" else str(best["break_even"])
    return row | {
        "state": f"{failing} failing" if failing else "ok",
        "strategy": best["strategy"],
        "speedup": units.ratio(best["speedup"]),
        "interval": units.interval(
            best["speedup_low"], best["speedup_high"], units.ratio, trials=best["counted_trials"]
        ),
        "history": history.get((best["workload_id"], best["strategy_id"]), [])[-HISTORY:],
        "eager": units.duration(best["control_latency_ns"] if pd.isna(eager_ns) else eager_ns),
        "latency": units.duration(best["latency_ns"]),
        "bound": bound_cell(best["bound"]),
        "break_even": units.steps(steps) if isinstance(steps, int) else steps,
    }


# A smaller change is told as none.
_LEAST_CHANGE = 5e-4


@dataclass(frozen=True)
class OpenRegressions:
    """Those on one machine that nobody closed, newest first within their states; `any_recorded` on any."""

    regressions: list[RegressionState]
    any_recorded: bool


@dataclass(frozen=True)
class PageContent:
    """What the page is drawn from: this build's cases set against the build before, as frames and texts."""

    build_before: str | None
    headlines: list[headline.Headline]
    covered: headline.Coverage
    found: list[Aside]
    without_meaning: dict[str, str]
    speedups: PreparedChart
    workloads: pd.DataFrame
    reach: float
    means: pd.DataFrame
    last_started_at: datetime
    regressed: OpenRegressions
    noise_floor: str | None
    """The smallest changes that the machine shows; None where nobody measured them."""

    @property
    def failing(self) -> int:
        """How many cases have at least one failed trial."""
        return sum(1 for aside in self.found if "failed" in aside.reason)

    @property
    def beside(self) -> list[str]:
        """Everything that has no number, with its reason."""
        lines = [str(aside) for aside in self.found] + list(self.covered.missing)
        return lines + [
            f"{name} is not applicable on this device: {reason}"
            for name, reason in self.without_meaning.items()
        ]


@cached
def page_content(snapshot: Snapshot, link: Link) -> PageContent | None:
    """None where no case fits the filters."""
    now = read_cases(snapshot, filters_of(link))
    if now.empty:
        return None
    everything = filters_of(replace(link, build=None))
    points = read_points(snapshot, recent(snapshot, everything, up_to=link.build))
    workloads = workload_rows(now, points)
    histories, reach = sparklines.relative(workloads["history"])
    older = headline.build_before(points, link.build) if link.build else None
    before = read_cases(snapshot, filters_of(replace(link, build=older))) if older else now.iloc[:0]
    return PageContent(
        build_before=older,
        headlines=headline.headlines(now, before, points),
        covered=headline.coverage(now, before),
        found=asides(now),
        without_meaning=not_applicable(now, set()),
        speedups=_speedups(charts.frame(now)),
        workloads=workloads.assign(history=histories),
        reach=reach,
        means=_means(headline.by_strategy(now)),
        last_started_at=now["last_started_at"].max(),
        regressed=_open_regressions(snapshot, link),
        noise_floor=floor_sentence(read_noise_floors(snapshot).get(link.machine or "", ())),
    )


def compared_to(choices: Choices, before: str | None, build: str | None) -> str | None:
    """The build `before`, by its torch alone where that tells it from `build`."""
    if before is None or build is None:
        return None
    torch = choices.build_rows[before]["torch"]
    return f"vs {torch if torch != choices.build_rows[build]['torch'] else choices.builds[before]}"


def change_words(item: headline.Headline) -> str | None:
    """How a mean moved since the build before; None where that is not known."""
    if item.change is None:
        return None
    return units.percent(item.change, signed=True) if abs(item.change) >= _LEAST_CHANGE else "no change"


def change_table(changes: Sequence[Change]) -> pd.DataFrame:
    """One row per part of the build that changed: `part`, `before`, `after`."""
    rows = [(each.component, each.before or units.MISSING, each.after or units.MISSING) for each in changes]
    return pd.DataFrame(rows, columns=["part", "before", "after"])


def _open_regressions(snapshot: Snapshot, link: Link) -> OpenRegressions:
    """Those of the machine, tasks and workloads of `link`."""
    recorded = read_regressions(snapshot)
    like = Link(page=Page.REGRESSIONS, machine=link.machine, task=link.task, workload=link.workload)
    shown = [each for each in inbox.chosen(recorded, like) if each.state in inbox.OPEN_STATES]
    return OpenRegressions(shown, bool(recorded))


def _speedups(rows: pd.DataFrame) -> PreparedChart:
    finding = charts.finding(rows)
    if rows.empty:
        return PreparedChart(finding)
    fastest_first = rows.groupby("workload")["speedup"].max().sort_values(ascending=False).index
    spec = charts.spec(tuple(fastest_first), tuple(theme.ordered(rows["strategy"])))
    return PreparedChart(finding, spec, {"main": rows, "eager": pd.DataFrame({"speedup": [1.0]})})


def _means(means: pd.DataFrame) -> pd.DataFrame:
    """The geometric means as texts."""
    if means.empty:
        return means
    texts = {
        name: [
            f"{units.ratio(mean)} ({units.count(n)})" if n else units.MISSING
            for mean, n in zip(means[name], means[f"{name}_cases"], strict=True)
        ]
        for name in ("matched", "naive")
    }
    return means.assign(**texts, left_out=means["left_out"].replace({"": "nobody"}))
