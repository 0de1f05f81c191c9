"""`python script.py` of a user beside a trial of the same workload, by turns (`make faithful`):

    python -m tests.qa.benchmarks.plain_script                           a dozen models
    python -m tests.qa.benchmarks.plain_script encoder gated_mlp --rounds 3
    python -m tests.qa.benchmarks.plain_script cnn --compile-threads 1
    python -m tests.qa.benchmarks.plain_script ../shared/data/field/workloads/14_list_of_past.py:build
    python -m tests.qa.benchmarks.plain_script --brief ../shared/data/field/workloads/*.py

`--brief` compares cold first call and steady latency alone, takes a model that either side refuses, and
prints what the trial says of it. FILE alone is its `build`.

The script is written as a careful user would: it knows nothing of the measured process, has this shell's own
environment and caches that are empty, or for the warm first call those that it left. It warms up, times both
sides in alternating blocks and takes medians. State that grows it empties before each block, and times it
at the calls at which the trial did. What it holds are the storages of all tensors that Python's garbage
collector finds. Resident memory is that of a process that makes 1,500 eager calls: with this shell's
environment, and with that of a measured process. CPU time is that of the process and its children: other work
on the host lengthens a first call and leaves it as it is.

Printed is the trial's figure over the script's, the median of the rounds, and the gates: steady latency and
cold first call within 5 % (geometric mean) and 15 % (each), memory held within 1 %, resident memory within
10 %, no speedup of the wrong sign where either is further than 5 % from 1.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from compilewatch.db.errors import ConfigError, one_line
from compilewatch.db.records.trial import Status, Trial
from compilewatch.runner.cli.stored.show import facts_of
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.device.lock import default_lock_dir, device_lock
from compilewatch.runner.plan.interpreter import worker_environment
from compilewatch.runner.plan.plan import plan_run
from compilewatch.runner.plan.trial_spec import TrialSpec
from compilewatch.runner.process.supervise import run_trial
from compilewatch.runner.worker.step import loading, memory, messages
from compilewatch.runner.worker.step.host import COMPILE_THREADS
from compilewatch.runner.worker.step.steps import grad_context, make_variant
from compilewatch.runner.worker.timing.sampling import SamplingPlan

OWN = Path(__file__).with_name("plain_models.py")
BUILT_IN = ("cnn", "encoder", "elementwise", "mlp-train")
REPORTED = (
    *("gated_mlp", "ranker", "remembering", "hoarding", "training_closure", "cached", "loop", "spectral"),
)
PUT_BACK = {
    "remembering": "model.past.clear()",
    "14_list_of_past": "model.past.clear()",
    "hoarding": "module.forget()",
    "training_closure": "module.BEGIN_AGAIN[-1]()",
    "19_global_list_memory": "module.HISTORY.clear()",
    "cached": "model.position.zero_()",
    "18_static_cache_of_64": "model.pos.zero_()",
}
"""How a user empties what grows, or starts anew what is trained, by the model's name or its file's."""
MODELS = (*BUILT_IN, *REPORTED)
GATES = (
    ("cold first call", "cold_s", 0.05, 0.15),
    ("CPU time of it", "cold_cpu_s", 0.05, 0.15),
    ("warm first call", "warm_s", 0.05, 0.15),
    ("steady latency of eager", "eager", 0.05, 0.15),
    ("steady latency, compiled", "compiled", 0.05, 0.15),
    ("memory held", "held_bytes", 0.01, 0.01),
    ("resident memory", "resident_bytes", 0.10, 0.10),
)
_UNDECIDED = 0.05
BRIEF: dict[str, Any] = {"samples": 10, "max_samples": 10, "warmup_calls": 3, "warmup_ns": 0}
CALL_BACKWARD = {"training_closure", "17_whole_training_step"}
"""Functions that are a whole training step, by themselves."""
CALLS = 1_500
_ROUNDS, _LEAST_BLOCK, _BLOCK_S = 30, 3, 0.05
SCRIPT = """
import contextlib, gc, importlib, json, os, re, statistics, sys, time
import torch
what = json.loads(sys.argv[1])
sys.path.insert(0, what["path"])
torch.set_num_threads(what["threads"])
torch.manual_seed(0)
module = importlib.import_module(what["module"])
made = getattr(module, what["function"])(**what["arguments"])
if isinstance(made, tuple):
    model, inputs, *rest = made
    loss, keywords, optimizer = (rest or [None])[0], {}, None
    what["training"] = bool(rest)
    if isinstance(inputs, dict):
        inputs, keywords = (), inputs
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
else:
    model, inputs, keywords, loss, optimizer = (
        made.model_or_fn, made.inputs, made.keywords, made.loss, made.optimizer
    )
