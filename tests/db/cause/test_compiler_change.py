"""What a compiler did differently, item by item; nothing of what a side does not know."""

from __future__ import annotations

import pytest

from db.cause.compiler_change import compiler_changes
from db.records.evidence import CacheCounters, CompilerEvent, CompilerFacts, GeneratedGraph
from runner.worker.compiler_facts import generated_graph

BREAK = CompilerEvent(reason="print", location="model.py:10", count=2)


def code(*graphs):
    return [GeneratedGraph(hash=text, size_bytes=size, kernels=kernels) for text, size, kernels in graphs]


@pytest.mark.parametrize(
    ("base", "head", "expected"),
    [
        ({"graphs": 1}, {"graphs": 3}, ["1 graph became 3"]),
        ({"graphs": None}, {"graphs": 3}, []),
        ({"ops_captured": 9}, {"ops_captured": 7}, ["9 captured operations became 7"]),
        ({"graph_breaks": []}, {"graph_breaks": [BREAK]}, ["0 graph breaks became 2 (model.py:10: print)"]),
        ({"graph_breaks": [BREAK]}, {"graph_breaks": []}, ["2 graph breaks became 0"]),
        ({"graph_breaks": None}, {"graph_breaks": [BREAK]}, []),
        ({"recompiles": []}, {"recompiles": [BREAK]}, ["0 recompilations became 2 (model.py:10: print)"]),
        (
            {"skipped_frames": []},
            {"skipped_frames": ["f (a.py:1)"]},
            ["0 skipped frames became 1 (f (a.py:1))"],
        ),
        (
            {"cudagraph_skips": []},
            {"cudagraph_skips": ["cpu device"]},
            ["0 skipped CUDA graphs became 1 (cpu device)"],
        ),
        ({"cudagraph_launches": 1}, {"cudagraph_launches": 0}, ["1 CUDA graph a step became 0"]),
        (
            {"recompile_limit_hit": False},
            {"recompile_limit_hit": True},
            ["a function reached the limit of recompilations and runs eagerly"],
        ),
        (
            {"recompile_limit_hit": True},
            {"recompile_limit_hit": False},
            ["no function reaches the limit of recompilations any more"],
        ),
        ({"recompile_limit_hit": None}, {"recompile_limit_hit": False}, []),
        (
            {"generated": code(("a", 2048, 5), ("b", 1024, 1))},
            {"generated": code(("a", 2048, 5), ("c", 2048, 3))},
            [
                "6 generated kernels became 8",
                "generated code differs in 1 of 2 graphs (3.00 KiB became 4.00 KiB)",
            ],
        ),
        (
            {"generated": code(("a", 1024, 1))},
            {"generated": code(("a", 1024, 1), ("b", 1024, 1))},
            [
                "1 generated kernel became 2",
                "generated code differs in 1 of 2 graphs (1.00 KiB became 2.00 KiB)",
            ],
        ),
        (
            {"cache": CacheCounters(fx_graph_hits=1)},
            {"cache": CacheCounters(fx_graph_hits=0)},
            ["hits of the FX graph cache: 1 became 0"],
        ),
    ],
)
def test_each_difference_has_its_words(base, head, expected):
    assert compiler_changes(CompilerFacts(**base), CompilerFacts(**head)) == expected


def test_the_same_facts_have_no_difference():
    facts = CompilerFacts(graphs=1, graph_breaks=[BREAK], generated=code(("a", 10, 1)), cudagraph_skips=["x"])
    assert compiler_changes(facts, facts) == []


MODULE = """# AOT ID: ['0_inference']
# kernel path: /tmp/{folder}/ab/cab.py
triton_poi_fused_tanh_0 = async_compile.triton('triton_poi_fused_tanh_0', '''
import triton
@triton_heuristics.pointwise(
    size_hints=[64], filename=__file__, inductor_meta={{'backend_hash': '{folder}'}},
)
@triton.jit
def triton_(in_ptr0, xnumel):
    # {folder}
    tmp0 = tl.load(in_ptr0{more})
''', device_str='cuda')
cpp_fused_add_1 = async_compile.cpp_pybinding(['float*'], r'''
#include <torch/csrc/inductor/{folder}.h>
extern "C"  void  kernel(float* out)
{{
    #pragma GCC ivdep
    out[0] = 1;
}}
''')
def call(args):
    pass
"""


def test_code_has_one_hash_wherever_it_was_written():
    one, other = (generated_graph(MODULE.format(folder=folder, more="")) for folder in ("a1", "b2"))
    assert one == other
    assert one["kernels"] == 2
    changed = generated_graph(MODULE.format(folder="a1", more=" + 1"))
    assert changed["hash"] != one["hash"]
    assert changed["size_bytes"] == one["size_bytes"] + len(" + 1")
    assert generated_graph("import triton\n") is None
