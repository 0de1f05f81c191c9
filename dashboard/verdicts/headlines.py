"""Is all well? One sentence on a build, with its colour, and what it rests on."""

from __future__ import annotations

from datetime import datetime, timedelta

from compilewatch.dashboard.parts.parts import PageHeadline, Tone
from compilewatch.db import units
from compilewatch.db.columns.metrics import METRICS
from compilewatch.db.judge.results import Tally
from compilewatch.db.judge.words.sentences import other_metrics, tallied, worse_besides
from compilewatch.db.records.vocabulary import Metric

STALE_AFTER = timedelta(days=7)
"""A newest result that is older says nothing of today."""


def of_overview(
    tally: Tally, *, failing: int, regressions: int, build: str, since: str | None
) -> PageHeadline:
    """ "2 of 8 cases slower since torch 2.12.0".

    `since` names the build that `build` was compared with, None where nothing can be; `failing` are cases of
    this build, compared or not; `regressions` are open.
    """
    text, tone = of_tally(tally, failing=failing, regressions=regressions, since=since)
    if since is None or not tally.compared:
        text = text or f"No build to compare {build} with"
        return PageHeadline(text, tone, key="well")
    if regressions and not failing and not tally.slower_by:
        # A regression is open since the build that it was recorded of, not since the base of this page.
        text = f"{text}, none of {units.plural(tally.compared, 'case')} slower"
    return PageHeadline(f"{text} since {since}", tone, key="well")


def of_tally(tally: Tally, *, failing: int, regressions: int, since: str | None) -> tuple[str, Tone]:
    """The worst of what is counted, with its colour; nothing where nothing was compared or is wrong. What got
    worse in other metrics than that of the tally is said after it.
    """
    others = worse_besides(tally)
    if tally.slower:
        return slower(tally), "bad"
    if failing:
        return f"{units.plural(failing, 'case')} failing", "bad"
    if others:
        return f"{_without_trouble(tally)[0]}, {others}", "bad"
    if regressions:
        return units.plural(regressions, "open regression"), "bad"
    if since is None or not tally.compared:
        return "", ""
    return _without_trouble(tally)


def slower(tally: Tally) -> str:
    """ "2 of 25 cases slower", of another metric than latency by its name."""
    return f"{units.count(tally.slower)} of {units.plural(tally.compared, 'case')} {_way(tally, 'slower')}"


def _way(tally: Tally, way: str) -> str:
    if tally.metric in (None, Metric.LATENCY):
        return way
    return f"{'worse' if way == 'slower' else 'better'} in {METRICS[tally.metric].word}"


def _without_trouble(tally: Tally) -> tuple[str, Tone]:
    cases = units.plural(tally.compared, "case")
    open_cases = tally.undecided + tally.set_aside
    if open_cases > tally.compared - open_cases:
        groups = ((tally.undecided, "undecided"), (tally.set_aside, "set aside, machine"))
        words = " or ".join(word for number, word in groups if number)
        return f"{units.count(open_cases)} of {cases} {words}", "warning"
    if tally.faster:
        none = "slower" if _way(tally, "slower") == "slower" else "worse"
        return f"{units.count(tally.faster)} of {cases} {_way(tally, 'faster')}, none {none}", "good"
    return f"None of {cases} {_way(tally, 'slower')}", "good"


def tally_lines(tally: Tally, *, failing: int, regressions: int) -> tuple[str, ...]:
    """All that is counted, in the words of every door, and what is besides: the lines below the headline."""
    more = failing - tally.failing if tally.compared else failing
    besides = [
        *([f"{units.plural(more, 'more case' if tally.failing else 'case')} failing"] if more > 0 else []),
        units.plural(regressions, "open regression"),
    ]
    counted = [f"{tallied(tally)[0].upper()}{tallied(tally)[1:]}"] if tally.compared else []
    return (f"{', '.join([*counted, *besides])}.", *other_metrics(tally))


def basis(
    newest: datetime, now: datetime, *, noise_floor: str | None, left_out: int, since: str | None
) -> tuple[str, ...]:
    """How old the newest case is, and what the verdict cannot see."""
    age = max(now - newest, timedelta())
    ago = units.plural(age.days, "day") if age.days > 1 else units.duration(age.total_seconds() * 1e9)
    old = f"Newest case measured {units.moment(newest)}, {ago} ago."
    if age > STALE_AFTER:
        old = f"{old} It says nothing of today."
    floor = (
        noise_floor or "No case has three trials in one run, so the smallest detectable change is unknown."
    )
    exclusions = f"It does not see {units.plural(left_out, 'case')} left out of the comparison."
    return (old, floor, *([exclusions] if since and left_out else []))