training = what["training"]
if isinstance(model, torch.nn.Module) and isinstance(made, tuple):
    model.train(training)
loss = loss or (lambda output: output.square().mean())
put_back = compile(what["put_back"], "put back", "exec")

def step_of(call):
    made_by = optimizer or (lambda parameters: torch.optim.SGD(parameters, lr=1e-3))
    of = made_by(model.parameters()) if training else None
    if call is not model and getattr(made, "compile_optimizer", False):
        of.step = torch.compile(of.step)
    def step():
        if not training:
            return call(*inputs, **keywords)
        of.zero_grad()
        loss(call(*inputs, **keywords)).backward()
        of.step()
    return step

def timed(step):
    began = time.perf_counter_ns()
    step()
    return time.perf_counter_ns() - began

def resident():
    return int(re.search(r"VmRSS:\\s+(\\d+)", open("/proc/self/status").read()).group(1)) * 1024

def held():
    found = {}
    for each in gc.get_objects():
        # A sparse, nested or fake tensor has no storage, and a proxy may have lost what it stands for.
        with contextlib.suppress(NotImplementedError, RuntimeError, ReferenceError):
            if isinstance(each, torch.Tensor):
                for tensor in (each, each.grad if each.is_leaf else None):
                    if tensor is not None:
                        storage = tensor.untyped_storage()
                        found[storage.data_ptr()] = storage.nbytes()
    return sum(found.values())

def main():
    eager = step_of(model)
    if what["purpose"] == "resident":
        before = resident()
        for _ in range(what["calls"]):
            eager()
        return {"resident_bytes": resident(), "added_bytes": resident() - before}
    for _ in range(3):
        eager()
    found = {"held_bytes": held()}
    exec(put_back)
    compiled = step_of(torch.compile(model))
    before = os.times()
    found["first_call_s"] = timed(compiled) / 1e9
    found["first_call_cpu_s"] = sum(os.times()[:4]) - sum(before[:4])
    found["threads"] = torch._inductor.config.compile_threads
    if what["purpose"] == "first call":
        return found
    sides, times = {"eager": eager, "compiled": compiled}, {"eager": [], "compiled": []}
    first, last = what["window"] or (3, None)
    for name, step in sides.items():
        exec(put_back)
        for _ in range(12 if last is None else last - 1):
            took = timed(step)
        if last is None:
            last = first - 1 + max(what["least"], min(200, int(what["block_s"] * 1e9 / took)))
    for number in range(what["rounds"]):
        for name, step in list(sides.items())[:: 1 if number % 2 else -1]:
            exec(put_back)
            for _ in range(first - 1):
                step()
            times[name] += [timed(step) for _ in range(last - first + 1)]
    return found | {name: statistics.median(each) for name, each in times.items()}

with torch.set_grad_enabled(training or what["gradients"]):
    print(json.dumps(main()))
