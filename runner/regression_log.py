"""From a judged run to what is remembered of it: regressions, second looks at earlier ones, and messages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from pandas import DataFrame

from db.queries.regressions import RegressionState, standing_regressions
from db.regressions import Regression, TriageState
from db.session import Database
from db.store_regressions import Recorded, record_comparison, record_second_look
from db.verdicts.results import Comparison
from db.verdicts.sides import Selection, VerdictError
from db.verdicts.upgrade import compare_builds
from runner.config import Settings
from runner.notify import Told, notify


@dataclass(frozen=True)
class Logged:
    """What a run added to the record, and which messages went out for it."""

    recorded: Recorded
    told: Told


def log_run(database: Database, comparison: Comparison, trials: DataFrame, settings: Settings) -> Logged:
    """Record the regressions of a comparison, look again at those that wait for it, and tell what is sure.

    `trials` is a trials frame that holds both sides and the runs that earlier regressions were found against.
    Doing it twice adds nothing and tells nobody twice.
    """
    channels = [channel.name for channel in settings.channel]
    recorded = record_comparison(database, comparison, at=datetime.now(UTC), channels=channels)
    for again, regressions in _second_looks(database, comparison, trials):
        recorded += record_second_look(database, again, regressions, at=datetime.now(UTC), channels=channels)
    return Logged(recorded, notify(database, settings.channel, settings.notify))


def _second_looks(
    database: Database, comparison: Comparison, trials: DataFrame
) -> Iterator[tuple[Comparison, list[Regression]]]:
    """Unconfirmed regressions of the builds that `comparison` measured afresh, judged on its trials alone.

    The run that follows a regression is mostly of the same build, and compared with its predecessor shows
    nothing: to confirm, it must meet the sides the regression was found between.
    """
    fresh_runs = set(comparison.head.run_ids)
    waiting: dict[tuple[tuple[str, ...], tuple[str, ...]], list[Regression]] = {}
    for each in standing_regressions(database, machine_id=comparison.machine_id):
        if _waits_for(each, comparison) and fresh_runs.isdisjoint(
            (*each.regression.base.run_ids, *each.regression.head.run_ids)
        ):
            base = each.regression.base
            waiting.setdefault((base.run_ids, base.build_ids), []).append(each.regression)
    for (base_runs, builds), regressions in waiting.items():
        workloads = {each.row.workload for each in regressions}
        asked = trials[trials["workload"].isin(workloads)]
        try:
            again = compare_builds(
                asked,
                Selection(name=regressions[0].base.name, run_ids=base_runs, build_ids=builds),
                Selection(name=comparison.head.name, run_ids=comparison.head.run_ids),
                comparison.policy,
                history=asked,
                machine_id=comparison.machine_id,
            )
        except VerdictError:
            # The run did not measure these cases, or the base is no longer stored: they keep waiting.
            continue
        yield again, regressions


def _waits_for(found: RegressionState, comparison: Comparison) -> bool:
    same_build = set(found.regression.head.build_ids) == set(comparison.head.build_ids)
    return same_build and found.state is TriageState.NEW
