"""One case of a comparison: the trials of both sides, every number, its history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from compilewatch.dashboard.links.links import Link, requested_metric, verdict_metric
from compilewatch.dashboard.parts import parts, verdict_words
from compilewatch.dashboard.parts.parts import Empty, Part
from compilewatch.dashboard.read.data import filters_of, read_explanation, read_pair, read_trials
from compilewatch.dashboard.verdicts.evidence import evidence_parts, issue_of_case
from compilewatch.dashboard.verdicts.history import history_parts
from compilewatch.dashboard.verdicts.side_by_side import side_by_side
from compilewatch.db.judge.results import Comparison
from compilewatch.db.judge.verdict_marks import workload_name
from compilewatch.db.records.trial import bound_word


def in_focus(link: Link, comparison: Comparison, labels: Mapping[str, str]) -> tuple[Part, ...]:
    """Both sides of the case that `link` is about; nothing where it is about none, or about a model
    whose strategies stand in the forest.
    """
    cases = {(verdict_words.workload_label(row.case, labels), row.strategy) for row in comparison.rows}
    if link.focus is None or (link.focus_strategy is None and link.focus in {model for model, _ in cases}):
        return ()
    title = f"{link.focus} with {link.focus_strategy or 'any strategy'}"
    wanted = (link.focus, link.focus_strategy)
    rows = [
        row
        for row in comparison.rows
        if (verdict_words.workload_label(row.case, labels), row.strategy) == wanted
    ]
    if not rows:
        reasons = [
            f"{title}: left out of the comparison, {case.verdict}: {case.reason}"
            for case in comparison.left_out
            if (workload_name(case), case.strategy) == wanted
        ]
        return (Empty([*reasons, f"{title} is no case of this comparison."][0], key="focus"),)
    metric, case = verdict_metric(link), rows[0].case
    title = ", ".join(filter(None, (title, bound_word(rows[0].bound))))
    sides = (comparison.base, comparison.head)
    case_rows = tuple(row for row in comparison.rows if row.case == case)
    asked = read_pair(link, asked=requested_metric(link)).with_requested()
    builds = replace(filters_of(link), builds=(str(link.base), str(link.head)))
    return (
        *parts.notes(read_explanation(comparison.machine_id, sides, case_rows)),
        *evidence_parts(
            read_trials(builds),
            sides,
            case,
            [row for row in asked.rows if row.case == case],
            metric,
            title=title,
            key="upgrade-case",
            confidence=comparison.policy.confidence,
        ),
        *side_by_side(builds, sides, case, case_rows),
        *history_parts(link.machine, case, metric, key="upgrade-series"),
        *issue_of_case(builds, sides, case),
    )
