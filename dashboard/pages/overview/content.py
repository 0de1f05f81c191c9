"""What the Overview says: whether all is well with a build, its slowest cases, failures, every workload."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import compress
from typing import Any

import numpy as np
import pandas as pd

from dashboard.charts import sparklines
from dashboard.charts.style import ChartContent
from dashboard.links.links import Link, Page
from dashboard.pages.overview import charts, components, headline
from dashboard.parts import parts
from dashboard.parts.cases import (
    BREAK_EVEN,
    CASE,
    NO_CASE,
    NO_DIFFERENCE,
    RATES,
    RATES_OF,
    SPEEDUP_INTERVAL,
    case_facts,
    floors_of,
    of_cases,
    rates,
    repayment,
    speedup_interval,
)
from dashboard.parts.parts import (
    CASE_FACTS,
    LEFT_OUT,
    Chart,
    Figure,
    Figures,
    Group,
    Lines,
    PageContent,
    Part,
    Table,
    TableColumn,
)
from dashboard.read.data import (
    filters_of,
    read_cases,
    read_choices_on,
    read_pair,
    read_points,
    read_profiled,
    read_regressions,
    read_steps,
    read_trial,
    read_trials,
    recent,
)
from dashboard.read.shaping import asides, build_changes, confounded, not_applicable
from dashboard.read.versions import cached
from dashboard.text import theme
from dashboard.text.glossary import explained
from dashboard.verdicts import inbox, whole
from dashboard.verdicts.pair import with_builds
from db import units
from db.cause.numerics import numerics_sentence
from db.cause.trials import step_times, why
from db.judge.compare.sides import VerdictError
from db.judge.results import Comparison, Row, Tally
from db.judge.statistics.noise_floor import NoiseFloor
from db.judge.words.verdicts import row_verdict
from db.metrics.case_modes import fastest
from db.metrics.groups import floats, row_dicts
from db.queries.filters import Filters
from db.queries.people.regressions import RegressionState
from db.records.people.triage import OPEN_STATES, TriageState
from db.records.strategies import EAGER
from db.records.trial import NumericsStatus
from db.records.vocabulary import Metric, Verdict
from db.verdicts.noise_words import floor_sentence

HISTORY = 60
"""How many runs the history of a row shows."""
_SLOWEST = 5
_MOST_ERRORS = 8
_MOST_LINES_OPEN = 4
_NO_BOUND = "Host- or device-bound is unknown: these trials have no gated times."
_LEAST_CHANGE = 5e-4
"""A smaller change is said to be none."""
_NOTABLE = 0.02
"""A smaller change has no colour: it is less than what a verdict asks for."""
_OF_CASES = [
    *("workload_id", "workload_label", "task", "strategy_id", "strategy", "strategy_kind"),
    *("cache", "failed_trials"),
    *("latency_ns", "control_latency_ns", "speedup", "speedup_low", "speedup_high"),
    *("break_even", "break_even_steps", "counted_trials", "first_look", "bound"),
    *RATES_OF,
]
_TIMES = {
    "speedup": TableColumn("Speedup", numeric=True, unit="ratio", explained="Eager over compiled."),
    "interval": SPEEDUP_INTERVAL,
    **parts.quantities("ns", {"latency": "Compiled", "eager": "Eager beside it"}),
}
_WORKLOADS = {
    "workload": parts.WORKLOAD,
    "speedup": _TIMES["speedup"],
    "change": TableColumn(
        "Since base", numeric=True, unit="change", explained="Of latency, of its case that changed most."
    ),
    "fastest": TableColumn(
        "Fastest strategy", explained="Whose interval clears all others, eager among them."
    ),
    "verdict": TableColumn("Verdict", explained=explained("verdict", "suspected")),
    **parts.hidden(
        {
            "state": TableColumn("State"),
            "task": TableColumn("Task"),
            "strategy": TableColumn("Fastest compiled"),
            **RATES,
            **{name: _TIMES[name] for name in ("interval", "latency", "eager")},
            **BREAK_EVEN,
            **CASE_FACTS,
        }
    ),
}
_SLOW = {**CASE, **_TIMES, **parts.hidden(RATES | CASE_FACTS)}


@dataclass(frozen=True)
class _Overview:
    """What the page rests on: the cases `now`, those of the build `before`, and the verdict between both."""

    now: pd.DataFrame
    before: pd.DataFrame
    points: pd.DataFrame
    build: str
    since: str | None
    base: str | None
    comparison: Comparison | None
    regressions: list[RegressionState]
    any_recorded: bool


def page(link: Link, now: datetime | None = None) -> PageContent:
    """What the page shows of one build on one machine at the moment `now`."""
    content = _page(link)
    sure = _basis(link, now or datetime.now(UTC)) if content.builds else ()
    return replace(content, parts=(*content.parts, *parts.how_sure(*sure)))


@cached
def _page(link: Link) -> PageContent:
    overview = _overview(link)
    if overview is None:
        return PageContent((NO_CASE,), link)
    shown = asides(overview.now)
    covered = headline.coverage(overview.now, overview.before)
    failing = sum(1 for aside in shown if "failed" in aside.reason)
    tally = overview.comparison.tally if overview.comparison else Tally()
    sentence = whole.headline(
        tally,
        failing=failing,
        regressions=len(overview.regressions),
        build=overview.build,
        since=overview.since,
    )
    counted = whole.tally_sentence(tally, failing=failing, regressions=len(overview.regressions))
    means = headline.headlines(overview.now, overview.before)
    floors = floors_of(link.machine)
    workloads, reach = _workloads(overview, floors)
    errors = _errors(link, overview.now)
    without_number = [*(f"{aside}{errors.get((aside.workload, aside.strategy), '')}" for aside in shown)]
    without_number += covered.missing
    return of_cases(
        (
            sentence,
            Lines((counted,), key="tally"),
            Table(
                "overview-table",
                "Every workload with its fastest strategy, its speedup, its change and its history",
                workloads,
                _WORKLOADS | {"history": TableColumn("Speedup, run by run", kind="history", reach=reach)},
            ),
            _figures(overview, means, tally, covered, failing),
            *parts.listed(
                units.plural(len(overview.regressions), "open regression"),
                inbox.first_names(overview.regressions, inbox.line),
                key="overview-regressions",
            ),
            *_left_out(without_number),
            _speedups(charts.frame(overview.now)),
            *_slowest(link, overview.now),
            *_changes(link, overview),
            *components.components(link),
            *headline.strategy_means(overview.now),
        ),
        overview.now,
        link,
        floors,
    )


@cached
def _overview(link: Link) -> _Overview | None:
    """None where no case fits the filters."""
    now = read_cases(filters_of(link))
    if now.empty:
        return None
    everything = replace(link, build=None)
    names = read_choices_on(link.machine).builds
    lately = recent(filters_of(everything), up_to=link.build)
    points = read_points(lately, columns=("speedup",))
    pair = with_builds(replace(everything, page=Page.UPGRADE, base=None, head=link.build))
    comparison = _comparison(pair)
    base = pair.base if comparison is not None and comparison.matched else None
    recorded = read_regressions()
    like = Link(page=Page.REGRESSIONS, machine=link.machine, task=link.task, workload=link.workload)
    return _Overview(
        now=now,
        before=read_cases(filters_of(replace(link, build=base))) if base else now.iloc[:0],
        points=points,
        build=names.get(link.build or "", ""),
        since=names[base] if base else None,
        base=base,
        comparison=comparison,
        regressions=[each for each in inbox.chosen(recorded, like) if each.state in OPEN_STATES],
        any_recorded=bool(recorded),
    )


def _comparison(pair: Link) -> Comparison | None:
    """The verdict that the page Upgrade has on the two builds of `pair`; None where there are no two."""
    if not (pair.base and pair.head):
        return None
    try:
        return read_pair(pair)
    except VerdictError:
        return None


def _left_out(lines: Sequence[str]) -> tuple[Part, ...]:
    """Cases without a number: a few as a list, many folded."""
    if len(lines) <= _MOST_LINES_OPEN:
        return parts.listed(LEFT_OUT, lines)
    title = f"{LEFT_OUT} ({units.count(len(lines))})"
    return (Group(((Lines(tuple(lines)),),), title, folded=True, key="left-out"),)


def _basis(link: Link, now: datetime) -> tuple[Lines, ...]:
    overview = _overview(link)
    if overview is None:
        return ()
    left_out = overview.comparison.left_out if overview.comparison else ()
    floor = floor_sentence(floors_of(link.machine))
    newest = overview.now["last_started_at"].max()
    names = [f"{case.workload} with {case.strategy}" for case in left_out]
    sentences = whole.basis(newest, now, noise_floor=floor, left_out=names, since=overview.since)
    gpu = overview.now["device"].iloc[0] != "cpu"
    unbound = (_NO_BOUND,) if gpu and overview.now["bound"].isna().all() else ()
    steps = read_steps(str(link.machine), Filters(workloads=link.workload))
    idle = [
        f"{name} is not applicable on this device: {reason}."
        for name, reason in not_applicable(overview.now, set()).items()
    ]
    return parts.notes((*sentences, *unbound, steps, *idle), key="basis")


# The figures under the verdict.


def _figures(
    overview: _Overview,
    means: Sequence[headline.TaskMean],
    tally: Tally,
    covered: headline.Coverage,
    failing: int,
) -> Figures:
    return Figures(
        (
            Figure(
                "Cases slower",
                f"{units.count(tally.slower)} of {units.count(tally.compared)}"
                if tally.compared
                else units.MISSING,
                "In any metric, against the build named above. Upgrade has each of them.",
                f"{units.count(tally.undecided)} undecided" if tally.compared else "not compared",
                "bad" if tally.slower else "",
            ),
            Figure(
                "Failing cases",
                units.count(failing),
                "Cases with at least one failed trial. Each is listed with its reason.",
                "see the list" if failing else "all passed",
                "bad" if failing else "",
            ),
            Figure(
                "Open regressions",
                units.count(len(overview.regressions)),
                "Recorded on this machine after a run or by a gate, and closed by nobody.",
                _owners(overview.regressions, any_recorded=overview.any_recorded),
                "bad" if overview.regressions else "",
            ),
            *(_mean(each, overview.since) for each in means),
            Figure(
                "Cases measured",
                f"{covered.compared} of {covered.wanted}",
                "Compiled cases with a speedup, out of those measured with this build or the one before.",
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
        f"{item.task.value.capitalize()} speedup",
        units.ratio(item.now),
        f"Geometric mean over {over}, each with its fastest strategy, eager among them.{explained}",
        beside,
        "" if change is None or abs(change) < _NOTABLE else "good" if change > 0 else "bad",
    )


def _owners(regressions: Sequence[RegressionState], *, any_recorded: bool) -> str:
    if not regressions:
        return "all are closed" if any_recorded else "none ever recorded"
    waiting = sum(each.state is not TriageState.ACKNOWLEDGED for each in regressions)
    return f"{units.count(waiting)} without owner" if waiting else "all have an owner"


def _errors(link: Link, cases: pd.DataFrame) -> dict[tuple[str, str], str]:
    """Of cases with a wrong result, by label and strategy, how wrong the newest one is, as a sentence."""
    wrong = cases[cases["numerics_status"] == NumericsStatus.FAIL.value].head(_MOST_ERRORS)
    errors = {}
    for case in row_dicts(wrong[["workload_label", "strategy", "workload_id", "strategy_id", "workload"]]):
        filters = replace(filters_of(link), workloads=(case["workload"],), strategies=(case["strategy"],))
        trials = read_trials(filters)
        mine = trials[
            (trials["workload_id"] == case["workload_id"])
            & (trials["numerics_status"] == NumericsStatus.FAIL.value)
        ]
        numerics = read_trial(str(mine["trial_id"].iloc[-1])).numerics if len(mine) else None
        sentence = numerics_sentence(numerics) if numerics else ""
        if sentence:
            errors[case["workload_label"], case["strategy"]] = f". {sentence[0].upper()}{sentence[1:]}."
    return errors


# Cases that are slower than eager, and every workload as a row.


def _slowest(link: Link, cases: pd.DataFrame) -> tuple[Part, ...]:
    """Compiled cases with a speedup below 1, the slowest first, each with the reason that is known."""
    compiled = [case for case in row_dicts(cases[_OF_CASES]) if _is_compiled(case) and case["speedup"] < 1]
    shown = sorted(compiled, key=lambda case: float(case["speedup"]))[:_SLOWEST]
    keys = tuple((case["workload_id"], case["strategy_id"]) for case in shown)
    profiled = read_profiled(str(link.machine), keys)
    floors = floors_of(link.machine)
    reasons = [
        f"{case['workload_label']} with {case['strategy']}: {_reason(profiled[key])}"
        for case, key in zip(shown, keys, strict=True)
        if key in profiled
    ]
    rows = pd.DataFrame(
        [
            {
                "workload": case["workload_label"],
                "strategy": case["strategy"],
                **_time_cells(case, floors),
                "trial": profiled.get(key),
            }
            for case, key in zip(shown, keys, strict=True)
        ]
    )
    notes = [f"The {_SLOWEST} slowest of {len(compiled)}."] if len(compiled) > _SLOWEST else []
    if len(reasons) < len(shown):
        notes.append("compilewatch run --profile tells why.")
    title = f"{units.plural(len(compiled), 'case')} with a speedup below 1"
    alt = "Compiled cases with a speedup below 1, with latencies and speedup"
    return (
        *parts.table("overview-slowest", alt, rows, _SLOW, title=title, note=" ".join(notes)),
        *parts.listed("Why they are slower", reasons),
    )


def _reason(trial_id: str) -> str:
    trial = read_trial(trial_id)
    return why(trial.profile, step_times(trial)) if trial.profile else ""


def _is_compiled(case: Mapping[str, Any]) -> bool:
    return bool(case["strategy"] != EAGER.name and not pd.isna(case["speedup"]))


def _time_cells(case: Mapping[str, Any], floors: Sequence[NoiseFloor]) -> dict[str, Any]:
    return {
        "eager": case["control_latency_ns"],
        "latency": case["latency_ns"],
        **rates(case),
        "speedup": case["speedup"],
        "interval": speedup_interval(case),
        **case_facts(case, floors),
    }


def _workloads(overview: _Overview, floors: Sequence[NoiseFloor]) -> tuple[pd.DataFrame, float]:
    """Every workload as a row, what got worse first, and how far its histories reach from 1."""
    rows = workload_rows(overview.now, overview.points, floors, overview.comparison)
    histories, reach = sparklines.relative(rows["history"])
    return rows.assign(history=histories), reach


def workload_rows(
    cases: pd.DataFrame,
    points: pd.DataFrame,
    floors: Sequence[NoiseFloor] = (),
    comparison: Comparison | None = None,
) -> pd.DataFrame:
    """One row per workload of `cases`; `points` are the runs from which the history comes, `comparison` has
    what changed since the base.
    """
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
    changes = _largest_changes(comparison)
    order = list(changes)
    labels = sorted(by_workload, key=lambda label: _place(by_workload[label][0]["workload_id"], order))
    return pd.DataFrame([_row(label, by_workload[label], history, floors, changes) for label in labels])


def _place(workload_id: str, order: Sequence[str]) -> int:
    return order.index(workload_id) if workload_id in order else len(order)


def _largest_changes(comparison: Comparison | None) -> dict[str, Row]:
    """By workload the latency of the case that got worst, else of that which changed most; so ordered."""
    rows = [row for row in comparison.rows if row.metric is Metric.LATENCY] if comparison else []
    changes: dict[str, Row] = {}
    for row in sorted(rows, key=lambda row: (row.verdict is not Verdict.REGRESSED, -abs(row.change or 0.0))):
        changes.setdefault(row.case.workload_id, row)
    return changes


def _row(
    label: str,
    cases: list[dict[str, Any]],
    history: dict[tuple[Any, ...], list[float]],
    floors: Sequence[NoiseFloor],
    changes: Mapping[str, Row],
) -> dict[str, Any]:
    failing = sum(1 for case in cases if case["failed_trials"] > 0)
    compiled = list(filter(_is_compiled, cases))
    changed = changes.get(cases[0]["workload_id"])
    row: dict[str, Any] = {
        "workload": label,
        "task": cases[0]["task"],
        "change": changed.change if changed else None,
        "verdict": f"{row_verdict(changed)}, {changed.strategy}" if changed else units.MISSING,
    }
    if not compiled:
        eager = next((case for case in cases if case["strategy"] == EAGER.name), None)
        return row | {
            "state": f"{failing} failing" if failing else "eager only",
            "fastest": EAGER.name,
            **dict.fromkeys(("strategy", "pays_off"), units.MISSING),
            **dict.fromkeys(("latency", "speedup", "interval", "steps")),
            "eager": eager["latency_ns"] if eager else None,
            **(rates(eager) | {"rate": None, "eager_rate": eager["throughput_per_s"]} if eager else {}),
            **case_facts(eager or {**cases[0], "counted_trials": None}, floors),
            "history": [],
        }
    found = fastest(cases)
    best = found.case or max(compiled, key=lambda case: float(case["speedup"]))
    # Of the case whose change the row tells: the fastest may be measured for the first time.
    of_change = history.get(changed.case.ids) if changed else None
    return row | {
        "state": f"{failing} failing" if failing else "ok",
        "fastest": NO_DIFFERENCE if found.rivals else found.strategy,
        "strategy": best["strategy"],
        **_time_cells(best, floors),
        **repayment(best),
        "history": (of_change or history.get((best["workload_id"], best["strategy_id"]), []))[-HISTORY:],
    }


def _speedups(rows: pd.DataFrame) -> Chart:
    finding = charts.finding(rows)
    chart = ChartContent(finding, notes=["Only eager was measured with this build."])
    if not rows.empty:
        fastest_first = rows.groupby("workload")["speedup"].max().sort_values(ascending=False).index
        looks = tuple(sorted(set(rows["first_look"].astype(bool))))
        spec = charts.spec(tuple(fastest_first), tuple(theme.ordered(rows["strategy"])), looks)
        chart = ChartContent(finding, spec, {"main": rows, "eager": pd.DataFrame({"speedup": [1.0]})})
    return Chart(
        "overview-speedups",
        "Speedup over eager of every compiled case with its interval",
        chart,
        explained="A point is a case, its bar the 95 % interval. The dotted line is eager.",
    )


# The builds: what this one changed, and which others the machine has.


def _changes(link: Link, overview: _Overview) -> tuple[Part, ...]:
    if overview.base is None or link.build is None:
        return parts.notes([f"No build that {overview.build} can be compared with was measured here."])
    rows = read_choices_on(link.machine).build_rows
    changes = build_changes(rows[overview.base], rows[link.build])
    title = f"What changed since {overview.since}"
    if not changes:
        return (Lines(("Only settings, packages or sources differ.",), title),)
    frame = pd.DataFrame(
        [(each.component, each.before or units.MISSING, each.after or units.MISSING) for each in changes],
        columns=["part", "before", "after"],
    )
    note = (
        "Several parts changed at once, so their effects cannot be told apart." if confounded(changes) else ""
    )
    columns = parts.texts({"part": "Part", "before": "Before", "after": "Now"})
    alt = "Parts of the build that changed"
    return parts.table("overview-build", alt, frame, columns, title=title, note=note)
