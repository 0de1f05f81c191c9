"""What a page says, in the first answer to its address: before Streamlit has drawn, and for link previews.

It is made of the parts of the page by a thread of its own, once per link and data version. A request waits
for it `PATIENCE_S` at most; where that is not enough, it goes without and the next one has it. Those of all
pages as they open are made after the start, and those that somebody asked for lately after new data.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from concurrent.futures import TimeoutError as TooLateError
from dataclasses import dataclass, replace
from html import escape
from importlib.util import find_spec
from threading import Event, Lock

from dashboard.links import links
from dashboard.links.links import PAGES, Link, Page
from dashboard.links.requested import resolved_link
from dashboard.links.sentence import sentence
from dashboard.pages.contents import CONTENTS
from dashboard.pages.parts import Chart, Figures, Headline, PageContent, Part, Table, flat
from dashboard.read.choices import Choices
from dashboard.read.data import read_choices
from dashboard.read.snapshots import Snapshot, drawn_version
from dashboard.render.limit import RENDER_LIMIT
from dashboard.render.shell import pulse, resolved_view
from dashboard.reports.page import section_html
from dashboard.reports.sections import sections
from db.errors import CompilewatchError, NotFoundError

_LOG = logging.getLogger("compilewatch.dashboard")
PATIENCE_S = 0.25
LATELY_S = 600.0
"""Views that were asked for within this time are made again ahead after new data: nobody looks at the others,
and this machine may be measuring."""
_LOOK_EVERY_S = 1.0
_MOST_AHEAD = 12
_MOST_ANSWERS = 64
_MOST_ROWS = 15
# Where Streamlit has a page beside its sidebar, in its colours. It lies above, so nothing moves when it goes.
# In a shadow tree and in pixels nothing moves either when Streamlit's own styles and fonts come.
_STYLE = """main{position:fixed;inset:0;z-index:1000000;overflow:auto;box-sizing:border-box;background:#fff;
color:#0F161F;font:15px/1.5 system-ui,"Segoe UI",Helvetica,Arial,sans-serif;padding:78px 15px 45px}
@media(min-width:768px){main{padding-left:356px;padding-right:75px}}
h1{font-size:28px;margin:0}h2{font-size:16px;margin:18px 0 6px}
dl{display:flex;flex-wrap:wrap;gap:15px;margin:15px 0}
dl div{border:1px solid #8884;border-radius:8px;padding:12px 15px;flex:1;min-width:120px}
dt{font-size:13px}dd{margin:0;font-size:24px;font-weight:650}
.wide,figure{overflow-x:auto;margin:0}svg{width:100%;min-width:560px;height:auto}
table{border-collapse:collapse;font-size:13px}
th,td{padding:5px 9px;text-align:left;border-bottom:1px solid #8884}
.n{text-align:right}
@media(prefers-color-scheme:dark){main{background:#10151C;color:#E8EDF3}}"""


@dataclass(frozen=True)
class FirstAnswer:
    """The headline of a view, the view in words, the key of its first chart, and what it says as HTML."""

    headline: str
    subject: str
    chart: str
    html: str


def content_of(link: Link) -> tuple[PageContent, Choices] | None:
    """What the page of `link` shows now; None where nothing was measured, or for a page without parts.

    Raises DatabaseError, and NotFoundError where a trial is not there.
    """
    snapshot = Snapshot.now()
    choices = read_choices(snapshot)
    if link.page not in CONTENTS or choices.newest_machine is None:
        return None
    link, _ = resolved_link(link, snapshot, choices)
    return CONTENTS[link.page](snapshot, resolved_view(link, snapshot, choices).link), choices


class FirstAnswers:
    """Those of one process. Safe to share between threads."""

    def __init__(
        self, *, patience_s: float = PATIENCE_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._patience_s = patience_s
        self._clock = clock
        began = clock()
        self._requested = OrderedDict((Link(page=page), began) for page in CONTENTS)
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="first-answer")
        self._lock = Lock()
        self._made: OrderedDict[tuple[str, str], Future[FirstAnswer | None]] = OrderedDict()

    def of(self, page: Page, params: Mapping[str, Sequence[str]]) -> FirstAnswer | None:
        """That of a view; None where it is not there in time, or where there is nothing to say."""
        if page not in CONTENTS:
            return None
        link, _ = links.read(page, params)
        with self._lock:
            self._requested[link] = self._clock()
            self._requested.move_to_end(link)
        try:
            return self._started(link).result(timeout=self._patience_s)
        except (TooLateError, CancelledError, NotFoundError):
            return None
        except CompilewatchError as error:
            _LOG.warning("the first answer of %s could not be made: %s", page.value or "overview", error)
        except Exception:  # noqa: BLE001 the page itself says that it failed; its address must not
            _LOG.exception("the first answer of %s failed", page.value or "overview")
        return None

    def make_ahead(self, ended: Event) -> None:
        """Until `ended`: make those asked for lately, the last one first, whenever there is new data."""
        version = -1
        while not ended.wait(_LOOK_EVERY_S):
            try:
                lately = self._lately()
                if lately and version != (version := drawn_version()):
                    for link in lately:
                        if ended.is_set():
                            return
                        # One at a time: whoever asks for another meanwhile is next.
                        wait([self._started(link)])
            except CompilewatchError as error:
                _LOG.warning("first answers could not be made ahead: %s", error)

    def _lately(self) -> list[Link]:
        with self._lock:
            links = [link for link, at in self._requested.items() if self._clock() - at <= LATELY_S]
            self._requested = OrderedDict((link, self._requested[link]) for link in links[-_MOST_AHEAD:])
            return list(reversed(self._requested))

    def _started(self, link: Link) -> Future[FirstAnswer | None]:
        """That of `link`, begun now where it was not or where it failed. Those nobody waits for end."""
        key = (str(pulse(link.page, drawn_version())), links.href(link, full=True))
        with self._lock:
            made = self._made.get(key)
            if made is None or (made.done() and (made.cancelled() or made.exception())):
                made = self._made[key] = self._pool.submit(_make, link)
            while len(self._made) > _MOST_ANSWERS:
                self._made.popitem(last=False)[1].cancel()
        return made


def _make(link: Link) -> FirstAnswer | None:
    with RENDER_LIMIT.take():
        answer = content_of(link)
        if answer is None:
            return None
        content, choices = answer
        shown = _first_parts(content.parts)
        drawn = sections(shown, inked=True)
    body = "".join(section_html(section, number) for number, section in enumerate(drawn))
    # What Streamlit has drawn when the page is whole.
    charts = sum(isinstance(part, Chart) and part.chart.spec is not None for part in content.parts)
    tables = sum(isinstance(part, Table) and not part.folded for part in content.parts)
    title = f"<h1>{PAGES[link.page].title}</h1><p>{escape(PAGES[link.page].question)}</p>"
    return FirstAnswer(
        content.headline,
        sentence(content.link, choices.names),
        next((part.key for part in flat(content.parts) if isinstance(part, Chart)), ""),
        f'<div id="first" data-charts="{charts}" data-tables="{tables}"><template shadowrootmode="open">'
        f"<style>{_STYLE}</style><main>{title}{body}</main></template></div>",
    )


def _first_parts(parts: Sequence[Part]) -> list[Part]:
    """Those at the top, up to the first chart and the first table, which is cut. vl-convert draws charts."""
    shown: list[Part] = []
    for part in flat(parts):
        if isinstance(part, Chart | Table) and any(isinstance(each, type(part)) for each in shown):
            break
        if isinstance(part, Table):
            shown.append(replace(part, frame=part.frame.head(_MOST_ROWS)))
        elif not isinstance(part, Chart) or find_spec("vl_convert"):
            shown.append(part)
    return shown


# The wall display, `/?view=wall`: the Overview without controls, dark, to be read from three metres.

WALL = "wall"
_REFRESH_S = 30
_TONES = {"good": "#2FBF95", "bad": "#F0814A", "warning": "#E6B84A"}
_WALL_STYLE = """body{margin:0;padding:2.5vw;background:#10151C;color:#E8EDF3;font:2.2vw/1.35 sans-serif}
h1{font-size:3.4vw;line-height:1.2;margin:0 0 2vw;border-left:1vw solid var(--tone);padding-left:1.5vw}
p,ul{margin:.4em 0;color:#B9C3CF}h2{font-size:2.2vw;margin:1.5vw 0 .5vw;font-weight:600}
dl{display:flex;flex-wrap:wrap;gap:1.2vw;margin:2vw 0}
dl div{border:2px solid #303A47;border-radius:1vw;padding:1vw 1.6vw;flex:1;min-width:18vw}
dt{color:#B9C3CF;font-size:1.6vw}dd{margin:0;font-size:3.4vw;font-weight:650}
figure{margin:0}svg{width:100%;height:auto}figcaption{display:none}"""


def wall_page(params: Mapping[str, Sequence[str]]) -> str:
    """The Overview of `params` as a page that asks for itself anew; a sentence where it cannot be made."""
    tone, title, body = "", "Nothing has been measured yet", ""
    try:
        with RENDER_LIMIT.take():
            content = content_of(links.read(Page.OVERVIEW, params)[0])
            if content is not None:
                shown = _on_the_wall(content[0].parts)
                body = "".join(map(section_html, sections(shown, inked=True), range(len(shown))))
                title = content[0].headline
                tone = next((part.tone for part in content[0].parts if isinstance(part, Headline)), "")
    except CompilewatchError as error:
        title, tone = str(error), "warning"
    except Exception:  # noqa: BLE001 a display on a wall has nobody to read an error 500
        _LOG.exception("the wall display failed")
        title, tone = "The wall display failed. The reason is in the log of the server.", "warning"
    heading = escape(title)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="refresh" content="{_REFRESH_S}">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{heading}</title><style>:root{{--tone:{_TONES.get(tone, '#8A8F98')}}}{_WALL_STYLE}</style>"
        f"</head><body><h1>{heading}</h1>{body}</body></html>\n"
    )


def _on_the_wall(parts: Sequence[Part]) -> list[Part]:
    """Figures, sentences above the first table or chart, and that chart; the headline stands above them."""
    shown = [part for part in _first_parts(parts) if not isinstance(part, Headline | Table)]
    figures: list[Part] = [part for part in shown if isinstance(part, Figures)]
    return figures + [part for part in shown if not isinstance(part, Figures)]
