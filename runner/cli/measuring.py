"""What commands that measure now share: a plan is executed here, with its progress shown, until Ctrl-C."""

from __future__ import annotations

from collections.abc import Mapping

from db.session import Database
from runner.cli.progress import Case, run_progress
from runner.cli.stopping import stop_signal
from runner.config import Settings
from runner.execution import RunOutcome, execute
from runner.plan import Plan
from runner.spool import Spool


def measure(plan: Plan, database: Database, settings: Settings, past_s: Mapping[Case, float]) -> RunOutcome:
    """Measure and store every trial of `plan`, as `runner.execution.execute` does; Ctrl-C or SIGTERM ends it.

    `past_s`: by workload and strategy the seconds that a trial of the case took before, where that is known.
    """
    cases = [(spec.workload.name, spec.strategy.name) for spec in plan.trials]
    spool = Spool(settings.data_dir / "spool")
    with stop_signal() as stop, run_progress(cases, past_s) as progress:
        return execute(plan, database, spool, progress=progress, is_cancelled=stop.is_set)
