"""One strategy against another in Modes: a matrix of tested differences, and fresh code against cached."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial

import pandas as pd

from compilewatch.dashboard.links.links import Link
from compilewatch.dashboard.parts import parts, verdict_words
from compilewatch.dashboard.parts.parts import Empty, Folded, Part, TableColumn
from compilewatch.dashboard.read.data import filters_of, of_workload, read_trials
from compilewatch.dashboard.read.database import in_force
from compilewatch.dashboard.read.shaping import labels_of
from compilewatch.dashboard.read.versions import cached
from compilewatch.dashboard.text import theme
from compilewatch.db import units
from compilewatch.db.judge.compare.sides import VerdictError
from compilewatch.db.judge.compare.strategies import Difference, differences, from_cache
from compilewatch.db.judge.decide import MOVED
from compilewatch.db.judge.policy import Policy
from compilewatch.db.judge.results import Row
from compilewatch.db.metrics.case_modes import with_strategies
from compilewatch.db.metrics.eligibility import without_canaries
from compilewatch.db.records.vocabulary import Metric, Verdict

MOST_STRATEGIES = 8
"""More of them make a matrix that nobody reads; the filters choose."""


@cached
def against_parts(link: Link) -> tuple[Part, ...]:
    """Nothing where fewer than two strategies were measured with the build."""
    if link.build is None:
        return ()
    filters = filters_of(link)
    trials = without_canaries(read_trials(of_workload(filters, link.focus) if link.focus else filters))
    trials = with_strategies(trials, link.strategy)
    trials = trials[trials["workload_label"] == link.focus] if link.focus else trials
    labels = labels_of(trials)
    if trials["strategy"].nunique() < 2:
        return ()
    matrix = Folded("One strategy against another", partial(_matrix, trials, labels), "modes-against")
    return (*_from_cache(trials, labels), matrix)


def _matrix(trials: pd.DataFrame, labels: dict[str, str]) -> tuple[Part, ...]:
    shown = theme.ordered(trials["strategy"])[:MOST_STRATEGIES]
    cells: dict[tuple[str, str], dict[str, str]] = {}
    for pair in _judged(differences, trials[trials["strategy"].isin(shown)]):
        workload = verdict_words.workload_label(pair.row.case, labels)
        case = cells.setdefault((workload, pair.row.strategy), {})
        case[pair.base] = cell(pair.row)
    order = {name: place for place, name in enumerate(shown)}
    rows = [
        {"workload": workload, "strategy": strategy, **cells[workload, strategy]}
        for workload, strategy in sorted(cells, key=lambda case: (case[0], order[case[1]]))
    ]
    columns = {name: f"against {name}" for name in shown[:-1]}
    table = parts.table(
        "modes-against",
        "Tested difference in latency of every strategy against every other, with intervals",
        pd.DataFrame(rows, columns=["workload", "strategy", *columns]),
        {
            "workload": parts.WORKLOAD,
            "strategy": TableColumn("Strategy"),
            **parts.texts(columns),
        },
        note="Change of latency with its interval, tested as two builds are. Negative is faster.",
    )
    return table or (Empty("No workload has a latency with two of these strategies."),)


def _judged(
    judge: Callable[[pd.DataFrame, Policy], Iterator[Difference]], trials: pd.DataFrame
) -> list[Difference]:
    """Nothing where the trials cannot be set against each other."""
    try:
        return list(judge(trials, in_force().policy))
    except VerdictError:
        return []


def cell(row: Row) -> str:
    """A tested difference in one cell: its size and interval, or what would decide it."""
    change = verdict_words.change(row)
    if row.verdict is Verdict.UNCHANGED:
        return f"same ({verdict_words.interval(row)})"
    if row.verdict in MOVED:
        return f"{change} ({verdict_words.interval(row)})"
    more = f", {units.plural(row.more_trials, 'more trial')} a side" if row.more_trials else ""
    return f"not decided: {change}{more}"


def _from_cache(trials: pd.DataFrame, labels: dict[str, str]) -> tuple[Part, ...]:
    """Code from a cache is the same code: where it is slower, that is a finding of its own."""
    pairs = _judged(from_cache, trials)
    found = Counter(pair.row.verdict for pair in pairs)
    slower = [
        f"{verdict_words.workload_label(pair.row.case, labels)}: code from the cache is slower, "
        f"{pair.row.strategy} {verdict_words.figure(Metric.LATENCY, pair.row.head)} against "
        f"{pair.base} {verdict_words.figure(Metric.LATENCY, pair.row.base)} "
        f"({verdict_words.change(pair.row)}, {verdict_words.interval(pair.row)})."
        for pair in pairs
        if pair.row.verdict is Verdict.REGRESSED
    ]
    if slower:
        return parts.notes(slower, tone="bad", key="modes-cache")
    total, same = found.total(), found[Verdict.UNCHANGED] + found[Verdict.IMPROVED]
    if not total:
        return ()
    of_cases = f"{same} of {units.plural(total, 'case')}, not decided in {total - same}"
    return parts.notes(
        [f"Code from the cache is as fast as fresh code in {of_cases}."],
        key="modes-cache",
    )
