"""What freezing a page found: its parts, and what they were made from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from dashboard.links import Link
from dashboard.reports.content import ReportError, Section


@dataclass(frozen=True)
class Frozen:
    """The parts of a view. `link` says what was in focus, `builds` what it was measured with, newest first,
    and `data` are the numbers by name, for programs.
    """

    sections: tuple[Section, ...]
    link: Link
    builds: tuple[str, ...]
    data: dict[str, Any]


def newest_builds(rows: pd.DataFrame, moment: str) -> tuple[str, ...]:
    """The builds of `rows`, that of the latest `moment` first."""
    return tuple(dict.fromkeys(rows.sort_values(moment, ascending=False)["build_id"]))


def nothing_fits() -> ReportError:
    """What is raised where a view has nothing to freeze."""
    return ReportError("Nothing fits the filters of this link.", "Widen them, then freeze it.")
