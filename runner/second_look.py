"""Confirm before alarm: fresh trials meet the sides between which a regression was found, and decide it."""

from __future__ import annotations

import glob
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime

from pandas import DataFrame

from db.identities import identity
from db.queries.regressions import standing_regressions
from db.regressions import BY_THE_JUDGE, Regression, TriageState
from db.requests import RequestKind, RequestSpec, RunRequest
from db.session import Database
from db.store_request import new_request, save_request
from db.verdicts.policy import Policy
from db.verdicts.results import BuildSide, Comparison
from db.verdicts.sides import Selection, VerdictError
from db.verdicts.upgrade import compare_builds

_Look = tuple[str | None, Selection, Selection]


def second_looks(
    database: Database, run_ids: Collection[str], trials: DataFrame, policy: Policy
) -> Iterator[tuple[Comparison, list[Regression]]]:
    """Unconfirmed regressions whose builds the runs `run_ids` measured afresh, judged on the fresh trials.

    Where the base was measured again too, the sides were interleaved and both are fresh; else the fresh head
    meets the base of old. `trials` is a trials frame with the runs and the bases.
    """
    builds = _builds_of(run_ids, trials)
    waiting: dict[str, tuple[_Look, list[Regression]]] = {}
    for found in standing_regressions(database):
        if found.state is TriageState.NEW:
            look = _look_at(found.regression, builds)
            if look is not None:
                waiting.setdefault(repr(look), (look, []))[1].append(found.regression)
    for (machine_id, base, head), regressions in waiting.values():
        asked = trials[trials["workload"].isin({each.row.workload for each in regressions})]
        try:
            again = compare_builds(asked, base, head, policy, history=asked, machine_id=machine_id)
        except VerdictError:
            # The runs did not measure these cases, or the base is no longer stored: they keep waiting.
            continue
        if again.machine_id == machine_id:
            yield again, regressions


def request_second_look(
    database: Database, regressions: Sequence[Regression], policy: Policy, *, at: datetime
) -> RunRequest | None:
    """Ask the service to measure just these cases again, on every build its host has, interleaved.

    None where nothing waits, the policy allows no extra trial, or this was asked before: the id follows from
    the regressions.
    """
    if not regressions or policy.confirm.budget_trials == 0:
        return None
    first = regressions[0]
    spec = RequestSpec(
        cases=tuple(dict.fromkeys((each.row.workload, each.row.strategy) for each in regressions)),
        machine=glob.escape(first.machine) if first.machine else None,
        trials=policy.confirm.fresh_trials,
        budget_trials=policy.confirm.budget_trials,
    )
    key = identity({"regressions": sorted(each.regression_id for each in regressions)})
    request = new_request(
        f"confirm-{key}",
        RequestKind.CONFIRMATION,
        spec,
        by=BY_THE_JUDGE,
        at=at,
        note=f"suspected: {', '.join(sorted({each.row.workload for each in regressions}))}",
    )
    return request if save_request(database, request) else None


def _builds_of(run_ids: Collection[str], trials: DataFrame) -> dict[str, frozenset[str]]:
    mine = trials[trials["run_id"].isin(list(run_ids))]
    return {str(run): frozenset(map(str, ids)) for run, ids in mine.groupby("run_id")["build_id"]}


def _look_at(regression: Regression, builds: dict[str, frozenset[str]]) -> _Look | None:
    """Which fresh runs decide it; None where its head was not measured again."""
    known = {*regression.base.run_ids, *regression.head.run_ids}
    fresh = {run: ids for run, ids in builds.items() if run not in known}
    heads = _runs_of(regression.head, fresh)
    if not heads:
        return None
    bases = _runs_of(regression.base, {run: ids for run, ids in fresh.items() if run not in heads})
    base = Selection(name=regression.base.name, run_ids=bases or regression.base.run_ids)
    return regression.machine_id, base, Selection(name=regression.head.name, run_ids=heads)


def _runs_of(side: BuildSide, builds: dict[str, frozenset[str]]) -> tuple[str, ...]:
    return tuple(sorted(run for run, ids in builds.items() if ids <= set(side.build_ids)))
