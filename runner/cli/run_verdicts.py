"""The verdict of a fresh run against the history it continues: one word per case."""

from __future__ import annotations

from db.queries.filters import Filters
from db.queries.trials import trials_frame
from db.session import Database
from db.verdicts.sides import VerdictError
from db.verdicts.upgrade import compare_builds
from db.verdicts.vocabulary import Verdict
from runner.cli.compare import newest_runs

Verdicts = dict[tuple[str, str], str]
_WORST_FIRST = (
    Verdict.REGRESSED,
    Verdict.INCONCLUSIVE,
    Verdict.IMPROVED,
    Verdict.UNCHANGED,
    Verdict.NOT_COMPARABLE,
    Verdict.MISSING,
)


def verdicts_of_newest_run(database: Database, workloads: tuple[str, ...]) -> Verdicts:
    """By workload and strategy name: the worst verdict over all metrics against the run before of its suite.

    Empty where there is no such run or the two have nothing in common.
    """
    newest, before = newest_runs(database)
    if before is None:
        return {}
    history = trials_frame(database, Filters(workloads=workloads))
    try:
        comparison = compare_builds(history, before, newest, history=history)
    except VerdictError:
        return {}
    found: Verdicts = {}
    for verdict in reversed(_WORST_FIRST):
        found |= {
            (row.workload, row.strategy): verdict.value for row in comparison.rows if row.verdict is verdict
        }
    return found
