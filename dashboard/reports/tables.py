"""Frames and facts as tables of a report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from dashboard.reports.content import Column, Table
from dashboard.shaping import BUILD_COMPONENTS, told_columns
from db import units
from db.verdicts.policy import Policy
from db.verdicts.policy_entries import policy_entries

MOST_ROWS = 250
_MACHINE_PARTS = ("machine", "device", "device_name", "cpu_name", "cpu_count", "threads", "ram_bytes")


def table_of(
    frame: pd.DataFrame,
    columns: Mapping[str, str],
    *,
    title: str = "",
    numeric: Iterable[str] = (),
    tones: Sequence[str] = (),
    note: str = "",
) -> Table:
    """The columns of `frame` named in `columns` (name -> title), cut to `MOST_ROWS` rows, and that said after
    `note`.
    """
    columns, right = told_columns(columns, frame), set(numeric)
    shown = frame.head(MOST_ROWS)
    rest = len(frame) - len(shown)
    more = f"{units.plural(rest, 'more row')} in the frozen data." if rest else ""
    return Table(
        title=title,
        columns=tuple(Column(title=title, numeric=name in right) for name, title in columns.items()),
        rows=tuple(
            tuple(_cell(value) for value in row) for row in shown[list(columns)].itertuples(index=False)
        ),
        tones=tuple(tones[: len(shown)]),
        note=f"{note} {more}".strip(),
    )


def _cell(value: Any) -> str:
    """A value as text; what is missing is a dash."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {_cell(item)}" for key, item in value.items()) or units.MISSING
    missing = value is None or value is pd.NA or value is pd.NaT or value != value  # noqa: PLR0124
    return units.MISSING if missing or value == "" else str(value)


def environment(machine: Mapping[str, Any] | None, builds: Mapping[str, Mapping[str, Any]]) -> Table:
    """The machine, and each build's parts beside each other. `builds` maps a name to the parts."""
    rows = []
    if machine is not None:
        rows = [
            (part.replace("_", " "), *([_machine_cell(part, machine.get(part))] * max(1, len(builds))))
            for part in _MACHINE_PARTS
        ]
    parts = (*BUILD_COMPONENTS, "packages", "settings")
    rows += [
        (part.replace("_", " "), *(_cell(build.get(part)) for build in builds.values())) for part in parts
    ]
    names = tuple(builds) or ("machine",)
    return Table(
        title="Environment",
        columns=(Column(title="part"), *(Column(title=name) for name in names)),
        rows=tuple(row for row in rows if any(value != units.MISSING for value in row[1:])),
    )


def _machine_cell(part: str, value: Any) -> str:
    return units.size(value) if part.endswith("_bytes") else _cell(value)


def policy_table(policy: Policy) -> Table:
    """Every constant by which verdicts were made."""
    return Table(
        title="Policy in force",
        columns=(Column(title="constant"), Column(title="value", numeric=True), Column(title="meaning")),
        rows=tuple((entry.name, entry.value, entry.meaning) for entry in policy_entries(policy)),
    )
