"""Figures of trials against a timing script of ten lines, by turns: `pytest -m benchmark
tests/benchmarks/test_field_agreement.py -s`.

The models are those of people's reports. Each round is one trial and one run of the script, in processes of
the same environment. Printed is what the trial says over what the script says.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

from compilewatch.db.records.trial import Status, Task
from compilewatch.runner.process.measured_process import worker_environment
from tests.runner.measuring import FAST_COMPILE, compiled, measure

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(3_000)]
FOLDER = Path(__file__).resolve().parents[3] / "shared" / "data" / "field" / "workloads"
MODELS = (
    "01_recompile_storm_counter:build",
    "03_model_already_compiled:already",
    "10_complex_istft:build",
    "02_nested_sparse_inputs:build",
    "07_keyword_only_inputs:od",
    "05_python_number_differs:build",
    "06_training_one_liner:build",
    "09_long_loop:build",
    "12_autograd_cache_bypass:build",
)
TRAINING = ("06", "12")
ROUNDS = 2
SCRIPT = """
import importlib, json, statistics, sys, time, torch
folder, module, function = sys.argv[1:]
sys.path.insert(0, folder)
torch.manual_seed(0); torch.set_num_threads(1)
model, inputs, *loss = getattr(importlib.import_module(module), function)()
inputs = inputs if isinstance(inputs, tuple) else (inputs,)
model = model.train(bool(loss)) if isinstance(model, torch.nn.Module) else model
model = getattr(model, "_orig_mod", model)
def trained(call):
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    def step(*inputs):
        optimizer.zero_grad(); loss[0](call(*inputs)).backward(); optimizer.step()
    return step
steps, times, costs = {"eager": model, "compiled": torch.compile(model)}, {"eager": [], "compiled": []}, []
steps = {name: trained(call) if loss else call for name, call in steps.items()}
with torch.set_grad_enabled(bool(loss)):
    for block in range(40):
        for name, step in steps.items():
            for call in range(20):
                began = time.perf_counter_ns(); step(*inputs); took = time.perf_counter_ns() - began
                (times[name] if block >= 20 else costs if name == "compiled" else []).append(took)
print(json.dumps({name: statistics.median(each) for name, each in times.items()} | {"cost": sum(costs)}))
"""


def scripted(target: str, directory: Path) -> dict[str, float]:
    environment = worker_environment(directory, threads=1, extra=FAST_COMPILE)
    command = [sys.executable, "-I", "-c", SCRIPT, str(FOLDER), *target.split(":")]
    finished = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=900, check=True
    )
    found: dict[str, float] = json.loads(finished.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("target", MODELS)
def test_a_trial_says_what_a_script_says(target: str, tmp_path: Path) -> None:
    if not FOLDER.is_dir():
        pytest.skip("the models of reports are not here")
    ratios: dict[str, list[float]] = {"latency": [], "eager": [], "speedup": [], "compile cost": []}
    for number in range(ROUNDS):
        strategy = compiled("inductor", mode="default")
        sampling = {"samples": 50, "max_samples": 200}
        task = Task.TRAINING if target.startswith(TRAINING) else Task.INFERENCE
        trial = measure(
            target, strategy, target=target, path=FOLDER, sampling=sampling, timeout_s=900.0, task=task
        )
        assert trial.status is Status.OK, trial.failure
        script = scripted(target, tmp_path / str(number))
        own, eager = statistics.median(trial.samples_ns), statistics.median(trial.control_samples_ns)
        ratios["latency"].append(own / script["compiled"])
        ratios["eager"].append(eager / script["eager"])
        ratios["speedup"].append((eager / own) / (script["eager"] / script["compiled"]))
        cold = trial.cold_start
        cost = (cold.until_steady_ns or 0) - (cold.calls_until_steady or 0) * own
        ratios["compile cost"].append(cost / (script["cost"] - 400 * script["compiled"]))
    found = {name: statistics.median(values) for name, values in ratios.items()}
    texts = [
        f"{name} {found[name]:.2f} ({min(each):.2f} to {max(each):.2f})" for name, each in ratios.items()
    ]
    print(f"\n{target}: {', '.join(texts)}")
    assert found["speedup"] == pytest.approx(1, rel=0.25)
