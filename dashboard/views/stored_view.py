"""Views kept under a short id: followed when a link names one, kept when somebody asks for a short link."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from urllib.parse import parse_qs

import streamlit as st

from dashboard.access import person_here
from dashboard.database import database_url, reader
from dashboard.links import STORED_VIEW, Page
from dashboard.selectors import quoted
from db.queries.stored_views import stored_link
from db.session import open_database
from db.store_stored_views import store_view

# A view of a view could lead back to itself; the others are Streamlit's own, which a script may not set.
_NOT_FOLLOWED = frozenset({STORED_VIEW, "embed", "embed_options"})


def follow(view_id: str, pages: Mapping[Page, st.Page]) -> str:
    """Show the view that is kept under `view_id`; where there is none, the sentence that says so."""
    link = stored_link(reader(), view_id)
    if link is None:
        return f"No view is kept under {quoted(view_id)}; is the link complete?"
    path, _, query = link.partition("?")
    if path in set(Page):
        # As it was written: the page itself says what of it no longer exists.
        wanted = parse_qs(query, keep_blank_values=True)
        followed = {key: values for key, values in wanted.items() if key.lower() not in _NOT_FOLLOWED}
        st.switch_page(pages[Page(path)], query_params=followed)
    return f"The view kept under {quoted(view_id)} is of a page that this release does not have."


def keep(link: str) -> str:
    """Keep `link` and return its id. Every reader may: it holds nothing that the link itself does not."""
    person = person_here()
    with open_database(database_url()) as database:
        return store_view(database, link, at=datetime.now(UTC), by=person.name)
