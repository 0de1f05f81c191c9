"""`compilewatch gate --confirm`: what looks slower is measured again, now or by the service.

Apart from the gate, which imports it only when it is asked for: measuring takes a second to import.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from compilewatch.db.columns.metrics import METRICS
from compilewatch.db.engine.session import Database
from compilewatch.db.errors import ConfigError
from compilewatch.db.judge.compare.confirmation import Confirmation, Suspicion, outcomes, plan_confirmation
from compilewatch.db.judge.compare.sides import CODE, Selection, VerdictError
from compilewatch.db.judge.policy import Policy
from compilewatch.db.judge.results import CaseKey, Comparison
from compilewatch.db.queries.codes import commits_of_run
from compilewatch.db.records.identity import SHORT_COMMIT
from compilewatch.db.units import plural
from compilewatch.db.verdicts import gateway
from compilewatch.runner.catalog.work_tree import WorkTree
from compilewatch.runner.cli.judge.judging import Decided, print_logged
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.device.host import require_space
from compilewatch.runner.output.progress import measure
from compilewatch.runner.plan.durations import Durations
from compilewatch.runner.plan.host_stacks import HostStacks, MissingBuildError
from compilewatch.runner.plan.plan import Plan, plan_request
from compilewatch.runner.plan.trial_spec import TrialSpec
from compilewatch.runner.regressions.confirmation import (
    PlannedConfirmation,
    confirmation_plan,
    request_confirmation,
)
from compilewatch.runner.regressions.log import log_builds


def queue(database: Database, comparison: Comparison, settings: Settings, budget: int | None) -> Decided:
    """Ask the service to measure what is suspected again. Says on standard error what is queued.

    The gate may run elsewhere: whether the builds are there, the measuring host finds out.
    """
    policy = _with_budget(settings.policy, budget)
    if CODE in comparison.changed_components and plan_confirmation(comparison, policy):
        print("compilewatch: The service has one commit checked out: use --confirm run.", file=sys.stderr)
        return Decided()
    request = request_confirmation(database, comparison, policy, None, at=datetime.now(UTC))
    if request is not None:
        cases = plural(len(request.spec.cases), "case")
        print(f"Confirmation of {cases} queued as {request.request_id}.", file=sys.stderr)
    return Decided()


def measure_again(
    database: Database, comparison: Comparison, settings: Settings, budget: int | None
) -> Decided:
    """Measure what is suspected again, now. Says on standard error what is done, or why nothing."""
    policy = _with_budget(settings.policy, budget)
    try:
        planned = confirmation_plan(database, comparison, policy, HostStacks.read(settings), undecided=True)
    except MissingBuildError as error:
        print(f"compilewatch: {error.message}\n  {error.next_step}", file=sys.stderr)
        return Decided()
    return Decided() if planned is None else _measure(database, comparison, settings, planned)


def _with_budget(policy: Policy, budget: int | None) -> Policy:
    if budget is None:
        return policy
    confirm = policy.confirm.model_copy(update={"budget_trials": budget})
    return policy.model_copy(update={"confirm": confirm})


def _measure(
    database: Database, first: Comparison, settings: Settings, planned: PlannedConfirmation
) -> Decided:
    require_space(settings.data_dir)
    with _base_code(database, first, settings) as base_code:
        plan = base_code(plan_request(settings, planned.spec))
        sides = "commits" if CODE in first.changed_components else "builds"
        print(
            f"Measuring {plural(len(planned.plan.suspicions), 'suspected case')} again in "
            f"{plural(len(plan.trials), 'trial')}, both {sides} interleaved.",
            file=sys.stderr,
        )
        outcome = measure(plan, database, settings, Durations({}))[0]
    if outcome.interrupted:
        return Decided(interrupted=True)
    fresh = _judge_fresh(database, first, plan, settings)
    print_logged(log_builds(database, [run.run_id for run in plan.runs], settings, fresh=True))
    decided = outcomes(planned.plan, fresh)
    return Decided(
        decided,
        _lines(decided, planned.plan.over_budget),
        () if fresh is None else fresh.rows,
        fresh.geomean if fresh is not None and fresh.matched == first.matched else None,
    )


@contextmanager
def _base_code(database: Database, first: Comparison, settings: Settings) -> Iterator[Callable[[Plan], Plan]]:
    """What has the first run of a plan measure the code of the base; a plan as it is where code is the same.

    Raises ConfigError where the work tree is not at the code of the head, or git cannot check out the base.
    """
    if CODE not in first.changed_components:
        yield lambda plan: plan
        return
    tree = WorkTree.around(settings.project_root)
    with database.read() as connection:
        base, head = (commits_of_run(connection, side.run_ids[-1]) for side in (first.base, first.head))
    if tree is None or not base or not head or base[0][1]:
        raise ConfigError(
            "Only committed code in a git work tree is measured again.", "Commit, then measure."
        )
    now = tree.state()
    # Of a dirty head git does not tell all: what is imported and untracked makes it so.
    if now.commit != head[0][0] or (now.dirty and not head[0][1]):
        raise ConfigError(
            f"The work tree is not at the code of {first.head.name}.",
            "Check that out, then run the gate again.",
        )
    with with_code_of(tree, base[0][0], head[0][0]) as of_base:
        yield of_base


@contextmanager
def with_code_of(tree: WorkTree, base: str, head: str) -> Iterator[Callable[[Plan], Plan]]:
    """What has the first run of a plan measure the code of the commit `base` in a work tree of its own, and
    the second that of `tree`, and calls the trials of each by its commit.

    Raises ConfigError where git cannot check out the base.
    """
    with tree.checked_out(base) as other:
        if other is None:
            raise ConfigError(f"Git cannot check out {base}.", "Fetch the whole history (fetch-depth: 0).")
        yield partial(_with_code_of, commits=(base, head), tree=tree, other=other)


def _with_code_of(plan: Plan, commits: Sequence[str], tree: WorkTree, other: WorkTree) -> Plan:
    called = {run.run_id: each[:SHORT_COMMIT] for run, each in zip(plan.runs, commits, strict=True)}

    def moved(entry: str) -> str:
        path = Path(os.path.realpath(entry))
        inside = path.is_relative_to(tree.root)
        return str(other.root / path.relative_to(tree.root)) if inside else entry

    def changed(spec: TrialSpec) -> TrialSpec:
        path = tuple(map(moved, spec.workload.path))
        return spec.model_copy(update={"workload": spec.workload.model_copy(update={"path": path})})

    of_base = plan.runs[0].run_id
    trials = tuple(changed(spec) if spec.run_id == of_base else spec for spec in plan.trials)
    named = tuple(spec.model_copy(update={"build": called[spec.run_id]}) for spec in trials)
    return plan.model_copy(update={"trials": named})


def _judge_fresh(database: Database, first: Comparison, plan: Plan, settings: Settings) -> Comparison | None:
    """The fresh trials alone, in the order of the first look; None where they cannot meet, which is said."""
    base, head = (
        Selection(name=name, run_ids=(run.run_id,))
        for name, run in zip((first.base.name, first.head.name), plan.runs, strict=True)
    )
    try:
        fresh = gateway.compare(database, base, head, policy=settings.policy)
    except VerdictError as error:
        print(f"compilewatch: {error}", file=sys.stderr)
        return None
    if fresh.machine_id != first.machine_id:
        print("compilewatch: This is another machine than the one with the suspicion.", file=sys.stderr)
        return None
    return fresh


def _lines(decided: Sequence[Confirmation], over_budget: Sequence[Suspicion]) -> tuple[str, ...]:
    """Each decision, and each suspicion that the budget left out."""
    lines = (
        f"{each.outcome.value.capitalize()}: {_case(each.case)}, {METRICS[each.metric].word}: {each.reason}"
        for each in decided
    )
    waiting = (f"Not measured again, beyond the budget: {_case(each.case)}." for each in over_budget)
    return (*lines, *waiting)


def _case(case: CaseKey) -> str:
    return f"{case.workload} / {case.strategy}"