"""

Figures = dict[str, float]
Window = tuple[int, int] | None
"""The first and the last timed call since the state was put back; None where no call changes it."""


def plain(spec: TrialSpec, purpose: str, environment: dict[str, str], window: Window = None) -> Figures:
    """What a plain script finds in `environment`, as `main` of `SCRIPT` returns it."""
    workload = spec.workload
    module, function = workload.target.split(":")
    built_in = not workload.path
    arguments: dict[str, Any] = {**workload.shape, **workload.kwargs}
    if workload.batch_size is not None:
        arguments["batch_size"] = workload.batch_size
    what = {
        "purpose": purpose,
        "path": workload.path[0] if workload.path else "",
        "module": module,
        "function": function,
        "arguments": arguments,
        "training": workload.task.value == "training",
        "gradients": bool({function, module} & CALL_BACKWARD),
        "threads": spec.threads,
        "put_back": PUT_BACK.get(function, PUT_BACK.get(module, "")),
        "window": window,
        "calls": CALLS,
        "rounds": _ROUNDS,
        "least": _LEAST_BLOCK,
        "block_s": _BLOCK_S,
    }
    script = SCRIPT
    if built_in:
        script = SCRIPT.replace(
            '(**what["arguments"])',
            '(device=torch.device("cpu"), dtype=torch.float32, **what["arguments"])',
        )
    # As a trial does: else others measure beside the script alone, and it takes longer.
    with device_lock("cpu", default_lock_dir(), what="a plain script"):
        done = subprocess.run(
            [sys.executable, "-c", script, json.dumps(what)], env=environment, capture_output=True, text=True
        )
    if done.returncode:
        raise SystemExit(f"{workload.name}: {done.stderr}")
    found: Figures = json.loads(done.stdout.splitlines()[-1])
    return found


def product(spec: TrialSpec) -> Trial:
    """A trial that went well."""
    trial = run_trial(spec)
    if trial.status is not Status.OK:
        raise SystemExit(f"{spec.workload.name}: {trial.failure}")
    return trial


def held_bytes(spec: TrialSpec) -> int | None:
    """What the product counts as held after three eager calls."""
    workload = messages.read(messages.Workload, spec.workload.model_dump(mode="json"))
    builder = loading.import_builder(workload.target, workload.path)
    built = loading.build_workload(builder, workload, torch.device("cpu"))
    of_whole_step = bool(CALL_BACKWARD & set(workload.target.split(":")))
    variant = make_variant(replace(built, with_gradients=built.with_gradients or of_whole_step))
    with grad_context(variant.built):
        for _ in range(3):
            variant.step()
    return memory.resident_bytes(variant)


def by_trial(cold: TrialSpec, warm: TrialSpec) -> tuple[Figures, Window]:
    """The figures of a trial with empty caches, and of one with full ones its first call."""
    found, window = _timed(product(cold))
    found |= _first_call(product(warm), "warm") | {"held_bytes": held_bytes(cold) or 0}
    with tempfile.TemporaryDirectory(prefix="resident-") as scratch:
        environment = worker_environment(Path(scratch), threads=cold.threads, extra=cold.worker_env)
        found |= plain(cold, "resident", environment)
    return found, window


def _timed(trial: Trial) -> tuple[Figures, Window]:
    eager, compiled = (statistics.median(each or ()) for each in (trial.control_samples_ns, trial.samples_ns))
    state = trial.sampling.state if trial.sampling else None
    found = {"eager": eager, "compiled": compiled, "speedup": eager / compiled}
    return found | _first_call(trial, "cold"), None if state is None else (state.first_call, state.last_call)


def _first_call(trial: Trial, name: str) -> Figures:
    cold = trial.cold_start
    assert cold is not None
    return {
        f"{name}_s": (cold.first_call_ns or 0) / 1e9,
        f"{name}_cpu_s": (cold.first_call_cpu_ns or 0) / 1e9,
    }


def by_script(spec: TrialSpec, window: Window) -> Figures:
    """The same of plain scripts."""
    with tempfile.TemporaryDirectory(prefix="plain-") as caches:
        environment = _own_environment(spec, caches)
        first = plain(spec, "all", environment, window)
        again = plain(spec, "first call", environment)
        kept = plain(spec, "resident", environment)
    found = first | kept | {"speedup": first["eager"] / first["compiled"]}
    for name, each in (("cold", first), ("warm", again)):
        found |= {f"{name}_s": each["first_call_s"], f"{name}_cpu_s": each["first_call_cpu_s"]}
    return found


def _own_environment(spec: TrialSpec, caches: str) -> dict[str, str]:
    return os.environ | {"TORCHINDUCTOR_CACHE_DIR": caches, "TMPDIR": caches} | spec.worker_env


def compared(cold: TrialSpec, warm: TrialSpec, rounds: int) -> tuple[Figures, Figures]:
    """Medians of the rounds of both sides, in turns; the trial comes first, as it finds what grows."""
    ours, theirs = [], []
    window: Window = None
    for number in range(rounds):
        if number % 2:
            theirs.append(by_script(cold, window))
        figures, window = by_trial(cold, warm)
        ours.append(figures)
        if not number % 2:
            theirs.append(by_script(cold, window))
    return _medians(ours), _medians(theirs)


def _medians(rounds: Sequence[Figures]) -> Figures:
    return {name: statistics.median(each[name] for each in rounds) for name in rounds[0]}


HEAD = (
    "| model | cold first call, s | | its CPU, s | | warm, s | | eager, us | | compiled, us | | speedup | | "
    "held, KiB | | resident, MiB | added, MiB |\n|---" + "|---:" * 16 + "|"
)


def row(name: str, ours: Figures, theirs: Figures) -> str:
    """A row of the table: what the script says, and the product's over it."""
    cells = [name]
    for each, unit, digits in (
        ("cold_s", 1, 1),
        ("cold_cpu_s", 1, 1),
        ("warm_s", 1, 2),
        ("eager", 1e3, 1),
        ("compiled", 1e3, 1),
        ("speedup", 1, 3),
        ("held_bytes", 2**10, 1),
    ):
        cells += [f"{theirs[each] / unit:,.{digits}f}", f"{ours[each] / theirs[each]:.3f}"]
    megabytes = {
        each: (theirs[each] / 2**20, ours[each] / 2**20) for each in ("resident_bytes", "added_bytes")
    }
    cells += [f"{script:.0f} / {trial:.0f}" for script, trial in megabytes.values()]
    return f"| {' | '.join(cells)} |"


