"""Runs the short script of a case under both builds, for an issue in public."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from compilewatch.db.errors import CompilewatchError, one_line
from compilewatch.db.records.ids import build_identity
from compilewatch.db.records.people import IssueScript, ScriptRun
from compilewatch.db.records.trial import Trial
from compilewatch.db.units import duration, plural
from compilewatch.db.verdicts.issue import IssueSides
from compilewatch.runner.catalog.builtin import WORKLOADS
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.device.lock import default_lock_dir, device_lock
from compilewatch.runner.plan.environment import worker_environment
from compilewatch.runner.plan.reproduce import interpreter_for
from compilewatch.runner.plan.short_script import short_script
from compilewatch.runner.process.measured_process import GRACE_S
from compilewatch.runner.process.pipe import GuardedProcess

_PRINTED = re.compile(rb"^torch (\S+): eager (\S+) ms, compiled (\S+) ms, speedup", re.MULTILINE)
_LONGEST_PROBLEM = 300
_MILLISECOND_NS = 1e6


@dataclass(frozen=True)
class _Side:
    """A build and its interpreter here, or why there is none."""

    trial: Trial
    python: Path | None
    problem: str = ""


def made_and_run(
    sides: IssueSides, settings: Settings, *, with_code: bool, announce: Callable[[str], None]
) -> IssueScript:
    """Make the script of the head's trial from this host's definitions and run it under each build of both
    that is here. `announce` is told before how long that takes.

    The code of a model of one's own is left out unless `with_code`. What cannot be made or run is said in
    what is returned. Raises as `device_lock` does.
    """
    made = IssueScript(issue_id=sides.issue_id, made_at=datetime.now(UTC))
    try:
        text = short_script(sides.head, settings)
    except CompilewatchError as error:
        return made.model_copy(update={"problem": error.message})
    is_private = sides.head.workload.name not in WORKLOADS and not with_code
    here = [_here(trial, settings) for trial in (sides.base, sides.head) if trial is not None]
    there = sum(each.python is not None for each in here)
    most = duration(there * settings.run.timeout_s * 1e9)
    announce(
        f"A script of {plural(len(text.splitlines()), 'line')} runs under {plural(there, 'build')}, "
        f"each for about as long as one trial; {most} at most."
    )
    runs = [_run(each, text, settings, is_private=is_private) for each in here]
    return made.model_copy(
        update={"script": None if is_private else text, "is_private": is_private, "runs": runs}
    )


def _here(trial: Trial, settings: Settings) -> _Side:
    try:
        # On a CPU a build with CUDA computes the same; the script prints which it was.
        return _Side(trial, interpreter_for(trial, settings, any_variant=trial.machine.device == "cpu"))
    except CompilewatchError:
        return _Side(trial, None, "not installed on the host that ran it")


def _run(side: _Side, text: str, settings: Settings, *, is_private: bool) -> ScriptRun:
    """In a fresh process with caches of its own, while no trial is measured."""
    run = ScriptRun(build_id=build_identity(side.trial.build), torch=side.trial.build.torch)
    if side.python is None:
        return run.model_copy(update={"problem": side.problem})
    scratch = Path(tempfile.mkdtemp(prefix="compilewatch-trial-"))
    try:
        file = scratch / "issue.py"
        file.write_text(text, encoding="utf-8")
        threads = side.trial.machine.threads or settings.threads
        environment = worker_environment(scratch / "measure", threads=threads, extra={})
        machine = side.trial.machine
        device = "cpu" if machine.device == "cpu" else machine.device_uuid or "cuda:0"
        with device_lock(device, default_lock_dir(), what="a script for an issue") as lock:
            process = GuardedProcess(
                [str(side.python), "-I", str(file)],
                environment=environment,
                scratch=scratch,
                stdin=b"",
                grace_s=GRACE_S,
                locks=(lock,),
            )
            outcome = process.run(settings.run.timeout_s)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    printed = _PRINTED.search(outcome.log_tail)
    if printed is None:
        lines = outcome.log_tail.decode(errors="replace").strip().splitlines() or ["it printed nothing"]
        why = "it took too long" if outcome.stopped == "timeout" else lines[-1]
        if is_private:
            # A message may hold data or code of the model.
            why = why.partition(":")[0]
        return run.model_copy(update={"problem": f"the script fails: {one_line(why, _LONGEST_PROBLEM)}"})
    torch, *times = printed.groups()
    eager, compiled = (float(each) * _MILLISECOND_NS for each in times)
    return run.model_copy(update={"torch": torch.decode(), "eager_ns": eager, "compiled_ns": compiled})
