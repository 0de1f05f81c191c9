"""The frame around every page: navigation, global filters, title, freshness; and the frame of Models with its
tabs.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from compilewatch.dashboard.links import links
from compilewatch.dashboard.links.links import MENU, MODELS, PAGES, Link, Page, heading, shows_all_builds
from compilewatch.dashboard.login.access import person_here, sign_out_path
from compilewatch.dashboard.parts.model import FACTS
from compilewatch.dashboard.parts.parts import Lines, PageContent, Part, named
from compilewatch.dashboard.read.choices import Choices
from compilewatch.dashboard.read.data import (
    filters_of,
    newest_build,
    read_choices_on,
    read_strategies,
    read_ungated,
)
from compilewatch.dashboard.read.database import reader
from compilewatch.dashboard.read.requested import first_machine
from compilewatch.dashboard.read.versions import drawn_version
from compilewatch.dashboard.render import controls
from compilewatch.dashboard.text import glossary, theme
from compilewatch.dashboard.text.foreign_text import escaped
from compilewatch.dashboard.verdicts.context import context_line
from compilewatch.db import units
from compilewatch.db.engine.session import Database
from compilewatch.db.errors import CompilewatchError
from compilewatch.db.queries import data_version
from compilewatch.db.records.strategies import EAGER
from compilewatch.db.records.trial import UNGATED_MEANS, CacheState, Task
from compilewatch.db.service.reports import reports_revision

_LOGO = (
    "data:image/svg+xml;base64," + b64encode((Path(__file__).parents[1] / "logo.svg").read_bytes()).decode()
)
_BOX_PX, _WIDEST_BOX_PX = 128, 340
_LETTER_PX, _BESIDE_WORDS_PX = 7.4, 52
_CACHES = [str(state) for state in CacheState if state is not CacheState.NONE]


@dataclass(frozen=True)
class View:
    """What a page gets: the link as asked for, the same with its defaults resolved, and where to read."""

    requested: Link
    link: Link
    newest_build: str | None
    choices: Choices

    @property
    def empty(self) -> bool:
        """Whether nothing has been measured yet."""
        return self.choices.newest_machine is None


def navigation(pages: Mapping[Page, st.Page], link: Link, *, waiting: int, empty: bool) -> None:
    """The name of the dashboard and the entries on top of every page. They keep the filters and the model in
    focus; that of the page that is open leads from one model to all. `waiting` are the changes of the inbox
    that are open.

    Those of `st.navigation(position="top")` drop the filters, mark no entry on the tabs of Models, and are
    behind a button on a phone.
    """
    shown = {"Today": MENU["Today"], "Runs": MENU["Runs"]} if empty else MENU
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        st.markdown(f"![compilewatch]({_LOGO})", width="content")
        for entry, behind in shown.items():
            count = f" ({units.count(waiting)})" if entry == "Inbox" and waiting else ""
            page = link.page if link.page in behind else behind[0]
            target = links.move(link, page)
            if page is not link.page and page in links.SELECTORS["focus"]:
                target = replace(target, focus=link.focus)
            st.page_link(pages[page], label=f"{entry}{count}", query_params=links.query(target))


def _filters(view: View) -> None:
    """What is chosen besides machine, build and suite."""
    keys = links.keys_of(view.link.page)
    if "task" not in keys and "workload" not in keys:
        return
    with filter_box("Filters", view, "task", "workload"):
        if "task" in keys:
            controls.pills("task", "Task", {str(task): task.capitalize() for task in Task})
        if "workload" in keys:
            controls.several("workload", "Workloads", view.choices.workloads, everything="All workloads")


def filter_box(label: str, view: View, *keys: str) -> DeltaGenerator:
    """A closed box for the filters `keys`, with how many values are chosen in it."""
    chosen = sum(len(getattr(view.requested, key)) for key in keys if key in links.keys_of(view.link.page))
    count = f" ({units.count(chosen)})" if chosen else ""
    return st.popover(f"{label}{count}", icon=":material/filter_alt:", key=f"box-{label}")


def _has_filters(view: View) -> bool:
    """One trial is of its own machine and build, whatever filters say."""
    return not view.empty and PAGES[view.link.page].filtered and not view.link.trial


def _chosen_context(view: View) -> None:
    choices = view.choices
    first = first_machine()
    opens_on = choices.machine_names.get(first.machine_id, "") if first else "none"
    newest_build = choices.builds.get(view.newest_build or "", "none")
    no_build = "All builds" if shows_all_builds(view.link) else f"Newest: {newest_build}"
    offered = [*choices.offered_builds, *filter(None, [view.requested.build])]
    newest_first = {key: choices.builds[key] for key in reversed(list(dict.fromkeys(offered)))}
    no_machine = "All machines" if PAGES[view.link.page].all_machines else opens_on
    keys = links.keys_of(view.link.page)
    machines = {"": no_machine, **choices.machines}
    controls.one_of("machine", "Machine", machines, width_px=_box_px(machines))
    if "build" in keys:
        builds = {"": no_build, **newest_first}
        controls.one_of("build", "Build", builds, width_px=_box_px(builds))
    if "suite" in keys:
        suites = {"": "All suites", **{suite: suite for suite in choices.suites}}
        controls.one_of("suite", "Suite", suites, width_px=_box_px(suites))


def _box_px(words: Mapping[str, str]) -> int:
    """So wide that each of `words` is whole, as far as a phone has room for it."""
    longest = max(map(len, words.values()))
    return min(_WIDEST_BOX_PX, max(_BOX_PX, _BESIDE_WORDS_PX + round(_LETTER_PX * longest)))


def header(view: View, problems: tuple[str, ...], remarks: tuple[str, ...] = ()) -> DeltaGenerator:
    """Title, machine, build and suite to be chosen, the line of context, what the link asked for in vain, and
    `remarks` on the builds that were taken for a name.

    Returns the place beside the title that is kept for what can be done with the page.
    """
    page = view.link.page
    with st.container(horizontal=True, vertical_alignment="center"):
        st.title(heading(page), anchor=False, width="content")
        if _has_filters(view):
            _chosen_context(view)
            _filters(view)
        st.space("stretch")
        place = st.container(width="content")
    if not view.empty and PAGES[page].filtered:
        ungated = _has_filters(view) and read_ungated(filters_of(view.link))
        first = None if view.requested.machine or view.link.trial else first_machine()
        line = " · ".join(
            [
                context_line(view.link, datetime.now(UTC), why=first.why if first else ""),
                *(["some times ungated"] if ungated else []),
            ]
        )
        st.caption(escaped(line), help=UNGATED_MEANS if ungated else None)
    if problems:
        st.warning(
            "Part of this link was left out. " + " ".join(escaped(problem) for problem in problems),
            icon=":material/link_off:",
        )
    for sentence in remarks:
        st.caption(escaped(sentence))
    if view.link.data is not None and view.link.data != drawn_version():
        st.caption(
            f":material/history: This link was made at data version {view.link.data}; "
            f"the data is now at version {drawn_version()}, so numbers may differ."
        )
    return place


def base_url(page: Page) -> str:
    """Scheme, host and base path under which the reader sees the dashboard."""
    url = st.context.url or ""
    path = f"/{page.value}"
    return url.rstrip("/").removesuffix(path) if page.value else url.rstrip("/")


def trouble(error: CompilewatchError) -> None:
    """A page that cannot be drawn for a reason that somebody can act on: the sentence and the next step."""
    st.error(escaped(str(error)), icon=":material/database_off:")


def strategies(view: View) -> None:
    """The page's filter of strategies, those measured under its other filters. Eager is always there, except
    where trials are listed one by one.
    """
    here = filters_of(replace(view.link, strategy=()))
    names = theme.ordered({*read_strategies(here), *view.link.strategy})
    if view.link.page is not Page.TRIAL:
        names = [name for name in names if name != EAGER.name]
    if len(names) > 1:
        marked = [word for word in ("+dynamic", "+warm") if any(word in name for name in names)]
        help_ = glossary.explained("strategy", *marked)
        controls.pills("strategy", "Strategies", {name: name for name in names}, help_=help_)


def caches(view: View, measured: Set[str]) -> None:
    """The page's filter of cache states; nothing where `measured` leaves no choice."""
    offered = [state for state in _CACHES if state in {*measured, *view.link.cache}]
    if len(offered) > 1:
        controls.pills("cache", "Cache state", {state: state for state in offered})


