"""What the page Break-even is drawn from: curves and plan of one workload, and the steps of every one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from dashboard.charts import gaps, trend_rows, trends
from dashboard.charts.style import ChartContent, Spec
from dashboard.links.links import Link
from dashboard.parts import parts
from dashboard.parts.break_even import curves_chart
from dashboard.parts.cases import (
    BREAK_EVEN,
    FIRST_LOOK,
    NO_CASE,
    RATES,
    RATES_OF,
    case_facts,
    cases_of,
    floors_of,
    of_cases,
    rates,
    repayment,
    steps_words,
)
from dashboard.parts.parts import (
    CASE_FACTS,
    LEFT_OUT,
    Chart,
    Figure,
    Figures,
    PageContent,
    PageHeadline,
    Part,
    TableColumn,
)
from dashboard.read.data import filters_of, of_workload, read_cases, read_choices_on, read_points
from dashboard.read.shaping import asides, with_caches
from dashboard.read.versions import cached
from dashboard.text import theme
from dashboard.verdicts.pair import focus_on
from db import units
from db.judge.statistics.noise_floor import NoiseFloor
from db.metrics.break_even import NANOSECONDS_PER_HOUR
from db.metrics.case_modes import mode_options, with_strategies
from db.metrics.groups import row_dicts
from db.metrics.mode_choice import Choice, ModeOption, choose
from db.records.marks import bound_word
from db.records.strategies import EAGER, sort_key
from db.records.versions import version_key

# What a plan of steps per process and restarts per day costs, strategy by strategy, in words.

_PLAN = {
    "strategy": TableColumn("Strategy", pinned=True),
    **BREAK_EVEN,
    "interval": TableColumn("95 % interval", "interval", numeric=True, unit="steps"),
    **parts.quantities(
        "ns", {"cost": "Compile cost", "day": "Time per day", "against": "Against eager per day"}
    ),
    **parts.hidden(
        {
            "step": TableColumn(
                "Step", numeric=True, unit="ns", explained="Eager of all processes over this speedup."
            ),
            **RATES,
            **parts.quantities("ratio", {"speedup": "Speedup"}),
            **parts.quantities("ns", {"time": "Reached after"}),
            **parts.quantities(
                "money", {"money": "Money until then", "against_money": "Money against eager"}
            ),
            **CASE_FACTS,
        }
    ),
}
_NEEDED = [
    *("strategy", "speedup", "break_even", "break_even_steps", "break_even_time_ns", "compile_cost_ns"),
    *("break_even_interval", "break_even_low", "break_even_high"),
    *("bound", "counted_trials", "first_look"),
    *RATES_OF,
]


def _figures(link: Link, chosen: Choice) -> tuple[Part, ...]:
    """The strategy that is fastest overall, and what it costs and saves a day; what is not told apart where
    none is shown to be.
    """
    best = chosen.option
    total, eager = (each(link.steps, link.restarts) for each in (best.total, best.eager_total))
    saved = float((eager - total).value)
    steps = units.plural(link.steps, "step")
    for_day = f"{units.plural(link.restarts + 1, 'process')} a day of {steps}, each compiling anew."
    return (
        Figures(
            (
                Figure(
                    "Fastest overall",
                    best.strategy if chosen.is_shown else "no difference shown",
                    f"The lowest total time for {steps} per process, where its interval clears all others.",
                    name=True,
                ),
                Figure("Total per day", units.duration(float(total.value)), f"Of {best.strategy}. {for_day}"),
                Figure(
                    "Saved against eager per day",
                    units.duration(saved),
                    f"By {best.strategy}. Nothing where eager itself is the fastest.",
                ),
                Figure(
                    "Money saved per day",
                    units.money(_money(saved, link.price)),
                    "At the price of a device-hour.",
                ),
            ),
            width_px=190,
            key="plan",
        ),
    )


def _headline(link: Link, chosen: Choice, focus: str) -> PageHeadline:
    """At most twelve words on what to run for the steps that are planned."""
    steps, best = units.plural(link.steps, "step"), chosen.option
    names = sorted({best.strategy, *(rival.strategy for rival in chosen.rivals)}, key=sort_key)
    if not chosen.is_shown:
        return PageHeadline(
            f"{focus}: no difference shown between {' and '.join(names[:2])} at {steps}", "warning"
        )
    if best.eager_latency is None:
        return PageHeadline(f"{focus}: stay eager for {steps} per process", "bad")
    return PageHeadline(f"{focus}: {best.strategy} is fastest for {steps} per process", "good")


def _words(link: Link, focus: str) -> str:
    """The plan in a sentence."""
    return (
        f"{focus}: {units.plural(link.restarts + 1, 'process')} a day of {units.plural(link.steps, 'step')} "
        f"each, at ${link.price:g} per device-hour. Against eager, below 0 is saved."
    )


def _money(ns: float, price_per_hour: float) -> float:
    return ns / NANOSECONDS_PER_HOUR * price_per_hour


def _rows(
    link: Link, cases: pd.DataFrame, options: list[ModeOption], floors: Sequence[NoiseFloor]
) -> pd.DataFrame:
    """What the plan of the reader costs per day, a row per strategy."""
    by_name = {option.strategy: option for option in options}
    return pd.DataFrame(
        {**_row(case, by_name.get(case["strategy"]), link), **case_facts(case, floors)}
        for case in sorted(row_dicts(cases[_NEEDED]), key=lambda case: sort_key(case["strategy"]))
    )


def _row(case: dict[str, Any], option: ModeOption | None, link: Link) -> dict[str, Any]:
    total = float(option.total(link.steps, link.restarts).value) if option else None
    is_reference = case["strategy"] == EAGER.name
    against = None
    if option is not None and total is not None and not is_reference:
        against = total - float(option.eager_total(link.steps, link.restarts).value)
    reached = None if pd.isna(case["break_even_time_ns"]) else float(case["break_even_time_ns"])
    return {
        "strategy": case["strategy"],
        **repayment(case),
        "interval": _interval(case),
        "cost": None if is_reference else case["compile_cost_ns"],
        "day": total,
        "against": against,
        "step": float(option.latency.value) if option else None,
        **rates(case),
        "speedup": case["speedup"],
        "time": reached,
        "money": None if reached is None else _money(reached, link.price),
        "against_money": None if against is None else _money(against, link.price),
    }


def _interval(case: dict[str, Any]) -> tuple[int | None, int | None] | str:
    """Its 95 % interval: an end that may never be reached is said so, and one that is the value left out."""
    kind, steps = case["break_even_interval"], case["break_even_steps"]
    value = None if pd.isna(steps) else int(steps)
    low, high = (
        None if pd.isna(end) or end == value else int(end)
        for end in (case["break_even_low"], case["break_even_high"])
    )
    if kind == "bounded" and (low, high) != (None, None):
        return low, high
    if kind == "open" and low is not None:
        return f"from {units.count(low)} to never"
    return units.NEVER if kind == "never" else units.MISSING


@cached
def workloads(link: Link) -> tuple[list[str], frozenset[str]]:
    """The workloads to choose from, and the cache states that were measured."""
    cases, everything = cases_of(link), read_cases(filters_of(link))
    return sorted(set(cases["workload_label"]), key=version_key), frozenset(map(str, everything["cache"]))


@cached
def page(link: Link) -> PageContent:
    """One workload: that in focus, else what changed most."""
    cases, floors = cases_of(link), floors_of(link.machine)
    if cases.empty:
        return of_cases((NO_CASE,), cases, link, floors)
    focus = focus_on(link, cases["workload_label"])
    mine = cases[cases["workload_label"] == focus]
    options, left_out = mode_options(mine)
    chosen = choose(options, link.steps, link.restarts) if len(options) > 1 else None
    no_line = [f"{case.workload} with {case.strategy} has no line: {case.reason}" for case in left_out]
    reasons = dict.fromkeys([*_reasons(mine), *no_line, *map(str, asides(mine))])
    shown = (
        *((_headline(link, chosen, focus),) if chosen else ()),
        curves_chart(link, mine, options if chosen else [], focus),
        *(_figures(link, chosen) if chosen else ()),
        *parts.table(
            "break-even-table",
            f"Break-even of every strategy on {focus} in steps, time and money, and the cost of a day",
            _rows(link, mine, options, floors),
            _PLAN,
            title="In steps, time and money",
            note=_words(link, focus),
        ),
        *parts.listed(LEFT_OUT, list(reasons)),
        *_history(replace(link, focus=None), focus),
        *_every_workload(cases),
    )
    return of_cases(shown, cases, replace(link, focus=focus), floors)


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
    needed = ("workload_label", "strategy", "break_even", "break_even_steps", "bound", "counted_trials")
    for case in row_dicts(compiled[[*needed, "first_look"]]):
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
        {"workload": parts.WORKLOAD, **_by_strategy(compiled["strategy"])},
        title="Break-even of every workload",
    )


def _by_strategy(strategies: Iterable[str]) -> dict[str, TableColumn]:
    return parts.numbers({name: name for name in theme.ordered(strategies)})


# Break-even of a workload from build to build: a row per build, and the chart of what is a number.

_METRIC = "break_even"
MOST_BUILDS = 100


@cached
def _history(link: Link, focus: str) -> tuple[Part, ...]:
    """Of the newest `MOST_BUILDS` a row each, newest first, and the chart; nothing of a single build."""
    filters = filters_of(replace(link, build=None))
    columns = ("cache", *trend_rows.needed(_METRIC))
    points = read_points(of_workload(filters, focus), "build", columns)
    points = points[(points["workload_label"] == focus) & (points["strategy"] != EAGER.name)]
    points = with_caches(with_strategies(points, link.strategy), link.cache)
    names = read_choices_on(link.machine).builds
    with_points = set(points["build_id"])
    measured = [key for key in names if key in with_points]
    if len(measured) < 2:
        return ()
    newest = measured[-MOST_BUILDS:]
    points = points[points["build_id"].isin(newest)]
    strategies = theme.ordered(points["strategy"])
    cells: dict[str, dict[str, str]] = {names[key]: {"build": names[key], "build_id": key} for key in newest}
    for point in row_dicts(points[["build_id", "strategy", "break_even", "break_even_steps", "first_look"]]):
        cells[names[point["build_id"]]][point["strategy"]] = steps_words(point)
    table = pd.DataFrame(list(cells.values())[::-1], columns=["build", "build_id", *strategies])
    ordered = trend_rows.in_order(points, "torch", list(names))
    rows = trend_rows.frame(ordered, _METRIC, names)
    drawn = rows["build"].nunique() > 1
    every = units.plural(len(measured), "build")
    older = f"The newest {MOST_BUILDS} of {every}." if len(measured) > MOST_BUILDS else ""
    notes = [older, trend_rows.older_points(ordered, rows, "torch")]
    notes += [gaps.sentence(ordered, _METRIC, names)] if drawn else []
    chart = ChartContent(
        _history_finding(table[["build", *strategies]], focus),
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
            {"build": replace(parts.BUILD, pinned=True), **_by_strategy(strategies)},
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
    """How the first strategy whose words changed moved between the last two builds, where there are two and
    neither is a first look.
    """
    if not len(table):
        return ""
    newest = table["build"].iloc[0]
    pairs = {name: table[name].iloc[:2].tolist() for name in table.columns[1:]}
    known = {
        strategy: pair
        for strategy, pair in pairs.items()
        if FIRST_LOOK not in pair and all(isinstance(word, str) for word in pair)
    }
    for strategy, (new, old) in known.items() if len(table) > 1 else ():
        if old != new:
            return f"{strategy} on {focus}: break-even {old} before, {new} with {newest}"
    if pairs and not known:
        return f"Nothing decides how break-even on {focus} moved to {newest}"
    return f"Break-even on {focus} is as it was before {newest}"
