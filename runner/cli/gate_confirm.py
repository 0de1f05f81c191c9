"""`compilewatch gate --confirm`: what looks slower is measured again, now or by the service."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from db.errors import printable
from db.judge import gateway
from db.session import Database
from db.units import plural
from db.verdicts.confirm import Confirmation, decide
from db.verdicts.policy import Policy
from db.verdicts.results import Comparison
from db.verdicts.sides import Selection, VerdictError
from db.wording.metrics import METRICS
from runner.cli.judging import say_logged
from runner.cli.measuring import measure
from runner.config import Settings
from runner.durations import Durations
from runner.free_space import require_space
from runner.host_stacks import HostStacks, StackGoneError
from runner.plan import Plan
from runner.regression_log import log_builds
from runner.schedule.planning import plan_request
from runner.second_look import SecondLook, plan_second_look, request_second_look


class Confirm(StrEnum):
    """What becomes of suspicions."""

    NO = "no"
    QUEUE = "queue"
    RUN = "run"


@dataclass(frozen=True)
class Decided:
    """What a second look made of each suspicion; empty where none was taken."""

    confirmations: tuple[Confirmation, ...] = ()
    interrupted: bool = False


def confirm_suspicions(
    database: Database, comparison: Comparison, settings: Settings, how: Confirm, budget: int | None
) -> Decided:
    """Measure what is suspected again, or queue that. Says on standard error what is done, or why nothing."""
    policy = settings.policy if budget is None else _with_budget(settings.policy, budget)
    if how is Confirm.NO:
        return Decided()
    if how is Confirm.QUEUE:
        # The gate may run elsewhere: whether the builds are there, the measuring host finds out.
        request = request_second_look(database, comparison, policy, None, at=datetime.now(UTC))
        if request is not None:
            cases = plural(len(request.spec.cases), "case")
            print(f"Second look at {cases} queued as {request.request_id}.", file=sys.stderr)
        return Decided()
    try:
        look = plan_second_look(database, comparison, policy, HostStacks.read(settings))
    except StackGoneError as error:
        print(f"compilewatch: {error.message}\n  {error.next_step}", file=sys.stderr)
        return Decided()
    return Decided() if look is None else _measure(database, comparison, settings, look)


def _with_budget(policy: Policy, budget: int) -> Policy:
    confirm = policy.confirm.model_copy(update={"budget_trials": budget})
    return policy.model_copy(update={"confirm": confirm})


def _measure(database: Database, first: Comparison, settings: Settings, look: SecondLook) -> Decided:
    require_space(settings.data_dir)
    plan = plan_request(settings, look.spec)
    print(
        f"Measuring {plural(len(look.plan.suspicions), 'suspected case')} again in "
        f"{plural(len(plan.trials), 'trial')}, both builds taking turns.",
        file=sys.stderr,
    )
    if look.plan.over_budget:
        waiting = plural(len(look.plan.over_budget), "suspected case")
        print(f"The budget leaves out {waiting}, the least sure ones.", file=sys.stderr)
    if measure(plan, database, settings, Durations({}))[0].interrupted:
        return Decided(interrupted=True)
    fresh = _judge_fresh(database, first, plan, settings)
    say_logged(log_builds(database, [run.run_id for run in plan.runs], settings, fresh=True))
    decided = decide(look.plan, fresh)
    for confirmation in decided:
        _say(confirmation)
    return Decided(decided)


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
        print("compilewatch: This is another machine than the one that was suspected on.", file=sys.stderr)
        return None
    return fresh


def _say(confirmation: Confirmation) -> None:
    case = confirmation.case
    subject = f"{case.workload} / {case.strategy}, {METRICS[confirmation.metric].word}"
    said = f"{confirmation.outcome.value.capitalize()}: {subject}: {confirmation.reason}"
    print(printable(said), file=sys.stderr)
