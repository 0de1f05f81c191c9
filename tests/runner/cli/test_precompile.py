"""A workload is compiled for production: a second process finds every graph and library in the caches."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.runner.measuring import FAST_COMPILE
from tests.runner.terminal import environment, in_this_process

MODEL = """
import torch


def build():
    return torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU()), (torch.randn(64, 64),)
"""

# Around the lines that the command prints.
PRODUCTION = """
import sys
sys.path[:0] = ["caches", "."]
{printed}
import my_ops
model, inputs = my_ops.build()
model = torch.compile(model)
with torch.no_grad():
    model(*inputs)
from torch._dynamo.utils import counters
print(counters["inductor"]["fxgraph_cache_hit"], counters["inductor"]["fxgraph_cache_miss"])
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A project with its caches, and what the command printed."""
    tmp_path = tmp_path_factory.mktemp("project")
    (tmp_path / "my_ops.py").write_text(MODEL)
    (tmp_path / "compilewatch.toml").write_text('[[workload]]\nname = "scaled"\ntarget = "my_ops:build"\n')
    typed = ("precompile", "scaled", "-o", "caches", "--device", "cpu", "--json")
    done = in_this_process(*typed, cwd=tmp_path, **FAST_COMPILE)
    assert done.returncode == 0, done.stderr
    return tmp_path, json.loads(done.stdout)


@pytest.mark.slow
def test_a_second_process_compiles_nothing(compiled: tuple[Path, dict[str, Any]]):
    project, document = compiled
    assert document["all_from_cache"] is True
    cold, loaded = document["cold"], document["loaded"]
    assert (cold["hits"], cold["compiled"]) == (0, 1)
    assert cold["built"] > 0
    assert (loaded["hits"], loaded["compiled"], loaded["built"]) == (1, 0, 0)
    directory = project / "caches"
    assert sorted(file.name for file in directory.iterdir()) == [
        "caches.zip",
        "load_caches.py",
        "precompile.py",
        "valid_for.json",
    ]
    # Without the variables that they were made with, the script itself refuses them.
    refused = _warm_up(directory)
    assert refused.returncode == 2
    assert refused.stderr.startswith("These caches are for TORCHINDUCTOR_")
    assert refused.stderr.count("\n") == 1


@pytest.mark.slow
def test_each_host_says_what_of_it_the_folder_is_not_for(compiled: tuple[Path, dict[str, Any]]):
    directory = compiled[0] / "caches"

    def checked(**variables: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(directory / "load_caches.py"), "cpu"]
        return subprocess.run(
            command, env=environment(**FAST_COMPILE, **variables), capture_output=True, text=True, check=False
        )

    same = checked()
    assert (same.returncode, same.stdout) == (0, f"{platform.node()}: these caches are for this host.\n")
    other = checked(ATEN_CPU_CAPABILITY="default")
    assert other.returncode == 1
    assert f"{platform.node()}: These caches are for CPU capability " in other.stdout
    assert other.stdout.endswith("(here DEFAULT): run precompile.py here.\n")


@pytest.mark.slow
def test_the_printed_lines_compile_nothing(compiled: tuple[Path, dict[str, Any]], tmp_path: Path):
    project, _ = compiled
    done = in_this_process(
        "precompile", "scaled", "-o", "caches", "--device", "cpu", cwd=project, **FAST_COMPILE
    )
    printed = [line.strip() for line in done.stdout.splitlines()]
    lines = printed[printed.index("import torch") : printed.index("load_caches()") + 1]
    (project / "production.py").write_text(PRODUCTION.format(printed="\n".join(lines)))
    program = subprocess.run(
        [sys.executable, "production.py"],
        env=environment(**FAST_COMPILE, TORCHINDUCTOR_CACHE_DIR=str(tmp_path / "own")),
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    assert program.stdout == "1 0\n", program.stderr


def _warm_up(directory: Path) -> subprocess.CompletedProcess[str]:
    elsewhere = {name: value for name, value in environment().items() if name != "PYTHONPATH"}
    command = [sys.executable, str(directory / "precompile.py"), "--warm-up"]
    return subprocess.run(command, env=elsewhere, cwd="/", capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("strategy", "said"),
    [
        ("eager", "eager leaves no caches of Inductor to carry"),
        ("packaged", "packaged leaves no caches of Inductor to carry"),
        ("backend:aot_eager", "backend:aot_eager leaves no caches of Inductor to carry"),
        ("default+warm", "default+warm leaves no caches of Inductor to carry"),
        ("reduce-overhead", "reduce-overhead means nothing on cpu"),
    ],
)
def test_a_strategy_without_caches_is_refused(tmp_path: Path, strategy: str, said: str):
    typed = ("precompile", "mlp-train", "-s", strategy, "-o", "caches", "--device", "cpu")
    done = in_this_process(*typed, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert not (tmp_path / "caches").exists()


def test_a_directory_of_somebody_else_stays_as_it_is(tmp_path: Path):
    (tmp_path / "thesis.txt").write_text("words")
    done = in_this_process("precompile", "mlp-train", "-o", ".", "--device", "cpu", cwd=tmp_path)
    assert done.returncode == 2
    assert "holds other files" in done.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.txt"]
