"""The pytest plugin: checks as three model libraries write them by hand, and the failures they give."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEAD = "import torch\nfrom torch import nn\nfrom torch.nn import functional as F\n"
UNCOMPILED = """
def test_attention_is_fused(compile_budget):
    with compile_budget(fused_attention=True):
        pass
"""

# Each body is how one library states the check; the second of a pair breaks it.
CHECKS = {
    # transformers: a forward pass in one graph, `fullgraph=True` in its compile tests.
    "whole_graph": """
def test_forward_is_one_graph(compile_budget):
    with compile_budget(graph_breaks=0):
        torch.compile(nn.Linear(4, 4), backend="aot_eager")(torch.ones(2, 4))
""",
    "broken_graph": """
def forward(x):
    x = x + 1
    print("x")
    return x * 2

def test_forward_is_one_graph(compile_budget):
    with compile_budget(graph_breaks=0):
        torch.compile(forward, backend="aot_eager")(torch.ones(2, 4))
""",
    # diffusers: regional compilation without recompilation, `torch._dynamo.config.error_on_recompile`.
    "no_recompile": """
def test_other_sizes_do_not_recompile(compile_budget):
    block = torch.compile(nn.Linear(4, 4), backend="aot_eager", dynamic=True)
    with compile_budget(recompiles=0, compile_s=600):
        for size in (2, 3, 5):
            block(torch.ones(size, 4))
""",
    "recompile": """
def test_other_sizes_do_not_recompile(compile_budget):
    block = torch.compile(nn.Linear(4, 4), backend="aot_eager", dynamic=False)
    with compile_budget(recompiles=1, compile_s=0.000001):
        for size in (2, 3, 5):
            block(torch.ones(size, 4))
""",
    # timm: attention through scaled_dot_product_attention, `use_fused_attn`.
    "fused": """
def test_attention_is_fused(compile_budget):
    q = torch.randn(1, 2, 16, 8)
    with compile_budget(fused_attention=True):
        torch.compile(F.scaled_dot_product_attention, backend="aot_eager")(q, q, q)
""",
    "unfused": """
def attention(q, k, v):
    return torch.softmax(q @ k.transpose(-1, -2), dim=-1) @ v

def test_attention_is_fused(compile_budget):
    q = torch.randn(1, 2, 16, 8)
    with compile_budget(fused_attention=True):
        torch.compile(attention, backend="aot_eager")(q, q, q)
""",
}


def run(folder: Path, *flags: str, checks: Iterable[str] = ()) -> str:
    (folder / "test_uncompiled.py").write_text(UNCOMPILED)
    for name in checks:
        (folder / f"test_{name}.py").write_text(HEAD + CHECKS[name])
    plugins = ["-p", "compilewatch.runner.pytest_plugin", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *plugins, "-rA", *flags]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=280
    )
    return done.stdout


@pytest.mark.slow
def test_checks_of_three_libraries(tmp_path: Path) -> None:
    printed = run(tmp_path, "--compilewatch", checks=CHECKS)
    for passed in ("whole_graph", "no_recompile", "fused"):
        assert f"PASSED test_{passed}.py" in printed, printed
    for broken in ("broken_graph", "recompile", "unfused", "uncompiled"):
        assert f"FAILED test_{broken}.py" in printed, printed
    assert (
        "1 graph break, 0 allowed:\n    test_broken_graph.py:7: Failed to trace builtin operator" in printed
    )
    assert "2 recompilations, 1 allowed:\n" in printed
    assert "size mismatch at index 0. expected 2, actual 3" in printed
    assert "compiling took" in printed
    assert "no compiled graph has fused attention, a graph has softmax of its own" in printed
    assert "torch.__trace" not in printed, "the messages stand below torch's own debug log"


def test_without_the_option_nothing_is_checked(tmp_path: Path) -> None:
    assert "PASSED test_uncompiled.py" in run(tmp_path)


def test_the_limits_that_hold_say_nothing() -> None:
    plugin = pytest.importorskip("compilewatch.runner.pytest_plugin")
    found = plugin.Compilations(graph_breaks=[("a.py:1", "why")], compile_s=3.0, fused_graphs=1)
    assert found.complaints(1, 0, True, 3.0) == []
    assert found.complaints(None, None, None, None) == []
    assert found.complaints(0, None, None, 2.5) == [
        "1 graph break, 0 allowed:\n    a.py:1: why",
        "compiling took 3.0 s, 2.5 s are allowed",
    ]
