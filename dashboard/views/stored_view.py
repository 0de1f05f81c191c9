"""Views kept under a short id: followed when a link names one, kept when somebody asks for a short link."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from urllib.parse import parse_qs, urlsplit

import streamlit as st

from dashboard.access import person_here
from dashboard.data import database_url, reader
from dashboard.links import Page
from dashboard.selectors import quoted
from db.queries.stored_views import stored_link
from db.session import open_database
from db.store_stored_views import store_view


def follow(view_id: str, pages: Mapping[Page, st.Page]) -> str:
    """Show the view that is kept under `view_id`; where there is none, the sentence that says so."""
    link = stored_link(reader(), view_id)
    if link is None:
        return f"No view is kept under {quoted(view_id)}; is the link complete?"
    parts = urlsplit(link)
    if parts.path in set(Page):
        # As it was written: the page itself says what of it no longer exists.
        st.switch_page(pages[Page(parts.path)], query_params=parse_qs(parts.query, keep_blank_values=True))
    return f"The view kept under {quoted(view_id)} is of a page that this release does not have."


def keep(link: str) -> str:
    """Keep `link` and return its id. Every reader may: it holds nothing that the link itself does not."""
    person = person_here()
    with open_database(database_url()) as database:
        return store_view(database, link, at=datetime.now(UTC), by=person.name)
