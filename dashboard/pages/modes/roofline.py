"""The roofline of cases: what they compute a second against what the machine reached in its canaries.

Source: Williams, Waterman, Patterson, "Roofline", CACM 52(4), 2009; the roofs are measured, not nominal.
"""

from __future__ import annotations

import math
from collections import Counter
from functools import lru_cache

import altair as alt
import pandas as pd

from compilewatch.dashboard.charts import point_names, style
from compilewatch.dashboard.charts.style import ChartContent
from compilewatch.dashboard.parts import parts
from compilewatch.dashboard.parts.cases import CASE
from compilewatch.dashboard.parts.parts import Chart, Part, TableColumn
from compilewatch.dashboard.text import theme
from compilewatch.dashboard.text.glossary import explained
from compilewatch.db import units
from compilewatch.db.records.strategies import EAGER

_COLUMNS = {
    **CASE,
    **parts.numbers(
        {
            "step_text": "A step takes",
            "operations_text": "Operations need",
            "bytes_text": "Bytes need at most",
            "share_text": "Of the roof",
        }
    ),
    "bound": TableColumn("An eager step is"),
}
_PREFIXES = ((1e12, "TFLOP/s"), (1e9, "GFLOP/s"), (1e6, "MFLOP/s"))
_AIR = 2.0
# Of the chart without its axis and legend, in pixels.
_HEIGHT = 300
# "1,000", and "0.05" without zeros at its end.
_TICK = ",~r"


def roofline_parts(frame: pd.DataFrame, labels: dict[str, str]) -> tuple[Part, ...]:
    """Chart and table of `frame` of `db.queries.case_parts.rooflines`; nothing where it has no row.

    `labels`: workload id -> label; other workloads are left out.
    """
    rows = _rows(frame[frame["workload_id"].isin(list(labels))], labels)
    if rows.empty:
        return ()
    scale, unit = next(
        (each for each in _PREFIXES if rows["roof_operations_per_s"].max() >= each[0]), _PREFIXES[-1]
    )
    points = rows.assign(rate=rows["operations_per_s"] / scale)
    ends = _ends(points, scale)
    chart = ChartContent(
        _finding(rows),
        spec(tuple(theme.ordered(rows["strategy"])), ends, unit),
        {"main": points, "roofs": _roofs(rows, scale, ends), **_names(points, ends)},
    )
    return (
        Chart(
            "modes-roofline",
            "Operations per second of every profiled case against its operations per byte, and the roofs",
            chart,
            "The line is what the machine reached in the canaries of the run: on the slope its memory is the "
            "limit, on the level its arithmetic. Bytes are those that the operators of eager read and write, "
            "so fused code may stand above the slope.",
        ),
        *parts.table(
            "modes-work",
            "Operations and bytes of an eager step at the rates of the canaries, and what a step takes",
            rows,
            _COLUMNS,
            title="Work of a step",
            note=f"{explained('canary')} Times at the rates of the canaries. Of the roof: the larger of both "
            "over the step.",
        ),
    )


def _rows(frame: pd.DataFrame, labels: dict[str, str]) -> pd.DataFrame:
    """Per case its place in the chart, and its cells; eager first."""
    names = frame["strategy"]
    place = {name: number for number, name in enumerate(theme.ordered([*names, EAGER.name]))}
    rows = frame.assign(workload=frame["workload_id"].map(labels), place=names.map(place))
    rows = rows.sort_values(["workload", "place"], ignore_index=True).astype(
        {"operations": float, "bytes": float, "step_ns": float}
    )
    operations_ns = rows["operations"] / rows["roof_operations_per_s"].astype(float) * 1e9
    bytes_ns = rows["bytes"] / rows["roof_bytes_per_s"].astype(float) * 1e9
    share = pd.concat([operations_ns, bytes_ns], axis=1).max(axis=1) / rows["step_ns"]
    rate = rows["operations"] / rows["step_ns"] * 1e9
    return rows.assign(
        intensity=rows["operations"] / rows["bytes"],
        operations_per_s=rate,
        bound=[
            "compute-bound" if operations >= moved else "memory-bound"
            for operations, moved in zip(operations_ns, bytes_ns, strict=True)
        ],
        step_text=[units.duration(value) for value in rows["step_ns"]],
        operations_text=[units.duration(value) for value in operations_ns],
        bytes_text=[units.duration(value) for value in bytes_ns],
        share_text=[units.percent(value) for value in share],
    )


