"""What the page Break-even is drawn from: curves and plan of one workload, and the steps of every one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any

import pandas as pd

from dashboard.charts import gaps, trend_rows, trends
from dashboard.charts.style import ChartContent, Spec
from dashboard.links.links import Link
from dashboard.pages.break_even import charts
from dashboard.parts import parts
from dashboard.parts.cases import (
    NO_CASE,
    case_facts,
    cases_of,
    floors_of,
    focus_of,
    of_cases,
    steps_words,
)
from dashboard.parts.parts import CASE_FACTS, LEFT_OUT, Chart, Column, Figure, Figures, PageContent, Part
from dashboard.read.data import filters_of, of_workload, read_cases, read_choices_on, read_points
from dashboard.read.shaping import asides, with_caches
from dashboard.read.snapshots import Snapshot, cached
from dashboard.text import theme
from db import units
from db.judge.compare.noise_floor import NoiseFloor
from db.metrics.break_even import NANOSECONDS_PER_HOUR
from db.metrics.case_modes import mode_options, with_strategies
from db.metrics.groups import row_dicts
from db.metrics.mode_choice import ModeOption, best_option, lower_envelope
from db.records.marks import bound_word
from db.records.strategies import EAGER, sort_key

# What a plan of steps per process and restarts per day costs, strategy by strategy, in words.

_PLAN = {
    "strategy": Column("Strategy", pinned=True),
    **parts.numbers(
        {
            "latency": "Latency",
            "eager": "Eager beside it",
            "steps": "Break-even",
            "interval": "95 % interval",
            "time": "Reached after",
            "money": "Money until then",
            "cost": "Compile cost",
            "day": "Time per day",
            "saved": "Saved per day",
            "saved_money": "Money saved",
        }
    ),
    **CASE_FACTS,
}

# Processes whose eager differs by more than this share are worth a warning.
_EAGER_SPREAD = 0.05

_COLUMNS = [
    *(
        "strategy",
        "latency_ns",
        "control_latency_ns",
        "break_even",
        "break_even_steps",
        "break_even_time_ns",
        "compile_cost_ns",
    ),
    *("break_even_interval", "break_even_low", "break_even_high"),
    *("bound", "counted_trials"),
]


def _figures(link: Link, options: list[ModeOption]) -> tuple[Part, ...]:
    """The strategy that is fastest overall, and what it costs and saves a day."""
    best = best_option(options, link.steps, link.restarts)
    total, eager = (each(link.steps, link.restarts) for each in (best.total, best.eager_total))
    saved = float((eager - total).value)
    steps = units.plural(link.steps, "step")
    each = f"{steps} per process"
    for_day = f"{units.plural(link.restarts + 1, 'process')} a day of {steps}, each compiling anew."
    saved_money = units.money(_money(saved, link.price))
    return (
        Figures(
            (
                Figure("Fastest overall", best.strategy, f"The lowest total time for {each}.", name=True),
                Figure("Total per day", units.duration(float(total.value)), for_day),
                Figure(
                    "Saved against eager per day",
                    units.duration(saved),
                    "Nothing where eager itself is the fastest.",
                ),
                Figure("Money saved per day", saved_money, "At the price of a device-hour."),
            ),
            width_px=190,
        ),
    )


def _words(link: Link, focus: str) -> str:
    """The plan in a sentence."""
    return (
        f"{focus}: {units.plural(link.restarts + 1, 'process')} a day of {units.plural(link.steps, 'step')} "
        f"each, at ${link.price:g} per device-hour. A negative saving is a loss."
    )


def _money(ns: float, price_per_hour: float) -> float:
    return ns / NANOSECONDS_PER_HOUR * price_per_hour


def _rows(
    link: Link, cases: pd.DataFrame, options: list[ModeOption], floors: Sequence[NoiseFloor]
) -> pd.DataFrame:
    """What the plan of the sliders costs per day, a row per strategy, in words."""
    by_name = {option.strategy: option for option in options}
    return pd.DataFrame(
        {**_row(case, by_name.get(case["strategy"]), link), **case_facts(case, floors)}
        for case in sorted(row_dicts(cases[_COLUMNS]), key=lambda case: sort_key(case["strategy"]))
    )


def _row(case: dict[str, Any], option: ModeOption | None, link: Link) -> dict[str, str]:
    total = float(option.total(link.steps, link.restarts).value) if option else None
    reference = case["strategy"] == EAGER.name
    saved = None
    if option is not None and total is not None and not reference:
        saved = float(option.eager_total(link.steps, link.restarts).value) - total
    reached = None if pd.isna(case["break_even_time_ns"]) else float(case["break_even_time_ns"])
    return {
        "strategy": case["strategy"],
        "latency": units.duration(case["latency_ns"]),
        "eager": units.MISSING if reference else units.duration(case["control_latency_ns"]),
        "steps": steps_words(case),
        "interval": _interval_words(case),
        "time": units.duration(reached),
        "money": units.MISSING if reached is None else units.money(_money(reached, link.price)),
        "cost": units.MISSING if reference else units.duration(case["compile_cost_ns"]),
        "day": units.duration(total),
        "saved": units.duration(saved),
        "saved_money": units.MISSING if saved is None else units.money(_money(saved, link.price)),
    }


def _eager_differs(options: Sequence[ModeOption]) -> tuple[Part, ...]:
    """A warning where eager took another time in one process than in another by more than `_EAGER_SPREAD`."""
    beside = [(float((option.eager_latency or option.latency).value), option) for option in options]
    if not beside:
        return ()
    (low, fast), (high, slow) = min(beside, key=itemgetter(0)), max(beside, key=itemgetter(0))
    if high / low - 1 <= _EAGER_SPREAD:
        return ()
    where = [
        f"{units.duration(value)} {'alone' if option.eager_latency is None else f'beside {option.strategy}'}"
        for value, option in ((low, fast), (high, slow))
    ]
    sentences = (
        f"Eager differs by {units.percent(high / low - 1)} between processes: {where[0]}, {where[1]}.",
        "Each strategy is set against the eager beside it. Totals of two strategies compare less well.",
    )
    return parts.notes(sentences, tone="warning", key="eager-differs")


def _interval_words(case: dict[str, Any]) -> str:
    """Its 95 % interval; an end that may never be reached is said so."""
    kind, low, high = case["break_even_interval"], case["break_even_low"], case["break_even_high"]
    if kind == "bounded":
        return units.interval(int(low), int(high), units.count)
    if kind == "open":
        return f"from {units.count(int(low))} to never"
    return units.NEVER if kind == "never" else units.MISSING


@cached
def workloads(snapshot: Snapshot, link: Link) -> tuple[list[str], frozenset[str]]:
    """The workloads to choose from, and the cache states that were measured."""
    cases, everything = cases_of(snapshot, link), read_cases(snapshot, filters_of(link))
    return sorted(set(cases["workload_label"])), frozenset(map(str, everything["cache"]))


@cached
def page(snapshot: Snapshot, link: Link) -> PageContent:
    """One workload: that in focus, else the first."""
    cases, floors = cases_of(snapshot, link), floors_of(snapshot, link.machine)
    if cases.empty:
        return of_cases((NO_CASE,), cases, link, floors)
    focus = focus_of(link, cases["workload_label"])
    mine = cases[cases["workload_label"] == focus]
    options, left_out = mode_options(mine)
    no_line = [f"{case.workload} with {case.strategy} has no line: {case.reason}" for case in left_out]
    reasons = dict.fromkeys([*_reasons(mine), *no_line, *map(str, asides(mine))])
    drawable = len(options) > 1
    shown = (
        *_eager_differs(options),
        *(_figures(link, options) if drawable else ()),
        _curves(link, mine, options if drawable else [], focus),
        *parts.table(
            "break-even-table",
            f"Break-even of every strategy on {focus} in steps, time and money, and the cost of a day",
            _rows(link, mine, options, floors),
            _PLAN,
            title="In steps, time and money",
            note=_words(link, focus),
        ),
        *parts.listed(LEFT_OUT, list(reasons)),
        *_history(snapshot, replace(link, focus=None), focus),
        *_every_workload(cases),
    )
    return of_cases(shown, cases, replace(link, focus=focus), floors)


def _curves(link: Link, cases: pd.DataFrame, options: list[ModeOption], focus: str) -> Part:
    """The chart of total time; without `options` the sentence why there is none."""
    finding = charts.finding(cases, focus)
    columns = (cases[name].tolist() for name in ("strategy", "break_even", "break_even_steps"))
    steps = {strategy: int(count) for strategy, kind, count in zip(*columns, strict=True) if kind == "steps"}
    chart = ChartContent(
        finding, notes=["No compiled case of this workload has both a speedup and a compile cost."]
    )
    if options:
        curves = charts.curves(options, steps, steps=link.steps, restarts=0, log=link.scale == "log")
        shown = tuple(theme.ordered(option.strategy for option in options))
        chart = ChartContent(
            finding,
            charts.spec(shown, curves.unit, link.scale, curves.last_step, (curves.least, curves.largest)),
            curves.frames,
            [*right_of_the_edge(curves, link.steps), _fastest(options)],
        )
    return Chart(
        "break-even-curves",
        f"Total time against steps per process on {focus}, one line per strategy, crossings marked",
        chart,
        "Total time of a process as measured: compile cost + steps x latency. From its mark on, a strategy "
        "is below the eager measured beside it. Band: 95 % interval, of eager all that was measured. The "
        "broad shade follows the fastest.",
    )


def right_of_the_edge(curves: charts.Curves, steps: int) -> list[str]:
    """What lies beyond the last step of the chart: crossings with eager, and the plan of `steps`."""
    notes = []
    if curves.beyond:
        notes.append(f"Crossing beyond the right edge: {', '.join(curves.beyond)}. The log scale shows it.")
    if steps > curves.last_step:
        later = [f"{name} ({units.steps(at)})" for name, at in curves.beyond.items() if at > steps]
        passed = f"every crossing with eager{' that is drawn' if later else ''} is passed by then"
        rest = f", not yet that of {', '.join(later)}" if later else ""
        notes.append(f"{units.steps(steps)} lie beyond the right edge; {passed}{rest}.")
    return notes


def _fastest(options: list[ModeOption]) -> str:
    segments = []
    for part in lower_envelope(options):
        until = "on" if part.last_steps is None else f"to {part.last_steps:,}"
        segments.append(f"{part.strategy} from {part.first_steps:,} {until}")
    return f"Fastest by steps per process: {'; '.join(segments)}."


def _reasons(cases: pd.DataFrame) -> list[str]:
    """Why a case has no break-even."""
    return [
        f"{case['workload_label']} with {case['strategy']}: break-even is {case['break_even']}, "
        f"{case['break_even_reason']}"
        for case in row_dicts(cases[["workload_label", "strategy", "break_even", "break_even_reason"]])
        if case["strategy"] != EAGER.name and case["break_even"] != "steps"
    ]


def _every_workload(cases: pd.DataFrame) -> tuple[Part, ...]:
    """Break-even in words, a row per workload and a column per strategy; nothing for a single workload."""
    rows: dict[str, dict[str, str]] = {}
    compiled = cases[cases["strategy"] != EAGER.name]
    needed = ["workload_label", "strategy", "break_even", "break_even_steps", "bound", "counted_trials"]
    for case in row_dicts(compiled[needed]):
        trials = f"n={units.count(case['counted_trials'])}"
        words = ", ".join(filter(None, (steps_words(case), bound_word(case["bound"]), trials)))
        rows.setdefault(case["workload_label"], {"workload": case["workload_label"]})[case["strategy"]] = (
            words
        )
    if len(rows) < 2:
        return ()
    return parts.table(
        "break-even-all",
        "Break-even steps of every workload with every strategy",
        pd.DataFrame([rows[name] for name in sorted(rows)]),
        {"workload": Column("Workload", pinned=True), **_by_strategy(compiled["strategy"])},
        title="Break-even of every workload",
    )


def _by_strategy(strategies: Iterable[str]) -> dict[str, Column]:
    return parts.numbers({name: name for name in theme.ordered(strategies)})


# Break-even of a workload from build to build: a row per build, and the chart of what is a number.

_METRIC = "break_even"
MOST_BUILDS = 100
_HISTORY_COLUMNS = ["workload_label", "cache", "break_even"]


@cached
def _history(snapshot: Snapshot, link: Link, focus: str) -> tuple[Part, ...]:
    """Of the newest `MOST_BUILDS` a row each, newest first, and the chart; nothing of a single build."""
    filters = filters_of(replace(link, build=None))
    everything = read_points(snapshot, of_workload(snapshot, filters, focus), "build")
    points = everything[[*_HISTORY_COLUMNS, *trend_rows.needed(_METRIC)]]
    points = points[(points["workload_label"] == focus) & (points["strategy"] != EAGER.name)]
    points = with_caches(with_strategies(points, link.strategy), link.cache)
    names = read_choices_on(snapshot, link.machine).builds
    with_points = set(points["build_id"])
    measured = [key for key in names if key in with_points]
    if len(measured) < 2:
        return ()
    newest = measured[-MOST_BUILDS:]
    points = points[points["build_id"].isin(newest)]
    strategies = theme.ordered(points["strategy"])
    cells: dict[str, dict[str, str]] = {name: {"build": name} for name in map(names.__getitem__, newest)}
    for point in row_dicts(points[["build_id", "strategy", "break_even", "break_even_steps"]]):
        cells[names[point["build_id"]]][point["strategy"]] = steps_words(point)
    table = pd.DataFrame(list(cells.values())[::-1], columns=["build", *strategies])
    ordered = trend_rows.in_order(points, "torch", list(names))
    rows = trend_rows.frame(ordered, _METRIC, names)
    drawn = rows["build"].nunique() > 1
    every = units.plural(len(measured), "build")
    older = f"The newest {MOST_BUILDS} of {every}." if len(measured) > MOST_BUILDS else ""
    notes = [older, trend_rows.older_points(ordered, rows, "torch")]
    notes += [gaps.sentence(ordered, _METRIC, names)] if drawn else []
    chart = ChartContent(
        _history_finding(table, focus),
        _spec(rows, tuple(cells), link) if drawn else None,
        {"main": rows, "events": rows.iloc[:0]},
        list(filter(None, notes)),
    )
    return (
        Chart(
            "break-even-history",
            f"Break-even of {focus} over builds, one line per strategy",
            chart,
            "Steps until compiling has paid off, build by build. Band: 95 % interval.",
        ),
        *parts.table(
            "break-even-history-table",
            f"Break-even of {focus} with every build, never and unknown included",
            table,
            {"build": Column("Build", pinned=True), **_by_strategy(strategies)},
            title=f"Break-even of {focus} with every build",
        ),
    )


def _spec(rows: pd.DataFrame, builds: tuple[str, ...], link: Link) -> Spec:
    return trends.spec(
        _METRIC,
        axis="torch",
        scale=link.scale,
        strategies=tuple(theme.ordered(rows["strategy"])),
        builds=builds,
        shown=trend_rows.window(rows),
    )


def _history_finding(table: pd.DataFrame, focus: str) -> str:
    """How the first strategy whose words changed moved between the last two builds, where there are two."""
    for strategy in table.columns[1:] if len(table) > 1 else ():
        new, old = table[strategy].iloc[:2]
        if isinstance(old, str) and isinstance(new, str) and old != new:
            return f"{strategy} on {focus}: break-even {old} before, {new} with {table['build'].iloc[0]}"
    return f"Break-even on {focus} is as it was before {table['build'].iloc[0]}" if len(table) else ""
