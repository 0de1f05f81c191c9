"""What commands that measure now share: a plan is executed here, with its progress shown, until Ctrl-C."""

from __future__ import annotations

import math

from db.session import Database
from runner.cli.progress import TimeLeft, run_progress
from runner.cli.stopping import stop_signal
from runner.config import Settings
from runner.durations import Durations
from runner.execution import RunOutcome, execute
from runner.plan import Plan
from runner.spool import Spool
from runner.time_budget import TimeBudget


def measure(
    plan: Plan, database: Database, settings: Settings, durations: Durations, seconds: float = math.inf
) -> tuple[RunOutcome, TimeBudget]:
    """Measure and store every trial of `plan`, as `runner.execution.execute` does; Ctrl-C or SIGTERM ends it.

    Nothing is begun that is not expected to end within `seconds`; the budget says what was left out.
    """
    cases = [(spec.workload.name, spec.strategy.name) for spec in plan.trials]
    spool = Spool(settings.data_dir / "spool")
    budget = TimeBudget(seconds, durations, canaries=plan.canaries)
    time_left = TimeLeft(cases, durations, budget.remaining_s)
    with stop_signal() as stop, run_progress(len(cases), time_left) as progress:
        outcome = execute(
            plan, database, spool, progress=progress, is_cancelled=stop.is_set, admits=budget.admits
        )
    return outcome, budget
