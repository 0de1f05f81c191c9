"""Is all well? One sentence on a build, with its colour, and what it rests on."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from dashboard.parts.parts import Headline, Tone
from db import units
from db.judge.results import Tally
from db.judge.words.sentences import tallied

STALE_AFTER = timedelta(days=7)
"""A newest result that is older says nothing of today."""


def headline(tally: Tally, *, failing: int, regressions: int, build: str, since: str | None) -> Headline:
    """ "Not well since torch 2.12.0: 2 slower (latency 2), 1 faster (latency 1), 5 unchanged, 0 undecided."

    `since` names the build that `build` was compared with, None where nothing can be; `failing` are cases of
    this build, compared or not; `regressions` are open.
    """
    more = failing - tally.failing if since is not None and tally.compared else failing
    besides = [
        *([f"{units.plural(more, 'more case' if tally.failing else 'case')} failing"] if more > 0 else []),
        *([units.plural(regressions, "open regression")] if regressions else []),
    ]
    if since is None or not tally.compared:
        bad = bool(failing or regressions)
        text = f"No build to compare {build} with: {', '.join(besides) or 'nothing fails'}."
        return Headline(text, "bad" if bad else "warning", key="well")
    opening, tone = _opening(tally, failing=failing, regressions=regressions)
    return Headline(f"{opening} since {since}: {', '.join((tallied(tally), *besides))}.", tone, key="well")


def _opening(tally: Tally, *, failing: int, regressions: int) -> tuple[str, Tone]:
    if tally.slower or failing or regressions:
        return "Not well", "bad"
    open_cases = tally.undecided + tally.set_aside
    if open_cases > tally.compared - open_cases:
        return "Not known whether all is well", "warning"
    return "All is well", "good"


def basis(
    newest: datetime, now: datetime, *, noise_floor: str | None, left_out: Sequence[str], since: str | None
) -> tuple[str, ...]:
    """How old the newest case is, and what the verdict cannot see."""
    age = max(now - newest, timedelta())
    old = f"Newest case measured {units.moment(newest)}, {_age(age)} ago."
    if age > STALE_AFTER:
        old = f"{old} It says nothing of today."
    floor = (
        noise_floor or "No case has three trials in one run, so the smallest detectable change is unknown."
    )
    exclusions = (
        f"It does not see {units.plural(len(left_out), 'case')} left out of the comparison." if since else ""
    )
    return tuple(filter(None, (old, floor, exclusions if left_out else "")))


def _age(age: timedelta) -> str:
    """In whole days from two on."""
    return units.plural(age.days, "day") if age.days > 1 else units.duration(age.total_seconds() * 1e9)
