"""The machine's control series: measured before and after, stored with the run, and no case of it."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from compilewatch.db.engine.session import open_database
from compilewatch.db.judge.policy import Policy
from compilewatch.db.metrics.eligibility import without_canaries
from compilewatch.db.queries import facets
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import trial_records
from compilewatch.db.records.strategies import EAGER
from compilewatch.db.records.trial import FailureKind, Trial
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.plan.plan import TRIALS_PER_RUN, canary_specs, canary_workloads, plan_run
from compilewatch.runner.process.supervise import run_canaries
from tests.runner.quick_measurement import configuration, interpreter
from tests.runner.terminal import in_this_process

NAMES = ["canary-gemm", "canary-copy", "canary-launch"]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with one finished run of one case; tests/runner/cli/test_run.py has real canaries."""
    path = tmp_path_factory.mktemp("project")
    configuration(path, interpreter(path / "build"))
    result = in_this_process("run", "--json", cwd=path, COMPILEWATCH_RUN__CANARIES="true")
    assert result.returncode == 0, result.stderr
    (path / "run.json").write_text(result.stdout)
    return path


def _stored(project: Path) -> list[Trial]:
    with open_database(f"sqlite:///{project / 'compilewatch.db'}") as database:
        return sorted(trial_records(database, Filters()), key=lambda trial: trial.started_at)


def test_they_stand_around_the_run_and_belong_to_it(project: Path):
    trials = _stored(project)
    assert [trial.workload.name for trial in trials] == [*NAMES, "elementwise", *NAMES]
    assert {trial.status.value for trial in trials} == {"ok"}
    assert all(trial.strategy == EAGER for trial in trials)
    assert len({trial.run_id for trial in trials}) == 1
    assert len({trial.machine.model_dump_json() for trial in trials}) == 1
    assert len({trial.build.model_dump_json() for trial in trials}) == 1


def test_the_announced_number_of_trials_counts_them(project: Path):
    with open_database(f"sqlite:///{project / 'compilewatch.db'}") as database:
        (run,) = facets.runs(database).to_dict("records")
    assert run["trials"] == run["planned_trials"] == 1 + TRIALS_PER_RUN


def test_no_table_lists_them_as_cases(project: Path):
    document = json.loads((project / "run.json").read_text())
    assert [row["workload"] for row in document["rows"]] == ["elementwise"]
    table = in_this_process("break-even", cwd=project)
    assert "canary" not in table.stdout + table.stderr


def test_a_canary_of_another_size_or_source_is_another_series():
    cpu, gpu = ({w.name: w.record() for w in canary_workloads(device)} for device in ("cpu", "cuda:0"))
    assert list(cpu) == list(gpu) == NAMES
    assert cpu["canary-gemm"].items_per_iteration == 2 * 512**3
    assert cpu["canary-gemm"] != gpu["canary-gemm"]
    assert cpu["canary-gemm"].version != cpu["canary-copy"].version


def test_a_process_that_dies_is_three_failed_trials_of_the_control():
    plan = plan_run(Settings(), workloads=["elementwise"], strategies=["eager"], trials=1, device="cpu")
    specs = canary_specs(plan.trials[0])
    trials = run_canaries(specs, interpreter="/bin/false")
    assert [trial.workload.name for trial in trials] == NAMES
    assert {trial.failure.kind for trial in trials if trial.failure} == {FailureKind.CRASH}
    assert [trial.trial_id for trial in trials] == [spec.trial_id for spec in specs]


def test_a_cancelled_one_leaves_nothing():
    plan = plan_run(Settings(), workloads=["elementwise"], strategies=["eager"], trials=1, device="cpu")
    calls = iter([False])
    stopped = run_canaries(canary_specs(plan.trials[0]), is_cancelled=lambda: next(calls, True))
    assert stopped == []


def test_the_judge_knows_them_by_the_same_pattern():
    frame = pd.DataFrame({"workload": ["cnn", *NAMES, "my-canary"]})
    assert list(without_canaries(frame, Policy().canary_workloads)["workload"]) == ["cnn", "my-canary"]
    assert list(without_canaries(frame)["workload"]) == ["cnn", "my-canary"]
    assert without_canaries(frame.iloc[:0]).empty
