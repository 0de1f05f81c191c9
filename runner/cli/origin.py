"""The mark of what was not measured here, as the pages write it behind a workload."""

from __future__ import annotations

from db.verdicts.results import CaseKey, LeftOut
from db.wording.marks import origin_mark


def marked(case: CaseKey | LeftOut) -> str:
    """The name of the case's workload, with where its numbers come from and how they were timed."""
    return case.workload + origin_mark(
        case.source_kind, case.source_name, getattr(case, "timing_method", None)
    )
