"""The evidence of a verdict on one case: the trials of both sides, every number with how sure it is, and
the case as an issue to be copied.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import altair as alt
import numpy as np
import pandas as pd

from compilewatch.dashboard.charts import style
from compilewatch.dashboard.charts.style import ChartContent
from compilewatch.dashboard.parts import parts, verdict_words
from compilewatch.dashboard.parts.parts import Chart, Empty, Folded, Lines, Part, Table, TableColumn
from compilewatch.dashboard.read import shaping
from compilewatch.dashboard.read.data import read_comparison, read_trials
from compilewatch.dashboard.read.database import reader
from compilewatch.dashboard.read.versions import cached
from compilewatch.dashboard.text import theme
from compilewatch.dashboard.verdicts.tables import Q_VALUE, SIDES, TRIALS, case_table, change_columns
from compilewatch.db import units
from compilewatch.db.columns.metrics import FURTHER_METRICS, METRICS, REQUESTED_METRICS, with_test
from compilewatch.db.errors import NotFoundError
from compilewatch.db.judge.compare.sides import Selection
from compilewatch.db.judge.results import BuildSide, CaseKey, Comparison, Row
from compilewatch.db.metrics.eligibility import passed_mask, timed_mask
from compilewatch.db.metrics.groups import Groups, floats, row_dicts
from compilewatch.db.queries.selection import Filters
from compilewatch.db.records.strategies import EAGER
from compilewatch.db.records.trial import SourceKind
from compilewatch.db.records.vocabulary import Metric
from compilewatch.db.verdicts.issue import issue_sides, issue_text

BASE_AND_HEAD = ("base", "head")
# The column of a trials frame that holds a metric trial by trial, and what it is divided by for the axis.
_PER_TRIAL: dict[Metric, tuple[str, float, str]] = {
    Metric.LATENCY: ("latency_ns", 1e6, "Latency (ms)"),
    Metric.COMPILE_COST: ("trial_compile_cost_ns", 1e9, "Compile cost (s)"),
    Metric.PEAK_MEMORY: ("peak_bytes", 2**20, "Peak memory (MiB)"),
    **{
        metric: (METRICS[metric].column, METRICS[metric].divisor, METRICS[metric].axis_title)
        for metric in (*FURTHER_METRICS, *with_test(REQUESTED_METRICS))
    },
}
_TRIAL_COLUMNS = ("lane", "value", "low", "high", "strategy", "text", "samples_text", "trial_id")


def shown_metric(metric: Metric) -> Metric:
    """The metric that one trial has: a speedup and a break-even are told by the latencies they come from."""
    return metric if metric in _PER_TRIAL else Metric.LATENCY


def side_trials(trials: pd.DataFrame, side: BuildSide, case: CaseKey) -> pd.DataFrame:
    """The trials of one side of a comparison that are of `case`."""
    return trials[
        trials["build_id"].isin(side.build_ids)
        & trials["run_id"].isin(side.run_ids)
        & (trials["workload_id"] == case.workload_id)
        & (trials["strategy_id"] == case.strategy_id)
    ]


def frame(sides: Sequence[pd.DataFrame], case: CaseKey, metric: Metric) -> pd.DataFrame:
    """One row per trial and lane ("base · default", "base · eager", ...); `value` in the unit of the axis.

    Latencies come with their 5th and 95th percentile and with the eager control of the same process.
    """
    shown = shown_metric(metric)
    rows: list[dict[str, object]] = []
    for name, side in zip(BASE_AND_HEAD, sides, strict=True):
        for trial in row_dicts(side):
            rows += _lane_rows(name, trial, case.strategy, shown)
    return pd.DataFrame(rows, columns=list(_TRIAL_COLUMNS))


def _lane_rows(
    side: str, trial: Mapping[str, object], strategy: str, metric: Metric
) -> list[dict[str, object]]:
    column, divisor, _ = _PER_TRIAL[metric]
    low, high = ("latency_p05_ns", "latency_p95_ns") if metric is Metric.LATENCY else (column, column)
    lanes = [(strategy, column, low, high, "samples")]
    if metric is Metric.LATENCY and strategy != EAGER.name:
        control = "control_latency_ns"
        lanes.append((EAGER.name, control, control, control, "control_samples"))
    rows: list[dict[str, object]] = []
    for name, middle, start, end, count in lanes:
        value = shaping.number(trial[middle])
        if value is None:
            continue
        bounds = [shaping.number(trial[bound]) for bound in (start, end)]
        rows.append(
            {
                "lane": f"{side} · {name}",
                "value": value / divisor,
                "low": (value if bounds[0] is None else bounds[0]) / divisor,
                "high": (value if bounds[1] is None else bounds[1]) / divisor,
                "strategy": name,
                "text": verdict_words.figure(metric, value),
                "samples_text": units.count(shaping.number(trial[count])),
                "trial_id": trial["trial_id"],
            }
        )
    return rows


def middles(rows: pd.DataFrame) -> pd.DataFrame:
    """The geometric mean of every lane's trials."""
    of_lane = rows.groupby(["lane", "strategy"], sort=False)
    lanes = Groups(np.asarray(of_lane.ngroup(), dtype=np.int64), of_lane.ngroups)
    return of_lane.size().index.to_frame(index=False).assign(value=lanes.mean(floats(rows["value"])))


