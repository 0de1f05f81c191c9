"""What can be done with a page as it stands: send its link, freeze it as a report, export what it shows."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from html import escape
from urllib.parse import urlencode

import streamlit as st

from compilewatch.dashboard.links import links
from compilewatch.dashboard.links.links import Link
from compilewatch.dashboard.links.sentence import sentence
from compilewatch.dashboard.login.access import Role, person_here, require
from compilewatch.dashboard.pages.registry import CONTENTS
from compilewatch.dashboard.parts.parts import Chart
from compilewatch.dashboard.read.database import database_url
from compilewatch.dashboard.read.versions import drawn_version
from compilewatch.dashboard.render import elements, exporting
from compilewatch.dashboard.render import forms as signing
from compilewatch.dashboard.render.shell import View, base_url
from compilewatch.dashboard.reports.freeze import FREEZABLE, freeze_link, store_report
from compilewatch.dashboard.text.foreign_text import escaped
from compilewatch.dashboard.write import writing
from compilewatch.db.errors import CompilewatchError

_SHORT, _FROZEN = "short-links", "frozen"
_FORMAT_ICONS = {"CSV": ":material/csv:", "PNG": ":material/image:"}


def draw(view: View) -> None:
    """The buttons beside the title; `view` has its link settled by the page that was drawn."""
    origin = _origin(view)
    with st.container(horizontal=True, width="content"):
        with st.popover("Share", icon=":material/ios_share:", key="share"):
            shown = elements.shown()
            _share(view.link, origin, [each for each in shown if isinstance(each, Chart)])
        if shown:
            with st.popover("Export", icon=":material/download:", key="export"):
                _export(shown, origin)


def _origin(view: View) -> exporting.ExportOrigin:
    base = base_url(view.link.page)
    return exporting.ExportOrigin(
        link=view.link,
        sentence=sentence(view.link, view.choices.names),
        permalink=links.permalink(view.link, drawn_version(), base),
        data_version=drawn_version(),
    )


@st.fragment
def _share(link: Link, origin: exporting.ExportOrigin, charts: list[Chart]) -> None:
    """A fragment: what happens in here draws nothing else anew."""
    st.markdown("Everything chosen on this page is written out in this link.")
    st.code(origin.permalink, language=None, wrap_lines=True)
    st.caption(escaped(origin.sentence))
    _short_link(link, origin)
    if link.page in CONTENTS:
        _chart_addresses(link, charts)
    if link.page in FREEZABLE:
        _freeze(link, origin)


def _chart_addresses(link: Link, charts: list[Chart]) -> None:
    """One chart as a picture and as a frame: addresses that follow the newest data."""
    if not (charts and exporting.formats_of(charts[0])):
        return
    with st.expander("Charts by address", icon=":material/image:"):
        place = st.selectbox(
            "Chart", range(len(charts)), format_func=lambda number: charts[number].alt, key="share-chart"
        )
        query = urlencode(links.params(link, full=True), errors="replace")
        frame, svg, png = (
            f"{base_url(link.page)}/{links.chart_address(link.page, charts[place or 0].key, query, suffix)}"
            for suffix in ("", ".svg", ".png")
        )
        for text in (svg, png, f'<iframe src="{escape(frame)}" width="900" height="460"></iframe>'):
            st.code(text, language=None, wrap_lines=True)
        st.caption("Only sites that `[embed]` names may frame a chart.")


def _short_link(link: Link, origin: exporting.ExportOrigin) -> None:
    names: dict[str, str] = st.session_state.setdefault(_SHORT, {})
    wanted = links.href(replace(link, data=origin.data_version), full=True)
    if wanted in names:
        st.code(
            f"{base_url(link.page)}/?{links.STORED_VIEW}={names[wanted]}",
            language=None,
            wrap_lines=True,
        )
        return
    if st.button("Short link", icon=":material/link:", help="Keeps this view in the database under an id."):
        try:
            names[wanted] = writing.keep(wanted)
        except CompilewatchError as error:
            _trouble(error)
        else:
            st.rerun(scope="fragment")


def _freeze(link: Link, origin: exporting.ExportOrigin) -> None:
    """Freezing what is seen: data, verdicts, policy and environment are kept as they are now."""
    st.divider()
    if not person_here().may(Role.EDITOR):
        st.caption("Freezing a report needs the role editor.")
        return
    st.markdown("**Freeze** this view as a report that never changes.")
    # Above the form: what is below its button lies beyond the lower edge of the popover.
    place = st.container()
    with st.form("freeze", border=False):
        st.text_input("Title", key="freeze-title", max_chars=200, placeholder=origin.sentence[:80])
        signing.name_field("freeze-name")
        submitted = st.form_submit_button("Freeze", icon=":material/ac_unit:")
    if submitted:
        with place:
            _frozen(link)
    for title, address in st.session_state.get(_FROZEN, [])[-1:]:
        place.success(f"Frozen: {escaped(title)}", icon=":material/check:")
        place.code(f"{base_url(link.page)}{address}", language=None, wrap_lines=True)


def _frozen(link: Link) -> None:
    name = signing.name_of("freeze-name")
    if name is None:
        st.warning(signing.NO_NAME, icon=":material/report:")
        return
    try:
        require(Role.EDITOR)
        title = str(st.session_state["freeze-title"]).strip() or None
        with st.spinner("Freezing"):
            content = freeze_link(links.href(link, full=True), title=title, by=name, at=datetime.now(UTC))
            report_id = store_report(database_url(), content)
    except CompilewatchError as error:
        _trouble(error)
        return
    st.session_state.setdefault(_FROZEN, []).append((content.title, f"/report/{report_id}"))


def _trouble(error: CompilewatchError) -> None:
    st.warning(escaped(str(error)), icon=":material/report:")


@st.fragment
def _export(shown: list[exporting.Shown], origin: exporting.ExportOrigin) -> None:
    """What is seen as a file, made when its button is pressed."""
    place = st.selectbox(
        "What",
        range(len(shown)),
        format_func=lambda number: _name(shown[number]),
        key="export-what",
    )
    what = shown[place or 0]
    formats = exporting.formats_of(what)
    with st.container(horizontal=True):
        for chosen in formats.values():
            st.download_button(
                chosen.name,
                partial(_file, chosen, what, origin),
                file_name=exporting.file_name(what, origin, chosen.suffix),
                mime=chosen.media_type,
                icon=_FORMAT_ICONS.get(chosen.name, ":material/download:"),
                on_click="ignore",
                key=f"export-{what.key}-{chosen.suffix}",
            )
    st.caption(
        "The file's name has the filters and the data version. CSV and JSON have the rows of the page."
    )


def _file(chosen: exporting.FileFormat, what: exporting.Shown, origin: exporting.ExportOrigin) -> bytes:
    return chosen.make(what, origin, datetime.now(UTC))


def _name(shown: exporting.Shown) -> str:
    kind = "Chart" if isinstance(shown, Chart) else "Table"
    return f"{kind}: {shown.alt if len(shown.alt) <= 70 else f'{shown.alt[:69]}…'}"
