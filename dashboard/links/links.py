"""The one file that knows URL keys: a frozen `Link`, and its query string there and back.

A link carries every selector of its page. In the address bar only what differs from the default is written;
a permalink (`permalink`) writes all of them and the data version, so that it keeps its meaning when a default
moves. Reading never fails: what cannot be applied becomes a sentence and the nearest valid view.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from enum import StrEnum
from typing import Annotated, Any, NamedTuple, get_type_hints
from urllib.parse import parse_qs, urlencode, urlsplit

from pydantic import TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from compilewatch.dashboard.links.values import (
    DataVersion,
    Day,
    Decimal,
    One,
    Several,
    Text,
    Whole,
    Word,
    quoted,
    texts_of,
)
from compilewatch.db.columns.metrics import HISTORY_METRICS, MEASURED_METRICS, REQUESTED_METRICS
from compilewatch.db.errors import did_you_mean, nearest
from compilewatch.db.judge.decide import GROUPS
from compilewatch.db.records.people import TriageState
from compilewatch.db.records.trial import CacheState, SourceKind, Status, Task
from compilewatch.db.records.vocabulary import Metric


class Page(StrEnum):
    """Every page; the value is its path."""

    OVERVIEW = ""
    WORKLOAD = "workload"
    UPGRADE = "upgrade"
    MODES = "modes"
    BREAK_EVEN = "break-even"
    COLD_START = "cold-start"
    SIZES = "sizes"
    MACHINES = "machines"
    REGRESSIONS = "regressions"
    TRIAL = "trial"
    RUNS = "runs"
    REPORTS = "reports"
    GUIDE = "guide"


class PageEntry(NamedTuple):
    """What a page is called, the icon of buttons that lead to it, and the question that it answers.

    `picture` is the key of the chart in previews of its links, `picture_of_one` that of those to one model
    where it is another. By default a page shows the newest machine and its newest build; `all_machines` and
    `all_builds` say that it shows them all, `all_builds_of_one` that it does of one model. `filtered` is
    whether the filters mean anything to it.
    """

    title: str
    icon: str
    question: str
    picture: str = ""
    picture_of_one: str = ""
    all_machines: bool = False
    all_builds: bool = False
    all_builds_of_one: bool = False
    filtered: bool = True


PAGES: dict[Page, PageEntry] = {
    Page.OVERVIEW: PageEntry("Today", ":material/dashboard:", "Is all well?", "overview-models"),
    Page.WORKLOAD: PageEntry(
        "Models",
        ":material/deployed_code:",
        "Which strategy for which model, and what changed it?",
        "models-speedups",
        "trend",
        all_builds_of_one=True,
    ),
    Page.MODES: PageEntry("Modes", ":material/grid_on:", "Which strategy for which workload?", "modes-map"),
    Page.COLD_START: PageEntry(
        "Cold start", ":material/ac_unit:", "Where does the first call spend its time?", "cold-start-bars"
    ),
    Page.BREAK_EVEN: PageEntry(
        "Break-even",
        ":material/balance:",
        "After how many steps does compiling pay off?",
        "break-even-curves",
    ),
    Page.SIZES: PageEntry(
        "Sizes", ":material/straighten:", "How does throughput scale with batch and other sizes?"
    ),
    Page.MACHINES: PageEntry(
        "Machines", ":material/dns:", "Which machine is faster, and what does a million items cost on each?"
    ),
    Page.UPGRADE: PageEntry(
        "Upgrade",
        ":material/compare_arrows:",
        "What does another build change, and is it real?",
        "upgrade-forest",
        all_builds=True,
    ),
    Page.REGRESSIONS: PageEntry(
        "Inbox", ":material/inbox:", "What got worse, and who owns it?", all_machines=True
    ),
    Page.TRIAL: PageEntry(
        "Trials", ":material/biotech:", "What exactly happened in one process?", all_builds=True
    ),
    Page.RUNS: PageEntry(
        "Runs",
        ":material/play_circle:",
        "What runs now, what comes next, and on which machines?",
        all_machines=True,
    ),
    Page.REPORTS: PageEntry(
        "Reports", ":material/description:", "Frozen reports.", all_machines=True, filtered=False
    ),
    Page.GUIDE: PageEntry(
        "Guide", ":material/menu_book:", "What do the words and numbers mean?", filtered=False
    ),
}
"""`dashboard.pages.registry` has what each shows and what draws it."""

MODELS = (Page.WORKLOAD, Page.MODES, Page.COLD_START, Page.BREAK_EVEN, Page.SIZES, Page.MACHINES, Page.TRIAL)
"""The tabs of Models, of all or of one; the first is their list, of one model its history."""
MENU: dict[str, tuple[Page, ...]] = {
    "Today": (Page.OVERVIEW,),
    "Models": MODELS,
    "Upgrade": (Page.UPGRADE,),
    "Inbox": (Page.REGRESSIONS,),
    "Runs": (Page.RUNS,),
    "Reports": (Page.REPORTS,),
}
"""The entries on top of every page, and the pages behind each. The link at the foot leads to the Guide."""
OVERVIEW = "overview"
"""The name of Today in addresses of charts; that of other pages is their path."""
_LEADS_ON = {entry.lower(): pages[0] for entry, pages in MENU.items()}
_LEADS_ON |= {OVERVIEW: Page.OVERVIEW, "trends": Page.WORKLOAD}
"""Paths that lead to a page: the words of the menu, as people type them, and what pages had once."""


def heading(page: Page) -> str:
    """What stands large on a page: the entry of the menu that it belongs to, else its own name."""
    return next((entry for entry, pages in MENU.items() if page in pages), PAGES[page].title)


def shows_all_builds(link: Link) -> bool:
    """Whether the page of `link` shows all builds where the link names none."""
    entry = PAGES[link.page]
    return entry.all_builds or (entry.all_builds_of_one and link.focus is not None)


def verdict_metric(link: Link) -> Metric:
    """The metric that an upgrade is looked at by: that of the link where it is judged, else latency."""
    metric = Metric(link.metric)
    return metric if metric in (*MEASURED_METRICS, *REQUESTED_METRICS) else Metric.LATENCY


def requested_metric(link: Link) -> Metric | None:
    """That metric, where the verdict is reached without it."""
    metric = verdict_metric(link)
    return metric if metric in REQUESTED_METRICS else None


def tab_title(page: Page, headline: str = "") -> str:
    """What a browser's tab says: what the page found, as far as that is known."""
    return f"{headline or PAGES[page].title} · compilewatch"


