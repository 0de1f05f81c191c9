"""The mark of what was not measured here, as the pages write it behind a workload."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from db.records import SourceKind
from db.verdicts.results import CaseKey, LeftOut


def marked(case: CaseKey | LeftOut) -> str:
    """The name of the case's workload, with where its numbers were imported from."""
    return case.workload + _mark(case.source_kind, case.source_name)


def mark_of(row: Mapping[Any, Any]) -> str:
    """The mark of a row with the columns `source_kind` and `source_name`; empty for what was measured."""
    return _mark(row["source_kind"], row["source_name"])


def _mark(kind: str | None, name: str | None) -> str:
    return f" (imported, {name})" if kind == SourceKind.IMPORTED else ""
