"""Is all well? What a tally says in a sentence, with its colour."""

from __future__ import annotations

from compilewatch.dashboard.parts.parts import Tone
from compilewatch.db import units
from compilewatch.db.columns.metrics import METRICS
from compilewatch.db.judge.results import Tally
from compilewatch.db.judge.sentences import worse_besides
from compilewatch.db.records.vocabulary import Metric


def of_tally(tally: Tally) -> tuple[str, Tone]:
    """The worst of what is counted, with its colour, and after it what got worse in other metrics."""
    others = worse_besides(tally)
    if tally.slower:
        return slower(tally), "bad"
    if tally.failing:
        return f"{units.plural(tally.failing, 'case')} failing", "bad"
    text, tone = without_trouble(tally)
    return (f"{text}, {others}", "bad") if others else (text, tone)


def slower(tally: Tally) -> str:
    """ "2 of 25 cases slower", of another metric than latency by its name."""
    return (
        f"{units.count(tally.slower)} of {units.plural(tally.compared, 'case')} {way(tally.metric, 'slower')}"
    )


def way(metric: Metric | None, word: str) -> str:
    """ "slower" or "faster" as it is said of `metric`: "worse in throughput"."""
    if metric in (None, Metric.LATENCY):
        return word
    return f"{'worse' if word == 'slower' else 'better'} in {METRICS[metric].word}"


def without_trouble(tally: Tally, of: str = "case") -> tuple[str, Tone]:
    """What is said where nothing got slower, fails or is open; `of` is what `tally` counts."""
    cases = units.plural(tally.compared, of)
    open_cases = tally.undecided + tally.set_aside
    if open_cases > tally.compared - open_cases:
        groups = ((tally.undecided, "undecided"), (tally.set_aside, "set aside, machine"))
        words = " or ".join(word for number, word in groups if number)
        return f"{units.count(open_cases)} of {cases} {words}", "warning"
    if tally.faster:
        none = "slower" if way(tally.metric, "slower") == "slower" else "worse"
        return f"{units.count(tally.faster)} of {cases} {way(tally.metric, 'faster')}, none {none}", "good"
    return f"None of {cases} {way(tally.metric, 'slower')}", "good"
