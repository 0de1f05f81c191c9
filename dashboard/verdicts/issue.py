"""A case as an issue: the one text of `db.verdicts.issue`, to be copied."""

from __future__ import annotations

from collections.abc import Sequence

from compilewatch.dashboard.parts.parts import Folded, Lines, Part
from compilewatch.dashboard.read.data import read_comparison, read_trials
from compilewatch.dashboard.read.database import reader
from compilewatch.dashboard.read.versions import cached
from compilewatch.dashboard.verdicts.evidence_charts import side_trials
from compilewatch.db.errors import NotFoundError
from compilewatch.db.judge.compare.sides import Selection
from compilewatch.db.judge.results import BuildSide, CaseKey, Comparison
from compilewatch.db.queries.selection import Filters
from compilewatch.db.records.trial import SourceKind
from compilewatch.db.verdicts.issue import issue_sides, issue_text


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
