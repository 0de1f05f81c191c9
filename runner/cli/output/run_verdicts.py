"""The verdict of a fresh run against the history it continues: one word per case."""

from __future__ import annotations

from collections.abc import Sequence

from db.engine.session import Database
from db.judge.compare.sides import VerdictError
from db.judge.results import Comparison
from db.queries.filters import Filters
from db.wording.verdicts import WORST_FIRST
from runner.cli.judging import JudgedComparison, judge, newest_runs
from runner.config.settings import Settings
from runner.regressions.log import Logged, log_builds, log_run

Verdicts = dict[tuple[str, str], str]


def judge_and_log(
    database: Database,
    run_ids: Sequence[str],
    workloads: tuple[str, ...],
    settings: Settings,
    *,
    ask_again: bool = False,
) -> tuple[JudgedComparison | None, Logged]:
    """Judge what was just measured, a run against the one before and builds that took turns against each
    other, and record what regressed; None beside it where there is no one run to show.

    With `ask_again` the service is asked to measure new suspicions again.
    """
    judged = _judge_newest_run(database, workloads, settings) if len(run_ids) == 1 else None
    # Another host may have finished a newer run since, and judges that itself.
    if judged is None or judged.comparison.head.run_ids != tuple(run_ids):
        return None, log_builds(database, run_ids, settings, ask_again=ask_again)
    return judged, log_run(database, judged.comparison, settings, ask_again=ask_again)


def _judge_newest_run(
    database: Database, workloads: tuple[str, ...], settings: Settings
) -> JudgedComparison | None:
    """The newest run against the one before of its suite, over the cases of `workloads`.

    None where there is no such run or the two have nothing in common.
    """
    newest, before, _ = newest_runs(database, only_newest=True)
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
