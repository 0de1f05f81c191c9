"""The verdict of a fresh run against the history it continues: one word per case."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import NotFoundError
from compilewatch.db.judge.compare.sides import Selection, VerdictError
from compilewatch.db.judge.results import Comparison
from compilewatch.db.judge.verdict_marks import WORST_FIRST
from compilewatch.db.queries.selection import Filters
from compilewatch.db.records.vocabulary import Design
from compilewatch.runner.cli.judge.judging import ComparisonReport, judge
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.regressions.judged_runs import Head, NoRunBeforeError, sides_by_code
from compilewatch.runner.regressions.log import Logged, log_builds, log_run

_LOG = logging.getLogger("compilewatch.regressions")

Verdicts = dict[tuple[str, str], str]


def judge_and_log(
    database: Database,
    run_ids: Sequence[str],
    workloads: tuple[str, ...],
    settings: Settings,
    *,
    request_confirmations: bool = False,
    fresh: bool = False,
) -> tuple[ComparisonReport | None, Logged]:
    """Judge what was just measured, a run against that of an ancestor, or without code of one's own against
    the one before, and builds that took turns against each other, and record what regressed; None beside it
    where there is no one run to show. Where no base is known nothing is compared, and a warning says why.

    With `request_confirmations` the service is asked to measure new suspicions again; what `fresh` trials by
    turns show is confirmed by them.
    """
    report = _judge_run(database, run_ids[0], workloads, settings) if len(run_ids) == 1 else None
    if report is None:
        return None, log_builds(
            *(database, run_ids, settings), request_confirmations=request_confirmations, fresh=fresh
        )
    return report, log_run(
        *(database, report.comparison, settings),
        request_confirmations=request_confirmations,
        fresh=fresh and any(row.design is Design.INTERLEAVED for row in report.comparison.rows),
        found_on=report.found_on,
    )


def _judge_run(
    database: Database, run_id: str, workloads: tuple[str, ...], settings: Settings
) -> ComparisonReport | None:
    """The run against its base, over the cases of `workloads`; None where the two have nothing in common."""
    head = Head(Selection(name=run_id, run_ids=(run_id,)))
    try:
        sides = sides_by_code(database, settings, head)
    except NoRunBeforeError:
        return None
    except NotFoundError as error:
        _LOG.warning("Not compared: %s %s", error.message, error.next_step)
        return None
    try:
        return judge(
            *(database, sides.base, sides.head, settings),
            filters=Filters(workloads=workloads),
            said=sides.said,
            found_on=sides.change,
            pull_request_commit=sides.pull_request_commit,
        )
    except VerdictError:
        return None


def worst_verdicts(comparison: Comparison) -> Verdicts:
    """By workload and strategy name: the worst verdict over all metrics; none of what fails on both sides."""
    worst: Verdicts = {}
    rows = [row for row in comparison.rows if not row.never_passes]
    for verdict in reversed(WORST_FIRST):
        worst |= {(row.workload, row.strategy): verdict.value for row in rows if row.verdict is verdict}
    return worst