BRIEF_HEAD = (
    "| model | cold first call, s | | eager, us | | compiled, us | | speedup | | the trial says |\n"
    "|---" + "|---:" * 8 + "|---|"
)


def brief_row(name: str, spec: TrialSpec) -> str:
    """What the script says, the product's over it, and what the trial says in words."""
    trial = run_trial(spec)
    said = [text for fact, text in facts_of(trial, Path()) if fact in {"failure", "note", "numerics"}]
    window = ours = None
    if trial.status is Status.OK:
        ours, window = _timed(trial)
    try:
        with tempfile.TemporaryDirectory(prefix="plain-") as caches:
            theirs = plain(spec, "all", _own_environment(spec, caches), window)
        theirs |= {"cold_s": theirs["first_call_s"], "speedup": theirs["eager"] / theirs["compiled"]}
    except SystemExit as error:
        theirs = {}
        said.append(f"The script: {str(error).splitlines()[-1]}")
    cells = [name]
    for each, unit, digits in (("cold_s", 1, 1), ("eager", 1e3, 1), ("compiled", 1e3, 1), ("speedup", 1, 3)):
        cells.append(f"{theirs[each] / unit:,.{digits}f}" if theirs else "")
        cells.append(f"{ours[each] / theirs[each]:.3f}" if ours and theirs else "")
    words = one_line("; ".join(said).replace("\n", " ").replace("|", " "), 300)
    return f"| {' | '.join(cells)} | {words} |"


def verdicts(found: dict[str, tuple[Figures, Figures]]) -> list[str]:
    """Each gate, and what misses it."""
    lines = []
    for name, figure, mean_gate, each_gate in GATES:
        ratios = {model: ours[figure] / theirs[figure] for model, (ours, theirs) in found.items()}
        mean = statistics.geometric_mean(ratios.values())
        missed = {model: each for model, each in ratios.items() if abs(each - 1) > each_gate}
        is_within = abs(mean - 1) <= mean_gate and not missed
        texts = ", ".join(f"{model} {each:.3f}" for model, each in missed.items())
        lines.append(
            f"{name}: {mean:.3f} (geometric mean), {min(ratios.values()):.3f} to {max(ratios.values()):.3f}: "
            f"{'within' if is_within else 'not within'} the gates{', ' + texts if texts else ''}"
        )
    wrong = [
        model for model, (ours, theirs) in found.items() if _wrong_sign(ours["speedup"], theirs["speedup"])
    ]
    lines.append(
        f"sign of the speedup: {len(wrong)} of {len(found)} wrong{': ' + ', '.join(wrong) if wrong else ''}"
    )
    return lines


def _wrong_sign(ours: float, theirs: float) -> bool:
    return (ours - 1) * (theirs - 1) < 0 and max(abs(ours - 1), abs(theirs - 1)) > _UNDECIDED


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("models", nargs="*", default=MODELS, help="names, or FILE:FUNCTION")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--compile-threads", type=int)
    parser.add_argument("--brief", action="store_true")
    options = parser.parse_args()
    threads = options.compile_threads
    extra = {} if threads is None else {COMPILE_THREADS: str(threads)}
    found = {}
    print(BRIEF_HEAD if options.brief else HEAD, flush=True)
    for each in options.models:
        name = f"{each}:build" if each.endswith(".py") else each
        file, _, function = (f"{OWN}:{name}" if name in REPORTED else name).rpartition(":")
        target = f"{Path(file).stem}:{function}" if file else function
        model = name.rpartition("/")[2].removesuffix(":build").replace(".py", "")
        try:
            with contextlib.chdir(Path(file).parent):
                plan = plan_run(
                    Settings(),
                    workloads=(target,),
                    strategies=("default", "default+warm"),
                    trials=1,
                    device="cpu",
                )
        except ConfigError as refused:
            if not options.brief:
                raise
            print(f"| {model} |{' |' * 8} refused before the first trial: {refused.message} |", flush=True)
            continue
        cold, warm = (
            next(spec for spec in plan.trials if spec.strategy.name == strategy).model_copy(
                update={"worker_env": extra}
            )
            for strategy in ("default", "default+warm")
        )
        warm = warm.model_copy(update={"sampling": SamplingPlan(**BRIEF)})
        if options.brief:
            print(brief_row(model, cold), flush=True)
            continue
        found[model] = compared(cold, warm, options.rounds)
        print(row(model, *found[model]), flush=True)
    if found:
        print("\n".join(verdicts(found)))


if __name__ == "__main__":
    main()
