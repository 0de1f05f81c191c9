"""The verdict of a fresh run against the history it continues: one word per case."""

from __future__ import annotations

from db.queries.filters import Filters
from db.session import Database
from db.verdicts.results import WORST_FIRST, Comparison
from db.verdicts.sides import VerdictError
from runner.cli.judging import Judged, judge, newest_runs
from runner.config import Settings

Verdicts = dict[tuple[str, str], str]


def judge_newest_run(database: Database, workloads: tuple[str, ...], settings: Settings) -> Judged | None:
    """The newest run against the one before of its suite, over the cases of `workloads`.

    None where there is no such run or the two have nothing in common.
    """
    newest, before = newest_runs(database)
    if before is None:
        return None
    try:
        return judge(database, before, newest, settings, filters=Filters(workloads=workloads))
    except VerdictError:
        return None


def worst_verdicts(comparison: Comparison) -> Verdicts:
    """By workload and strategy name: the worst verdict over all metrics."""
    found: Verdicts = {}
    for verdict in reversed(WORST_FIRST):
        found |= {
            (row.workload, row.strategy): verdict.value for row in comparison.rows if row.verdict is verdict
        }
    return found
