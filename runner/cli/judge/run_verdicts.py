"""The verdict of a fresh run against the history it continues: one word per case."""

from __future__ import annotations

from collections.abc import Sequence

from compilewatch.db.engine.session import Database
from compilewatch.db.judge.compare.sides import VerdictError
from compilewatch.db.judge.results import Comparison
from compilewatch.db.judge.words.verdicts import WORST_FIRST
from compilewatch.db.queries.filters import Filters
from compilewatch.db.verdicts.newest import newest_runs
from compilewatch.runner.cli.judge.judging import ComparisonReport, judge
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.regressions.log import Logged, log_builds, log_run

Verdicts = dict[tuple[str, str], str]


def judge_and_log(
    database: Database,
    run_ids: Sequence[str],
    workloads: tuple[str, ...],
    settings: Settings,
    *,
    request_confirmations: bool = False,
) -> tuple[ComparisonReport | None, Logged]:
    """Judge what was just measured, a run against the one before and builds that took turns against each
    other, and record what regressed; None beside it where there is no one run to show.

    With `request_confirmations` the service is asked to measure new suspicions again.
    """
    report = _judge_newest_run(database, workloads, settings) if len(run_ids) == 1 else None
    # Another host may have finished a newer run since, and judges that itself.
    if report is None or report.comparison.head.run_ids != tuple(run_ids):
        return None, log_builds(database, run_ids, settings, request_confirmations=request_confirmations)
    return report, log_run(database, report.comparison, settings, request_confirmations=request_confirmations)


def _judge_newest_run(
    database: Database, workloads: tuple[str, ...], settings: Settings
) -> ComparisonReport | None:
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
    """By workload and strategy name: the worst verdict over all metrics; none of what fails on both sides."""
    worst: Verdicts = {}
    rows = [row for row in comparison.rows if not row.never_passes]
    for verdict in reversed(WORST_FIRST):
        worst |= {(row.workload, row.strategy): verdict.value for row in rows if row.verdict is verdict}
    return worst
