"""From `[run]` to what a measured process is told: sampling in nanoseconds, passes for the first round."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from pydantic import ValidationError

from compilewatch.runner.config.settings import RunSettings, Settings
from compilewatch.runner.plan.plan import plan_run
from compilewatch.runner.plan.trial_spec import NO_DIAGNOSTICS, Diagnostics
from compilewatch.runner.process.measured_process import ProcessRole, worker_specification
from compilewatch.runner.worker.timing.sampling import SamplingPlan


def test_seconds_become_nanoseconds() -> None:
    run = RunSettings(
        samples=20,
        max_samples=40,
        relative_interval=0.005,
        sampling_max_s=3,
        block_s=0.05,
        settle_s=0.02,
        warmup_calls=4,
        warmup_s=0,
        warmup_max_calls=9,
        warmup_max_s=1.5,
        flush_l2=False,
    )
    assert run.sampling_plan() == SamplingPlan(
        samples=20,
        max_samples=40,
        relative_interval=0.005,
        max_ns=3_000_000_000,
        block_ns=50_000_000,
        settle_ns=20_000_000,
        warmup_calls=4,
        warmup_ns=0,
        warmup_max_calls=9,
        warmup_max_ns=1_500_000_000,
        flush_l2=False,
    )


@pytest.mark.parametrize(
    "wrong",
    [{"samples": 4}, {"relative_interval": 0}, {"relative_interval": 1}, {"block_s": 0}, {"settle_s": -1}],
)
def test_values_that_mean_nothing_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        RunSettings(**wrong)


def test_passes_follow_the_first_trial_of_every_case(tmp_path: Path) -> None:
    diagnostics = Diagnostics(profile=True, trace_into=tmp_path)
    plan = plan_run(
        Settings(),
        workloads=["cnn", "encoder"],
        strategies=["eager", "default"],
        trials=3,
        device="cpu",
        diagnostics=diagnostics,
    )
    looked = [spec for spec in plan.trials if spec.diagnostics.profile]
    assert len({spec.case for spec in plan.trials}) == len(looked) == 4
    assert {spec.round for spec in looked} == {0}
    assert all(spec.diagnostics == NO_DIAGNOSTICS for spec in plan.trials if spec.round)


def test_the_flush_is_part_of_a_gpu_build_and_of_no_other() -> None:
    (spec,) = plan_run(
        Settings(run={"flush_l2": False}), workloads=["cnn"], strategies=["eager"], trials=1, device="cpu"
    ).trials
    specify = partial(worker_specification, role=ProcessRole(Path()), sample_device=True, artifacts=Path())
    assert spec.sampling.flush_l2 is False
    assert "flush_l2" not in specify(spec).settings
    assert specify(spec.model_copy(update={"device": "cuda:0"})).settings["flush_l2"] is False


def test_a_target_for_the_p99_takes_the_steps_that_one_needs() -> None:
    settings = Settings(
        target=({"workload": "cnn", "latency_p99_ns": 1e9}, {"workload": "encoder", "latency_p95_ns": 1e9})
    )
    plan = plan_run(settings, workloads=["cnn", "encoder"], device="cpu")
    taken = {spec.workload.name: spec.sampling.samples for spec in plan.trials}
    assert taken == {"cnn": 100, "encoder": 50}
    more = settings.with_run(samples=300)
    assert {spec.sampling.samples for spec in plan_run(more, workloads=["cnn"], device="cpu").trials} == {300}
