"""The Overview as the parts of a report: headline figures, what is open, the newest build, every workload."""

from __future__ import annotations

from dashboard.links.links import Link
from dashboard.pages.cases import cases_of
from dashboard.pages.overview import content, headline
from dashboard.pages.regressions import inbox
from dashboard.read.data import read_choices_on
from dashboard.read.shaping import build_changes, confounded
from dashboard.read.snapshots import Snapshot
from dashboard.reports.content import Figures, Frozen, Lines, Section, nothing_fits
from dashboard.reports.tables import case_parts, charted, listed, of_cases, table_of
from db.wording import units
from db.wording.marks import BOUND_TITLE

_WORKLOADS = {
    "workload": "Workload",
    "task": "Task",
    "state": "State",
    "strategy": "Best compiled",
    "speedup": "Speedup",
    "interval": "95 % interval",
    "eager": "Eager latency",
    "latency": "Latency",
    **BOUND_TITLE,
    "break_even": "Break-even",
}
_WORKLOAD_NUMBERS = ("speedup", "interval", "eager", "latency", "break_even")
_MEANS = {
    "task": "Task",
    "strategy": "Strategy",
    "matched": "Matched set (cases)",
    "naive": "Own set (cases)",
    "left_out": "Left out of the matched set",
}


def frozen(snapshot: Snapshot, link: Link) -> Frozen:
    """What the page shows of one build on one machine."""
    seen = content.page_content(snapshot, link)
    if seen is None:
        raise nothing_fits()
    cases = cases_of(snapshot, link)
    parts = (
        _figures(snapshot, link, seen),
        *((Lines(lines=(seen.noise_floor,)),) if seen.noise_floor else ()),
        *listed(
            units.plural(len(seen.regressed.regressions), "open regression"),
            map(inbox.line, seen.regressed.regressions),
        ),
        *charted(
            seen.speedups,
            caption="Each point is a case, its bar the 95 % interval. The dotted line is eager.",
            alt="Speedup over eager of every compiled case with its interval",
        ),
        table_of(seen.workloads, _WORKLOADS, title="Every workload", numeric=_WORKLOAD_NUMBERS),
        *_build(snapshot, link, seen),
        *listed("Beside the numbers", seen.beside),
        *_means(seen),
        *case_parts(cases),
    )
    return of_cases(parts, cases, link)


def _figures(snapshot: Snapshot, link: Link, seen: content.PageContent) -> Section:
    compared_to = content.compared_to(read_choices_on(snapshot, link.machine), seen.build_before, link.build)
    covered = seen.covered
    return Figures(
        figures=(
            *((_title(item), _mean(item, compared_to)) for item in seen.headlines),
            ("Open regressions", units.count(len(seen.regressed.regressions))),
            ("Cases compared", f"{covered.compared} of {covered.wanted}"),
            ("Failing cases", units.count(seen.failing)),
            ("Last run", units.moment(seen.last_started_at)),
        )
    )


def _title(item: headline.Headline) -> str:
    over = f"{item.strategy}, {units.plural(item.cases, 'case')}"
    return f"{item.task.value.capitalize()} speedup ({over})"


def _mean(item: headline.Headline, compared_to: str | None) -> str:
    change = content.change_words(item)
    return f"{units.ratio(item.now)}, {change} {compared_to}" if change else units.ratio(item.now)


def _build(snapshot: Snapshot, link: Link, seen: content.PageContent) -> tuple[Section, ...]:
    """What the newest build changed against the one before."""
    choices = read_choices_on(snapshot, link.machine)
    if seen.build_before is None or not link.build:
        return ()
    builds = choices.build_rows
    changes = build_changes(builds[seen.build_before], builds[link.build])
    title = f"What changed against {choices.builds[seen.build_before]}"
    if not changes:
        return (Lines(title=title, lines=("Only settings, packages or sources differ.",)),)
    columns = {"part": "Part", "before": "Before", "after": "Now"}
    said = "Several parts changed at once: a change in speed cannot be put down to one of them."
    note = said if confounded(changes) else ""
    return (table_of(content.change_table(changes), columns, title=title, note=note),)


def _means(seen: content.PageContent) -> tuple[Section, ...]:
    if seen.means.empty:
        return ()
    title = "Geometric mean speedup by strategy"
    said = (
        "Matched: only workloads that passed with every strategy of the task. Own set: each strategy over "
        "whatever it passed, which rises when slow cases fail."
    )
    return (table_of(seen.means, _MEANS, title=title, numeric=("matched", "naive"), note=said),)
