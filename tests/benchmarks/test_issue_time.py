"""What binding the launching thread, ending the compile pool and a fixed address layout do to issue time.

On a GPU host: `pytest -m benchmark tests/benchmarks/test_issue_time.py -s`. Fresh processes, in turns.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[2]
PROCESSES = 10

PROGRAM = """
import json, statistics, sys, time
from runner.worker import affinity, internals
import torch
ways = set(sys.argv[1].split("+"))
if "core-0" in ways:
    import os
    os.sched_setaffinity(0, {min(affinity.ALL)})
cpu = affinity.bind_feeding_threads(lambda: None).launching if "bound" in ways else None
device = torch.device("cuda:0")
model = torch.nn.Sequential(*(torch.nn.Linear(512, 512) for _ in range(40))).to(device, torch.bfloat16)
x = torch.randn(64, 512, device=device, dtype=torch.bfloat16)
call = torch.compile(model)
with torch.no_grad(), affinity.unbound():
    call(x)
if "pool-ended" in ways:
    internals.end_compile_pool()
found = []
with torch.no_grad():
    for _ in range(300):
        torch.cuda.synchronize()
        begun = time.perf_counter_ns()
        call(x)
        found.append(time.perf_counter_ns() - begun)
issue_ns = statistics.median(found[100:])
print(json.dumps({"issue_ns": issue_ns, "cpu": cpu, "layout": affinity.address_layout()}))
"""

WAYS = ("free", "core-0", "bound", "bound+pool-ended", "bound+pool-ended+fixed-layout")


def measured(way: str) -> dict:
    """One fresh process."""
    command = [sys.executable, "-c", PROGRAM, way]
    if "fixed-layout" in way:
        setarch = shutil.which("setarch")
        assert setarch is not None
        command = [setarch, "-R", *command]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return json.loads(result.stdout.splitlines()[-1])


@pytest.mark.benchmark
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device that torch can use")
@pytest.mark.timeout(3600)
def test_what_each_way_does_to_issue_time():
    found = {way: [] for way in WAYS if "fixed-layout" not in way or shutil.which("setarch")}
    for number in range(PROCESSES):
        for way in list(found)[:: 1 if number % 2 == 0 else -1]:
            found[way].append(measured(way))
    for way, processes in found.items():
        medians = [each["issue_ns"] / 1e3 for each in processes]
        variation = statistics.stdev(medians) / statistics.mean(medians)
        listed = " ".join(f"{value:.0f}" for value in sorted(medians))
        cpus = sorted({each["cpu"] for each in processes if each["cpu"] is not None})
        print(f"{way:32} {statistics.median(medians):7.1f} us, CV {variation:5.1%}, CPUs {cpus}: {listed}")
    if "bound+pool-ended+fixed-layout" in found:
        assert {each["layout"] for each in found["bound+pool-ended+fixed-layout"]} == {"fixed"}