AXES = ("auto", "time", "torch")
"""`auto` is over builds where builds took turns, else over time: the page decides by what was measured."""
SCALES = ("linear", "log")
GOALS = ("latency", "steps", "memory")

_EVERYWHERE = frozenset(page for page, entry in PAGES.items() if entry.filtered)
_HISTORY = frozenset({Page.WORKLOAD})
_UPGRADE = frozenset({Page.UPGRADE})
_REGRESSIONS = frozenset({Page.REGRESSIONS})
_RUNS = frozenset({Page.RUNS})
_CASES = frozenset({*MODELS, Page.REGRESSIONS})
_FOCUS = frozenset(MODELS)
_TRIAL = frozenset({Page.TRIAL})
_MONEY = frozenset({Page.BREAK_EVEN, Page.MACHINES})
_MACHINES = frozenset({Page.MACHINES})
_STEPS = frozenset({Page.BREAK_EVEN, Page.MODES})

DATA_VERSION = "data"
STORED_VIEW = "view"
"""Stands for a whole link that the database keeps under an id; `dashboard.write.writing` opens it."""
NOT_FOUND = "not_found"
GLOBAL_KEYS = ("machine", "build", "suite", "task", "workload")
RUNS_OF = {key: f"{key}_run" for key in ("build", "base", "head")}
"""Keys of builds, and those of the runs that are meant of each where not all are: of a commit, of a day."""


class On(frozenset[Page]):
    """The pages on which a key of a link means something."""


Name = Annotated[str | None, One(Text(), open=True)]
Names = Annotated[tuple[str, ...], Several(Text())]
A_DAY = Annotated[date | None, One(Day(), open=True)]
STEPS = Whole(1, 1_000_000_000, default=10_000)
RESTARTS = Whole(0, 10_000)
PRICE = Decimal(0.0, 10_000.0, default=2.0)


