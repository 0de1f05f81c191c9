"""What recording a job costs: steps of a training loop and compilations, with and without it by turns.

In CPU time of the whole process on one thread, which a busy machine moves less than wall time.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from compilewatch.runner import compilewatch_recorder as recorder
from tests.db.interchange.reading import read

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(1800)]

ROUNDS = 30
STEPS = 400
CALLS = 50_000


def training() -> Callable[[], None]:
    """One step of a small perceptron with Adam: about as short as a step of a training job is."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    layers = [torch.nn.Linear(256, 256) for _ in range(4)]
    model = torch.nn.Sequential(*layers)
    optimizer = torch.optim.Adam(model.parameters())
    batch = torch.randn(64, 256)

    def step() -> None:
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()

    return step


def block_ns(step: Callable[[], None], steps: int) -> int:
    began = time.process_time_ns()
    for _ in range(steps):
        step()
    return time.process_time_ns() - began


def by_turns(work: Callable[[], int], folder: Path, rounds: int) -> tuple[list[float], float]:
    """Recorded over plain of each round, A B, B A; and the median of plain in ns."""
    ratios, plains = [], []
    for number in range(rounds):
        taken = {}
        for recorded in (number % 2 == 0, number % 2 == 1):
            if recorded:
                recorder.start(f"round-{number}", directory=folder)
            taken[recorded] = work()
            recorder.stop()
        ratios.append(taken[True] / taken[False])
        plains.append(taken[False])
    return ratios, statistics.median(plains)


def show(name: str, ratios: list[float]) -> None:
    low, middle, high = statistics.quantiles(ratios, n=4)
    rounds = f"half of {len(ratios)} rounds within {low:.4f} to {high:.4f}"
    print(f"\n{name}: recorded / plain {middle:.4f}, {rounds}")


def test_steps_of_a_training_loop(tmp_path: Path) -> None:
    step = training()
    block_ns(step, 2 * STEPS)
    ratios, plain_ns = by_turns(lambda: block_ns(step, STEPS), tmp_path, ROUNDS)
    show("training step", ratios)
    recorder.start("hook", directory=tmp_path)
    hooks = list(sys.modules["torch.optim.optimizer"]._global_optimizer_post_hooks.values())
    began = time.process_time_ns()
    for _ in range(CALLS):
        hooks[-1](None, (), {})
    hook_ns = (time.process_time_ns() - began) / CALLS
    recorder.stop()
    step_ns = plain_ns / STEPS
    print(f"noting a step: {hook_ns / step_ns:.6f} of a step of {step_ns / 1e6:.2f} ms")


def test_a_step_while_a_dashboard_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`record.step()` where nothing compiles: in a file alone, and beside a dashboard that is away."""
    torch.set_num_threads(1)
    for name, address in (("in a file alone", ""), ("dashboard away", "http://127.0.0.1:9")):
        monkeypatch.setenv("COMPILEWATCH_ADDRESS", address)
        monkeypatch.setenv("COMPILEWATCH_TOKEN", "cwt_none")
        recorder.start(name, directory=tmp_path)
        for _ in range(recorder.STEPS):
            recorder.step()
        rounds = []
        for _ in range(ROUNDS):
            began = time.process_time_ns()
            for _ in range(CALLS):
                recorder.step()
            rounds.append((time.process_time_ns() - began) / CALLS)
        recorder.stop()
        print(f"\n{name}: {statistics.median(rounds):.0f} ns a step, at most {max(rounds):.0f} ns")


def test_compilations(tmp_path: Path) -> None:
    def compiling() -> int:
        torch._dynamo.reset()
        model = torch.nn.Sequential(*(torch.nn.Linear(32, 32) for _ in range(12)))
        compiled = torch.compile(model, backend="aot_eager")
        torch.set_num_threads(1)
        began = time.process_time_ns()
        compiled(torch.randn(4, 32)).sum().backward()
        return time.process_time_ns() - began

    compiling()
    ratios, _ = by_turns(compiling, tmp_path, ROUNDS // 3)
    show("compilation, aot_eager", ratios)


# A job that serves: a step every few milliseconds, of which each tells how long it took. By turns with
# another, by a word on its command line, it is left alone or something goes wrong beside it.
_SERVES = """
import json, os, resource, sys, time
import torch
from compilewatch import record

model = torch.nn.Linear(64, 64)
batch = torch.ones(32, 64)
record.ready()
torch.set_num_threads(1)
took = []
for number in range(int(sys.argv[2])):
    if number == 100 and sys.argv[1] == "full":
        # What the file has now is all that it may have, as on a full disk.
        size = next(os.scandir(os.environ["COMPILEWATCH_JOBS"])).stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        torch.compile(model.forward, backend="eager")(torch.ones(7, 64))
    began = time.process_time_ns()
    for _ in range(40):
        model(batch)
    record.step()
    took.append(time.process_time_ns() - began)
    if number % 200 == 199:
        print(json.dumps(took), flush=True)
        took = []
"""
_SERVED_STEPS = 2_000


def served_steps_ns(folder: Path, what: str, **variables: str) -> tuple[list[int], int]:
    """CPU time of each step after the first 200, and how the job ended."""
    folder.mkdir()
    (folder / "serves.py").write_text(_SERVES)
    words = [sys.executable, "-m", "compilewatch.record", "--name", what, "--", "serves.py", what]
    environment = os.environ | {"COMPILEWATCH_JOBS": str(folder / "jobs")} | variables
    asked = [*words, str(_SERVED_STEPS)]
    steps: list[int] = []
    with subprocess.Popen(asked, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            steps += json.loads(line)
            if what == "killed" and len(steps) >= _SERVED_STEPS // 2:
                process.kill()
    return steps[200:], process.returncode


def test_steps_where_the_disk_is_full_the_dashboard_away_or_the_job_killed(tmp_path: Path) -> None:
    """Each by turns with a job to which nothing happens, in CPU time of the step; and what its file has."""
    away = {"COMPILEWATCH_ADDRESS": "http://127.0.0.1:9", "COMPILEWATCH_TOKEN": "cwt_none"}
    cases: dict[str, dict[str, str]] = {"full": {}, "away": away, "killed": {}}
    for what, variables in cases.items():
        ratios, slowest = [], []
        for turn in range(3):
            taken = {}
            for name in (what, "left alone") if turn % 2 else ("left alone", what):
                folder = tmp_path / f"{what}-{name}-{turn}"
                steps, code = served_steps_ns(folder, name, **(variables if name == what else {}))
                taken[name] = steps
                assert code == (-signal.SIGKILL if name == "killed" else 0)
                (trial,) = read(folder / "jobs")
                after = trial.compiler.after_ready if trial.compiler else None
                # What was under way as the disk became full is not there, what was before is there once.
                assert after is None or after.count == 0
            ratios.append(statistics.median(taken[what]) / statistics.median(taken["left alone"]))
            slowest.append(statistics.quantiles(taken[what], n=100)[98] / statistics.median(taken[what]))
        print(
            f"\n{what}: step over that of a job left alone {statistics.median(ratios):.3f} "
            f"({min(ratios):.3f} to {max(ratios):.3f}); 99th percentile over the median {max(slowest):.2f}",
            end="",
        )
