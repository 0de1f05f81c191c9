"""Runs the short script of a case under both builds, for an issue in public.

The script is made from this host's own definition of the case, never from what a record says. It measures
less carefully than a trial: it shows, and the trials prove.
"""

from __future__ import annotations

import ast
import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from compilewatch.db.errors import CompilewatchError, one_line
from compilewatch.db.records.ids import build_identity
from compilewatch.db.records.people import IssueScript, ScriptRun
from compilewatch.db.records.strategies import compile_arguments
from compilewatch.db.records.trial import StrategyKind, Task, Trial
from compilewatch.db.units import duration, plural
from compilewatch.db.verdicts.issue import IssueSides
from compilewatch.runner.catalog.builtin import WORKLOADS
from compilewatch.runner.catalog.targets import split_target
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.device.lock import default_lock_dir, device_lock
from compilewatch.runner.plan.bundle import Bundle, bundle_of
from compilewatch.runner.plan.interpreter import worker_environment
from compilewatch.runner.plan.reproduce import CaseHere, case_here, device_of, interpreter_for
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


MOST_LINES = 60
_BUILT = "compilewatch.runner.workloads.built"
_WORDS = {"INFERENCE": "inference", "TRAINING": "training", "FUNCTION": "function"}
_HALVES = ("bfloat16", "float16")


class NotShortError(CompilewatchError):
    """No short script can be made; the message says why."""


def short_script(trial: Trial, settings: Settings) -> str:
    """One Python file of at most `MOST_LINES` lines, which prints both latencies and the speedup.

    Raises NotShortError, and as `script_of` does.
    """
    case = case_here(trial, settings)
    _refuse(trial)
    for whole in (True, False):
        text = _text(trial, case, whole=whole)
        if len(text.splitlines()) <= MOST_LINES:
            return text
    lines = len(text.splitlines())
    raise NotShortError(
        f"The model's code makes the script {lines} lines long, more than {MOST_LINES}.", _WHOLE_SCRIPT
    )


_WHOLE_SCRIPT = "`compilewatch reproduce TRIAL --script FILE` writes the whole one."


def _refuse(trial: Trial) -> None:
    strategy, workload = trial.strategy, trial.workload
    problem = ""
    if strategy.kind is StrategyKind.EAGER:
        problem = "Eager compiles nothing"
    elif strategy.kind is not StrategyKind.COMPILE or strategy.scope != "full":
        problem = f"The strategy {strategy.name} is more than one call of torch.compile"
    elif workload.task is Task.TRAINING and workload.dtype in _HALVES:
        problem = "Mixed precision takes more than a few lines"
    if problem:
        raise NotShortError(f"{problem}.", _WHOLE_SCRIPT)


def _text(trial: Trial, case: CaseHere, *, whole: bool) -> str:
    definition, device = case.definition, device_of(trial)
    bundle = bundle_of(definition.target, definition.path, without=(_BUILT,), whole=whole)
    function = split_target(definition.target)[1]
    body = ast.parse(bundle.body())
    arguments = {**definition.shape, **definition.kwargs}
    if definition.batch_size is not None:
        arguments["batch_size"] = definition.batch_size
    named = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    places = _placement(body, function, device, trial.workload.dtype)
    call = f"{function}({', '.join(filter(None, (named, *places)))})"
    carried, stand_ins = _imports(bundle)
    move = "" if places or (device, trial.workload.dtype) == ("cpu", "float32") else _MOVE
    # As this host defines them: `case_here` compared them.
    options = compile_arguments(trial.strategy)
    if options.get("backend") == "inductor":
        del options["backend"]
    environment = {"OMP_NUM_THREADS": str(case.threads), "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"}
    return _SCRIPT.format(
        environment=environment | case.worker_env,
        imports="".join(f"{line}\n" for line in carried),
        definitions="\n".join([*stand_ins, *map(ast.unparse, map(_without_docstrings, body.body))]),
        threads=case.threads,
        precision=case.matmul_precision,
        call=call,
        move=move.format(device=device, dtype=trial.workload.dtype),
        options=", ".join(f"{name}={value!r}" for name, value in options.items()),
        step=_TRAIN if trial.workload.task is Task.TRAINING else _FORWARD,
        synchronise="\n    torch.cuda.synchronize()" if device != "cpu" else "",
    )


