"""What `python script.py` of a user costs, beside a trial of the same workload, by turns:

    python -m tests.benchmarks.plain_script                       three models, with 1 and with all threads
    python -m tests.benchmarks.plain_script encoder --rounds 3

The script is written as a careful user would: it knows nothing of the measured process, has this shell's own
environment and empty caches. Printed is each first call in seconds and the trial's over the script's; the
gates are 5 % (geometric mean) and 15 % (each).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from typing import Any

from compilewatch.db.records.trial import Status, Trial
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.plan.plan import plan_run
from compilewatch.runner.plan.trial_spec import TrialSpec
from compilewatch.runner.process.supervise import run_trial
from compilewatch.runner.worker.host.affinity import COMPILE_THREADS, compile_threads

MODELS = ("cnn", "encoder", "mlp-train")
GATE, GATE_EACH = 0.05, 0.15
SCRIPT = """
import importlib, json, sys, time
began = time.perf_counter()
import torch
module, function, arguments, training, threads = json.loads(sys.argv[1])
torch.set_num_threads(threads)
build = getattr(importlib.import_module(module), function)
made = build(device=torch.device("cpu"), dtype=torch.float32, **arguments)
model = made.model_or_fn
loss = made.loss or (lambda output: output.square().mean())

def step_of(call, optimizer):
    def step():
        if not training:
            with torch.no_grad():
                return call(*made.inputs, **made.keywords)
        optimizer.zero_grad()
        loss(call(*made.inputs, **made.keywords)).backward()
        optimizer.step()
    return step

def optimizer_of(model):
    make = made.optimizer or (lambda parameters: torch.optim.SGD(parameters, lr=1e-3))
    return make(model.parameters()) if training else None

def timed(step):
    began = time.perf_counter()
    step()
    return time.perf_counter() - began

optimizer = optimizer_of(model)
eager = step_of(model, optimizer)
eager()
if made.compile_optimizer:
    optimizer.step = torch.compile(optimizer.step)
compiled = step_of(torch.compile(model), optimizer)
first_s = timed(compiled)
print(json.dumps({"first_call_s": first_s, "threads": torch._inductor.config.compile_threads}))
"""


def plain(spec: TrialSpec, threads: int | None) -> dict[str, Any]:
    """Seconds of the first compiled call of a plain script, and with how many threads it compiled."""
    workload = spec.workload
    module, function = workload.target.split(":")
    arguments = {**workload.shape, **workload.kwargs}
    if workload.batch_size is not None:
        arguments["batch_size"] = workload.batch_size
    given = [module, function, arguments, workload.task.value == "training", spec.threads]
    with tempfile.TemporaryDirectory(prefix="plain-") as caches:
        environment = os.environ | {"TORCHINDUCTOR_CACHE_DIR": caches, "TMPDIR": caches}
        environment |= {} if threads is None else {COMPILE_THREADS: str(threads)}
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, json.dumps(given)],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def product(spec: TrialSpec, threads: int | None) -> dict[str, Any]:
    """The same of a trial."""
    extra = {} if threads is None else {COMPILE_THREADS: str(threads)}
    trial: Trial = run_trial(spec.model_copy(update={"worker_env": {**spec.worker_env, **extra}}))
    if trial.status is not Status.OK or trial.cold_start is None or trial.compiler is None:
        raise SystemExit(f"{spec.workload.name}: {trial.failure}")
    first_ns = trial.cold_start.first_call_ns or 0
    return {"first_call_s": first_ns / 1e9, "threads": trial.compiler.compile_threads}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("models", nargs="*", default=MODELS)
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    plan = plan_run(
        Settings(),
        workloads=tuple(options.models),
        strategies=("default",),
        trials=1,
        device="cpu",
    )
    brief = {"samples": 10, "max_samples": 10, "warmup_calls": 3, "warmup_ns": 0}
    ratios: list[float] = []
    for spec in plan.trials:
        short = spec.model_copy(update={"sampling": type(spec.sampling)(**brief), "worker_env": {}})
        for threads in (1, None):
            seconds: dict[str, list[float]] = defaultdict(list)
            counts = {}
            for number in range(options.rounds):
                sides = (("plain", plain), ("product", product))
                for name, run in sides if number % 2 == 0 else reversed(sides):
                    found = run(short, threads)
                    seconds[name].append(found["first_call_s"])
                    counts[name] = found["threads"]
            medians = {name: statistics.median(values) for name, values in seconds.items()}
            ratios.append(medians["product"] / medians["plain"])
            asked = "1 thread" if threads == 1 else f"all {compile_threads()} threads"
            print(
                f"{spec.workload.name}, {asked}: plain {medians['plain']:.1f} s (compiled with "
                f"{counts['plain']}), product {medians['product']:.1f} s (with {counts['product']}), "
                f"{ratios[-1]:.2f}",
                flush=True,
            )
    mean = statistics.geometric_mean(ratios)
    within = abs(mean - 1) <= GATE and all(abs(ratio - 1) <= GATE_EACH for ratio in ratios)
    print(
        f"product over plain: {mean:.3f} (geometric mean), {'within' if within else 'not within'} the gates"
    )


if __name__ == "__main__":
    main()
