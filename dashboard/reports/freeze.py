"""Making a report: what a link or a comparison shows now, kept as it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pandas as pd

from compilewatch import __version__
from compilewatch.dashboard.api.comparisons import comparison_document
from compilewatch.dashboard.document.content import (
    Chart,
    Content,
    FrozenColumn,
    Lines,
    ReportError,
    Section,
    Table,
)
from compilewatch.dashboard.document.page import render
from compilewatch.dashboard.document.sections import cell, sections, table
from compilewatch.dashboard.links import links
from compilewatch.dashboard.links.links import MODELS, PAGES, Link, Page, verdict_metric
from compilewatch.dashboard.links.sentence import sentence
from compilewatch.dashboard.login.access import Role, require
from compilewatch.dashboard.pages.break_even.content import EVERY_WORKLOAD
from compilewatch.dashboard.pages.guide.content import policy_part
from compilewatch.dashboard.pages.registry import CONTENTS
from compilewatch.dashboard.pages.upgrade import content as upgrade
from compilewatch.dashboard.pages.upgrade.focus import in_focus
from compilewatch.dashboard.parts import verdict_words
from compilewatch.dashboard.parts.cases import floors_of
from compilewatch.dashboard.parts.model import FACTS
from compilewatch.dashboard.parts.parts import Empty, PageContent, Part, titled
from compilewatch.dashboard.read.choices import Choices
from compilewatch.dashboard.read.data import (
    filters_of,
    read_choices,
    read_choices_on,
    read_explanations,
    read_regressions,
    read_ungated,
    read_workloads,
    side_of,
)
from compilewatch.dashboard.read.database import in_force, reader
from compilewatch.dashboard.read.requested import resolved_link
from compilewatch.dashboard.read.shaping import BUILD_COMPONENTS, labels_of
from compilewatch.dashboard.read.versions import drawn_version, one_version
from compilewatch.dashboard.render.shell import resolved_view
from compilewatch.dashboard.verdicts import inbox
from compilewatch.dashboard.verdicts.context import context_line
from compilewatch.dashboard.verdicts.pair import with_builds
from compilewatch.db import units
from compilewatch.db.engine.session import open_database
from compilewatch.db.errors import NotFoundError, one_line
from compilewatch.db.metrics.groups import row_dicts
from compilewatch.db.queries import facets
from compilewatch.db.queries.causes import traced_changes
from compilewatch.db.queries.selection import Filters
from compilewatch.db.records.people import Report, new_report_id
from compilewatch.db.records.trial import UNGATED_MEANS
from compilewatch.db.records.vocabulary import Metric
from compilewatch.db.service.reports import REPORTS
from compilewatch.db.verdicts.gateway import compare
from compilewatch.db.verdicts.sides import Sides, resolve_sides

LARGEST_BYTES = 200_000
"""A report is sent around and opened on phones."""
# As many rows of a table, the first, say more than a chart does.
_FEWEST_ROWS = 30
_CUT = "Cut to the first rows; the frozen data has all."
_MOST_BUILDS = 4
_MACHINE_PARTS = ("machine", "device", "device_name", "cpu_name", "cpu_count", "threads", "ram_bytes")
FREEZABLE = frozenset({*CONTENTS, Page.UPGRADE} - {Page.REPORTS})
"""Pages that a report can be made of."""


@dataclass(frozen=True)
class _Shown:
    """What was found, before it is signed."""

    subject: str
    timing: str
    made_from: str
    sections: tuple[Section, ...]
    environment: Table
    data: dict[str, Any]


@one_version()
def freeze_link(url: str, *, title: str | None, by: str, at: datetime) -> Content:
    """What `url` shows now. Raises ReportError where it does not mean exactly one view."""
    choices = read_choices()
    view = resolved_view(_link(url, choices), choices)
    link = replace(view.link, data=drawn_version())
    choices = read_choices_on(link.machine)
    shown = (_upgrade if link.page is Page.UPGRADE else _view)(choices, link)
    context = Lines(lines=(f"{context_line(link, at, dated=True)}.",))
    shown = replace(shown, sections=(context, *shown.sections))
    return _signed(shown, choices, title=title, by=by, at=at)


@one_version()
def freeze_comparison(base: str, head: str, *, title: str | None, by: str, at: datetime) -> Content:
    """The verdict on `head` against `base`, named as for `compilewatch compare`."""
    choices = read_choices()
    sides = resolve_sides(base, head, reader())
    shown = _compared(
        choices, sides, Filters(), Metric.LATENCY, made_from=f"compilewatch compare {base} {head}"
    )
    return _signed(shown, choices, title=title, by=by, at=at)


def _link(url: str, choices: Choices) -> Link:
    """Raises ReportError for anything that a page would only mention: a report shows what was asked for."""
    if choices.newest_machine is None:
        raise ReportError("Nothing has been measured yet.", "Measure with `compilewatch run`.")
    link, problems = links.read_url(url.strip())
    resolved, unknown, _ = resolved_link(link, choices)
    if problems or unknown:
        raise ReportError(" ".join((*problems, *unknown)), "Correct the link, then freeze it.")
    return resolved


def _upgrade(choices: Choices, link: Link) -> _Shown:
    link = _with_builds(link)
    pair = ((str(link.base), link.base_run), (str(link.head), link.head_run))
    base, head = (side_of(choices.builds[key], key, runs) for key, runs in pair)
    sides = Sides(base, head)
    made_from = links.href(link, full=True)
    return _compared(choices, sides, filters_of(link), verdict_metric(link), made_from=made_from, link=link)


def _with_builds(link: Link) -> Link:
    """Both builds named, as the page names them. Raises ReportError where there are no two."""
    if link.base and link.head:
        return link
    resolved = with_builds(link)
    if not (resolved.base and resolved.head):
        raise ReportError(
            "Under the filters of this link fewer than two builds can be compared.",
            "Name both builds in the link, or widen its filters.",
        )
    return resolved


def _compared(
    choices: Choices,
    sides: Sides,
    filters: Filters,
    metric: Metric,
    *,
    made_from: str,
    link: Link | None = None,
) -> _Shown:
    base, head, remarks, machine_id = sides
    comparison = compare(
        reader(), base, head, filters, machine_id=machine_id, policy=in_force().policy, remarks=remarks
    )
    labels = labels_of(read_workloads(filters))
    floors = floors_of(comparison.machine_id)
    why, code = read_explanations(comparison), traced_changes(reader(), comparison)
    beside = upgrade.Beside(why=why, code=code, floors=floors)
    if link is not None:
        beside = replace(
            beside,
            recorded=inbox.chosen(read_regressions(), upgrade.inbox_link(link)),
            in_focus=in_focus(link, comparison, labels),
        )
    shown = upgrade.content_of(
        comparison, labels, link or Link(page=Page.UPGRADE, metric=metric.value), beside
    )
    built = {
        f"{name}: {side.name}": verdict_words.side_parts(side, choices.build_rows)
        for name, side in (("base", comparison.base), ("head", comparison.head))
    }
    return _Shown(
        subject=f"{head.name} against {base.name} on {comparison.machine}.",
        timing=_timing(replace(filters, builds=(*comparison.base.build_ids, *comparison.head.build_ids))),
        made_from=made_from,
        sections=sections((*shown.parts, *shown.appendix()), narrow=True),
        environment=environment(_machine(comparison.machine_id), built),
        data={"comparison": comparison_document(reader(), comparison)},
    )


def _view(choices: Choices, link: Link) -> _Shown:
    view = _page(link)
    shown = (*view.parts, *_other_tabs(view.link), *view.appendix())
    return _Shown(
        subject=sentence(view.link, choices.names),
        timing="" if link.trial else _timing(filters_of(link)),  # a trial says it of itself
        made_from=links.href(view.link, full=True),
        sections=sections(shown, narrow=True),
        environment=environment(
            _machine(link.machine),
            {choices.builds[key]: choices.build_rows[key] for key in view.builds[:_MOST_BUILDS]},
        ),
        data=view.data(),
    )


def _page(link: Link) -> PageContent:
    """The page of `link`, whose machine and build are resolved. It shows the workload asked for or none.

    Raises ReportError for a page that cannot be frozen, or that shows nothing under these filters.
    """
    if link.page not in FREEZABLE:
        raise ReportError(
            f"The page {PAGES[link.page].title} cannot be frozen.", "Freeze a page that shows measurements."
        )
    try:
        page = CONTENTS[link.page](link)
    except NotFoundError as error:
        raise ReportError(error.message, error.next_step) from error
    if not page.builds:
        if link.page is Page.MACHINES:
            raise ReportError(
                "Under the filters of this link no two machines can be compared.",
                "Measure the same suite on another, or widen the filters.",
            )
        raise ReportError("Nothing fits the filters of this link.", "Widen them, then freeze it.")
    if link.focus not in (None, page.link.focus):
        raise ReportError(f"{link.focus} has nothing under these filters.", "Widen them, then freeze it.")
    return page


def _other_tabs(link: Link) -> tuple[Part, ...]:
    """What the tabs beside its history say of a model; its trials are a list to choose from."""
    if link.page is not Page.WORKLOAD or link.focus is None:
        return ()
    choices = read_choices_on(link.machine)
    shown = []
    for tab in MODELS:
        if tab in (Page.WORKLOAD, Page.TRIAL):
            continue
        page = CONTENTS[tab](resolved_view(links.beside(link, tab), choices).link)
        own = [part for part in page.parts if part.key not in (FACTS, EVERY_WORKLOAD)]
        if page.link.focus == link.focus and not any(isinstance(part, Empty) for part in own):
            shown.append(titled(PAGES[tab].title, *own))
    return tuple(shown)


def _timing(filters: Filters) -> str:
    """That times are ungated, where some are."""
    return UNGATED_MEANS if read_ungated(filters) else ""


def _machine(machine_id: str | None) -> dict[str, Any] | None:
    machines = facets.machines(reader())
    return next((row for row in row_dicts(machines) if row["machine_id"] == machine_id), None)


def environment(machine: Mapping[str, Any] | None, builds: Mapping[str, Mapping[str, Any]]) -> Table:
    """The machine, and each build's parts beside each other. `builds` maps a name to the parts."""
    rows = []
    for part in _MACHINE_PARTS:
        value = (machine or {}).get(part)
        text = units.size(value) if part.endswith("_bytes") else cell(value)
        rows.append((part.replace("_", " "), *([text] * max(1, len(builds)))))
    names = (*BUILD_COMPONENTS, "packages")
    rows += [
        (part.replace("_", " "), *(cell(build.get(part)) for build in builds.values())) for part in names
    ]
    titles = tuple(builds) or ("machine",)
    return Table(
        title="Environment",
        columns=(FrozenColumn(title="part"), *(FrozenColumn(title=name) for name in titles)),
        rows=tuple(row for row in rows if any(value != units.MISSING for value in row[1:])),
    )


