"""The sentence that says what a link shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dashboard.charts.figures import FIGURES
from dashboard.links import SELECTORS, TITLES, Link, Page

# The Upgrade page has its focus beside what it shows, not instead of it.
_OF_FOCUS = SELECTORS["focus"][1] - {Page.UPGRADE}
_GOAL_WORDS = {"latency": "for latency", "memory": "for memory"}


def sentence(link: Link, names: Mapping[str, Mapping[str, str]] | None = None) -> str:
    """What `link` shows, in words. `names` maps `machine` and `build` from id to label."""
    labels = names or {}
    parts = [_subject(link)]
    if link.trial:
        return f"{parts[0]} {link.trial}."
    if link.focus and link.page in _OF_FOCUS:
        parts.append(f"of {link.focus}")
    elif link.page in SELECTORS["workload"][1]:
        parts.append(f"of {_listed(link.workload)}" if link.workload else "of all workloads")
    if link.page in SELECTORS["strategy"][1] and link.strategy:
        parts.append(f"with {_listed(link.strategy)}")
    for key, word in (("machine", "on"), ("build", "with build"), ("base", "from"), ("head", "to")):
        if value := getattr(link, key):
            parts.append(f"{word} {labels.get(key, {}).get(value, value)}")
    if link.suite:
        parts.append(f"in suite {link.suite}")
    if link.task:
        parts.append(f"for {_listed(link.task)}")
    parts += [f"{key} {getattr(link, key)}" for key in ("since", "until") if getattr(link, key)]
    return " ".join(parts) + "."


def _subject(link: Link) -> str:
    if link.page is Page.TRENDS:
        over = {"time": " over time", "torch": " over torch versions"}.get(link.axis, "")
        return f"{FIGURES[link.metric].word}{over}"
    if link.page is Page.UPGRADE:
        return f"Upgrade in {FIGURES[link.metric].word.lower()}"
    if link.page is Page.MODES:
        return f"Modes {_GOAL_WORDS.get(link.goal, f'for {link.steps:,} steps')}"
    if link.page is Page.BREAK_EVEN:
        return f"Break-even at {link.steps:,} steps and {link.restarts:,} restarts per day"
    return TITLES[link.page]


def _listed(items: Sequence[str]) -> str:
    if len(items) > 3:
        return f"{', '.join(items[:2])} and {len(items) - 2} more"
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"
