"""Confirm before alarm: fresh trials meet the sides between which a regression was found, and decide it."""

from __future__ import annotations

import glob
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from compilewatch.db.engine.session import Database
from compilewatch.db.judge.compare.confirmation import ConfirmationPlan, plan_confirmation
from compilewatch.db.judge.compare.recorded_regressions import Regression, events_of_rows, side_keys
from compilewatch.db.judge.compare.sides import CODE, SEVERAL, Selection, VerdictError
from compilewatch.db.judge.policy import Policy
from compilewatch.db.judge.results import BuildSide, Comparison, Row
from compilewatch.db.queries.causes import STEP_METRICS
from compilewatch.db.queries.codes import codes_of_runs
from compilewatch.db.queries.named import recorded_builds
from compilewatch.db.queries.run_parts import run_parts
from compilewatch.db.queries.selection import Filters
from compilewatch.db.records.ids import identity
from compilewatch.db.records.people import BY_THE_JUDGE, TriageState
from compilewatch.db.records.requests import RequestKind, RequestSpec, RequestState, RunRequest
from compilewatch.db.service.regressions import standing_regressions
from compilewatch.db.service.requests import new_request, requests, running_requests, save_request
from compilewatch.db.verdicts import gateway

if TYPE_CHECKING:
    from compilewatch.runner.plan.host_stacks import HostStacks

_Confirmation = tuple[str | None, Selection, Selection]


class _Measured(NamedTuple):
    """What a run measured: builds, and code of one's own by name."""

    builds: frozenset[str]
    codes: frozenset[str]


@dataclass(frozen=True)
class PlannedConfirmation:
    """What is suspected, and what to measure to decide it."""

    plan: ConfirmationPlan
    spec: RequestSpec


def confirmation_plan(
    database: Database,
    comparison: Comparison,
    policy: Policy,
    host: HostStacks | None,
    *,
    undecided: bool = False,
) -> PlannedConfirmation | None:
    """The suspicions of a comparison that nobody has decided yet, on the builds of both sides; with
    `undecided` also what could not be decided at all.

    With `host` the builds must be on it: raises MissingBuildError naming the one that is not. Without, the
    measuring host checks. None where nothing is suspected or the policy allows no extra trial.
    """
    waiting = comparison.model_copy(update={"rows": _undecided(database, comparison)})
    plan = plan_confirmation(waiting, policy, undecided=undecided)
    if plan is None:
        return None
    sides = [recorded_builds(database, side.build_ids) for side in (comparison.base, comparison.head)]
    spec = RequestSpec(
        cases=plan.cases,
        stacks=tuple(builds[0] if host is None else host.first_of(builds) for builds in sides),
        machine=glob.escape(comparison.machine) if comparison.machine else None,
        trials=plan.trials_per_side,
        budget_trials=policy.confirm.budget_trials,
        profile=any(metric in STEP_METRICS for each in plan.suspicions for metric in each.metrics),
    )
    return PlannedConfirmation(plan, spec)


def request_confirmation(
    database: Database, comparison: Comparison, policy: Policy, host: HostStacks | None, *, at: datetime
) -> RunRequest | None:
    """Ask the service to measure just the suspected cases again, both builds interleaved.

    A case is asked for once for two builds; None where none is left, and where code of one's own differs,
    which a service has checked out once. Raises MissingBuildError as `confirmation_plan` does.
    """
    if CODE in comparison.changed_components:
        return None
    planned = confirmation_plan(database, comparison, policy, host)
    if planned is None:
        return None
    requested = _requested_before(database, planned.spec)
    cases = tuple(case for case in planned.spec.cases if case not in requested)
    if not cases:
        return None
    key = identity({"sides": side_keys(comparison), "cases": sorted(cases)})
    request = new_request(
        f"confirm-{key}",
        RequestKind.CONFIRMATION,
        planned.spec.model_copy(update={"cases": cases}),
        by=BY_THE_JUDGE,
        at=at,
        note=f"suspected: {', '.join(sorted({workload for workload, _ in cases}))}",
    )
    return request if save_request(database, request) else None


