"""Real trials of `gpu_workloads.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from compilewatch.db.records.strategies import EAGER
from compilewatch.db.records.trial import Strategy, Task, Trial
from compilewatch.runner.process.supervise import run_trial
from tests.runner.measuring import make_spec


def measure_on_gpu(fixture: str, strategy: Strategy = EAGER, **changes: Any) -> Trial:
    changes = {"task": Task.FUNCTION, "sampling": {"samples": 50}, "worker_env": {}} | changes
    changes |= {"target": f"gpu_workloads:{fixture}", "path": Path(__file__).parent}
    spec = make_spec(fixture, strategy, device="cuda:0", timeout_s=300.0, **changes)
    return run_trial(spec)