def _finding(rows: pd.DataFrame) -> str:
    """By what eager steps are bound, counted over workloads."""
    eager = rows.drop_duplicates("workload_id")
    counts = ", ".join(f"{count} {name}" for name, count in sorted(Counter(eager["bound"]).items()))
    return f"Eager steps of {units.plural(len(eager), 'profiled workload')}: {counts}"


Ends = tuple[float, float, float, float]


def _names(points: pd.DataFrame, ends: Ends) -> dict[str, pd.DataFrame]:
    """The names of the points, by the frame that draws them."""
    left, right, low, high = map(math.log, ends)
    frames = {}
    for frame, width_px in point_names.WIDTHS_PX.items():
        places = [
            (
                (math.log(across) - left) / (right - left) * width_px,
                (high - math.log(up)) / (high - low) * _HEIGHT,
            )
            for across, up in zip(points["intensity"], points["rate"], strict=True)
        ]
        named = point_names.placed(points, places, (), width_px)
        frames[frame] = named[["workload", "intensity", "rate", "place"]]
    return frames


def _ends(points: pd.DataFrame, scale: float) -> Ends:
    """The ends of both axes, with the ridge and every point in them."""
    peak = points["roof_operations_per_s"].astype(float)
    ridge = peak / points["roof_bytes_per_s"].astype(float)
    across, up = pd.concat([points["intensity"], ridge]), pd.concat([points["rate"], peak / scale])
    ends = (across.min() / _AIR, across.max() * _AIR, up.min() / _AIR, up.max() * _AIR)
    return tuple(float(f"{end:.3g}") for end in ends)  # type: ignore[return-value]


def _roofs(rows: pd.DataFrame, scale: float, ends: Ends) -> pd.DataFrame:
    """Each roof as a line of three points."""
    lines = []
    reached = rows[["roof_operations_per_s", "roof_bytes_per_s"]].drop_duplicates()
    for number, (peak, bandwidth) in enumerate(reached.itertuples(index=False, name=None)):
        ridge = peak / bandwidth
        for intensity in (min(ends[0], ridge), ridge, max(ends[1], ridge)):
            rate = min(peak, intensity * bandwidth) / scale
            lines.append({"roof": str(number), "intensity": intensity, "rate": rate})
    return pd.DataFrame(lines)


@lru_cache(maxsize=64)
def spec(strategies: tuple[str, ...], ends: Ends, unit: str) -> style.Spec:
    """Points over `main` under the lines of `roofs`, both axes logarithmic."""
    left, right, low, high = ends
    x = alt.X(
        "intensity:Q",
        title="Arithmetic intensity (operations per byte)",
        scale=alt.Scale(type="log", domain=[left, right], nice=False),
        axis=alt.Axis(values=style.log_ticks(left, right), grid=True, format=_TICK),
    )
    y = alt.Y(
        "rate:Q",
        title=f"Operations per second ({unit})",
        scale=alt.Scale(type="log", domain=[low, high], nice=False),
        axis=alt.Axis(values=style.log_ticks(low, high), format=_TICK),
    )
    roofs = (
        style.inked("roofs")
        .mark_line(strokeWidth=1.6, opacity=0.7, clip=True, aria=False)
        .encode(x=x, y=y, detail="roof:N", stroke=style.ink_stroke())
    )
    points = (
        alt.Chart(style.data("main"))
        .mark_point(filled=True, size=110, opacity=1)
        .encode(
            x=x,
            y=y,
            color=style.strategy_colour(strategies),
            shape=style.strategy_shape(strategies),
            tooltip=style.text_tooltip(
                workload="Workload",
                strategy="Strategy",
                step_text="A step takes",
                operations_text="Operations need",
                bytes_text="Bytes need at most",
                share_text="Of the roof",
            ),
        )
    )
    return style.spec_of(
        alt.layer(roofs, points, *point_names.layers(x, y)).properties(height=style.HEIGHT + 40)
    )
