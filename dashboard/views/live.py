"""An open page follows the database: it looks whether anything new was stored, and only then draws anew."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import streamlit as st

from dashboard.database import reader
from dashboard.links import Page
from dashboard.snapshots import drawn_version
from db.queries import activity
from db.queries.reports import reports_revision
from db.session import Database

EVERY_S = 8
"""New results are on an open page within twice this time, the drawing included."""

_BESIDE_THE_DATA: dict[Page, Callable[[Database], object]] = {
    Page.RUNS: activity.service_pulse,
    Page.REPORTS: reports_revision,
    Page.UPGRADE: activity.sign_off_pulse,
}


def pulse(page: Page, version: int) -> object:
    """What tells whether a page drawn of the data at `version` would look different.

    The queue, the hosts, reports and sign-offs are no measurements and leave the data version as it is.
    """
    beside = _BESIDE_THE_DATA.get(page)
    return version, beside(reader()) if beside else None


def follow(page: Page, seen: object) -> None:
    """Draw `page` anew once its pulse differs from what it was when the page was drawn, which is `seen`.

    A look costs one small query and sends next to nothing; widgets, selections and the place on the page
    stay, since it is the same session that draws again.
    """
    _look(page, seen, iter((True,)))


@st.fragment(run_every=EVERY_S)
def _look(page: Page, seen: object, drawn_just_now: Iterator[bool]) -> None:
    if not next(drawn_just_now, False) and pulse(page, drawn_version()) != seen:
        st.rerun()
