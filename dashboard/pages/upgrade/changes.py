"""The change of every case: in one metric as a forest plot and a table, and every verdict at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from compilewatch.dashboard.charts.style import ChartContent
from compilewatch.dashboard.links.links import Link
from compilewatch.dashboard.pages.upgrade import charts
from compilewatch.dashboard.parts import parts, verdict_words
from compilewatch.dashboard.parts.cases import CASE
from compilewatch.dashboard.parts.parts import CASE_FACTS, Chart, Empty, Part, Table, TableColumn
from compilewatch.dashboard.text.glossary import explained
from compilewatch.dashboard.verdicts import tables
from compilewatch.dashboard.verdicts.tables import Q_VALUE, SIDES, TRIALS, change_columns, sides_of
from compilewatch.db import units
from compilewatch.db.columns.metrics import METRICS
from compilewatch.db.judge import verdict_marks as wording
from compilewatch.db.judge.decide import GROUPS
from compilewatch.db.judge.results import Comparison, Row
from compilewatch.db.judge.statistics.noise_floor import NoiseFloor
from compilewatch.db.records.vocabulary import Metric, Verdict

_SUMMARY = {
    "verdict": TableColumn("Verdict"),
    **parts.quantities("count", {"cases": "Cases"}),
    **parts.quantities("change", {"mean": "Mean change"}),
    "range": TableColumn("Range", "interval", numeric=True, unit="change"),
}
_FACTS = CASE_FACTS | TRIALS
_MOVED = ("slower", "failing", "faster", "set_aside")
_VERDICTS = {"verdicts-moved": "What is not unchanged", "verdicts-still": "Unchanged within the margin"}


def change_parts(
    comparison: Comparison,
    metric: Metric,
    labels: Mapping[str, str],
    link: Link,
    floors: Sequence[NoiseFloor],
) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
    """The forest of the cases whose groups `link` shows, and folded the table of them."""
    name, shown = METRICS[metric].name, shown_rows(comparison, metric, labels, link)
    groups = comparison.groups(metric)
    kept = tuple(row for row in comparison.rows if groups[row.case.ids] in shown)
    cases = tables.cases_table(comparison.model_copy(update={"rows": kept}), metric, labels, floors)
    if cases.empty and set(shown) >= set(groups.values()):
        return (Empty(f"{name}: not compared.", key="upgrade-forest"),), ()
    found = _table(
        "upgrade-cases",
        f"Every compared case with its verdict on {name.lower()}, the change and who moved",
        cases,
        _case_columns(comparison.policy.confidence, metric),
        title=f"{name} case by case, with why",
    )
    return (_forest(comparison, metric, labels, shown, link),), parts.folded(found)


def shown_rows(
    comparison: Comparison, metric: Metric, labels: Mapping[str, str], link: Link
) -> dict[str, list[Row]]:
    """`charts.rows_by_group` of the groups that `link` asks for; else of those that moved, of all where none
    did; and always of that of the case in focus.
    """
    found = charts.rows_by_group(comparison, metric)
    wanted = link.group or tuple(group for group in found if group in _MOVED) or tuple(found)
    focused = {
        group
        for group, rows in found.items()
        for row in rows
        if verdict_words.workload_label(row.case, labels) == link.focus
        and link.focus_strategy in (None, row.strategy)
    }
    return {group: rows for group, rows in found.items() if group in {*wanted, *focused}}


def summary(comparison: Comparison, metric: Metric, labels: Mapping[str, str]) -> tuple[Table, ...]:
    name = METRICS[metric].name
    return _table(
        "upgrade-summary",
        f"{name} summed up by verdict",
        tables.summary_table(charts.frame(comparison, metric, labels)),
        _SUMMARY,
        note="Mean change: geometric mean of the changes in the table above.",
    )


def _table(
    key: str, alt: str, frame: pd.DataFrame, columns: Mapping[str, TableColumn], **more: str
) -> tuple[Table, ...]:
    """A table whose rows have the verdict in column `tone`."""
    tones = tuple(frame["tone"]) if len(frame) else ()
    return parts.table(key, alt, frame, columns, tones=tones, **more)


def _forest(
    comparison: Comparison,
    metric: Metric,
    labels: Mapping[str, str],
    shown: Mapping[str, Sequence[Row]],
    link: Link,
) -> Chart:
    name = METRICS[metric].name
    frames = charts.frames(comparison, metric, labels, shown, (link.focus, link.focus_strategy))
    drawn = frames["main"]
    title = f"{name} of head against base"
    if drawn.empty:
        what = " or ".join(charts.group_word(group, metric) for group in link.group)
        return Chart(
            "upgrade-forest", title, ChartContent(title, notes=[f"None of the compared cases is {what}."])
        )
    groups = tuple(group for group in GROUPS if group in set(drawn["group"]))
    spec = charts.spec(groups, len(drawn) + len(frames["heads"]), name, charts.domain(drawn))
    more = sum(map(len, shown.values())) - int(drawn["cases"].sum())
    notes = [f"{units.plural(more, 'more case')} in the table."] if more else []
    return Chart(
        "upgrade-forest",
        f"Change of {name.lower()} of every model with its interval and verdict, by what became of it",
        ChartContent(title, spec, frames, notes),
        explained="A bold line is a change, a point below it a model, by its case that moved most, else its "
        "middle one, with the interval as a bar. The grey band is the margin within which a case counts as "
        "unchanged.",
    )


def _case_columns(confidence: float, metric: Metric) -> dict[str, TableColumn]:
    """Without the speedup where it is the metric: base and head have it."""
    speedups = {"speedup_base": "Speedup of base", "speedup_head": "Speedup of head"}
    ratio = "Head over base of the latency of {}, in the same processes."
    ratios = {"eager_ratio": ("Eager ratio", "eager"), "compiled_ratio": ("Compiled ratio", "compiled code")}
    change = change_columns(confidence)
    return {
        "workload": CASE["workload"],
        "change": change["change"],
        "strategy": CASE["strategy"],
        "verdict": TableColumn("Verdict", explained=explained("verdict", "suspected")),
        **parts.hidden(
            {
                **sides_of(metric),
                "interval": change["interval"],
                **({} if metric is Metric.SPEEDUP else parts.quantities("ratio", speedups)),
                **{
                    name: TableColumn(title, numeric=True, unit="ratio", explained=ratio.format(what))
                    for name, (title, what) in ratios.items()
                },
                "moved": TableColumn("Who moved"),
                **_FACTS,
            }
        ),
        "reason": TableColumn("Why", wide=True),
    }


def compile_cost_and_break_even(
    comparison: Comparison, labels: Mapping[str, str], floors: Sequence[NoiseFloor], shown: Metric
) -> tuple[Table, ...]:
    """Compile cost and break-even of every case, without the one that is `shown` above."""
    return tuple(
        table
        for metric in (Metric.COMPILE_COST, Metric.BREAK_EVEN)
        if metric is not shown
        for table in _table(
            f"upgrade-{metric.value}",
            f"{METRICS[metric].name} of every case on both sides, with verdicts",
            tables.cases_table(comparison, metric, labels, floors),
            _case_columns(comparison.policy.confidence, metric),
            title=METRICS[metric].name,
        )
    )


def every_verdict(
    comparison: Comparison, labels: Mapping[str, str], floors: Sequence[NoiseFloor]
) -> tuple[Table, ...]:
    moved = wording.worst_first(row for row in comparison.rows if row.verdict is not Verdict.UNCHANGED)
    still = [row for row in comparison.rows if row.verdict is Verdict.UNCHANGED]
    return tuple(
        table
        for key, rows in (("verdicts-moved", moved), ("verdicts-still", still))
        for table in _verdicts(key, rows, labels, comparison.policy.confidence, floors)
    )


def _verdicts(
    key: str, rows: Sequence[Row], labels: Mapping[str, str], confidence: float, floors: Sequence[NoiseFloor]
) -> tuple[Table, ...]:
    frame = pd.DataFrame(
        [
            {
                "workload": verdict_words.workload_label(row.case, labels),
                "strategy": row.strategy,
                **tables.row_cells(row, floors),
                "tone": row.verdict.value,
            }
            for row in rows
        ]
    )
    columns = {
        **CASE,
        **parts.texts({"metric": "Metric", "verdict": "Verdict"}),
        **SIDES,
        **change_columns(confidence),
        **Q_VALUE,
        "moved": TableColumn("Who moved"),
        **_FACTS,
    }
    return _table(key, _VERDICTS[key], frame, columns, title=_VERDICTS[key])
