"""Sizes of a sweep as charts: throughput over one size, with a panel for each value of the second."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import altair as alt
import pandas as pd

from compilewatch.dashboard.charts import style
from compilewatch.dashboard.charts.style import ChartContent
from compilewatch.dashboard.parts import parts
from compilewatch.dashboard.parts.cases import COLUMNS, NO_DIFFERENCE, row_of
from compilewatch.dashboard.parts.parts import Chart, Folded, Group, Lines, Part, TableColumn
from compilewatch.dashboard.read import shaping
from compilewatch.dashboard.text import theme
from compilewatch.db import units
from compilewatch.db.columns.column import Column
from compilewatch.db.columns.metrics import BY_COLUMN
from compilewatch.db.metrics.case_modes import fastest
from compilewatch.db.metrics.geomean import geomean
from compilewatch.db.metrics.throughput import RANKS, Case, Sweep, sweeps
from compilewatch.db.records.strategies import EAGER, sort_key
from compilewatch.db.records.trial import CacheState
from compilewatch.db.verdicts.case_rows import with_one_rank
from compilewatch.db.verdicts.case_view import EFFICIENCY

MOST_SWEEPS = 6
MOST_PANELS = 6
ALIKE = 1.1
"""What differs by less than this factor over all sizes is told in words, not drawn."""
_RATE = "throughput_per_s"
_ENDS = {
    _RATE: ("throughput_low_per_s", "throughput_high_per_s"),
    "peak_bytes": (),
    "compile_cost_ns": ("compile_cost_low_ns", "compile_cost_high_ns"),
}
_LOG_FROM = 4
"""Sizes that differ by this factor or more stand on a logarithmic axis."""
_AIR = 1.12
"""What the axis of values has beyond them, as a factor."""
_SCALING = TableColumn(
    "Scaling efficiency", numeric=True, explained="Throughput over as many times that of one rank."
)
_OF_CASE = ("strategy", "rate", "speedup", "interval", "memory", "cost", "trials")
# Of a panel, and of it without its axis and the room around.
_HEIGHT_PX, _PLOT_PX = 280, 215
# A label takes a line, on a narrow panel two; so much each, and so much a letter of it.
_LINE_PX, _TWO_LINES_PX, _LETTER_PX, _NARROW_PX = 15, 29, 6.9, 460
_SHORT = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


def sizes_parts(cases: pd.DataFrame, model: str | None = None) -> Iterator[Part]:
    """A group for each sweep among `cases`, of a `model` for the one that it is of; nothing where no workload
    was measured at several sizes.
    """
    found = [
        sweep
        for sweep in sweeps(cases)
        if model is None or any(case["workload_label"] == model for case in sweep.cases)
    ]
    for number, sweep in enumerate(found[:MOST_SWEEPS]):
        yield _group(sweep, f"sizes-{number}")
    if more := found[MOST_SWEEPS:]:
        names = units.first_of([sweep.workload for sweep in more], 3)
        yield Lines((f"{units.plural(len(more), 'more sweep')}: {names}. Choose a model to see its own.",))


def _group(sweep: Sweep, key: str) -> Group:
    """What it found, its panels, what no size changes, and all its cases."""
    shown = [case for case in sweep.cases if case["cache"] != CacheState.WARM]
    alike, drawn = [], [_RATE]
    for column in ("peak_bytes", "compile_cost_ns"):
        texts = _same(shown, column)
        if texts is None:
            drawn.append(column)
        elif texts:
            alike.append(f"{BY_COLUMN[column].name.lower()} {texts}")
    every = f"All {units.plural(len(sweep.cases), 'case')} of {sweep.workload}"
    same = f"The same at every size, within {units.level(ALIKE - 1)}: {'; '.join(alike)}."
    return Group(
        (
            (
                *parts.notes([_reading(sweep, shown)]),
                *_rows([_panels(sweep, shown, column, key) for column in drawn]),
                *parts.notes([same if alike else "", _left_out(shown)]),
                Folded(every, partial(_table, sweep, f"{key}-table"), f"{key}-cases"),
            ),
        ),
        finding(sweep),
        key=key,
    )


def finding(sweep: Sweep) -> str:
    """Which strategy is shown to be the fastest, at how many sizes, and where it gains most."""
    places: dict[tuple[int | None, int], list[Case]] = {}
    for case in sweep.cases:
        if case["strategy_kind"] is not None:
            places.setdefault((case["second"], case["size"]), []).append(case)
    found = {place: each for place, rows in places.items() if (each := fastest(rows)).compared}
    if not found:
        return f"{sweep.workload}: no compiled strategy has a speedup"
    winners = {place: each for place, each in found.items() if not each.rivals}
    if not winners:
        return f"{sweep.workload}: {NO_DIFFERENCE} at any size"
    counts = Counter(each.strategy for each in winners.values())
    name, wins = min(counts.items(), key=lambda item: (-item[1], sort_key(item[0])))
    where = "every size" if wins == len(found) else f"{wins} of {units.plural(len(found), 'size')}"
    text = f"{sweep.workload}: {name} is fastest at {where}"
    gains = {
        place: float(each.case["speedup"])
        for place, each in winners.items()
        if each.case is not None and each.strategy == name
    }
    if not gains:
        return text
    (second, size), most = max(gains.items(), key=lambda item: item[1])
    at = [f"{units.words(sweep.size)} {units.count(size)}", *_at(sweep, second)]
    return f"{text}, at most {units.ratio(most)} eager, at {', '.join(at)}"


def _at(sweep: Sweep, second: int | None) -> list[str]:
    return [f"{units.words(sweep.second)} {units.count(second)}"] if sweep.second else []


def _reading(sweep: Sweep, shown: Sequence[Case]) -> str:
    """How the panels are read, and what is held fixed in all of them."""
    known = any(not pd.isna(case[name]) for case in shown for name in _ENDS[_RATE])
    held = ", ".join(f"{units.words(name)} {units.count(value)}" for name, value in sweep.held.items())
    sentences = [
        f"Throughput in {sweep.item}s per second over {units.words(sweep.size)}",
        f"a panel for each value of {units.words(sweep.second)}, on the same axes" if sweep.second else "",
        f"{held} throughout" if held else "",
        "bars 95 %" if known else "",
    ]
    return " · ".join(filter(None, sentences))


def _left_out(shown: Sequence[Case]) -> str:
    more = len({case["second"] for case in shown}) - MOST_PANELS
    return f"{units.plural(more, 'more panel')} in the table." if more > 0 else ""


def _same(shown: Sequence[Case], column: str) -> str | None:
    """The value of each strategy where no size changes it, one for all that have the same; None where one
    does, nothing where it is not known.
    """
    values: dict[str, list[float]] = {}
    for case in shown:
        value = None if _is_free(case, column) else shaping.number(case[column])
        if value is not None:
            values.setdefault(case["strategy"], []).append(value)
    if any(max(each) > ALIKE * min(each) for each in values.values()):
        return None
    write = BY_COLUMN[column].write
    texts = {name: write(geomean(values[name])) for name in theme.ordered(values)}
    if len(set(texts.values())) == 1:
        return next(iter(texts.values()))
    return ", ".join(f"{text} {name}" for name, text in texts.items())


def _is_free(case: Case, column: str) -> bool:
    """Eager compiles nothing, so nothing is its compile cost."""
    return bool(case["strategy"] == EAGER.name) and column == "compile_cost_ns"


def _rows(panels: Sequence[Sequence[Chart]]) -> Iterator[Group]:
    """The panels of each figure, two beside each other, all of one width. Figures of one panel each stand
    beside each other.
    """
    if all(len(charts) == 1 for charts in panels):
        yield Group(tuple(map(tuple, panels)))
        return
    for charts in panels:
        for at in range(0, len(charts), 2):
            columns = tuple((chart,) for chart in charts[at : at + 2])
            yield Group(columns if len(columns) == 2 else (*columns, ()))


def _panels(sweep: Sweep, shown: Sequence[Case], column: str, key: str) -> list[Chart]:
    """A chart for each value of the second size, on the same axes."""
    figure = BY_COLUMN[column]
    rows = _frame(shown, figure, sweep.item)
    strategies = tuple(theme.ordered(rows["strategy"]))
    low, high = float(rows["low"].min()) / _AIR, float(rows["high"].max()) * _AIR
    shared = Panel(
        units.words(sweep.size),
        figure.name,
        sweep.sizes,
        (float(f"{low:.4g}"), float(f"{high:.4g}")),
        (max(map(len, rows["end_text"])), max(map(len, [*rows["strategy"], *rows["end_value"]]))),
    )
    seconds = sorted({case["second"] for case in shown}, key=lambda second: second or 0)[:MOST_PANELS]
    charts = []
    for second in seconds:
        mine = rows if second is None else rows[rows["second"] == second]
        if mine.empty:
            continue
        at = "".join(f", {each}" for each in _at(sweep, second))
        name = figure.name if column == _RATE else figure.axis_title
        spec = _spec(strategies, tuple(sorted(set(mine["first_look"].tolist()))), shared)
        frames = {"main": mine, "ends": _ends(mine, shared.ends)}
        charts.append(
            Chart(
                f"{key}-{column}" + ("" if second is None else f"-{second}"),
                f"{figure.name} of {sweep.workload}{at} over {units.words(sweep.size)}, a line per strategy",
                ChartContent(f"{name}{at}", spec, frames),
                "At its end each line has its value, and the speedup over eager in the same processes.",
            )
        )
    return charts


def _frame(cases: Sequence[Case], figure: Column, item: str) -> pd.DataFrame:
    """A row for each case that has the figure, with the texts of tooltip and label."""
    write: Callable[..., str] = partial(units.rate, item=item) if figure.column == _RATE else figure.write
    rows = []
    for case in cases:
        eager = case["strategy"] == EAGER.name
        value = None if _is_free(case, figure.column) else shaping.number(case[figure.column])
        if not value:
            continue
        low, high = (shaping.number(case[name]) for name in _ENDS[figure.column] or (figure.column,) * 2)
        speedup = None if eager else shaping.number(case["speedup"])
        gain = f" · {units.ratio(speedup)}" if speedup is not None and figure.column == _RATE else ""
        text = _short(value) if figure.column == _RATE else write(value)
        rows.append(
            {
                "strategy": case["strategy"],
                "size": case["size"],
                "second": case["second"],
                "value": value / figure.divisor,
                "low": (low or value) / figure.divisor,
                "high": (high or value) / figure.divisor,
                "text": write(value),
                "interval_text": units.interval(low, high, write) if _ENDS[figure.column] else units.MISSING,
                "speedup_text": units.ratio(speedup),
                "speedup_interval_text": units.interval(
                    shaping.number(case["speedup_low"]), shaping.number(case["speedup_high"]), units.ratio
                ),
                "trials_text": units.count(case["counted_trials"]),
                "first_look": bool(case["first_look"]),
                "end_value": f"{text}{gain}",
                "end_text": f"{case['strategy']} {text}{gain}",
            }
        )
    return pd.DataFrame(rows)


def _short(per_s: float) -> str:
    """A rate as it stands at the end of a line: "154k"."""
    factor, mark = next(((factor, mark) for factor, mark in _SHORT if per_s >= factor), (1.0, ""))
    return f"{units.significant(per_s / factor)}{mark}"


def _ends(rows: pd.DataFrame, ends: tuple[float, float]) -> pd.DataFrame:
    """The last point of each line, and where its label stands on an axis with these ends, off the others."""
    last = rows.sort_values("size").drop_duplicates("strategy", keep="last")
    low, high = map(math.log, ends)
    own = [(high - math.log(value)) / (high - low) * _PLOT_PX for value in last["value"].tolist()]
    places = {
        name: [math.exp(high - at / _PLOT_PX * (high - low)) for at in apart(own, step)]
        for name, step in (("beside", _LINE_PX), ("beside_narrow", _TWO_LINES_PX))
    }
    return last.assign(**places)


def apart(places: Sequence[float], step: float) -> list[float]:
    """`places` in pixels from the top, moved as little as keeps each `step` from the next and all of them on
    the panel, as far as they have room.
    """
    order = sorted(range(len(places)), key=places.__getitem__)
    moved = [places[number] for number in order]
    for at in range(1, len(moved)):
        moved[at] = max(moved[at], moved[at - 1] + step)
    floor: float = _PLOT_PX
    for at in range(len(moved) - 1, -1, -1):
        moved[at] = min(moved[at], floor)
        floor = moved[at] - step
    return [moved[order.index(number)] for number in range(len(places))]


class Panel(NamedTuple):
    """What all panels of a figure share: what size is called, what the figure is, the sizes, the ends of the
    axis of values, and how long the longest label is in one line and in two.
    """

    size: str
    figure: str
    sizes: tuple[int, ...]
    ends: tuple[float, float]
    letters: tuple[int, int]


@lru_cache(maxsize=64)
def _spec(strategies: tuple[str, ...], looks: tuple[bool, ...], panel: Panel) -> style.Spec:
    """Lines over `main`, with labels at their ends (`ends`) in the room that is left of the axis of sizes."""
    sizes, (low, high) = panel.sizes, panel.ends
    narrow = f"width < {_NARROW_PX}"
    wide_px, narrow_px = (_LETTER_PX * letters + 16 for letters in panel.letters)
    across = alt.ExprRef(expr=f"width - ({narrow} ? min({narrow_px:.0f}, width / 2) : {wide_px:.0f})")
    log = sizes[0] > 0 and sizes[-1] >= _LOG_FROM * sizes[0]
    scale: dict[str, Any] = {"type": "log", "base": 2} if log else {"zero": False}
    domain = [sizes[0], sizes[-1]]
    x = alt.X(
        "size:Q",
        title=panel.size.capitalize(),
        scale=alt.Scale(**scale, domain=domain, nice=False, range=[10, across]),
        axis=alt.Axis(values=list(sizes), format=",d", grid=False, titleAnchor="start"),
    )
    values = alt.Scale(type="log", domain=[low, high], nice=False)
    y = alt.Y("value:Q", title=None, scale=values, axis=style.steps_axis(values=style.log_ticks(low, high)))
    colour = style.strategy_colour(strategies, legend=False)
    base = alt.Chart(style.data("main"))
    lines = base.mark_line(strokeWidth=2.2, aria=False).encode(
        x=x, y=y, color=colour, strokeDash=style.strategy_dash(strategies, legend=False)
    )
    intervals = base.mark_rule(strokeWidth=2, opacity=0.5, aria=False).encode(
        x=x, y=alt.Y("low:Q", scale=values), y2="high", color=colour
    )
    points = style.points(
        strategies,
        looks,
        70,
        legend=False,
        x=x,
        y=y,
        tooltip=style.text_tooltip(
            strategy="Strategy",
            size=panel.size.capitalize(),
            text=panel.figure,
            interval_text="95 % interval",
            speedup_text="Speedup",
            speedup_interval_text="Its 95 % interval",
            trials_text="Trials (n)",
        ),
    )
    labels = (
        style.inked("ends")
        .transform_calculate(
            at=f"{narrow} ? datum.beside_narrow : datum.beside",
            label=f"{narrow} ? [datum.strategy, datum.end_value] : datum.end_text",
        )
        .mark_text(align="left", baseline="middle", dx=9, fontSize=12, fontWeight=600, aria=False)
        .encode(x=x, y=alt.Y("at:Q", scale=values), text="label:N", fill=style.ink_fill())
    )
    return style.spec_of(alt.layer(lines, intervals, *points, labels).properties(height=_HEIGHT_PX))


def _table(sweep: Sweep, key: str) -> tuple[Part, ...]:
    """Every case of it, size by size."""
    ordered = sorted(
        sweep.cases, key=lambda case: (case["second"] or 0, case["size"], sort_key(case["strategy"]))
    )
    rows = [
        {"second": case["second"], "size": case["size"], **row_of(case, names=(*_OF_CASE, "workload"))}
        for case in ordered
    ]
    scaling = RANKS in (sweep.size, sweep.second)
    if scaling:
        for row, case in zip(rows, with_one_rank(ordered, ordered), strict=True):
            row["efficiency"] = EFFICIENCY.text(case)
    sizes = {"second": sweep.second, "size": sweep.size} if sweep.second else {"size": sweep.size}
    columns = {
        **{
            name: TableColumn(units.words(word).capitalize(), numeric=True, unit="count", pinned=True)
            for name, word in sizes.items()
        },
        **{name: COLUMNS[name] for name in _OF_CASE},
        **({"efficiency": _SCALING} if scaling else {}),
        "workload": parts.WORKLOAD,
    }
    return parts.table(
        key, f"Every case of {sweep.workload} by size, with its figures", pd.DataFrame(rows), columns
    )
