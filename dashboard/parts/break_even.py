"""Break-even of a workload as a chart: total time against steps, and what lies beyond it."""

from __future__ import annotations

import pandas as pd

from compilewatch.dashboard.charts import break_even as charts
from compilewatch.dashboard.charts.style import ChartContent
from compilewatch.dashboard.links.links import Link
from compilewatch.dashboard.parts.parts import Chart
from compilewatch.dashboard.text import theme
from compilewatch.db import units
from compilewatch.db.metrics.mode_choice import ModeOption, shown_envelope


def curves_chart(link: Link, cases: pd.DataFrame, options: list[ModeOption], focus: str) -> Chart:
    """The chart of total time; without `options` the sentence why there is none."""
    finding = charts.finding(cases, focus)
    chart = ChartContent(
        finding, notes=["No compiled case of this workload has both a speedup and a compile cost."]
    )
    if options:
        curves = charts.curves(options, steps=link.steps, restarts=0, log=link.scale == "log")
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
        "Total time of a process: compile cost + steps x step. Eager is that of all processes, a step of a "
        "strategy that eager over its speedup. From its mark on, a strategy is below eager. Band: 95 % "
        "interval against eager. The broad shade follows the fastest.",
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
    for part in shown_envelope(options):
        until = "on" if part.last_steps is None else f"to {part.last_steps:,}"
        segments.append(f"{part.strategy} from {part.first_steps:,} {until}")
    return f"Fastest by steps per process: {'; '.join(segments)}."