def _placement(body: ast.Module, function: str, device: str, dtype: str) -> list[str]:
    """The `device` and `dtype` that a builder asks for."""
    (definition,) = (
        each for each in body.body if isinstance(each, ast.FunctionDef) and each.name == function
    )
    names = {each.arg for each in (*definition.args.args, *definition.args.kwonlyargs)}
    values = {"device": f"torch.device({device!r})", "dtype": f"torch.{dtype}"}
    return [f"{name}={value}" for name, value in values.items() if name in names]


def _imports(bundle: Bundle) -> tuple[list[str], list[str]]:
    """The imports of installed packages, and what stands in for ours. Raises NotShortError for what takes
    more.
    """
    carried, stand_ins = [], []
    for line in bundle.imports().splitlines():
        (statement,) = ast.parse(line).body
        names = [alias.name for alias in statement.names] if isinstance(statement, ast.ImportFrom) else []
        if not isinstance(statement, ast.ImportFrom) or statement.module != _BUILT:
            module = statement.module if isinstance(statement, ast.ImportFrom) else line.split()[1]
            package = str(module).partition(".")[0]
            if package != "torch" and package not in sys.stdlib_module_names:
                raise NotShortError(f"The model's code imports {package}.", _WHOLE_SCRIPT)
            carried += [line] if line not in _SCRIPT.splitlines() else []
            continue
        for name in names:
            if name not in _WORDS and name != "Built":
                raise NotShortError(f"{name} of a workload takes more than a few lines.", _WHOLE_SCRIPT)
            stand_ins.append(_STAND_IN if name == "Built" else f"{name} = {_WORDS[name]!r}")
    return carried, stand_ins


def _without_docstrings(statement: ast.stmt) -> ast.stmt:
    for node in ast.walk(statement):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            node.body = [
                each
                for each in node.body
                if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))
            ] or [ast.Pass()]
    return statement


_STAND_IN = """def Built(model_or_fn, inputs, task="inference", loss=None, tolerance=None, headline=None):
    loss = loss or (lambda output: output.float().square().mean())
    return (model_or_fn, inputs, loss) if task == "training" else (model_or_fn, inputs)"""

_MOVE = """def moved(tensor):
    return tensor.to({device!r}, torch.{dtype} if tensor.is_floating_point() else None)
args, kwargs = torch.utils._pytree.tree_map_only(torch.Tensor, moved, (args, kwargs))
model = model.to({device!r}, torch.{dtype}) if isinstance(model, torch.nn.Module) else model
"""

_FORWARD = """def step(call):
    with torch.no_grad():
        call(*args, **kwargs)"""

_TRAIN = """optimizer = torch.optim.SGD(model.parameters(), 1e-3)
def step(call):
    optimizer.zero_grad()
    loss[0](call(*args, **kwargs)).backward()
    optimizer.step()"""

_SCRIPT = """import os
os.environ.update({environment})
import statistics
import time
import torch
{imports}
{definitions}

torch.set_num_threads({threads})
torch.set_float32_matmul_precision({precision!r})
torch.manual_seed(0)
model, inputs, *loss = {call}
args, kwargs = ((), inputs) if isinstance(inputs, dict) else (inputs, {{}})
args = args if isinstance(args, (tuple, list)) else (args,)
{move}if isinstance(model, torch.nn.Module):
    model.train(bool(loss))
{step}
def milliseconds(call):
    start = time.perf_counter()
    step(call){synchronise}
    return (time.perf_counter() - start) * 1e3
sides = {{"force_eager": model, "default": torch.compile(model, {options})}}
samples = {{stance: [] for stance in sides}}
for turn in range(12):  # two to warm up, then ten, of ten samples a side
    for stance, call in sides.items():
        with torch.compiler.set_stance(stance):
            times = [milliseconds(call) for _ in range(10)]
        samples[stance] += times if turn > 1 else []
eager, compiled = (statistics.median(times) for times in samples.values())
print(f"torch {{torch.__version__}}: eager {{eager:.4g}} ms, compiled {{compiled:.4g}} ms", end=", ")
print(f"speedup {{eager / compiled:.3g}}x")
"""
