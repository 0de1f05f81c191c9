"""One model in several precisions: what is planned, how far each is from float32, and the table of all."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from compilewatch.db.engine.session import open_database
from compilewatch.db.store.trials import save_trials
from compilewatch.runner.cli.app import app
from compilewatch.runner.cli.front import exit_code_of
from compilewatch.runner.config.sources import load_settings
from compilewatch.runner.plan.plan import plan_run
from compilewatch.runner.worker.step import loading
from compilewatch.runner.worker.step.loading import UnsupportedCaseError, build_workload
from compilewatch.runner.worker.step.messages import Workload
from tests.builders import MS, make_memory, make_numerics, make_trial, make_workload
from tests.runner.terminal import compilewatch

_MODEL = """
import torch
from torch import nn


def build(batch_size=8, device="cpu", dtype=torch.float32):
    model = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 8)).to(device, dtype)
    return model, (torch.randn(batch_size, 64, dtype=dtype),)
"""
_CONFIGURATION = """
[[workload]]
name = "mine"
target = "mine:build"
variants = ["float32", "bf16", "int8", "fp8"]
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(_MODEL)
    (tmp_path / "compilewatch.toml").write_text(_CONFIGURATION)
    return tmp_path


@pytest.mark.usefixtures("place")
def test_a_workload_of_each_is_planned_and_what_cannot_be_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compilewatch.runner.plan.plan.find_spec", lambda _name: None)
    plan = plan_run(load_settings(), workloads=["mine"], strategies=["eager"], device="cpu", trials=1)
    planned = {spec.workload.name: (spec.workload.variant, spec.workload.dtype) for spec in plan.trials}
    assert planned == {"mine-float32": ("float32", "float32"), "mine-bf16": ("bf16", "bfloat16")}
    assert {each.workload: each.reason for each in plan.not_applicable} == {
        "mine-int8": "torchao is not installed; the extra quantised brings it",
        "mine-fp8": "fp8 needs a GPU that multiplies 8-bit floats",
    }
    elsewhere = plan_run(load_settings(), workloads=["mine"], strategies=["eager"], device="cuda:0", trials=1)
    assert [each.workload for each in elsewhere.not_applicable] == ["mine-int8", "mine-fp8"]
    monkeypatch.setattr("compilewatch.runner.plan.plan.find_spec", lambda _name: object())
    whole = plan_run(load_settings(), workloads=["mine"], strategies=["eager"], device="cuda:0", trials=1)
    assert len(whole.trials) == 4


def _drawn(*, device: torch.device, dtype: torch.dtype) -> Any:
    return nn.Sequential(nn.Linear(16, 4)).to(device, dtype), (
        torch.randn(2, 16, device=device, dtype=dtype),
    )


def test_every_variant_has_the_weights_and_inputs_of_float32() -> None:
    def built(variant: str | None, dtype: str) -> tuple[torch.Tensor, torch.Tensor]:
        torch.manual_seed(0)
        workload = Workload("mine", "inference", dtype, variant=variant)
        made = build_workload(_drawn, workload, torch.device("cpu"))
        assert isinstance(made.model_or_fn, nn.Module)
        return made.inputs[0], next(made.model_or_fn.parameters())

    plain, cast = built(None, "float32"), built("bf16", "bfloat16")
    assert [each.dtype for each in cast] == [torch.bfloat16] * 2
    assert all(torch.equal(one.bfloat16(), other) for one, other in zip(plain, cast, strict=True))


def test_what_cannot_be_quantised_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def build(variant: str, model: Any, task: str = "inference", *loss: Any) -> None:
        workload = Workload("mine", task, "float32", variant=variant)
        build_workload(lambda: (model, (torch.randn(2, 4),), *loss), workload, torch.device("cpu"))

    with pytest.raises(UnsupportedCaseError, match="no linear layer"):
        build("int8", nn.Sequential(nn.ReLU()))
    with pytest.raises(UnsupportedCaseError, match="int8 is for a model in inference"):
        build("int8", nn.Linear(4, 4), "training", lambda output: output.sum())
    monkeypatch.setitem(loading.sys.modules, "torchao", None)
    with pytest.raises(UnsupportedCaseError, match="fp8 needs torchao, which is not installed"):
        build("fp8", nn.Linear(4, 4))


def test_the_table_sets_each_against_float32(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice as fast in bf16, with half of the memory and an error of 0.4 %; eager has no error."""
    monkeypatch.chdir(tmp_path)
    trials = [
        make_trial(
            workload=make_workload(f"mine-{variant}", variant=variant),
            strategy=strategy,
            latency_ns=latency * MS,
            memory=make_memory(peak_bytes=latency * 2**20),
            numerics=None if strategy == "eager" else make_numerics(float32_error=error),
            seed=seed,
        )
        for variant, latency, error in (("float32", 8, None), ("bf16", 4, 0.004))
        for strategy in ("eager", "default")
        for seed in range(3)
    ]
    trials.append(make_trial(workload="other"))
    url = f"sqlite:///{tmp_path / 'stored.db'}"
    with open_database(url, migrate=True) as database:
        save_trials(database, trials)

    def printed(*words: str) -> str:
        capsys.readouterr()
        assert exit_code_of(app, ["list", "cases", "--preset", "variants", *words, "--db", url]) == 0
        return capsys.readouterr().out

    rows = {(row["variant"], row["strategy"]): row for row in json.loads(printed("--json"))["rows"]}
    assert len(rows) == 4
    for strategy in ("eager", "default"):
        row = rows["bf16", strategy]
        assert row["speed_over_float32"] == pytest.approx(2.0, rel=0.02)
        low, high = row["speed_over_float32_interval"]
        assert low < 2.0 < high
        assert row["memory_of_float32"] == pytest.approx(0.5)
        assert rows["float32", strategy]["speed_over_float32"] is None
    assert rows["bf16", "default"]["float32_error"] == 0.004
    assert rows["bf16", "eager"]["float32_error"] is None
    text = " ".join(printed().split())
    assert "error against float32" in text
    assert "0.400 %" in text
    assert "other" not in text
    assert printed("-s", "default", "--csv").count("\n") == 3


@pytest.mark.slow
def test_a_model_of_ones_own_in_each(place: Path) -> None:
    done = compilewatch("run", "-w", "mine", "-s", "default", "--trials", "1", "--json", cwd=place)
    assert done.returncode == 0, done.stderr
    listed = compilewatch("list", "cases", "--preset", "variants", "--json", cwd=place)
    rows = {row["variant"]: row for row in json.loads(listed.stdout)["rows"]}
    # A step of bf16 is 0.4 % of a number; two layers of 64 sums each average some of it away.
    assert 1e-4 < rows["bf16"]["float32_error"] < 2e-2
    if importlib.util.find_spec("torchao") is not None:
        assert 1e-3 < rows["int8"]["float32_error"] < 5e-2
    else:
        assert set(rows) == {"bf16", "float32"}
