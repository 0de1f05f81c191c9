"""How calm each unit of compile cost is: cold compilations of one case in fresh processes.

Prints how many trials a side show a change of 3 % in each unit, as `db.judge.compare.noise_floor` has it.
"""

from __future__ import annotations

import math
import os
from collections import defaultdict
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from db.engine.session import open_database
from db.judge.compare.noise_floor import smallest_effect
from db.queries.records import trial_records
from db.records.identity import StrategyKind
from db.records.trial import Status, Trial
from tests.db.interchange.reading import read
from tests.house.tracked import ROOT
from tests.runner.terminal import compilewatch

HISTORY = ROOT / "docs" / "measured" / "cpu-history.jsonl"
ROUNDS = 5
"""Those of the recorded history with all builds interleaved."""
TRIALS = 20
CHANGE = math.log(1.03)
UNITS = {
    "time to first result, seconds": "total_ns",
    "cold start, CPU seconds": "process_tree_cpu_ns",
    "first compiled call, seconds": "first_call_ns",
    "first compiled call, CPU seconds": "first_call_cpu_ns",
    "first compiled call, instructions": "first_call_instructions",
}


def trials_a_side(spread: float) -> int:
    """How many trials a side show `CHANGE` where the logarithms of trials spread like this."""
    return math.ceil((smallest_effect(spread, 1) / CHANGE) ** 2)


def logarithms(cases: list[list[Trial]], column: str) -> npt.NDArray[np.float64] | None:
    """A row per case, a column per round; None where any trial lacks it."""
    values = [[getattr(trial.cold_start, column) for trial in case] for case in cases]
    return np.log(np.array(values, dtype=float)) if all(map(all, values)) else None


def show(cases: list[list[Trial]]) -> None:
    """The spread within cases, and what is left of it where each round is compared with itself."""
    for name, column in UNITS.items():
        logs = logarithms(cases, column)
        if logs is None:
            print(f"{name}: not in these trials")
            continue
        within = logs - logs.mean(axis=1, keepdims=True)
        rows, rounds = logs.shape
        spread = math.sqrt((within**2).sum() / (rows * (rounds - 1)))
        said = f"{name}: spread {spread:.2%}, {trials_a_side(spread)} a side"
        if rows > 1:
            left = within - within.mean(axis=0, keepdims=True)
            paired = math.sqrt((left**2).sum() / ((rows - 1) * (rounds - 1)))
            said += f"; without what a whole round shares {paired:.2%}, {trials_a_side(paired)} a side"
        print(said)


@pytest.mark.benchmark
def test_units_of_the_recorded_history(capsys: pytest.CaptureFixture[str]) -> None:
    cases: dict[tuple[str, str, str], list[Trial]] = defaultdict(list)
    for trial in read(HISTORY):
        if trial.strategy.kind is StrategyKind.COMPILE and trial.status is Status.OK:
            cases[trial.run_id, trial.workload.name, trial.strategy.name].append(trial)
    whole = [
        sorted(case, key=lambda trial: trial.started_at) for case in cases.values() if len(case) == ROUNDS
    ]
    with capsys.disabled():
        print(f"\n{len(whole)} cases of {ROUNDS} interleaved rounds")
        show(whole)
    assert len(whole) > 20


@pytest.mark.benchmark
@pytest.mark.timeout(3600)
def test_units_of_new_trials(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"sqlite:///{tmp_path / 'results.db'}"
    case = ("--workload", os.environ.get("COMPILEWATCH_BENCHMARK_WORKLOAD", "elementwise"))
    ran = compilewatch(
        *("run", *case, "--strategy", "default", "--trials", str(TRIALS), "--device", "cpu", "--db", url),
        cwd=tmp_path,
        timeout_s=3500,
    )
    assert ran.returncode == 0, ran.stderr
    with open_database(url, read_only=True) as database:
        trials = [each for each in trial_records(database) if each.strategy.kind is StrategyKind.COMPILE]
    with capsys.disabled():
        print(f"\n{len(trials)} trials of {case[1]} / default, load {os.getloadavg()[1]:.1f}")
        show([trials])
    assert len(trials) >= TRIALS // 2
