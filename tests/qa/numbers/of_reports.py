"""What frozen reports tell, read back from their tables and sentences."""

from __future__ import annotations

from collections.abc import Iterator

from compilewatch.dashboard.document.content import Content, Lines, Table
from tests.qa.numbers.figures import Case, Figure, read, tallies
from tests.qa.numbers.of_comparisons import BY_NAME, as_number
from tests.qa.numbers.of_pages import NOT_A_CASE

_OF_CASES = {
    "Speedup": "speedup",
    "Break-even": "break-even",
    "Compile cost": "compile cost",
    "Compiled": "latency",
    "Peak memory": "peak memory",
    "Time to first result": "time to first result",
}
"""Titles of columns of tables of cases, and what they hold."""


def of_report(content: Content, machine: str, build: str) -> Iterator[Figure]:
    """Of a page of one build."""
    for row in _rows(content):
        if {"Workload", "Strategy"} <= row.keys() and row["Strategy"] not in NOT_A_CASE:
            case = (row["Workload"], row["Strategy"])
            for title, quantity in _OF_CASES.items():
                shown = read(row.get(title, ""))
                if not isinstance(shown, str | None):
                    yield Figure(quantity, case, (machine, build), "report", shown)


def of_comparison_report(content: Content, selection: Case) -> Iterator[Figure]:
    """Of the page Upgrade."""
    for row in _rows(content):
        if {"Workload", "Strategy", "Metric", "Base", "Head", "Change"} <= row.keys():
            case, metric = (row["Workload"], row["Strategy"]), BY_NAME[row["Metric"]]
            for side in ("base", "head"):
                shown = read(row[side.title()])
                yield Figure(f"{metric} of the {side}", case, selection, "report", shown)
            yield Figure(f"change of {metric}", case, selection, "report", as_number(read(row["Change"])))
    lines = [line for part in content.sections if isinstance(part, Lines) for line in part.lines]
    yield from tallies(lines, selection, "report")


def _rows(content: Content) -> Iterator[dict[str, str]]:
    for part in content.sections:
        if isinstance(part, Table):
            titles = [column.title for column in part.columns]
            yield from (dict(zip(titles, row, strict=True)) for row in part.rows)