def _signed(shown: _Shown, choices: Choices, *, title: str | None, by: str, at: datetime) -> Content:
    newest = choices.newest_result_at
    content = Content(
        title=one_line(title or shown.subject.removesuffix(".")),
        subject=" ".join(filter(None, (shown.subject, shown.timing))),
        link=shown.made_from,
        created_at=at,
        created_by=by,
        program_version=__version__,
        data_version=drawn_version(),
        newest_result_at=None if newest is None else pd.Timestamp(newest).to_pydatetime(),
        sections=shown.sections,
        environment=shown.environment,
        policy=table(policy_part(in_force().policy)),
        data=shown.data,
    )
    return _fitting(content)


def _fitting(content: Content) -> Content:
    """`content` without what a phone alone shows and with shorter tables until its page is small enough;
    without its largest charts where even tables of `_FEWEST_ROWS` leave these no room.
    """
    if _fits(content):
        return content
    content = _with_sections(content, _for_wide_screens)
    while not _fits(shortened := _shortened(content, to=_FEWEST_ROWS)):
        without = _without_largest_chart(content)
        if without is None:
            return _shortened(content, to=1)
        content = without
    return shortened


def _for_wide_screens(section: Section) -> Section:
    return section.model_copy(update={"narrow": ""}) if isinstance(section, Chart) else section


