"""What a compiler did differently, item by item; nothing of what a side does not know."""

from __future__ import annotations

import pytest

from compilewatch.db.cause.compiler_change import (
    autotuned_texts,
    compiler_changes,
    generated_text,
    source_changes,
)
from compilewatch.db.records.evidence import (
    AutotunedOperation,
    CacheCounters,
    CompilerEvent,
    CompilerFacts,
    GeneratedGraph,
)
from compilewatch.db.records.sampling_facts import GeneratedSource
from compilewatch.runner.worker.compiler.compiler_facts import generated_graph, generated_source

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
        (
            {"cudagraph_skips": ["cpu device (add_1)"]},
            {"cudagraph_skips": ["mutated inputs (1 instances)"]},
            [
                "CUDA graphs are skipped for another reason "
                "(mutated inputs (1 instances) instead of cpu device (add_1))"
            ],
        ),
        ({"cudagraph_skips": ["cpu device (add_1)"]}, {"cudagraph_skips": ["cpu device (arg0_1)"]}, []),
        ({"cudagraph_skips": ["no reason given (2 times)"]}, {"cudagraph_skips": ["cpu device"]}, []),
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


def tuned(candidate, configuration=None, ns=None, operation="bmm", inputs="4x64x64 float32"):
    return AutotunedOperation(
        operation=operation,
        inputs=inputs,
        candidate=candidate,
        configuration=configuration,
        time_ns=ns,
        candidates=2,
    )


@pytest.mark.parametrize(
    ("base", "head", "expected"),
    [
        (
            [tuned("triton_bmm", "BLOCK_M=64", 12_000)],
            [tuned("bmm", None, 15_000)],
            ["autotuning took bmm (15.0 µs) for bmm of 4x64x64 float32 instead of triton_bmm (12.0 µs)"],
        ),
        (
            [tuned("triton_bmm", "BLOCK_M=64"), tuned("mm", operation="mm")],
            [tuned("triton_bmm", "BLOCK_M=128"), tuned("mm", operation="mm")],
            ["autotuning took other configurations for 1 of 2 kernels"],
        ),
        ([tuned("bmm", None, 1)], [tuned("bmm", None, 2)], []),
        (
            [tuned("a", inputs=str(number)) for number in range(4)],
            [tuned("b", inputs=str(number)) for number in range(4)],
            [
                "autotuning took b for bmm of 0 instead of a",
                "autotuning took b for bmm of 1 instead of a",
                "autotuning took other kernels for 2 more operations",
            ],
        ),
        # An operation that one side did not tune, as from a warm cache, is no choice.
        ([tuned("a")], [tuned("b", operation="mm")], []),
        (None, [tuned("b")], []),
    ],
)
def test_another_kernel_is_named_and_other_configurations_are_counted(base, head, expected):
    found = compiler_changes(CompilerFacts(autotuned=base), CompilerFacts(autotuned=head))
    assert found == expected


def test_code_and_autotuning_are_read_as_lines():
    facts = CompilerFacts(
        generated=code(("1a2b", 2048, 5), ("3c4d", 100, 1)),
        autotuned=[
            tuned("cpp_CppBmm", None, 12_000),
            tuned("triton_poi_0", "XBLOCK: 256", operation="triton_poi_0", inputs=None),
        ],
    )
    assert generated_text(facts) == "5 kernels, 2.00 KiB, 1a2b; 1 kernel, 100 B, 3c4d"
    assert autotuned_texts(facts) == [
        "bmm of 4x64x64 float32: cpp_CppBmm (12.0 µs), of 2 candidates",
        "triton_poi_0: XBLOCK: 256, of 2 candidates",
    ]
    assert (generated_text(CompilerFacts()), autotuned_texts(CompilerFacts())) == (None, [])
    many = CompilerFacts(autotuned=[tuned("a", inputs=str(number)) for number in range(9)])
    assert autotuned_texts(many)[5:] == ["4 more operations"]


def test_the_source_of_a_graph_has_its_kernels_and_the_function_that_calls_them():
    wrapped = MODULE.format(folder="a1", more="").replace(
        "def call(args):\n    pass\n",
        "class Runner:\n    def call(self, args):\n        # Topologically Sorted\n        return ()\n\n"
        "runner = Runner()\n",
    )
    whole = generated_source(wrapped)
    assert whole["hash"] == generated_graph(wrapped)["hash"]
    assert whole["source"].endswith("}\n\ndef call(self, args):\n    return ()")
    assert "kernel path" not in whole["source"]
    long = generated_source(MODULE.format(folder="a1", more="\n    tmp1 = 1" * 9_000))
    assert len(long["source"]) < 60_100
    assert long["source"].endswith("more lines")


def test_sources_differ_graph_by_graph():
    first, second = (GeneratedSource(hash="a", source=text) for text in ("a\nb\nc", "a\nx\nc"))
    assert list(source_changes([first, second], [first, second])) == []
    (change,) = source_changes([first, first], [first, second])
    assert (change.graph, change.lines) == (
        2,
        ("--- base", "+++ head", "@@ -1,3 +1,3 @@", " a", "-b", "+x", " c"),
    )
    (new,) = source_changes([first], [first, second])
    assert new.lines[2:] == ("@@ -0,0 +1,3 @@", "+a", "+x", "+c")
    long = GeneratedSource(hash="b", source="\n".join(["y" * 300] * 200))
    (bounded,) = source_changes([first], [long])
    assert len(bounded.lines) == 121
    assert max(map(len, bounded.lines)) == 161
    far = [GeneratedSource(hash=end, source="\n".join([*["y"] * 1_000, end])) for end in "ab"]
    (cut,) = source_changes(far[:1], far[1:])
    assert cut.lines == ("They differ after 1,000 lines.",)
