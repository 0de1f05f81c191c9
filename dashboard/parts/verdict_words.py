"""Verdicts as texts: values in their unit, signed changes with intervals, and a mark beside every colour."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from compilewatch.dashboard.parts.column_units import UNITS
from compilewatch.db import units
from compilewatch.db.columns.metrics import METRICS, is_counted
from compilewatch.db.judge.compare.sides import changed_libraries
from compilewatch.db.judge.decide import overall_verdict
from compilewatch.db.judge.results import BuildSide, CaseKey, Comparison, LeftOut, Row
from compilewatch.db.judge.verdict_marks import by_reason, workload_name
from compilewatch.db.records.identity import component_name
from compilewatch.db.records.vocabulary import Metric, Verdict

NAMED_CASES = 5
SIDES_HELP = "The geometric mean of the trials that were compared; of what is counted, the count."


def workload_label(case: CaseKey, labels: Mapping[str, str]) -> str:
    """What the workload of `case` is called; `labels`: workload id -> label."""
    return labels.get(case.workload_id, case.workload)


def figure(metric: Metric, value: float | str | None) -> str:
    """`value` of `metric` in its unit."""
    return units.MISSING if value is None else units.words(METRICS[metric].write(value))


def change(row: Row) -> str:
    """How the value moved: a signed share, or the words where one side has no number."""
    if row.change is not None:
        return UNITS["change"].write(row.change)
    if is_counted(row.metric) and row.base == row.head:
        return units.MISSING
    base, head = figure(row.metric, row.base), figure(row.metric, row.head)
    return head if base == head else f"{base} → {head}"


def change_within(row: Row) -> str:
    """ "+9.40 % ± 1.10": the change with half of its interval, where it has one."""
    if row.change is None or row.interval is None:
        return change(row)
    low, high = row.interval
    return f"{change(row)} ± {units.significant((high - low) * 50)}"


def interval(row: Row) -> str:
    """The interval of the change, as two signed shares."""
    if row.interval is None:
        return units.TWO_TRIALS if min(row.trials) == 2 and row.change is not None else units.MISSING
    low, high = (units.percent(bound, signed=True) for bound in row.interval)
    return f"{low} to {high}"


def interval_title(confidence: float | None) -> str:
    """The title over intervals of changes. `confidence` is that of the policy they were judged by; None where
    several may have been, as with what was recorded in the course of time.
    """
    return "Interval" if confidence is None else f"{units.level(confidence)} interval"


def moved(row: Row) -> str:
    """Who moved: the compiled side, eager, or the machine."""
    return row.who_moved.value if row.who_moved else units.MISSING


def q_value(row: Row) -> str:
    """The q-value of the change (Benjamini and Hochberg), to two digits."""
    return units.MISSING if row.q_value is None else f"{row.q_value:.2g}"


def side_sizes(row: Row) -> str:
    """Trials of the base and of the head side."""
    return " + ".join(units.count(trials) for trials in row.trials)


def no_regression(comparison: Comparison, strategies: Sequence[str]) -> tuple[str, bool]:
    """What is said of the rows of `strategies`, of which none regressed; all where none is named. And whether
    that is shown: cases that were not compared, or that are not decided, are no good news.
    """
    rows = [row for row in comparison.rows if not strategies or row.strategy in strategies]
    left_out = sum(not strategies or case.strategy in strategies for case in comparison.left_out)
    compared = len({row.case.ids for row in rows})
    total = units.plural(compared + left_out, "case")
    undecided = sum(row.verdict is Verdict.INCONCLUSIVE for row in rows)
    still = f"{units.count(undecided)} of {units.plural(len(rows), 'figure')} not decided"
    verdict = overall_verdict(rows, comparison.policy)
    if verdict is Verdict.NOT_COMPARABLE:
        sentence = f"Nothing could be compared (0 of {total}), so whether anything regressed is not known."
    elif verdict is Verdict.INCONCLUSIVE:
        sentence = f"No regression is shown, but that is no all-clear: {still}."
    else:
        sentence = f"Nothing regressed in the newest run: {units.count(compared)} of {total} compared"
        sentence += f", {still}." if undecided else "."
    return sentence, verdict in (Verdict.IMPROVED, Verdict.UNCHANGED)


def left_out_lines(left_out: Iterable[LeftOut]) -> list[str]:
    """One line per reason, the most common first, with the first cases by name."""
    lines = []
    for cases in by_reason(left_out):
        names = [f"{workload_name(case)} with {case.strategy}" for case in cases]
        what = f"{units.plural(len(cases), 'case')} {cases[0].verdict.value}"
        lines.append(f"{what}: {cases[0].reason.rstrip('.')}: {units.first_of(names, NAMED_CASES)}")
    return lines


def side_parts(side: BuildSide, rows: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The parts of the build of a side, of several builds what they share. `rows`: build id -> its parts."""
    own = rows.get(side.build_ids[0], {}) if len(side.build_ids) == 1 else {}
    return {**own, **side.components}


def environment_diff(
    base: Mapping[str, object], head: Mapping[str, object], changed: Collection[str]
) -> list[dict[str, str]]:
    """One row per part that differs between two builds: `part`, `base`, `head`.

    `changed` names components; further libraries are set against each other where both recorded them.
    """
    rows = [_part(component_name(name), base.get(name), head.get(name)) for name in changed]
    before, after = (_mapping(side.get("packages")) for side in (base, head))
    more = (name for name in changed_libraries(before, after) if name not in changed)
    return rows + [_part(name, before.get(name), after.get(name)) for name in more]


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _part(name: str, base: object, head: object) -> dict[str, str]:
    return {"part": name, "base": component_text(base), "head": component_text(head)}


def component_text(value: object) -> str:
    """What a build has of a component; a dash where it has none, which tables of builds hold as NaN."""
    return units.MISSING if value is None or value == "" or value != value else str(value)  # noqa: PLR0124