def _fits(content: Content) -> bool:
    return len(render(content).encode()) <= LARGEST_BYTES


def _shortened(content: Content, *, to: int) -> Content:
    """The longest tables halved again and again until `content` fits or none has more than `to` rows."""
    while not _fits(content):
        longest = max((len(part.rows) for part in content.sections if isinstance(part, Table)), default=0)
        if longest <= to:
            break
        content = _with_shorter_tables(content, longest, max(to, longest // 2))
    return content


def _without_largest_chart(content: Content) -> Content | None:
    charts = [section for section in content.sections if isinstance(section, Chart)]
    if not charts:
        return None
    largest = max(charts, key=lambda chart: len(chart.svg))
    note = Lines(
        title=largest.title, lines=("The chart is too large for a report; the tables say the same.",)
    )
    return _with_sections(content, lambda section: note if section is largest else section)


def _with_shorter_tables(content: Content, longest: int, rows: int) -> Content:
    def shortened(section: Section) -> Section:
        if not isinstance(section, Table) or len(section.rows) < longest:
            return section
        note = section.note if _CUT in section.note else f"{_CUT} {section.note}".strip()
        return section.model_copy(update={"rows": section.rows[:rows], "note": note})

    return _with_sections(content, shortened)


def _with_sections(content: Content, change: Callable[[Section], Section]) -> Content:
    return content.model_copy(update={"sections": tuple(change(section) for section in content.sections)})


# Putting a frozen report into the database, under an id that nobody can guess.


def store_report(database_url: str, content: Content) -> str:
    """The id of the new report. Raises AccessError for who may not make one, DatabaseError."""
    require(Role.EDITOR)
    report = Report(
        report_id=new_report_id(),
        title=content.title,
        created_at=content.created_at,
        created_by=content.created_by,
        data_version=content.data_version,
        content=content.model_dump(mode="json"),
    )
    with open_database(database_url) as database:
        REPORTS.add(database, report)
    return report.report_id
