"""What the Overview is drawn from: this build's cases set against those of the build before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import pandas as pd

from dashboard import headline, inbox, sparklines, theme
from dashboard.charts import speedups
from dashboard.charts.prepared import PreparedChart
from dashboard.choices import Choices
from dashboard.data import filters_of, read_cases, read_noise_floors, read_points, read_regressions, recent
from dashboard.links import Link, Page
from dashboard.shaping import Aside, Change, asides, not_applicable
from dashboard.snapshots import Snapshot, remembered
from dashboard.workload_rows import workload_rows
from db import units
from db.queries.regressions import RegressionState
from db.wording.noise import floor_sentence

# A smaller change is told as none.
_LEAST_CHANGE = 5e-4


@dataclass(frozen=True)
class OpenRegressions:
    """Those on one machine that nobody closed, newest first within their states; `any_recorded` on any."""

    regressions: list[RegressionState]
    any_recorded: bool


@dataclass(frozen=True)
class Seen:
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


@remembered
def seen(snapshot: Snapshot, link: Link) -> Seen | None:
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
    return Seen(
        build_before=older,
        headlines=headline.headlines(now, before, points),
        covered=headline.coverage(now, before),
        found=asides(now),
        without_meaning=not_applicable(now, set()),
        speedups=_speedups(speedups.frame(now)),
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
    finding = speedups.finding(rows)
    if rows.empty:
        return PreparedChart(finding)
    fastest_first = rows.groupby("workload")["speedup"].max().sort_values(ascending=False).index
    spec = speedups.spec(tuple(fastest_first), tuple(theme.ordered(rows["strategy"])))
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
