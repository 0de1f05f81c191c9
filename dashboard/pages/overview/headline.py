"""The sentence at the top of Today, in models, and what is counted below it, in models and in cases."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from compilewatch.dashboard.pages.overview.strip import ModelChange
from compilewatch.dashboard.parts import verdict_words
from compilewatch.dashboard.parts.parts import Lines, PageHeadline, Tone
from compilewatch.dashboard.verdicts import headlines
from compilewatch.db import units
from compilewatch.db.columns.metrics import METRICS
from compilewatch.db.judge.results import Tally
from compilewatch.db.judge.sentences import other_metrics, tallied, worse_besides
from compilewatch.db.records.vocabulary import Metric

_MODEL = "model"
STALE_AFTER = timedelta(days=7)
"""A newest result that is older says nothing of today."""


def verdict(
    models: Tally,
    cases: Tally,
    moved: Sequence[ModelChange],
    *,
    failing: int,
    changes: int,
    build: str,
    since: str | None,
) -> PageHeadline:
    """ "6 models slower since torch 2.12.1, worst +9.40 % latency".

    `models` and `cases` count the same comparison, `moved` has its models. `since` names the build that
    `build` was compared with, None where nothing can be; `failing` are cases of the last run, compared or
    not; `changes` are open.
    """
    if since is None or not models.compared:
        text, tone = _alone(failing, changes)
        return PageHeadline(text or f"No build to compare {build} with", tone, key="well")
    text, tone = _compared(models, cases, failing=failing, changes=changes)
    slower = [each for each in moved if each.group == "slower"]
    return PageHeadline(f"{text} since {since}{_worst(slower)}", tone, key="well")


def _alone(failing: int, changes: int) -> tuple[str, Tone]:
    if failing:
        return f"{units.plural(failing, 'case')} failing", "bad"
    # A change is open since the build that it was recorded of, not since the base of this page.
    return (units.plural(changes, "open change"), "bad") if changes else ("", "")


def _compared(models: Tally, cases: Tally, *, failing: int, changes: int) -> tuple[str, Tone]:
    """The worst of what is counted, with its colour. What got worse in other metrics is said after it."""
    if models.slower:
        return f"{units.plural(models.slower, _MODEL)} {headlines.way(models.metric, 'slower')}", "bad"
    none = f"none of {units.plural(models.compared, _MODEL)} {headlines.way(models.metric, 'slower')}"
    if failing or (changes and not worse_besides(cases)):
        return f"{_alone(failing, changes)[0]}, {none}", "bad"
    text, tone = headlines.without_trouble(models, _MODEL)
    if tone == "warning" and models.faster:
        text = f"{text}, {units.count(models.faster)} {headlines.way(models.metric, 'faster')}"
    others = worse_besides(cases)
    return (f"{text}, {others}", "bad") if others else (text, tone)


def _worst(slower: Sequence[ModelChange]) -> str:
    if not slower:
        return ""
    row = slower[0].row
    far = f"{verdict_words.change(row)} {METRICS[row.metric].word}"
    return f", worst {far}" if len(slower) > 1 else f": {slower[0].model}, {far}"


def counted(models: Tally, cases: Tally, *, failing: int, changes: int) -> Lines:
    """All that is counted: models, then cases in the words of every door, and what is besides."""
    of_models = models.model_copy(update={"metric": None})
    lines = [f"{units.plural(models.compared, _MODEL)}: {tallied(of_models)}."] if models.compared else []
    more = failing - cases.failing if cases.compared else failing
    besides = [
        *([f"{units.plural(more, 'more case' if cases.failing else 'case')} failing"] if more > 0 else []),
        units.plural(changes, "open change"),
    ]
    of_cases = [units.capitalized(tallied(cases))] if cases.compared else []
    line = f"{', '.join([*of_cases, *besides])}."
    return Lines((*lines, line, *other_metrics(cases)), key="tally")


def metric_of(cases: Tally) -> Metric:
    """The metric that the page is about."""
    return cases.metric or Metric.LATENCY


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
