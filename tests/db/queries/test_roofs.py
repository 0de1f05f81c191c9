"""The roofline of recorded trials: what their machine reached in the canaries beside them."""

from __future__ import annotations

import json

import pytest

from compilewatch.db.cause.trial_words import Roofs, roofline, step_times
from compilewatch.db.engine.session import Database
from compilewatch.db.queries.case_parts import rooflines, roofs_of
from compilewatch.db.queries.selection import Filters
from compilewatch.db.records.trial import parse_trial
from compilewatch.db.store.trials import save_trials
from tests.db.cause.profiles import RECORDED, recorded


def test_the_roofs_are_those_of_the_canaries_of_the_run(database: Database) -> None:
    trials = [parse_trial(line) for line in RECORDED.read_text(encoding="utf-8").splitlines()]
    save_trials(database, trials)
    trial = recorded("mlp-4096")
    roofs = roofs_of(database, trial.run_id)
    # By hand: 2 x 4096^3 operations in 157,088 ns; 256 MiB read and written in 180,800 ns.
    assert roofs.dtype == "bfloat16"
    assert roofs.operations_per_s == pytest.approx(137438953472 / 157088e-9)
    assert roofs.bytes_per_s == pytest.approx(2 * 268435456 / 180800e-9)
    assert roofline(trial, roofs).sentence == (
        "An eager step is compute-bound: operations need 157 µs, bytes at most 93.3 µs, of its 235 µs."
    )
    assert roofs_of(database, "no-run") is None


def test_a_run_with_one_canary_has_no_roofs(sqlite_database: Database) -> None:
    lines = RECORDED.read_text(encoding="utf-8").splitlines()
    gemm = [line for line in lines if json.loads(line)["workload"]["name"] != "canary-copy"]
    save_trials(sqlite_database, [parse_trial(line) for line in gemm])
    assert roofs_of(sqlite_database, recorded("mlp-4096").run_id) is None


def test_another_dtype_or_unknown_work_has_no_roofline() -> None:
    trial = recorded("vit-b16")
    roofs = Roofs("bfloat16", 868e12, 2.97e12)
    assert roofline(trial, roofs).bound == "memory-bound"
    assert roofline(trial, Roofs("float32", 868e12, 2.97e12)) is None
    assert roofline(trial, None) is None
    assert roofline(trial.model_copy(update={"profile": None}), roofs) is None
    unknown = trial.profile.model_copy(update={"bytes": None})
    assert roofline(trial.model_copy(update={"profile": unknown}), roofs) is None


def test_cases_stand_under_the_roofs_of_their_run(database: Database) -> None:
    trials = [parse_trial(line) for line in RECORDED.read_text(encoding="utf-8").splitlines()]
    save_trials(database, trials)
    frame = rooflines(database, Filters())
    mlp = recorded("mlp-4096")
    rows = frame[frame["operations"] == mlp.profile.flops]
    assert rows["strategy"].tolist() == ["default", "eager"]
    assert set(rows["bytes"]) == {mlp.profile.bytes}
    times = step_times(mlp)
    assert rows["step_ns"].tolist() == [times.own_ns, times.eager_ns]
    assert rows["roof_operations_per_s"].tolist() == pytest.approx([137438953472 / 157088e-9] * 2)
    assert rooflines(database, Filters(builds=("none",))).empty


@pytest.mark.parametrize("without", ["canary-copy", "flops", "dtype"])
def test_without_roofs_or_work_a_case_is_absent(sqlite_database: Database, without: str) -> None:
    records = [json.loads(line) for line in RECORDED.read_text(encoding="utf-8").splitlines()]
    for record in records:
        if without == "flops" and record.get("profile"):
            record["profile"]["flops"] = 0
        if without == "dtype" and record["workload"]["name"] == "canary-gemm":
            record["workload"]["dtype"] = "float32"
    stored = [record for record in records if record["workload"]["name"] != without]
    save_trials(sqlite_database, [parse_trial(json.dumps(record)) for record in stored])
    assert rooflines(sqlite_database, Filters()).empty