@dataclass(frozen=True)
class Link:
    """One view of the dashboard. Every field but `page` and `data` is a key of its address, its default left
    out there.

    `base` and `head` are builds; `build_run`, `base_run` and `head_run` are the runs meant of each, all where
    none is named. `focus` and `focus_strategy` are the case looked at closely, `group` what became of the
    cases that are shown. `steps` is steps per process, `restarts` restarts per day, `price` money per hour of
    the machine, `against` another machine, and `against_price` money per hour of that. `change` is what one
    step did to many cases, `report` the frozen report looked at, `data` the data version the link was made
    at.
    """

    page: Page = Page.OVERVIEW
    machine: Annotated[Name, On(_EVERYWHERE)] = None
    build: Annotated[Name, On(_EVERYWHERE - _UPGRADE - _REGRESSIONS - _RUNS)] = None
    build_run: Annotated[Names, On(_EVERYWHERE - _UPGRADE - _REGRESSIONS - _RUNS)] = ()
    base: Annotated[Name, On(_UPGRADE | _REGRESSIONS)] = None
    base_run: Annotated[Names, On(_UPGRADE | _REGRESSIONS)] = ()
    head: Annotated[Name, On(_UPGRADE | _REGRESSIONS)] = None
    head_run: Annotated[Names, On(_UPGRADE | _REGRESSIONS)] = ()
    suite: Annotated[Name, On(_EVERYWHERE - _REGRESSIONS)] = None
    task: Annotated[tuple[str, ...], Several(Word(tuple(Task))), On(_EVERYWHERE - _RUNS)] = ()
    workload: Annotated[Names, On(_EVERYWHERE - _RUNS)] = ()
    strategy: Annotated[Names, On(_CASES)] = ()
    focus: Annotated[Name, On(_FOCUS | _UPGRADE)] = None
    focus_strategy: Annotated[Name, On(_UPGRADE)] = None
    metric: Annotated[str, One(Word(HISTORY_METRICS, "latency")), On(_HISTORY | _UPGRADE)] = "latency"
    group: Annotated[tuple[str, ...], Several(Word(GROUPS)), On(_UPGRADE)] = ()
    axis: Annotated[str, One(Word(AXES, "auto")), On(_HISTORY)] = "auto"
    scale: Annotated[str, One(Word(SCALES, "linear")), On(_HISTORY | {Page.BREAK_EVEN})] = "linear"
    since: Annotated[A_DAY, On(_HISTORY | {Page.TRIAL})] = None
    until: Annotated[A_DAY, On(_HISTORY | {Page.TRIAL})] = None
    goal: Annotated[str, One(Word(GOALS, "latency")), On({Page.MODES})] = "latency"
    steps: Annotated[int, One(STEPS), On(_STEPS)] = STEPS.default
    restarts: Annotated[int, One(RESTARTS), On({Page.BREAK_EVEN})] = RESTARTS.default
    price: Annotated[float, One(PRICE), On(_MONEY)] = PRICE.default
    against: Annotated[Name, On(_MACHINES)] = None
    against_price: Annotated[float, One(PRICE), On(_MACHINES)] = PRICE.default
    cache: Annotated[
        tuple[str, ...], Several(Word(tuple(CacheState))), On({Page.BREAK_EVEN, Page.COLD_START})
    ] = ()
    status: Annotated[tuple[str, ...], Several(Word(tuple(Status))), On(_TRIAL)] = ()
    source: Annotated[tuple[str, ...], Several(Word(tuple(SourceKind))), On(_TRIAL)] = ()
    state: Annotated[tuple[str, ...], Several(Word(tuple(TriageState))), On(_REGRESSIONS)] = ()
    change: Annotated[Names, On(_REGRESSIONS)] = ()
    regression: Annotated[Names, On(_REGRESSIONS)] = ()
    run: Annotated[Name, On(_TRIAL)] = None
    trial: Annotated[Name, On(_TRIAL)] = None
    report: Annotated[Name, On({Page.REPORTS})] = None
    data: Annotated[int | None, One(DataVersion())] = None


_LINK = TypeAdapter(Link)
SELECTORS: dict[str, On] = {
    key: pages
    for key, annotation in get_type_hints(Link, include_extras=True).items()
    for pages in getattr(annotation, "__metadata__", ())
    if isinstance(pages, On)
}
"""The keys of links in the order in which they are written, and where each means something."""
_DEFAULT = Link()


def keys_of(page: Page) -> tuple[str, ...]:
    """The keys that mean something on `page`, in the order in which links write them."""
    return tuple(key for key, pages in SELECTORS.items() if page in pages)


