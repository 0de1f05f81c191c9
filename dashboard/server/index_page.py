"""The HTML that a browser gets first: Streamlit's own, with what previews show and with its base URL.

Streamlit serves one anonymous `index.html` under every path, and its script then guesses where it was mounted
by asking for `trends/_stcore/health`, which does not exist. The script here tells it, so that a deep link
opens without failed requests. It reads the address it was loaded from and so works under any base path.

Before that it puts the address of a stored view in the place of its short link, to which nobody gets back.
A redirect would do the same, but proxies let only a few kilobytes of one through, and short links are made
where an address is longer.
"""

from __future__ import annotations

import html
import json

from compilewatch.dashboard.links.links import PAGES, Page, tab_title

DESCRIPTION = "The performance history of torch.compile on your own machines."
_STORED = "stored-view"
_TITLE, _ROOT = "<title>Streamlit</title>", '<div id="root">'
# Streamlit draws no ring around links and folded parts that have the focus (WCAG 2.2, 2.4.7).
_STYLE = """<style>
      [data-testid=stTable] td{overflow-wrap:anywhere}
      @media(max-width:700px){[data-testid=stTable] td{overflow-wrap:break-word;min-width:4.5rem}
        [data-testid=stTable] table:has(td:nth-child(5)){width:max-content}
        [data-testid=stTable] table:has(td:nth-child(5)) td{max-width:11rem}}
      a:focus-visible,summary:focus-visible{outline:3px solid #2F8FD0!important;outline-offset:1px}
      main:focus-visible{outline:3px solid #2F8FD0!important;outline-offset:-3px}
    </style>
    """


# Streamlit chooses a row of a table by its box or by Shift+Space alone: here Enter and a click anywhere in
# the row do as well, but on a button in it, where the mouse is a hand. The first 40 px are the box, the
# uppermost 35 the titles, which sort. Links in tables open in a new tab, which loads everything anew: here
# only with Ctrl or a Mac's command key.
_ROWS = """(()=>{
const grid=at=>at.closest("[data-testid=stDataFrame]")?.querySelector("[data-testid=data-grid-canvas]");
const choose=at=>at.dispatchEvent(new KeyboardEvent("keydown",
{key:" ",code:"Space",keyCode:32,shiftKey:true,bubbles:true,cancelable:true}));
let down=null,left=0;
const open=window.open;
window.open=(to,...how)=>{
const there=new URL(to,location.href);left=Date.now();
if(there.origin!==location.origin||down?.ctrlKey||down?.metaKey)return open.call(window,to,...how);
there.hash="";history.pushState({},"",there);dispatchEvent(new PopStateEvent("popstate"))};
addEventListener("keydown",e=>{
if(e.key!=="Enter"||!e.target.matches?.("[data-testid=data-grid-canvas]"))return;
e.preventDefault();e.stopPropagation();choose(e.target)},true);
addEventListener("pointerdown",e=>{down=e},true);
addEventListener("pointerup",e=>{
if(!down||!e.target.closest?.(".dvn-scroller"))return;
const at=grid(e.target),box=at.getBoundingClientRect();
if(at.style.cursor==="pointer")return;
const moved=Math.hypot(e.clientX-down.clientX,e.clientY-down.clientY);
if(moved<4&&e.clientX-box.left>40&&e.clientY-box.top>35)setTimeout(()=>Date.now()-left<500||choose(at),80)},true)})()"""


def index_pages(streamlit_html: str) -> dict[Page, str]:
    """Streamlit's `index.html` for each page, with what it lacks. Raises ValueError where it has changed."""
    for needed in (_TITLE, _ROOT):
        if needed not in streamlit_html:
            raise ValueError(f"Streamlit's index.html has changed: it has no {needed}")
    return {page: _page(streamlit_html, page) for page in Page}


def opened_at(page_html: str, address: str) -> str:
    """`page_html` as it puts `address`, relative to the one it was asked under, in the place of that."""
    meta = f'<meta name="{_STORED}" content="{html.escape(address)}" />'
    return page_html.replace("<title>", f"{meta}\n    <title>", 1)


def with_picture(page_html: str, address: str) -> str:
    """`page_html` with the picture at `address` in the preview of its link."""
    meta = f'<meta property="og:image" content="{html.escape(address)}" />'
    return page_html.replace("<title>", f"{meta}\n    <title>", 1)


def with_headline(page_html: str, page: Page, headline: str, where: str) -> str:
    """`page_html` with what the view found as its title, in the preview of its link over `where` it did."""
    title, question = html.escape(tab_title(page)), html.escape(PAGES[page].question)
    found = html.escape(tab_title(page, headline))
    for before, now in (
        (f"<title>{title}", f"<title>{found}"),
        (f'"og:title" content="{title}"', f'"og:title" content="{found}"'),
        (f'"og:description" content="{question}"', f'"og:description" content="{html.escape(where)}"'),
    ):
        page_html = page_html.replace(before, now, 1)
    return page_html


def _page(streamlit_html: str, page: Page) -> str:
    title = html.escape(tab_title(page))
    question = html.escape(PAGES[page].question)
    head = (
        f"<title>{title}</title>\n"
        f'    <meta name="description" content="{html.escape(DESCRIPTION)}" />\n'
        f'    <meta property="og:title" content="{title}" />\n'
        f'    <meta property="og:description" content="{question}" />\n'
        f"    <script>{_base_script()}</script>\n"
        f"    <script>{_ROWS}</script>"
    )
    return streamlit_html.replace(_TITLE, head, 1).replace(_ROOT, _STYLE + _ROOT, 1)


def _base_script() -> str:
    pages = json.dumps([page.value for page in Page if page.value])
    return (
        f"(()=>{{const stored=document.querySelector('meta[name={_STORED}]');"
        "if(stored)history.replaceState(null,'',stored.content);"
        "const parts=location.pathname.replace(/\\/+$/,'').split('/');"
        f"if({pages}.includes(parts[parts.length-1]))parts.pop();"
        "const base=location.origin+parts.join('/')+'/';"
        "window.__streamlit={BACKEND_BASE_URL:base,HOST_CONFIG_BASE_URL:base,MAIN_PAGE_BASE_URL:base};})()"
    )
