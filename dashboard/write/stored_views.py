"""Views kept under a short id: opened when a link names one, kept when somebody asks for a short link."""

from __future__ import annotations

from datetime import UTC, datetime
from urllib.parse import parse_qs, urlencode

from compilewatch.dashboard.links.links import STORED_VIEW, Page, page_named
from compilewatch.dashboard.links.values import quoted
from compilewatch.dashboard.login.access import person_here
from compilewatch.dashboard.read.database import database_url, reader
from compilewatch.db.engine.session import open_database
from compilewatch.db.service.reports import store_view, stored_link

# A view of a view could lead back to itself; the others are Streamlit's own, which hide parts of a page.
_NOT_OPENED = frozenset({STORED_VIEW, "embed", "embed_options"})


def stored_address(view_id: str) -> tuple[Page, str] | None:
    """Page and query of the view that is kept under `view_id`; None where there is none to open.

    The query is as it was written: the page itself says what of it no longer exists. Raises DatabaseError.
    """
    link = stored_link(reader(), view_id)
    path, _, query = (link or "").partition("?")
    page = None if link is None else page_named(path)
    if page is None:
        return None
    wanted = parse_qs(query, keep_blank_values=True)
    opened = {key: values for key, values in wanted.items() if key.lower() not in _NOT_OPENED}
    return page, urlencode(opened, doseq=True)


def why_not_opened(view_id: str) -> str:
    """Why a page was drawn that still has `view_id` in its address. Raises DatabaseError."""
    if stored_link(reader(), view_id) is None:
        return f"No view has the id {quoted(view_id)}. Check that the link is complete."
    if stored_address(view_id) is None:
        return f"The view {quoted(view_id)} is of a page that this release does not have."
    return f"The view {quoted(view_id)} could not be read. Load the page again to open it."


def keep(link: str) -> str:
    """Keep `link` and return its id. Every reader may: it holds nothing that the link itself does not."""
    person = person_here()
    with open_database(database_url()) as database:
        return store_view(database, link, at=datetime.now(UTC), by=person.name)
