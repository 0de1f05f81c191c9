"""Upgrade: what another build changes, case by case, with how sure it is and who was left out."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import streamlit as st

from compilewatch.dashboard.links.links import Link, Page, verdict_metric
from compilewatch.dashboard.pages.upgrade import content
from compilewatch.dashboard.parts.parts import PageContent, named
from compilewatch.dashboard.read.data import filters_of, read_builds, read_machines
from compilewatch.dashboard.render import controls, elements, streamlit_parts
from compilewatch.dashboard.render.shell import View
from compilewatch.dashboard.render.streamlit_parts import Pick
from compilewatch.dashboard.text.glossary import explained
from compilewatch.dashboard.verdicts.pair import with_builds
from compilewatch.db.columns.metrics import FIRST_METRICS, METRICS
from compilewatch.db.judge.compare.sides import VerdictError

_TOP = ("verdict", "tally", "recorded", "not-filed")


def draw(view: View) -> Link:
    """The page; the link it returns names both builds where there are two."""
    filters = filters_of(view.link)
    builds = read_builds(filters)
    if not builds:
        elements.nothing_to_show("No trial fits these filters.", next_step="Widen them above.")
        return view.link
    if len(builds) < 2 and not (view.link.base_run or view.link.head_run):
        machine, (build,) = view.choices.machines[str(view.link.machine)], builds
        elements.nothing_to_show(
            f"Under these filters only one build was measured on {machine}: {view.choices.builds[build]}.",
            next_step="Measure the same suite with another build, or choose another machine above.",
        )
        return view.link
    link = with_builds(view.link)
    _builds(view, link, builds)
    try:
        page = content.page(link)
    except VerdictError as error:
        elements.nothing_to_show(error.message, next_step=error.next_step)
        return link
    _top(page, link)
    picks = {
        "upgrade-forest": Pick(
            lambda mark: _focus((mark["workload"], mark["strategy"])),
            "Click a row for its evidence and the strategies of the model.",
        ),
        "upgrade-cases": Pick(_focus, "Choose a row for its evidence.", "case"),
        "upgrade-case-strip": Pick(
            lambda mark: controls.go(Page.TRIAL, trial=str(mark["trial_id"])), "Click a point for its trial."
        ),
    }
    ways_on = partial(_ways_on, link)
    streamlit_parts.draw(
        (part for part in page.parts if part.key not in _TOP),
        picks=picks,
        controls={"upgrade-forest": partial(_metric, link), "upgrade-case-strip": ways_on},
        below={"focus": ways_on},
    )
    return link


def _top(page: PageContent, link: Link) -> None:
    """The verdict, and the way to what is recorded of it."""
    streamlit_parts.draw(named(page.parts, *_TOP))
    if named(page.parts, "recorded"):
        there = content.inbox_link(link)
        sides = {"machine": there.machine, "base": there.base, "head": there.head}
        controls.button_to("Open them in the inbox", there.page, **sides)


def _metric(link: Link) -> None:
    device = read_machines().set_index("machine_id")["device"].get(link.machine)
    offered = {
        key: words
        for key, words in content.metric_words(link).items()
        if METRICS[key].on_every_device or device != "cpu"
    }
    value = verdict_metric(link).value
    controls.first_or_more("metric", "Metric", offered, first_=FIRST_METRICS, value=value)
    words, shown = content.groups_of(link)
    controls.pills("group", "Cases", words, shown=shown)


def _focus(case: tuple[str, str]) -> None:
    controls.change(focus=str(case[0]), focus_strategy=str(case[1]))


def _ways_on(link: Link) -> None:
    with st.container(horizontal=True):
        case = {"focus": link.focus, "strategy": (link.focus_strategy,)}
        controls.button_to("Its history", Page.WORKLOAD, **case, metric=link.metric)
        controls.button_that_changes("Close", ":material/close:", focus=None, focus_strategy=None)


def _builds(view: View, link: Link, builds: frozenset[str]) -> None:
    """The choice of the two builds, newest version first; those of other machines are offered only where the
    link asks for one.
    """
    wanted = {*builds, str(link.base), str(link.head)}
    words = {key: name for key, name in reversed(list(view.choices.builds.items())) if key in wanted}
    controls.remember(replace(controls.current(), base=link.base, head=link.head))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        with st.container(width=340):
            bases = words if link.base else {"": "No older build", **words}
            controls.one_of("base", "Base", bases, help_=explained("base and head"))
        with st.container(width=340):
            controls.one_of("head", "Head", words, help_=explained("base and head"))
        swapped = {"base": link.head, "base_run": link.head_run, "head": link.base, "head_run": link.base_run}
        controls.button_that_changes("Swap", ":material/swap_horiz:", **swapped)
