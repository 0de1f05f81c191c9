"""What to look at first: a row for each change that waits, then for what looks fixed and is not closed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

import pandas as pd

from compilewatch.dashboard.links.links import Link, Page
from compilewatch.dashboard.parts import parts, verdict_words
from compilewatch.dashboard.parts.column_units import quantity
from compilewatch.dashboard.parts.parts import Leads, Part, TableColumn
from compilewatch.dashboard.parts.weeks import WEEKS, Ids, last_weeks
from compilewatch.dashboard.verdicts import inbox
from compilewatch.dashboard.verdicts.inbox import ListedChange
from compilewatch.db import units
from compilewatch.db.columns.metrics import HISTORY_METRICS, METRICS
from compilewatch.db.judge.results import Row
from compilewatch.db.records.vocabulary import Metric, Verdict

MOST_ROWS = 8
_COLUMNS = {
    "model": replace(parts.WORKLOAD, title="Model", pinned=False),
    "what": TableColumn("What"),
    "base": TableColumn("Before", "quantity", numeric=True),
    "head": TableColumn("Now", "quantity", numeric=True),
    "moved": TableColumn("Change, 95 %", numeric=True, toned=True),
    "weeks": TableColumn(f"{WEEKS} weeks", "line"),
    "since": TableColumn("Since"),
    "owner": TableColumn("Owner", leads=Leads(Page.REGRESSIONS, {"change": "change_id"})),
    "why": TableColumn(
        "Why",
        leads=Leads(
            Page.UPGRADE,
            {"base": "base_build", "head": "head_build", "focus": "workload", "focus_strategy": "strategy"},
        ),
    ),
}


def look_first(
    link: Link,
    listed: Sequence[ListedChange],
    labels: Mapping[str, str],
    newest: datetime,
    moved: Sequence[Row] = (),
) -> tuple[Part, ...]:
    """The first `MOST_ROWS` of `listed`. `labels` name workloads by id, `newest` is the newest result that
    the page shows, `moved` what its build did: what is gone with it has a row of how it went.
    """
    cures = {_key(row): row for row in moved if row.verdict is Verdict.IMPROVED}
    shown = listed[:MOST_ROWS]
    weeks = _weeks(link, [each.change.worst for each in shown], newest)
    frame = pd.DataFrame(
        [{**_row(each, labels, cures), "weeks": weeks.get(_key(each.change.worst), [])} for each in shown]
    )
    several = [each for each in shown if len(each.change.rows) > 1]
    notes = [f"{each.change.sentence}." for each in several[:1]]
    if len(listed) > len(shown):
        notes.append(f"{units.count(len(listed) - len(shown))} more in the inbox.")
    tones = [
        Verdict.REGRESSED
        if each.is_open
        else Verdict.IMPROVED
        if _key(each.change.worst) in cures
        else Verdict.INCONCLUSIVE
        for each in shown
    ]
    return parts.table(
        "overview-first",
        "What to look at first: model, strategies, before, now, change, since which build and whose",
        frame,
        _COLUMNS,
        title="Look at these first",
        note=" ".join(notes),
        tones=tuple(tone.value for tone in tones),
        few=True,
    )


def _row(
    each: ListedChange, labels: Mapping[str, str], cures: Mapping[tuple[Ids, Metric], Row]
) -> dict[str, object]:
    change, row = each.change, each.change.worst
    first = change.regressions[0]
    if each.is_cured:
        row = cures.get(_key(row), row)
    model, more = verdict_words.workload_label(row.case, labels), len(change.workloads) - 1
    return {
        "model": f"{model} and {units.count(more)} more" if more else model,
        "what": _what(each),
        "base": quantity(row.metric, row.base),
        "head": quantity(row.metric, row.head),
        "moved": verdict_words.change_within(row),
        "since": _since(each),
        "owner": ", ".join(each.owners) or "nobody",
        "why": row.cause.value if row.cause else "evidence",
        "workload": model,
        "strategy": row.strategy,
        "change_id": change.change_id if each.is_recorded else None,
        "base_build": first.base.build_ids[-1],
        "head_build": first.head.build_ids[-1],
    }


def _what(each: ListedChange) -> str:
    change = each.change
    strategies = change.strategies
    by = strategies[0] if len(strategies) == 1 else units.plural(len(strategies), "strategy")
    several = f"{by}, {units.plural(len(change.rows), 'case')}" if len(change.rows) > 1 else by
    return several if change.metric is Metric.LATENCY else f"{METRICS[change.metric].word}, {several}"


def _since(each: ListedChange) -> str:
    since = inbox.leading(each.change.head)
    if not each.is_recorded:
        return f"{since}, not recorded"
    later = [f"{each.now}, close?" if each.is_cured else each.now] if each.now else []
    return "; ".join([since, *later])


def _key(row: Row) -> tuple[Ids, Metric]:
    return row.case.ids, row.metric


def _weeks(link: Link, rows: Sequence[Row], newest: datetime) -> dict[tuple[Ids, Metric], list[float]]:
    """The line of each case whose metric has a history, of the metric that moved."""
    lines: dict[tuple[Ids, Metric], list[float]] = {}
    for metric in {row.metric for row in rows if row.metric.value in HISTORY_METRICS}:
        mine = [row for row in rows if row.metric is metric]
        found = last_weeks(
            link,
            {row.case.ids: row.strategy for row in mine},
            newest,
            figure=METRICS[metric].column,
            workloads=tuple(sorted({row.workload for row in mine})),
        )
        lines |= {(ids, metric): line for ids, line in found.items()}
    return lines
