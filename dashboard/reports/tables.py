"""Frames and facts as tables of a report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from dashboard.api.representation import rows_of
from dashboard.charts.style import PreparedChart
from dashboard.links.links import Link
from dashboard.pages import parts
from dashboard.pages.guide.content import policy_part
from dashboard.read.shaping import BUILD_COMPONENTS
from dashboard.reports.content import Column, Frozen, Section, Table, newest_builds, nothing_fits
from dashboard.reports.sections import cell, sections, table
from db.judge.policy import Policy
from db.wording import units

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
    right = set(numeric)
    titled = {name: parts.Column(text, numeric=name in right) for name, text in columns.items()}
    return table(parts.Table("", "", frame, titled, title=title, note=note, tones=tuple(tones)))


def environment(machine: Mapping[str, Any] | None, builds: Mapping[str, Mapping[str, Any]]) -> Table:
    """The machine, and each build's parts beside each other. `builds` maps a name to the parts."""
    rows = []
    if machine is not None:
        rows = [
            (part.replace("_", " "), *([_machine_cell(part, machine.get(part))] * max(1, len(builds))))
            for part in _MACHINE_PARTS
        ]
    names = (*BUILD_COMPONENTS, "packages", "settings")
    rows += [
        (part.replace("_", " "), *(cell(build.get(part)) for build in builds.values())) for part in names
    ]
    titles = tuple(builds) or ("machine",)
    return Table(
        title="Environment",
        columns=(Column(title="part"), *(Column(title=name) for name in titles)),
        rows=tuple(row for row in rows if any(value != units.MISSING for value in row[1:])),
    )


def _machine_cell(part: str, value: Any) -> str:
    return units.size(value) if part.endswith("_bytes") else cell(value)


def policy_table(policy: Policy) -> Table:
    """Every constant by which verdicts were made."""
    return table(policy_part(policy))


def charted(chart: PreparedChart, *, caption: str, alt: str) -> tuple[Section, ...]:
    """A chart as the page has it, with what it says below; nothing where it has nothing to draw."""
    return () if chart.spec is None else sections((parts.Chart("", alt, chart, caption),))


def listed(title: str, lines: Iterable[str]) -> tuple[Section, ...]:
    """Sentences below each other under a title; nothing where there are none."""
    return sections(parts.listed(title, tuple(lines)))


def of_cases(sections: tuple[Section, ...], cases: pd.DataFrame, link: Link) -> Frozen:
    if cases.empty:
        raise nothing_fits()
    return Frozen(sections, link, newest_builds(cases, "last_started_at"), {"cases": rows_of(cases)})
