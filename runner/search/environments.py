"""Builds made for a search, and their trials by turns: what `bisect` and `attribute` share."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import printable
from compilewatch.db.units import plural, size
from compilewatch.runner.config.settings import BuildSettings, Settings
from compilewatch.runner.device.host import disk_room
from compilewatch.runner.output.progress import measure
from compilewatch.runner.plan.builds import create_build, created_builds
from compilewatch.runner.plan.durations import Case, Durations, stored_durations_s
from compilewatch.runner.plan.interpreter import answer_of
from compilewatch.runner.plan.plan import Plan, only_cases, plan_run
from compilewatch.runner.plan.trial_spec import NO_DIAGNOSTICS, Diagnostics


class MeasuringInterruptedError(KeyboardInterrupt):
    """Ctrl-C: what was measured is stored, and the same command goes on."""


def make_build(
    requirements: Sequence[str],
    settings: Settings,
    *,
    name: str,
    index_url: str | None,
    announced: str,
    base: Path | None = None,
    look_up: bool = True,
) -> tuple[BuildSettings, bool]:
    """The build of these requirements, as `create_build` makes it, and whether it was not there before."""
    known = {build.name for build in created_builds(settings)}
    build = create_build(
        requirements,
        settings,
        name=name,
        base=base,
        index_url=index_url,
        look_up=look_up,
        before_install=lambda: announce(announced),
    )
    return BuildSettings(name=build.name, python=build.python), build.name not in known


def plan_interleaved(
    settings: Settings,
    builds: Sequence[BuildSettings],
    cases: Collection[Case],
    *,
    trials: int,
    device: str,
    diagnostics: Diagnostics = NO_DIAGNOSTICS,
) -> Plan:
    """`trials` of each case with each build, by turns. Raises as `plan_run` does."""
    plan = plan_run(
        settings,
        workloads=list(dict.fromkeys(workload for workload, _ in cases)),
        strategies=list(dict.fromkeys(strategy for _, strategy in cases)),
        trials=trials,
        device=device,
        builds=builds,
        diagnostics=diagnostics,
    )
    return only_cases(plan, cases)


def measure_interleaved(
    database: Database,
    settings: Settings,
    builds: Sequence[BuildSettings],
    cases: Collection[Case],
    *,
    trials: int,
    device: str,
    begin: Callable[[Sequence[str]], None],
    diagnostics: Diagnostics = NO_DIAGNOSTICS,
) -> None:
    """Measure and store them. `begin` gets the runs, in the order of the builds, before the first trial:
    those of a run that is killed count too.

    Raises MeasuringInterruptedError on Ctrl-C.
    """
    plan = plan_interleaved(settings, builds, cases, trials=trials, device=device, diagnostics=diagnostics)
    begin([run.run_id for run in plan.runs])
    outcome, _ = measure(plan, database, settings, Durations(stored_durations_s(database, plan)))
    if outcome.interrupted:
        raise MeasuringInterruptedError


_SIZE_PROBE = """
import json, re, sys
from importlib import metadata
wanted = re.compile(r"torch$|triton|nvidia-|cuda-", re.IGNORECASE)
sizes = [
    file.size or 0 for each in metadata.distributions() if wanted.match(each.metadata["Name"] or "")
    for file in each.files or ()
]
sys.stdout.write(json.dumps(sum(sizes)))
"""
_SIZE_TIMEOUT_S = 60.0


def torch_bytes(python: Path) -> int | None:
    """What torch and the libraries that it brings take on disk in this environment; None where unknown."""
    try:
        taken: int = answer_of(str(python), _SIZE_PROBE, timeout_s=_SIZE_TIMEOUT_S)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    return taken or None


def disk_words(environments: int, python: Path, settings: Settings) -> str:
    """What so many environments take on disk, each as the largest of `python` and the created builds, and
    what is free there, as a sentence.
    """
    if not environments:
        return "Nothing is installed."
    pythons = {python, *(build.python for build in created_builds(settings))}
    most = max((torch_bytes(each) or 0 for each in pythons), default=0)
    known = f"about {size(most)} each as torch takes here" if most else "of unknown size"
    free, _ = disk_room(settings.data_dir)
    return f"{plural(environments, 'environment')} at most, {known}; {size(free)} are free."


def announce(text: str) -> None:
    """On standard error what happens now."""
    print(printable(text), file=sys.stderr)