def say_focus(requested: Link, shown: Link) -> None:
    """That the page shows another workload than `requested`, where it does."""
    if requested.focus not in (None, shown.focus):
        instead = shown.focus or "all workloads"
        st.caption(escaped(f"{requested.focus} has nothing under these filters; showing {instead}."))


def resolved_view(link: Link, choices: Choices) -> View:
    """The view that `link` asks for, its machine and, where a page shows one build, that build resolved."""
    if choices.newest_machine is None or PAGES[link.page].all_machines or link.page is Page.GUIDE:
        return View(link, link, None, choices)
    first = first_machine()
    resolved = replace(link, machine=link.machine or (first.machine_id if first else None))
    choices = read_choices_on(resolved.machine)
    if shows_all_builds(link):
        return View(link, resolved, None, choices)
    newest = newest_build(filters_of(replace(resolved, build=None)))
    return View(link, replace(resolved, build=link.build or newest), newest, choices)


def foot(pages: Mapping[Page, st.Page]) -> None:
    """Below everything: the way to the Guide, the data version, who is signed in, and the way out."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.page_link(pages[Page.GUIDE], label="Guide: what words and numbers mean")
        st.caption(f"data version {drawn_version()}", width="content")
        person = person_here()
        if person.name is not None:
            st.caption(f"{escaped(person.name)} · {person.role.value}", width="content")
            if path := sign_out_path():
                st.link_button("Sign out", path, icon=":material/logout:", type="tertiary")


# An open page follows the database: it looks whether anything new was stored, and only then draws anew.

EVERY_S = 8
"""New results are on an open page within twice this time, the drawing included."""

_BESIDE_THE_DATA: dict[Page, Callable[[Database], object]] = {
    Page.RUNS: data_version.service_pulse,
    Page.REPORTS: reports_revision,
}


def pulse(page: Page, version: int) -> object:
    """What tells whether a page drawn of the data at `version` would look different.

    The queue, the hosts and reports are no measurements and leave the data version as it is.
    """
    beside = _BESIDE_THE_DATA.get(page)
    return version, beside(reader()) if beside else None


def follow(page: Page, drawn: object) -> None:
    """Draw `page` anew once its pulse differs from what it was when the page was drawn, which is `drawn`.

    A look costs one small query and sends next to nothing; widgets, selections and the place on the page
    stay, since it is the same session that draws again.
    """
    _look(page, drawn, iter((True,)))


@st.fragment(run_every=EVERY_S)
def _look(page: Page, drawn: object, drawn_just_now: Iterator[bool]) -> None:
    if not next(drawn_just_now, False) and pulse(page, drawn_version()) != drawn:
        st.rerun()


_OF_ALL, _OF_ONE = "All models", "History"
"""What the first tab is called, of all models and of one."""
_CHANGES = "changes-of-tab"


@contextmanager
def tab(view: View, page: PageContent, models: Iterable[str]) -> Iterator[tuple[Part, ...]]:
    """Draw what stands above the tabs, and give the parts that are left; what is drawn within is in the open
    one. `models` are those to choose from.
    """
    focus = page.link.focus
    # A page that opens on a model of its own choice has no list of all.
    every = {"": "All models"} if focus is None or view.link.focus else {}
    controls.one_of("focus", "Model", every | {name: name for name in models}, shown=focus, width_px=260)
    say_focus(view.link, page.link)
    for part in named(page.parts, FACTS):
        if isinstance(part, Lines):
            st.markdown(escaped(" ".join(part.lines)))
    here = view.link.page
    words = {each: PAGES[each].title for each in MODELS} | {Page.WORKLOAD: _OF_ONE if focus else _OF_ALL}
    # New after each change of tab: the browser would tell a page that one goes back to what it was left by.
    key = f"tabs-{here.value}-{st.session_state.get(_CHANGES, 0)}"
    st.session_state[key] = words[here]
    tabs = st.tabs(list(words.values()), key=key, on_change=_go, args=(key, {words[to]: to for to in words}))
    with tabs[MODELS.index(here)]:
        yield tuple(part for part in page.parts if part.key != FACTS)


def _go(key: str, pages: dict[str, Page]) -> None:
    """Callback: open the tab that was chosen, with all that means anything there."""
    target = links.beside(controls.current(), pages[st.session_state[key]])
    st.session_state[_CHANGES] = st.session_state.get(_CHANGES, 0) + 1
    controls.open_link(target)