@lru_cache(maxsize=64)
def spec(lanes: tuple[str, ...], strategies: tuple[str, ...], metric: Metric) -> style.Spec:
    """A lane per side and strategy over `main` (`frame`) and `middles`."""
    base = alt.Chart(style.data("main"))
    y = alt.Y("lane:N", sort=list(lanes), title=None, axis=style.names_axis())
    x = alt.X(
        "value:Q",
        title=_PER_TRIAL[shown_metric(metric)][2],
        scale=alt.Scale(zero=False, padding=14),
        axis=alt.Axis(tickCount=6),
    )
    colour = style.strategy_colour(strategies, legend=False)
    spread = base.mark_rule(strokeWidth=2, opacity=0.3, aria=False).encode(
        x="low:Q", x2="high", y=y, color=colour
    )
    points = (
        base.mark_point(filled=True, size=90, opacity=0.75)
        .encode(
            x=x,
            y=y,
            color=colour,
            shape=style.strategy_shape(strategies, legend=False),
            tooltip=style.text_tooltip(
                lane="Side", text="Median of the trial", samples_text="Samples (n)", trial_id="Trial"
            ),
        )
        .add_params(style.pick("trial_id"))
    )
    ticks = (
        style.inked("middles")
        .mark_tick(thickness=2.5, size=26, aria=False)
        .encode(x=x, y=y, stroke=style.ink_stroke())
    )
    return style.spec_of(alt.layer(spread, ticks, points).properties(height=46 * len(lanes) + 60))


def lanes(strategies: tuple[str, ...]) -> tuple[str, ...]:
    """Compiled first, eager below it, each with base above head."""
    ordered = sorted(strategies, key=lambda name: name == EAGER.name)
    return tuple(f"{side} · {name}" for name in ordered for side in BASE_AND_HEAD)


def reading(metric: Metric) -> str:
    text = "A point is a trial, the upright line their geometric mean."
    if metric is Metric.LATENCY:
        text = "A point is the median of a trial, its bar the 5th to 95th percentile, the upright line the "
        text += "geometric mean of the trials. Eager is the control of the same processes."
    return text


def evidence_parts(
    trials: pd.DataFrame,
    sides: Sequence[BuildSide],
    case: CaseKey,
    rows: Sequence[Row],
    metric: Metric,
    *,
    title: str,
    key: str,
    confidence: float | None,
) -> tuple[Part, ...]:
    """The `trials` on both `sides`, base first, of the `case` called `title`, and below them the numbers of
    the verdicts `rows` on it. `confidence` of their intervals; the parts have keys that begin with `key`.
    """
    of_sides = [side_trials(trials, side, case) for side in sides]
    shown = shown_metric(metric)
    # What counts in the verdict is drawn: else the mean of the points is not the number below them.
    counts = passed_mask if shown is Metric.PEAK_MEMORY else timed_mask
    strip = frame([side[counts(side)] for side in of_sides], case, metric)
    alt = f"{METRICS[shown].name} of every trial of the base side and of the head side"
    drawn: Part = Empty(f"No trial of this case has a {METRICS[shown].word} to draw.")
    if not strip.empty:
        strategies = tuple(theme.ordered(strip["strategy"]))
        with_value = strip.loc[strip["strategy"] == case.strategy, "trial_id"].nunique()
        missing = sum(map(len, of_sides)) - with_value
        chart = ChartContent(
            f"{title}: the trials of both sides",
            spec(lanes(strategies), strategies, shown),
            {"main": strip, "middles": middles(strip)},
            [f"{units.plural(missing, 'trial')} without a value that counts left out."] if missing else [],
        )
        drawn = Chart(f"{key}-strip", alt, chart, explained=reading(shown))
    return (
        drawn,
        Table(
            f"{key}-numbers",
            "Every metric of this case on both sides, its change with interval, verdict and reason",
            case_table(rows),
            {
                "metric": TableColumn("Metric", pinned=True),
                **change_columns(confidence),
                "verdict": TableColumn("Verdict"),
                **SIDES,
                **parts.hidden({**Q_VALUE, "moved": TableColumn("Who moved"), **TRIALS}),
                "reason": TableColumn("Why", wide=True),
            },
        ),
    )


@cached
def issue_parts(trial_id: str, base: str | None = None) -> tuple[Part, ...]:
    """The text on the case of a trial against the build `base`, by default as `issue_sides` finds it; nothing
    where it was not measured here.
    """
    try:
        sides = issue_sides(reader(), trial_id, base)
    except NotFoundError:
        return ()
    if sides.head.source.kind is not SourceKind.MEASURED:
        return ()

    def text() -> tuple[Part, ...]:
        lines = issue_text(reader(), sides, _compare).splitlines()
        return (Lines(tuple(lines), code=True, key="issue-text"),)

    return (Folded("Copy as issue", text, "issue"),)


def _compare(base: Selection, head: Selection, machine_id: str) -> Comparison:
    return read_comparison(Filters(machines=(machine_id,)), base.build_ids[0], head.build_ids[0])


def issue_of_case(filters: Filters, sides: Sequence[BuildSide], case: CaseKey) -> tuple[Part, ...]:
    """The same of the newest trial of `case` on the head side, against the base side."""
    base, head = sides
    trials = side_trials(read_trials(filters), head, case).sort_values(["started_at", "trial_id"])
    if trials.empty or not base.build_ids:
        return ()
    return issue_parts(str(trials["trial_id"].iloc[-1]), base.build_ids[-1])
