"""What pages tell: tables, charts, sentences, on the screen and frozen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dashboard.parts.parts import Chart, Headline, Lines, PageContent, Table, flat
from db.records.vocabulary import Metric
from db.units import MISSING
from tests.numbers.figures import Case, Figure, number, read, tallies
from tests.numbers.of_comparisons import BY_NAME, as_number

_OF_CASES = {
    "speedup": "speedup",
    "steps": "break-even",
    "cost": "compile cost",
    "latency": "latency",
    "memory": "peak memory",
    "first": "time to first result",
}
"""Columns of tables of cases, and what they hold."""
_OF_CHARTS = {"overview-speedups": "speedup_text", "modes-map": "text"}
NOT_A_CASE = ("no difference shown", "eager", MISSING)


def of_page(content: PageContent, machine: str, build: str, steps: int) -> Iterator[Figure]:
    """Figures of cases of one build."""
    page = content.link.page.value or "overview"
    for part in flat((*content.parts, *content.appendix())):
        door = f"page {page}, {part.key}"
        if isinstance(part, Table) and "strategy" in part.frame and part.key != "trial-table":
            for row in part.frame.to_dict("records"):
                case = (str(row.get("workload", content.link.focus)), row["strategy"])
                if case[1] not in NOT_A_CASE:
                    yield from _of_row(row, part, case, (machine, build), door, steps)
        if isinstance(part, Chart) and part.key in _OF_CHARTS:
            drawn = part.chart.frames.get("main")
            for row in [] if drawn is None else drawn.to_dict("records"):
                case = (row["workload"], row["strategy"])
                shown = read(row[_OF_CHARTS[part.key]])
                if case[1] not in NOT_A_CASE and not isinstance(shown, str):
                    yield Figure("speedup", case, (machine, build), door, shown, written=True)


def _of_row(
    row: Mapping[str, Any], table: Table, case: Case, where: Case, door: str, steps: int
) -> Iterator[Figure]:
    for column, quantity in _OF_CASES.items():
        if column not in row or column not in table.columns:
            continue
        if table.columns[column].unit:
            known = number(row[column])
            if quantity == "break-even" and row.get("pays_off") == "never":
                known = "never"
            if quantity != "break-even" or known is not None:
                yield Figure(quantity, case, where, door, known)
        elif table.key == "cold-start-table":
            yield Figure(quantity, case, where, door, read(row[column]), written=True)
    if table.key == "break-even-table":
        yield Figure(f"total of {steps} steps", case, where, door, number(row["day"]))


def of_comparison(content: PageContent, selection: Case) -> Iterator[Figure]:
    """Upgrade, and what the Overview says of the same two builds."""
    page = content.link.page.value or "overview"
    for part in flat((*content.parts, *content.appendix())):
        door = f"page {page}, {part.key}"
        if isinstance(part, Headline | Lines):
            lines = (part.text,) if isinstance(part, Headline) else part.lines
            yield from tallies(lines, selection, door)
        if isinstance(part, Table) and part.key in ("upgrade-cases", "verdicts-moved", "verdicts-still"):
            for row in part.frame.to_dict("records"):
                yield from _of_verdict(row, selection, door)
        if isinstance(part, Table) and part.key == "overview-table":
            for row in part.frame.to_dict("records"):
                yield from _of_workload(row, selection, door)
        if isinstance(part, Chart) and part.key == "upgrade-forest":
            metric = content.link.metric
            for row in part.chart.frames["main"].to_dict("records"):
                case = (row["workload"], row["strategy"])
                yield Figure(f"change of {metric}", case, selection, door, number(row["change"]))
                yield Figure(f"verdict on {metric}", case, selection, door, row["verdict"])


def _of_verdict(row: Mapping[str, Any], selection: Case, door: str) -> Iterator[Figure]:
    case, metric = (row["workload"], row["strategy"]), BY_NAME[row["metric"]]
    for quantity, cell in (
        (f"{metric} of the base", row["base"]),
        (f"{metric} of the head", row["head"]),
        (f"change of {metric}", row["change"]),
    ):
        shown = as_number(read(cell)) if quantity.startswith("change") else read(cell)
        # A table of numbers has the words of what passed in the reason.
        if metric is Metric.NUMERICS and shown is None:
            continue
        yield Figure(quantity, case, selection, door, shown, written=isinstance(cell, str))
    yield Figure(f"verdict on {metric}", case, selection, door, row["tone"])


def _of_workload(row: Mapping[str, Any], selection: Case, door: str) -> Iterator[Figure]:
    """The change of latency of the strategy that the verdict names."""
    verdict, _, strategy = str(row["verdict"]).rpartition(", ")
    if verdict and number(row["change"]) is not None:
        yield Figure("change of latency", (row["workload"], strategy), selection, door, number(row["change"]))


def of_trials(content: PageContent) -> Iterator[Figure]:
    """The list of trials."""
    for part in flat(content.parts):
        if isinstance(part, Table) and part.key == "trial-table":
            for row in part.frame.to_dict("records"):
                for column in ("latency", "speedup"):
                    quantity = f"{column} of a trial"
                    shown, is_text = read(row[column]), isinstance(row[column], str)
                    yield Figure(quantity, (), (row["trial"],), "page trial", shown, written=is_text)