def read(page: Page, params: Mapping[str, Sequence[str]]) -> tuple[Link, tuple[str, ...]]:
    """The link that `params` (key -> all its values) stand for, and a sentence per thing not applied."""
    values: dict[str, Any] = {"page": page}
    problems: list[str] = []
    for key, raw in params.items():
        if key == STORED_VIEW:
            continue
        if key == NOT_FOUND:
            problems.append(_no_page(raw[0] if raw else ""))
        elif why := _of_no_use(page, key):
            problems.append(why)
        elif given := [text for text in raw if text] if getattr(_DEFAULT, key) == () else list(raw):
            values[key] = given
    try:
        link = _LINK.validate_python(values)
    except ValidationError as error:
        for each in error.errors():
            key, context = str(each["loc"][0]), each["ctx"]
            problems.append(f"{key}: {context['said']}.")
            values[key] = context["instead"]
        link = _LINK.validate_python(values)
    if link.since and link.until and link.since > link.until:
        problems.append(f"until ({link.until}) lies before since ({link.since}) and was ignored.")
        link = replace(link, until=None)
    return link, tuple(problems)


def _of_no_use(page: Page, key: str) -> str | None:
    """Why `key` says nothing on `page`; None where it does."""
    if key == DATA_VERSION:
        return None
    if key not in SELECTORS:
        hint = did_you_mean(key, keys_of(page))
        return f"{quoted(key)} is no selector of this dashboard and was ignored. {hint}".rstrip()
    if page not in SELECTORS[key]:
        return f"{key} selects nothing on the page {PAGES[page].title} and was ignored."
    return None


def read_url(url: str) -> tuple[Link, tuple[str, ...]]:
    """`read` for what `href` and `permalink` write, below any path; an unknown page gives Today."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return Link(page=Page.OVERVIEW), (f"{quoted(url)} is no address; showing Today.",)
    path = parts.path.rstrip("/").rpartition("/")[2]
    if parts.path.endswith("/") and path not in set(Page):
        # The path below which the dashboard is served.
        path = Page.OVERVIEW
    params = parse_qs(parts.query, keep_blank_values=True)
    if (page := page_named(path)) is not None:
        return read(page, params)
    link, problems = read(Page.OVERVIEW, params)
    return link, (_no_page(path), *problems)


def page_named(path: str) -> Page | None:
    """The page at `path`, in capitals or not, or that it leads on to; None where there is none."""
    return next((page for page in Page if page.value == path.lower()), _LEADS_ON.get(path.lower()))


def _no_page(path: str) -> str:
    close = nearest(path.lower(), (*(page.value for page in Page if page.value), *_LEADS_ON))
    meant = page_named(close[0]) if close else None
    hint = f" Did you mean {PAGES[meant].title}?" if meant else ""
    return f"There is no page {quoted(path)}; showing Today.{hint}"


def params(link: Link, *, full: bool = False) -> list[tuple[str, str]]:
    """The query parameters of `link`, repeated keys repeated; with `full` also those at their default."""
    pairs = []
    for key in keys_of(link.page):
        value = getattr(link, key)
        if full or value != getattr(_DEFAULT, key):
            pairs += [(key, text) for text in texts_of(value)]
    if link.data is not None:
        pairs.append((DATA_VERSION, str(link.data)))
    return pairs


def query(link: Link) -> dict[str, list[str]]:
    """`params` as Streamlit takes them: of pairs with the same key it would keep the last one only."""
    grouped: dict[str, list[str]] = {}
    for key, value in params(link):
        grouped.setdefault(key, []).append(value)
    return grouped


def href(link: Link, *, full: bool = False) -> str:
    """Path and query string, relative to the root of the dashboard: `workload?metric=latency`."""
    query = urlencode(params(link, full=full), errors="replace")
    return link.page.value + (f"?{query}" if query else "")


def permalink(link: Link, data_version: int, origin: str) -> str:
    """The address to send: under `origin` (scheme, host, base path), every selector and the data version."""
    return f"{origin.rstrip('/')}/{href(replace(link, data=data_version), full=True)}"


def chart_address(page: Page, key: str, query: str, suffix: str = "") -> str:
    """Where one chart of a page is, relative to the root of the dashboard: as a picture with the `suffix`
    ".svg" or ".png", without one as a frame.
    """
    path = f"{'chart' if suffix else 'embed'}/{page.value or OVERVIEW}/{key}{suffix}"
    return f"{path}?{query}" if query else path


def move(link: Link, page: Page, **changes: object) -> Link:
    """A link to `page` that keeps the global selectors of `link` and takes `changes`."""
    shared = {key: getattr(link, key) for key in GLOBAL_KEYS if page in SELECTORS[key]}
    wanted: dict[str, Any] = {**shared, **changes}
    return replace(Link(page=page), **wanted)


def beside(link: Link, page: Page) -> Link:
    """A link to another tab: what `link` selects, as far as it means anything there."""
    selectors: dict[str, Any] = {key: getattr(link, key) for key in keys_of(page)}
    return replace(Link(page=page), **selectors)
