"""`compilewatch request create` as it is typed: what no service would measure is refused at once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.runner.terminal import in_this_process

_SWEEP = """
[[workload]]
name = "ranker"
target = "my_models:build"
batch_size = [1, 64]

[[suite]]
name = "nightly"
workloads = ["my_models:of_suite"]
strategies = ["eager", "backend:tvm"]
"""


@pytest.fixture(autouse=True)
def _files(tmp_path: Path) -> None:
    source = "def build(batch_size=8):\n    return None\n\n\nof_suite = build\n"
    (tmp_path / "my_models.py").write_text(source, encoding="utf-8")
    (tmp_path / "compilewatch.toml").write_text(_SWEEP, encoding="utf-8")


@pytest.mark.parametrize("machine", [(), ("--machine", "gpu-*")], ids=["any machine", "a machine"])
@pytest.mark.parametrize("name", ["my_models:build", "absent:build"])
def test_code_is_refused_before_it_is_queued(tmp_path: Path, machine: tuple[str, ...], name: str) -> None:
    asked = in_this_process("request", "create", "-w", "cnn", "-w", name, *machine, cwd=tmp_path)
    assert asked.returncode == 2
    assert asked.stderr.splitlines() == [
        f"compilewatch: Data cannot name the code at '{name}'.",
        "  Name it in a [[workload]] or a [[suite]] of the configuration.",
    ]
    assert list(tmp_path.glob("*.db")) == []


def test_a_sweep_is_asked_for_by_its_name(tmp_path: Path) -> None:
    asked = in_this_process("request", "create", "-w", "ranker", "--json", cwd=tmp_path)
    assert asked.returncode == 0, asked.stderr
    assert json.loads(asked.stdout)["rows"][0]["spec"]["workloads"] == ["ranker"]


def test_what_a_suite_of_this_host_names_is_asked_for_as_its_second_looks_do(tmp_path: Path) -> None:
    asked = in_this_process(
        *("request", "create", "-w", "my_models:of_suite", "-s", "backend:tvm", "--json"), cwd=tmp_path
    )
    assert asked.returncode == 0, asked.stderr
    assert json.loads(asked.stdout)["rows"][0]["spec"]["workloads"] == ["my_models:of_suite"]


def test_what_nobody_serves_says_so_at_once_and_in_the_list(tmp_path: Path) -> None:
    asked = in_this_process("request", "create", "-w", "ranker", "--machine", "gpu-9", cwd=tmp_path)
    assert "No service runs for gpu-9" in asked.stdout
    listed = in_this_process("request", "list", "--json", cwd=tmp_path)
    assert "No service runs for gpu-9" in json.loads(listed.stdout)["rows"][0]["unserved"]
    assert "No service runs for gpu-9" in " ".join(
        in_this_process("request", "list", cwd=tmp_path).stdout.split()
    )
