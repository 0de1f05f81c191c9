"""`compilewatch watch`: which releases are new, and what each of them does to the models of this host."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from compilewatch.db.errors import CompilewatchError, ConfigError
from compilewatch.runner.cli.front import EXIT_CANNOT, EXIT_INTERRUPTED
from compilewatch.runner.cli.options import (
    ConfigOption,
    DatabaseOption,
    JsonOption,
    database_of,
    database_to_read,
    settings_of,
)
from compilewatch.runner.cli.stored.serve import dashboard_environment
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.device.host import require_space
from compilewatch.runner.output.documents import print_document
from compilewatch.runner.output.progress import measure, stop_signal
from compilewatch.runner.output.tables import print_lines
from compilewatch.runner.plan.cancellation import PreparationCancelledError
from compilewatch.runner.plan.durations import Durations, stored_durations_s
from compilewatch.runner.plan.plan import Plan
from compilewatch.runner.process.execution import RunOutcome
from compilewatch.runner.search.environments import MeasuringInterruptedError, announce
from compilewatch.runner.search.watch import (
    Means,
    Release,
    Tried,
    before,
    build_in_use,
    new_releases,
    not_installed,
    try_releases,
)

SCHEMA = "compilewatch.watch/1"


def watch(
    once: Annotated[bool, typer.Option("--once", help="Try them now; without, say what that takes.")] = False,
    json_: JsonOption = False,
    db: DatabaseOption = None,
    config: ConfigOption = None,
) -> int:
    """Try the new releases of [watch] on this host's models, as the service does every hour.

    Example: compilewatch watch --once

    Each is installed in an environment of its own, measured by turns with the build in use, judged, frozen as
    a report, told on the channels, and removed.
    """
    settings = settings_of(config, db)
    if not settings.watch.packages:
        raise ConfigError(
            "No package is watched.", 'Write packages = ["torch"] into [watch] of the configuration.'
        )
    require_space(settings.data_dir)
    in_use = build_in_use(settings)
    opened = database_of if once else database_to_read
    with opened(settings) as database, stop_signal() as stop:
        for line in not_installed(settings, in_use):
            announce(line)
        releases = new_releases(database, settings, in_use, by=signer())
        for each in releases:
            for line in before(database, settings, each, in_use):
                announce(line)

        def measured(plan: Plan, seconds: float) -> RunOutcome:
            durations = Durations(stored_durations_s(database, plan))
            return measure(plan, database, settings, durations, seconds)[0]

        means = Means(measured, lambda *page: freeze(settings, *page), announce, stop.is_set)
        try:
            tried = list(try_releases(database, settings, releases, in_use, means)) if once else []
        except (MeasuringInterruptedError, PreparationCancelledError):
            return EXIT_INTERRUPTED
    if json_:
        print_document({"schema": SCHEMA, "rows": _rows(releases, tried)})
    else:
        print_lines(_lines(settings, releases, tried))
    return EXIT_CANNOT if any(each.report_id is None for each in tried) else 0


def signer() -> str:
    """Who signs the reports of this host's watch: by them it knows what it has tried."""
    return f"watch on {socket.gethostname()}"


def freeze(settings: Settings, page: str, title: str) -> str:
    """The id of a new report of that page. Raises CompilewatchError with the dashboard's own words."""
    command = [
        sys.executable,
        "-P",
        "-m",
        "compilewatch.dashboard.reports",
        "create",
        f"--link={page}",
        f"--title={title}",
    ]
    finished = subprocess.run(
        [*command, f"--by={signer()}"],
        env=dashboard_environment(settings),
        check=False,
        capture_output=True,
        text=True,
    )
    if finished.returncode:
        problem, _, how = finished.stderr.strip().removeprefix("compilewatch: ").partition("\n")
        raise CompilewatchError(f"What was measured cannot be frozen: {problem}", how.strip())
    return finished.stdout.strip()


def _rows(releases: Sequence[Release], tried: Sequence[Tried]) -> list[dict[str, str | None]]:
    ends = {each.release: each for each in tried}
    return [
        {
            "package": each.package,
            "version": each.version,
            "text": ends[each].text if each in ends else None,
            "report_id": ends[each].report_id if each in ends else None,
        }
        for each in releases
    ]


def _lines(settings: Settings, releases: Sequence[Release], tried: Sequence[Tried]) -> list[str]:
    if not releases:
        return [f"Nothing new of {', '.join(settings.watch.packages)}."]
    if not tried:
        return ["Try them with `compilewatch watch --once`."]
    return [
        each.text if each.report_id is None else f"{each.text}. Report: /report/{each.report_id}"
        for each in tried
    ]