def _requested_before(database: Database, spec: RequestSpec) -> set[tuple[str, str]]:
    earlier = requests(database, states=(RequestState.QUEUED, RequestState.RUNNING, RequestState.FINISHED))
    return {
        case
        for request in earlier
        if request.kind is RequestKind.CONFIRMATION and request.spec.stacks == spec.stacks
        for case in request.spec.cases
    }


def are_confirmation(database: Database, run_ids: Collection[str]) -> bool:
    """Whether a service measures these runs because something was suspected."""
    return any(
        request.kind is RequestKind.CONFIRMATION and set(run_ids) <= set(request.run_ids)
        for request in running_requests(database)
    )


def fresh_comparisons(
    database: Database, run_ids: Collection[str], policy: Policy
) -> Iterator[tuple[Comparison, list[Regression]]]:
    """Unconfirmed regressions whose builds the runs `run_ids` measured afresh, judged on the fresh trials.

    Where the base was measured again too, the sides were interleaved and both are fresh; else the fresh head
    meets the base of old.
    """
    parts = run_parts(database, run_ids).groupby("run_id")["build_id"]
    with database.read() as connection:
        codes = codes_of_runs(connection, run_ids)
    builds = {
        str(run): _Measured(frozenset(map(str, ids)), codes.get(str(run), frozenset())) for run, ids in parts
    }
    waiting: dict[str, tuple[_Confirmation, list[Regression]]] = {}
    for recorded in standing_regressions(database):
        if recorded.state is TriageState.NEW:
            sides = _confirmation_of(recorded.regression, builds)
            if sides is not None:
                waiting.setdefault(repr(sides), (sides, []))[1].append(recorded.regression)
    for (machine_id, base, head), regressions in waiting.values():
        cases = Filters(workloads=tuple(sorted({each.row.workload for each in regressions})))
        try:
            again = gateway.compare(database, base, head, cases, machine_id=machine_id, policy=policy)
        except VerdictError:
            # The runs did not measure these cases, or the base is no longer stored: they keep waiting.
            continue
        if again.machine_id == machine_id:
            yield again, regressions


def _undecided(database: Database, comparison: Comparison) -> tuple[Row, ...]:
    """The rows about which neither fresh trials nor a person have said anything yet."""
    keys = side_keys(comparison)
    events = {id(row): subject for subject, rows in events_of_rows(comparison.rows).items() for row in rows}
    decided = {
        state.regression.subject
        for state in standing_regressions(database, machine_id=comparison.machine_id)
        if (state.regression.base_key, state.regression.head_key) == keys
        and state.state is not TriageState.NEW
    }
    return tuple(row for row in comparison.rows if events[id(row)] not in decided)


def _confirmation_of(regression: Regression, builds: Mapping[str, _Measured]) -> _Confirmation | None:
    """Which fresh runs decide it; None where its head was not measured again."""
    known = {*regression.base.run_ids, *regression.head.run_ids}
    fresh = {run: ids for run, ids in builds.items() if run not in known}
    heads = _runs_of(regression.head, fresh)
    if not heads:
        return None
    bases = _runs_of(regression.base, {run: ids for run, ids in fresh.items() if run not in heads})
    base = Selection(name=regression.base.name, run_ids=bases or regression.base.run_ids)
    return regression.machine_id, base, Selection(name=regression.head.name, run_ids=heads)


def _runs_of(side: BuildSide, measured: Mapping[str, _Measured]) -> tuple[str, ...]:
    code = side.components.get(CODE)
    names = None if code is None else set(code.split(SEVERAL))
    return tuple(
        sorted(
            run
            for run, has in measured.items()
            # A run of code that nobody knows is a fresh one of none.
            if has.builds <= set(side.build_ids) and (names is None or (has.codes and has.codes <= names))
        )
    )
