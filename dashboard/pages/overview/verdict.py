"""Is all well? One sentence on a build, with its colour, and what it rests on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from dashboard.parts.parts import Headline, Tone
from db import units
from db.judge.compare.whole import counts_as_regression
from db.judge.results import Comparison
from db.records.vocabulary import Metric, Verdict

STALE_AFTER = timedelta(days=7)
"""A newest result that is older says nothing of today."""


@dataclass(frozen=True)
class CaseCounts:
    """How many cases of a build got slower, faster or neither in latency, and of how many nobody knows."""

    slower: int = 0
    faster: int = 0
    unchanged: int = 0
    undecided: int = 0

    @property
    def compared(self) -> int:
        """The sum of all."""
        return self.slower + self.faster + self.unchanged + self.undecided


def case_counts(comparison: Comparison | None) -> CaseCounts:
    """Of the rows of latency, one a case. What the machine explains is undecided."""
    if comparison is None:
        return CaseCounts()
    counts: Counter[str] = Counter()
    for row in comparison.rows:
        if row.metric is not Metric.LATENCY:
            continue
        if row.verdict is Verdict.REGRESSED and counts_as_regression(row):
            counts["slower"] += 1
        elif row.verdict is Verdict.IMPROVED:
            counts["faster"] += 1
        elif row.verdict is Verdict.UNCHANGED:
            counts["unchanged"] += 1
        else:
            counts["undecided"] += 1
    return CaseCounts(**counts)


def headline(
    counts: CaseCounts, *, failing: int, regressions: int, build: str, since: str | None
) -> Headline:
    """ "Not well since torch 2.12.0: 2 of 8 cases slower, 1 faster, 1 failing, 3 undecided."

    `since` names the build that `build` was compared with, None where nothing can be; `regressions` are open.
    """
    sentences = [
        f"{units.count(failing)} failing",
        *([units.plural(regressions, "open regression")] if regressions else []),
    ]
    if since is None or not counts.compared:
        bad = bool(failing or regressions)
        text = f"No build to compare {build} with: {', '.join(sentences)}."
        return Headline(text, "bad" if bad else "warning", key="well")
    of_all = f"{units.count(counts.slower)} of {units.plural(counts.compared, 'case')} slower"
    sentences = [
        of_all,
        f"{units.count(counts.faster)} faster",
        f"{units.count(counts.undecided)} undecided",
        *sentences,
    ]
    opening, tone = _opening(counts, failing=failing, regressions=regressions)
    return Headline(f"{opening} since {since}: {', '.join(sentences)}.", tone, key="well")


def _opening(counts: CaseCounts, *, failing: int, regressions: int) -> tuple[str, Tone]:
    if counts.slower or failing or regressions:
        return "Not well", "bad"
    if counts.undecided > counts.compared - counts.undecided:
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
