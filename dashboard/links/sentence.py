"""The sentence that says what a link shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from compilewatch.dashboard.links.links import PAGES, PRICE, SELECTORS, Link, Page
from compilewatch.db import units
from compilewatch.db.columns.metrics import METRICS

# The Upgrade page has its focus beside what it shows, not instead of it.
_OF_FOCUS = SELECTORS["focus"] - {Page.UPGRADE}
_GOAL_WORDS = {"latency": "for latency", "memory": "for memory"}
# How each selector that needs nothing but a word is said, in the order in which it is.
_BEFORE = {"machine": "on", "build": "with build", "base": "from", "head": "to", "suite": "in suite"}
_BEHIND = {
    "task": "for",
    "cache": "with cache",
    "status": "with status",
    "source": "from source",
    "state": "in state",
    "run": "of run",
    "build_run": "of run",
    "base_run": "base of run",
    "head_run": "head of run",
    "since": "since",
    "until": "until",
}


def sentence(link: Link, names: Mapping[str, Mapping[str, str]] | None = None) -> str:
    """What `link` shows, in words: every selector that is not at its default and shows something.

    `names` maps `machine`, `build`, `base` and `head` from id to label.
    """
    if link.trial or link.report:
        return f"{PAGES[link.page].title.removesuffix('s')} {link.trial or link.report}."
    labels = names or {}
    parts = [_subject(link), *_cases(link)]
    for key, word in _BEFORE.items():
        if value := getattr(link, key):
            # A figure of one run is another one.
            runs = ", all its runs" if key == "build" and not link.build_run else ""
            parts.append(f"{word} {labels.get(key, {}).get(value, value)}{runs}")
    for key, word in _BEHIND.items():
        if value := getattr(link, key):
            parts.append(f"{word} {_listed(value) if isinstance(value, tuple) else value}")
    return " ".join([*parts, *_details(link)]) + "."


def _subject(link: Link) -> str:
    if link.page is Page.WORKLOAD and link.focus is None:
        return "Figures"
    if link.page is Page.WORKLOAD:
        over = {
            "time": " over time, run by run",
            "torch": " over torch versions, all runs of each build",
        }.get(link.axis, "")
        return f"{METRICS[link.metric].name}{over}"
    if link.page is Page.UPGRADE:
        return f"Upgrade in {METRICS[link.metric].word}"
    if link.page is Page.MODES:
        goal = f"for {units.plural(link.steps, 'step')}"
        return f"Modes {_GOAL_WORDS.get(link.goal, goal)}"
    if link.page is Page.BREAK_EVEN:
        restarts = units.plural(link.restarts, "restart")
        return f"Break-even at {units.plural(link.steps, 'step')} and {restarts} per day"
    return PAGES[link.page].title


def _cases(link: Link) -> Iterator[str]:
    """Which workloads and strategies."""
    if link.focus and link.page in _OF_FOCUS:
        yield f"of {link.focus}"
    elif link.page in SELECTORS["workload"]:
        yield f"of {_listed(link.workload)}" if link.workload else "of all workloads"
    if link.strategy:
        yield f"with {_listed(link.strategy)}"


def _details(link: Link) -> Iterator[str]:
    """What is looked at closely, and how it is drawn and reckoned."""
    if link.page is Page.UPGRADE and (link.focus or link.focus_strategy):
        focus = [link.focus or "", f"with {link.focus_strategy}" if link.focus_strategy else ""]
        yield f"looking at {' '.join(filter(None, focus))}"
    if link.change:
        yield f"looking at {units.plural(len(link.change), 'chosen change')}"
    if link.regression:
        yield f"looking at {units.plural(len(link.regression), 'chosen regression')}"
    if link.price != PRICE.default:
        yield f"at {link.price:g} per GPU-hour"
    if link.scale != Link().scale:
        yield f"on a {link.scale} scale"


def _listed(items: Sequence[str]) -> str:
    if len(items) > 3:
        return f"{', '.join(items[:2])} and {len(items) - 2} more"
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"
