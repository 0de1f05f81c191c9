"""Verdicts as people read them: in one order, with one mark each, in the same words everywhere."""

from __future__ import annotations

from collections.abc import Iterable

from compilewatch.db import units
from compilewatch.db.judge.results import CaseKey, LeftOut, Row
from compilewatch.db.records.trial import origin_mark
from compilewatch.db.records.vocabulary import Verdict

MARKS: dict[Verdict, str] = {
    Verdict.REGRESSED: "✗",
    Verdict.IMPROVED: "✓",
    Verdict.UNCHANGED: "=",
    Verdict.INCONCLUSIVE: "?",
    Verdict.NOT_COMPARABLE: units.MISSING,
    Verdict.MISSING: units.MISSING,
}
"""What stands beside every colour, for those who see none."""

WORST_FIRST = (
    Verdict.REGRESSED,
    Verdict.INCONCLUSIVE,
    Verdict.IMPROVED,
    Verdict.UNCHANGED,
    Verdict.NOT_COMPARABLE,
    Verdict.MISSING,
)
"""Of several verdicts on one case the first of these stands for all."""


def marked(verdict: Verdict) -> str:
    """Mark and word: "✗ regressed"."""
    return f"{MARKS[verdict]} {verdict.value}"


def row_verdict(row: Row) -> str:
    """Mark and word of a row; a suspicion is said, for it asks to be confirmed."""
    suspected = row.suspected and row.verdict is Verdict.INCONCLUSIVE
    return f"{MARKS[row.verdict]} suspected" if suspected else marked(row.verdict)


def worst_first(rows: Iterable[Row]) -> list[Row]:
    """What regressed without a number, then by the size of the change, decided or not, then by verdict."""
    return sorted(
        rows,
        key=lambda row: (
            not (row.change is None and row.verdict is Verdict.REGRESSED),
            -abs(row.log_change),
            WORST_FIRST.index(row.verdict),
            row.workload,
            row.strategy,
            row.metric,
        ),
    )


def workload_name(case: CaseKey | LeftOut) -> str:
    """The workload of a case, with where its numbers come from and how they were timed."""
    timing = case.timing_method if isinstance(case, CaseKey) else None
    return case.workload + origin_mark(case.source_kind, case.source_name, timing)


def by_reason(left_out: Iterable[LeftOut]) -> list[list[LeftOut]]:
    """Cases that were not compared, those of one verdict and reason together, the most common first."""
    groups: dict[tuple[Verdict, str], list[LeftOut]] = {}
    for case in left_out:
        groups.setdefault((case.verdict, case.reason), []).append(case)
    return sorted(groups.values(), key=len, reverse=True)
