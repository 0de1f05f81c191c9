"""The HTML that a browser gets first: title and description for previews, base URL, a way to the content.

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
import re

from dashboard.links.links import Page, tab_title
from dashboard.server.first_answer import FirstAnswer

DESCRIPTION = "The performance history of torch.compile on your own machines."
_STORED = "stored-view"
_OG_TITLE, _FIRST = '<meta property="og:title"', "<!--first-->"
_TITLE, _ROOT = "<title>Streamlit</title>", '<div id="root">'
_MODULE = '<script type="module" crossorigin src='
# Twenty steps of the Tab key lie between the top and what a page shows (WCAG 2.2, 2.4.1). Streamlit draws the
# page's place later, so the way there is looked up when it is taken. Links and folded parts have no ring of
# their own when the focus is on them (2.4.7). What a popover holds is the end of the document: from its
# button the Tab key leads into it and from its ends back (2.4.3); one that is not placed yet takes no focus,
# so the way in is tried frame by frame. Streamlit's own code takes some hundred milliseconds and begins once
# the first answer is painted; a tab in the background paints nothing, so there it begins after 0.3 s.
_SKIP = """<!--first--><style>
      #skip{position:fixed;left:-99em;top:8px;z-index:1000001;padding:8px 14px;border-radius:8px;
        background:#0F161F;color:#FFFFFF;font:600 15px sans-serif}
      #skip:focus{left:8px;outline:3px solid #56B4E9}
      [data-testid=stMain]:focus{outline:none}
      [data-testid=stTable] td{overflow-wrap:anywhere}
      #first~#root{opacity:0}
      a:focus-visible,summary:focus-visible{outline:3px solid #2F8FD0!important;outline-offset:1px}
    </style>
    <a id="skip" href="#root">Skip to what this page shows</a>
    <script>document.getElementById("skip").addEventListener("click",(event)=>{event.preventDefault();
      const main=document.querySelector("[data-testid=stMain]");
      if(main){main.tabIndex=-1;main.focus()}})
      const popover=()=>document.querySelector("[data-testid=stPopoverBody]");
      const within=(body)=>[...body.querySelectorAll("a[href],button,input,textarea,select,[tabindex='0']")]
      .filter((part)=>!part.disabled&&part.tabIndex>=0&&part.getClientRects().length);
      const enter=(frames)=>{const body=popover();if(!body||!frames)return;
      body.tabIndex=-1;(within(body)[0]||body).focus();
      if(!body.contains(document.activeElement))requestAnimationFrame(()=>enter(frames-1))};
      addEventListener("keydown",(event)=>{const body=popover();
      if(event.key!=="Tab"||!body)return;const at=document.activeElement,stops=within(body);
      const last=event.shiftKey?stops[0]:stops[stops.length-1];
      const opener=document.querySelector("[data-testid=stPopoverButton][aria-expanded=true]");
      if((at===opener&&!event.shiftKey)||(at===body&&!stops.length)){event.preventDefault();enter(300)}
      else if(at===last&&opener){event.preventDefault();opener.focus()}},true)
      const first=document.getElementById("first"),began=Date.now();
      const begin=()=>{const link=document.querySelector("link[data-begin]");if(!link)return;
      delete link.dataset.begin;const script=document.createElement("script");
      script.type="module";script.crossOrigin="";script.src=link.href;document.head.append(script)};
      if(first){requestAnimationFrame(()=>setTimeout(begin));setTimeout(begin,300)}else begin();
      const height={last:0,times:0};
      const drawn=()=>{const app=document.querySelector("[data-testid=stApp]");
      const main=document.querySelector("[data-testid=stMain]");
      if(!app||!main||app.dataset.testScriptState!=="notRunning")return false;
      const charts=[...main.querySelectorAll("[data-testid=stVegaLiteChart]")];
      const same=main.scrollHeight===height.last;
      height.times=same?height.times+1:0;height.last=main.scrollHeight;
      return height.times>2&&!document.querySelector("[data-testid=stSkeleton]")
      &&charts.length>=first.dataset.charts&&charts.every((chart)=>chart.querySelector("svg,canvas"))
      &&main.querySelectorAll("[data-testid=stDataFrame]").length>=first.dataset.tables};
      const look=()=>drawn()||Date.now()-began>10000?first.remove():setTimeout(look,50);
      if(first&&!first.shadowRoot)first.remove();else if(first)look()</script>
    """


def index_pages(streamlit_html: str) -> dict[Page, str]:
    """Streamlit's `index.html` for each page, with what it lacks. Raises ValueError where it has changed."""
    for needed in (_TITLE, _ROOT, _MODULE):
        if needed not in streamlit_html:
            raise ValueError(f"Streamlit's index.html has changed: it has no {needed}")
    return {page: _page(streamlit_html, page) for page in Page}


def opened_at(page_html: str, address: str) -> str:
    """`page_html` as it puts `address`, relative to the one it was asked under, in the place of that."""
    meta = f'<meta name="{_STORED}" content="{html.escape(address)}" />'
    return page_html.replace("<title>", f"{meta}\n    <title>", 1)


def with_first_answer(page_html: str, page: Page, answer: FirstAnswer, picture: str) -> str:
    """`page_html` with what the view says: in the preview of its link, and until Streamlit has drawn it.

    `picture` is the address of its first chart, empty where there is none.
    """
    title = html.escape(f"{answer.headline} · {tab_title(page)}")
    described = html.escape(answer.subject)
    image = f'<meta property="og:image" content="{html.escape(picture)}" />\n    ' if picture else ""
    start, end = page_html.index(_OG_TITLE), page_html.index("    <script>")
    head = (
        f'<meta property="og:title" content="{title}" />\n'
        f'    <meta property="og:description" content="{described}" />\n    {image}'
    )
    return (page_html[:start] + head + page_html[end:]).replace(_FIRST, answer.html, 1)


def _page(streamlit_html: str, page: Page) -> str:
    title = html.escape(tab_title(page))
    head = (
        f"<title>{title}</title>\n"
        f'    <meta name="description" content="{html.escape(DESCRIPTION)}" />\n'
        f'    <meta property="og:title" content="{title}" />\n'
        f'    <meta property="og:description" content="{html.escape(DESCRIPTION)}" />\n'
        f"    <script>{_base_script()}</script>"
    )
    begun_later = re.sub(
        rf"{_MODULE}([^>]+)></script>",
        r'<link rel="modulepreload" crossorigin data-begin href=\1>',
        streamlit_html,
        count=1,
    )
    return begun_later.replace(_TITLE, head, 1).replace(_ROOT, _SKIP + _ROOT, 1)


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
