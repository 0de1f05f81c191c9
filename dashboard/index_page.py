"""The HTML that a browser gets first: title and description for link previews, and the base URL.

Streamlit serves one anonymous `index.html` under every path, and its script then guesses where it was mounted
by asking for `trends/_stcore/health`, which does not exist. The script here tells it, so that a deep link
opens without failed requests. It reads the address it was loaded from and so works under any base path.
"""

from __future__ import annotations

import html
import json
import re

from dashboard.links import TITLES, Page

DESCRIPTION = "The performance history of torch.compile on your own machines."


def index_pages(streamlit_html: str) -> dict[Page, str]:
    """Streamlit's `index.html` for each page, with what it lacks. Raises ValueError where it has no title."""
    if "<title>Streamlit</title>" not in streamlit_html:
        raise ValueError("Streamlit's index.html has changed: it has no title to replace")
    return {page: _page(streamlit_html, page) for page in Page}


def _page(streamlit_html: str, page: Page) -> str:
    title = html.escape(f"{TITLES[page]} · compilewatch")
    head = (
        f"<title>{title}</title>\n"
        f'    <meta name="description" content="{html.escape(DESCRIPTION)}" />\n'
        f'    <meta property="og:title" content="{title}" />\n'
        f'    <meta property="og:description" content="{html.escape(DESCRIPTION)}" />\n'
        f"    <script>{_base_script()}</script>"
    )
    return re.sub("<title>Streamlit</title>", lambda _: head, streamlit_html, count=1)


def _base_script() -> str:
    pages = json.dumps([page.value for page in Page if page.value])
    return (
        "(()=>{const parts=location.pathname.replace(/\\/+$/,'').split('/');"
        f"if({pages}.includes(parts[parts.length-1]))parts.pop();"
        "const base=location.origin+parts.join('/')+'/';"
        "window.__streamlit={BACKEND_BASE_URL:base,HOST_CONFIG_BASE_URL:base,MAIN_PAGE_BASE_URL:base};})()"
    )
