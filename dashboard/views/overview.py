"""Overview: is all well? Headline speedups, coverage, the newest build's changes, a row per workload."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import pandas as pd
import streamlit as st

from dashboard import headline, sparklines, theme
from dashboard.charts import speedups
from dashboard.charts.prepared import PreparedChart
from dashboard.data import filters_of, read_cases, read_points, recent
from dashboard.foreign_text import escaped
from dashboard.links import Link, Page
from dashboard.shaping import Aside, Change, asides, build_changes, confounded, not_applicable
from dashboard.snapshots import Snapshot, remembered
from dashboard.views import controls, elements, open_regressions, silence
from dashboard.views.shell import View, moment
from dashboard.workload_rows import workload_rows
from db import units

# A smaller change is drawn in grey: it is less than what a verdict would ask for.
NOTABLE = 0.02


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
    regressed: open_regressions.Found


@remembered
def _seen(snapshot: Snapshot, link: Link) -> Seen | None:
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
        regressed=open_regressions.find(snapshot, link),
    )


def draw(view: View) -> Link:
    """The page of one build on one machine."""
    silence.draw()
    seen = _seen(view.snapshot, view.link)
    if seen is None:
        elements.nothing_to_show("No case fits these filters.", next_step="Widen them in the sidebar.")
        return view.link
    _cards(view, seen)
    open_regressions.draw(seen.regressed)
    _main_chart(seen.speedups)
    _workloads(seen.workloads, seen.reach)
    left, right = st.columns(2)
    with left:
        _build(view, seen)
    with right:
        _beside(seen)
    _by_strategy(seen.means)
    return view.link


def _cards(view: View, seen: Seen) -> None:
    covered, last = seen.covered, moment(seen.last_started_at)
    compared_to = _compared_to(view, seen)
    failing = sum(1 for aside in seen.found if "failed" in aside.reason)
    with st.grid(6, min_column_width=150):
        for item in seen.headlines:
            _headline(item, compared_to)
        open_regressions.card(seen.regressed)
        elements.card(
            "Cases compared",
            f"{covered.compared} of {covered.wanted}",
            explained="Compiled cases with a speedup, out of those measured with this build or the one "
            "before.",
            beside=last,
        )
        elements.card(
            "Failing cases",
            units.count(failing),
            explained="Cases with at least one failed trial. Each is listed below with its reason.",
            beside="see below" if failing else "all passed",
        )
    machine = view.choices.machines[view.link.machine or ""]
    build = view.choices.builds.get(view.link.build or "", "")
    elements.note(
        f"Compared {covered.compared} of {covered.wanted} cases, last run {last} on {machine}, {build}."
    )


def _headline(item: headline.Headline, compared_to: str | None) -> None:
    change = item.change
    moved, notable = (change is not None and abs(change) >= least for least in (0.0005, NOTABLE))
    st.metric(
        f"{item.task.value.capitalize()} speedup",
        units.ratio(item.now),
        None if change is None else units.percent(change, signed=True) if moved else "no change",
        delta_color="normal" if notable else "off",
        delta_arrow="auto" if notable else "off",
        delta_description=escaped(compared_to) if change is not None and compared_to else None,
        border=True,
        height="stretch",
        help=escaped(
            f"Geometric mean of {item.strategy} over the {item.cases} cases of the matched set: "
            "those that passed with this build and the one before."
        ),
        chart_data=list(item.history) if sparklines.notable(item.history) else None,
    )


def _compared_to(view: View, seen: Seen) -> str | None:
    """The build before, by its torch alone where that tells it from this one."""
    if seen.build_before is None:
        return None
    rows = view.choices.build_rows
    torch = rows[seen.build_before]["torch"]
    if torch != rows[view.link.build or ""]["torch"]:
        return f"vs {torch}"
    return f"vs {view.choices.builds[seen.build_before]}"


def _speedups(rows: pd.DataFrame) -> PreparedChart:
    finding = speedups.finding(rows)
    if rows.empty:
        return PreparedChart(finding)
    fastest_first = rows.groupby("workload")["speedup"].max().sort_values(ascending=False).index
    spec = speedups.spec(tuple(fastest_first), tuple(theme.ordered(rows["strategy"])))
    return PreparedChart(finding, spec, {"main": rows, "eager": pd.DataFrame({"speedup": [1.0]})})


def _main_chart(chart: PreparedChart) -> None:
    with st.container(border=True):
        elements.finding(
            chart.finding, "Each point is a case, its bar the 95 % interval. The dotted line is eager."
        )
        if chart.spec is None:
            elements.nothing_to_show("Only eager was measured with this build.")
            return
        elements.chart(
            chart.spec,
            chart.frames,
            key="overview-speedups",
            alt="Speedup over eager of every compiled case with its interval",
        )


def _workloads(table: pd.DataFrame, reach: float) -> None:
    st.markdown("#### Every workload")
    right = st.column_config.TextColumn
    elements.table(
        table,
        {
            "workload": st.column_config.TextColumn("Workload", pinned=True),
            "task": "Task",
            "state": "State",
            "strategy": "Best compiled",
            "speedup": right("Speedup", alignment="right"),
            "interval": right("95 % interval", alignment="right"),
            "history": elements.history_column("Its speedup, run by run", reach),
            "eager": right("Eager latency", alignment="right"),
            "latency": right("Latency", alignment="right"),
            "break_even": right("Break-even", alignment="right"),
        },
        key="overview-table",
        alt="Every workload with its fastest strategy, speedup, history, latencies and break-even",
        on_select=_open_trend,
        values=list(table["workload"]),
    )
    elements.note("Choose a row for its trend.")


def _open_trend() -> None:
    workload = elements.picked_value("overview-table")
    if workload is not None:
        controls.go(Page.TRENDS, focus=workload)


def _build(view: View, seen: Seen) -> None:
    """What the newest build changed against the one before."""
    with elements.part("Newest build"):
        if seen.build_before is None or not view.link.build:
            elements.note(
                f"{view.choices.builds.get(view.link.build or '', '')}: the first build that these cases "
                "were measured with on this machine."
            )
            return
        builds = view.choices.build_rows
        changes = build_changes(builds[seen.build_before], builds[view.link.build])
        elements.note(f"Against {view.choices.builds[seen.build_before]}:")
        if changes:
            _changes(changes)
        else:
            elements.note("Only settings, packages or sources differ.")
        if confounded(changes):
            elements.note(
                "Several parts changed at once: a change in speed cannot be put down to one of them."
            )


def _changes(changes: Sequence[Change]) -> None:
    rows = [
        {"part": each.component, "before": each.before or units.MISSING, "after": each.after or units.MISSING}
        for each in changes
    ]
    st.dataframe(
        pd.DataFrame(rows),
        column_config={"part": "Part", "before": "Before", "after": "Now"},
        hide_index=True,
        key="overview-build",
        alt="Parts of the build that changed",
    )


def _beside(seen: Seen) -> None:
    """Everything that has no number, with its reason."""
    lines = [str(aside) for aside in seen.found] + list(seen.covered.missing)
    lines += [
        f"{name} is not applicable on this device: {reason}" for name, reason in seen.without_meaning.items()
    ]
    if lines:
        elements.listed("Beside the numbers", lines, icon=":material/report:")
        return
    with elements.part("Beside the numbers"):
        elements.note("Every case was measured, nothing failed, nothing is missing.")


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


def _by_strategy(table: pd.DataFrame) -> None:
    if table.empty:
        return
    st.markdown("#### Geometric mean speedup by strategy")
    elements.note(
        "Matched: only workloads that passed with every strategy of the task. Own set: each strategy over "
        "whatever it passed, which rises when slow cases fail."
    )
    right = st.column_config.TextColumn
    elements.table(
        table,
        {
            "task": "Task",
            "strategy": "Strategy",
            "matched": right("Matched set (cases)", alignment="right"),
            "naive": right("Own set (cases)", alignment="right"),
            "left_out": right("Left out of the matched set", width="large"),
        },
        key="overview-geomeans",
        alt="Geometric mean speedup per task and strategy, on the matched set and on each strategy's own set",
    )
