"""Overview: is all well? Headline speedups, coverage, the newest build's changes, a row per workload."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pandas as pd
import streamlit as st

from dashboard import headline, shaping, theme
from dashboard.charts import speedups
from dashboard.data import filters_of, plain, read_cases, read_points
from dashboard.links import Link, Page
from dashboard.shaping import Aside, asides, build_changes, confounded, not_applicable
from dashboard.views import controls, elements
from dashboard.views.shell import View, moment
from db import units

# A smaller change is drawn in grey: it is less than what a verdict would ask for.
NOTABLE = 0.02


@dataclass(frozen=True)
class Seen:
    """What the page is drawn from: cases of this build and of the one before, and the machine's every run."""

    now: pd.DataFrame
    before: pd.DataFrame
    points: pd.DataFrame
    build_before: str | None


def draw(view: View) -> Link:
    seen = _read(view)
    if seen.now.empty:
        elements.nothing_to_show("No case fits these filters.", next_step="Widen them in the sidebar.")
        return view.link
    found = asides(seen.now)
    covered = headline.coverage(seen.now, seen.before)
    _cards(view, seen, found, covered)
    _main_chart(seen.now)
    _workloads(seen)
    left, right = st.columns(2)
    with left:
        _build(view, seen)
    with right:
        _beside(seen, found, covered)
    _by_strategy(seen.now)
    return view.link


def _read(view: View) -> Seen:
    now = read_cases(view.snapshot, filters_of(view.link))
    points = read_points(view.snapshot, filters_of(replace(view.link, build=None)))
    older = headline.build_before(points, view.link.build) if view.link.build else None
    before = read_cases(view.snapshot, filters_of(replace(view.link, build=older))) if older else now.iloc[:0]
    return Seen(now, before, points, older)


def _cards(view: View, seen: Seen, found: list[Aside], covered: headline.Coverage) -> None:
    builds = view.names["build"]
    compared_to = _compared_to(view, seen)
    with st.grid(5, min_column_width=165):
        for item in headline.headlines(seen.now, seen.before, seen.points):
            change = item.change
            st.metric(
                f"{item.task.value.capitalize()} speedup",
                units.ratio(item.now),
                None if change is None else 0 if abs(change) < 0.0005 else units.percent(change, signed=True),
                delta_color="off" if change is None or abs(change) < NOTABLE else "normal",
                delta_description=plain(compared_to) if change is not None and compared_to else None,
                border=True,
                height="stretch",
                help=plain(
                    f"Geometric mean of {item.strategy} over the {item.cases} cases of the matched set: "
                    "those that passed with this build and the one before."
                ),
                chart_data=list(item.history) if len(item.history) > 1 else None,
            )
        last = seen.now["last_started_at"].max()
        st.metric(
            "Cases compared",
            f"{covered.compared} of {covered.wanted}",
            border=True,
            height="stretch",
            help="Compiled cases with a speedup, out of those measured with this build or the one before.",
            delta=moment(last),
            delta_color="off",
            delta_arrow="off",
        )
        failing = sum(1 for aside in found if "failed" in aside.reason)
        st.metric(
            "Failing cases",
            units.count(failing),
            border=True,
            height="stretch",
            help="Cases with at least one failed trial. Each is listed below with its reason.",
            delta="all passed" if not failing else "see below",
            delta_color="off",
            delta_arrow="off",
        )
    machine, build = view.names["machine"][view.link.machine or ""], builds.get(view.link.build or "", "")
    elements.note(
        f"Compared {covered.compared} of {covered.wanted} cases, last run {moment(last)} on {machine}, "
        f"{build}."
    )


def _compared_to(view: View, seen: Seen) -> str | None:
    """The build before, by its torch alone where that tells it from this one."""
    if seen.build_before is None:
        return None
    torch = dict(zip(view.facets.builds["build_id"], view.facets.builds["torch"], strict=True))
    if torch[seen.build_before] != torch.get(view.link.build):
        return f"vs torch {torch[seen.build_before]}"
    return f"vs {view.names['build'][seen.build_before]}"


def _main_chart(cases: pd.DataFrame) -> None:
    rows = speedups.frame(cases)
    with st.container(border=True):
        elements.finding(
            speedups.finding(rows),
            "Each point is a case, its bar the 95 % interval. The dotted line is eager.",
        )
        if rows.empty:
            elements.nothing_to_show("Only eager was measured with this build.")
            return
        means = rows.groupby("workload")["speedup"].max().sort_values(ascending=False)
        elements.chart(
            speedups.spec(tuple(means.index), tuple(theme.ordered(rows["strategy"]))),
            {"main": rows, "eager": pd.DataFrame({"speedup": [1.0]})},
            key="overview-speedups",
            alt="Speedup over eager of every compiled case with its interval",
        )


