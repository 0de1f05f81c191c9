"""The verdict on an upgrade as a whole: the judge's sentences, what to measure next, three figures."""

from __future__ import annotations

from collections.abc import Sequence

from compilewatch.dashboard.parts import parts
from compilewatch.dashboard.parts.parts import Figure, Figures, Lines, PageHeadline, Part, Tone
from compilewatch.dashboard.verdicts import headlines, inbox, tables
from compilewatch.db import units
from compilewatch.db.judge.compare.whole import sentences
from compilewatch.db.judge.results import Comparison, Tally
from compilewatch.db.judge.sentences import other_metrics
from compilewatch.db.records.vocabulary import Metric, Verdict
from compilewatch.db.service.regressions import RegressionState

NOT_FILED = "Not filed yet: `compilewatch gate` files regressions."


def headline_parts(
    comparison: Comparison, recorded: Sequence[RegressionState] | None, metric: Metric
) -> tuple[Part, ...]:
    """The answer in `metric` large, all that is counted and what people said of it below."""
    tally = comparison.tally_of(metric)
    text, tone = headline(tally)
    counted = _lines(comparison, recorded, metric)[0]
    return (
        PageHeadline(text, tone, "verdict"),
        Lines((counted, *(other_metrics(tally) if tally.compared else ())), key="tally"),
        *_recorded(comparison, recorded),
    )


def headline(tally: Tally) -> tuple[str, Tone]:
    """ "2 of 25 cases slower, 1 faster, 1 failing", of all cases of a comparison."""
    if not tally.compared:
        return "Nothing could be compared", "warning"
    if not tally.slower:
        return headlines.of_tally(tally)
    also = (
        (tally.faster, "faster" if tally.metric is Metric.LATENCY else "better"),
        (tally.failing, "failing"),
    )
    others = "".join(f", {units.count(number)} {word}" for number, word in also if number)
    return f"{headlines.slower(tally)}{others}", "bad"


def _lines(
    comparison: Comparison, recorded: Sequence[RegressionState] | None, metric: Metric
) -> Sequence[str]:
    confirmed = None if recorded is None else inbox.confirmed_slower(recorded)
    return sentences(comparison, confirmed, metric=metric)


def every_sentence(
    comparison: Comparison, recorded: Sequence[RegressionState] | None, metric: Metric
) -> tuple[Lines, ...]:
    """All sentences of the judge, and what to measure next."""
    advice = comparison.advice.sentences if comparison.advice else ()
    return parts.notes([*_lines(comparison, recorded, metric), *advice], key="sentences")


def _recorded(comparison: Comparison, recorded: Sequence[RegressionState] | None) -> tuple[Part, ...]:
    """How far people and fresh trials are with the regressions of these two builds."""
    if recorded:
        what = units.plural(len(recorded), "regression")
        return parts.notes(
            [f"In the inbox {what} of these builds: {inbox.counted(recorded)}."], key="recorded"
        )
    filed = recorded is None or comparison.verdict is not Verdict.REGRESSED
    return () if filed else parts.notes([NOT_FILED], key="not-filed")


def figures(comparison: Comparison) -> Figures:
    mean = comparison.geomean
    matched, naive = (
        f"{units.ratio(base)} → {units.ratio(head)}"
        for base, head in ((mean.base, mean.head), (mean.naive_base, mean.naive_head))
    )
    return Figures(
        (
            Figure(
                "Geomean speedup, matched",
                units.ratio(mean.head),
                f"Over the {units.plural(mean.cases, 'case')} that passed on both sides.",
                matched if mean.base else "",
                tables.tone_of(comparison.verdict, mean.speedup),
            ),
            Figure(
                "Geomean speedup, naive",
                units.ratio(mean.naive_head),
                "Each side over its own set of cases: it moves when cases come or go. Use the matched one.",
                f"{naive} ({mean.naive_base_cases} → {units.plural(mean.naive_head_cases, 'case')})",
            ),
            Figure(
                "Cases compared",
                f"{comparison.matched} of {comparison.total}",
                "The others are listed below with the reason why they were left out.",
                comparison.machine or "",
            ),
        ),
        width_px=230,
        key="figures",
    )
