"""What asks for too much is refused before anything is planned: on every way to a plan."""

from __future__ import annotations

import time
import tracemalloc
from pathlib import Path

import pytest

from compilewatch.db.errors import ConfigError
from compilewatch.db.records.requests import Limits, RequestSpec
from compilewatch.runner.config.settings import BuildSettings, Settings
from compilewatch.runner.config.sources import load_settings
from compilewatch.runner.plan import builds
from compilewatch.runner.plan.interpreter import InterpreterFacts
from compilewatch.runner.plan.plan import plan_request, plan_run
from compilewatch.runner.plan.selection import known_workloads

FACTS = InterpreterFacts(path="python", python="3.11.2", torch="2.13.0", cuda=None, hip=None, device_count=0)


@pytest.fixture(autouse=True)
def _torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builds, "check_interpreter", lambda _python: FACTS)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    entries = tuple(BuildSettings(name=f"b{number}", python=tmp_path) for number in range(3))
    return Settings(build=entries, limits=Limits(trials=50, cases=4, builds=2))


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"trials": 99_999_999, "builds": ("b0",)}, "99,999,999 trials; at most 50"),
        ({"trials": 26, "builds": ("b0", "b1")}, "52 trials; at most 50"),
        ({"trials": 1}, "3 builds; at most 2"),
        ({"suite": "smoke", "workloads": (), "strategies": (), "builds": ("b0",)}, "cases; at most 4"),
    ],
)
def test_a_request_that_asks_for_too_much_is_refused(
    spec: dict[str, object], said: str, settings: Settings
) -> None:
    asked = {"workloads": ("elementwise",), "strategies": ("eager",)} | spec
    tracemalloc.start()
    with pytest.raises(ConfigError, match=said):
        plan_request(settings, RequestSpec.model_validate(asked))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 50_000_000


def test_a_run_at_the_limit_is_planned_and_one_more_is_not(settings: Settings) -> None:
    chosen = {"workloads": ("elementwise",), "strategies": ("eager",), "device": "cpu"}
    assert len(plan_run(settings, trials=50, **chosen).trials) == 50  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"raise trials of \[limits\]"):
        plan_run(settings, trials=51, **chosen)  # type: ignore[arg-type]


def test_a_sweep_of_too_many_sizes_is_refused_before_it_is_made(tmp_path: Path) -> None:
    sizes = list(range(1, 1_001))
    file = tmp_path / "compilewatch.toml"
    file.write_text(
        f'[[workload]]\nname = "w"\ntarget = "mlp-train"\nbatch_size = {sizes}\n'
        f"shape = {{ a = {sizes}, b = {sizes} }}\n"
    )
    began = time.monotonic()
    with pytest.raises(ConfigError, match="1,000,000,000 sweeps; at most 500"):
        known_workloads(load_settings(file))
    assert time.monotonic() - began < 60