def _workloads(seen: Seen) -> None:
    """A row per workload: eager, the fastest strategy, its history."""
    rows = []
    for label, group in seen.now.groupby("workload_label", sort=True):
        compiled = group[(group["strategy"] != "eager") & group["speedup"].notna()]
        best = compiled.sort_values("speedup").iloc[-1] if len(compiled) else None
        rows.append({"workload": label, "task": group["task"].iloc[0], **_best_columns(seen, group, best)})
    table = pd.DataFrame(rows)
    st.session_state["overview-rows"] = list(table["workload"])
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
            "history": st.column_config.LineChartColumn("Its speedup, run by run", width="medium"),
            "eager": right("Eager latency", alignment="right"),
            "latency": right("Latency", alignment="right"),
            "break_even": right("Break-even", alignment="right"),
        },
        key="overview-table",
        alt="Every workload with its fastest strategy, speedup, history, latencies and break-even",
        on_select=_open_trend,
    )
    elements.note("Choose a row for its trend.")


def _best_columns(seen: Seen, group: pd.DataFrame, best: pd.Series | None) -> dict[str, object]:
    failed = int((group["failed_trials"] > 0).sum())
    state = "ok" if not failed else f"{failed} failing"
    eager = group.loc[group["strategy"] == "eager", "latency_ns"].median()
    if best is None:
        return {
            "state": state if failed else "eager only",
            "strategy": units.MISSING,
            "speedup": units.MISSING,
            "interval": units.MISSING,
            "history": [],
            "eager": units.duration(eager),
            "latency": units.MISSING,
            "break_even": units.MISSING,
        }
    mine = seen.points[
        (seen.points["workload_id"] == best["workload_id"])
        & (seen.points["strategy_id"] == best["strategy_id"])
    ]
    return {
        "state": state,
        "strategy": best["strategy"],
        "speedup": units.ratio(best["speedup"]),
        "interval": units.interval(best["speedup_low"], best["speedup_high"], units.ratio),
        "history": [float(value) for value in mine["speedup"].dropna().tail(60)],
        "eager": units.duration(best["control_latency_ns"] if pd.isna(eager) else eager),
        "latency": units.duration(best["latency_ns"]),
        "break_even": units.steps(
            int(best["break_even_steps"]) if best["break_even"] == "steps" else str(best["break_even"])
        ),
    }


def _open_trend() -> None:
    row = elements.picked_row("overview-table")
    names = st.session_state.get("overview-rows", [])
    if row is not None and row < len(names):
        controls.go(Page.TRENDS, focus=names[row])


def _build(view: View, seen: Seen) -> None:
    """What the newest build changed against the one before."""
    with st.container(border=True):
        st.markdown("#### Newest build")
        if seen.build_before is None or not view.link.build:
            elements.note(
                f"{view.names['build'].get(view.link.build or '', '')}: the first build that these cases "
                "were measured with on this machine."
            )
            return
        builds = {row["build_id"]: row for row in shaping.row_dicts(view.facets.builds)}
        changes = build_changes(builds[seen.build_before], builds[view.link.build])
        elements.note(f"Against {view.names['build'][seen.build_before]}:")
        if not changes:
            elements.note("Only settings, packages or sources differ.")
        else:
            st.dataframe(
                pd.DataFrame(
                    [
                        {
                            "part": c.component,
                            "before": c.before or units.MISSING,
                            "after": c.after or units.MISSING,
                        }
                        for c in changes
                    ]
                ),
                column_config={"part": "Part", "before": "Before", "after": "Now"},
                hide_index=True,
                key="overview-build",
                alt="Parts of the build that changed",
            )
        if confounded(changes):
            elements.note(
                "Several parts changed at once: a change in speed cannot be put down to one of them."
            )


def _beside(seen: Seen, found: list[Aside], covered: headline.Coverage) -> None:
    """Everything that has no number, with its reason."""
    lines = [str(aside) for aside in found] + list(covered.missing)
    lines += [
        f"{name} is not applicable on this device: {reason}"
        for name, reason in not_applicable(seen.now, set()).items()
    ]
    if lines:
        elements.listed("Beside the numbers", lines, icon=":material/report:")
        return
    with st.container(border=True):
        st.markdown("#### Beside the numbers")
        elements.note("Every case was measured, nothing failed, nothing is missing.")


def _by_strategy(cases: pd.DataFrame) -> None:
    means = headline.by_strategy(cases)
    if means.empty:
        return
    st.markdown("#### Geometric mean speedup by strategy")
    elements.note(
        "Matched: only workloads that passed with every strategy of the task. Own set: each strategy over "
        "whatever it passed, which rises when slow cases fail."
    )
    table = means.assign(
        matched=[
            f"{units.ratio(mean)} ({units.count(n)})" if n else units.MISSING
            for mean, n in zip(means["matched"], means["matched_cases"], strict=True)
        ],
        naive=[
            f"{units.ratio(mean)} ({units.count(n)})" if n else units.MISSING
            for mean, n in zip(means["naive"], means["naive_cases"], strict=True)
        ],
        left_out=means["left_out"].replace({"": "nobody"}),
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
