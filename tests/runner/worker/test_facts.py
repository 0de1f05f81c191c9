"""What the compiler did, by its log: traps that the counters miss. Dynamo only, no code is generated."""

from __future__ import annotations

import logging
import warnings
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch._inductor.runtime.triton_heuristics import CachingAutotuner

from compilewatch.runner.worker.compiler import compiler_facts
from compilewatch.runner.worker.step.internals import Tuning, collect_autotuning, collect_log, counters
from compilewatch.runner.worker.step.steps import grad_context
from tests.runner import workload_fixtures as workloads

pytestmark = pytest.mark.usefixtures("fresh_dynamo")


def facts_of(built, calls=1, **options):
    with collect_log() as log:
        call = torch.compile(built.model_or_fn, backend="eager", **options)
        for _ in range(calls):
            with grad_context(built):
                call(*built.inputs)
    return compiler_facts.facts(log, cudagraphs_requested=False)


def test_a_clean_workload():
    facts = facts_of(workloads.relu_function())
    assert facts["graphs"] == 1
    assert facts["ops_captured"] == 3
    assert facts["graph_breaks"] == facts["recompiles"] == facts["skipped_frames"] == []
    assert facts["recompile_limit_hit"] is False
    assert facts["cudagraph_skips"] is None


def test_a_side_effect_breaks_the_graph_once_at_its_line():
    facts = facts_of(workloads.breaks_graph())
    (found,) = facts["graph_breaks"]
    assert found["count"] == 1
    assert found["location"].startswith("workload_fixtures.py:")
    assert "`print`" in found["reason"]
    assert facts["graphs"] == 2


def test_a_branch_on_data_is_a_break_though_its_counter_is_zero():
    facts = facts_of(workloads.branches_on_data())
    assert counters().get("graph_break", {}) == {}
    (found,) = facts["graph_breaks"]
    assert found["location"].startswith("workload_fixtures.py:")
    assert "branch" in found["reason"].lower() or "jump" in found["reason"].lower()


def test_a_break_in_a_loop_skips_the_frame_and_nothing_is_compiled():
    facts = facts_of(workloads.breaks_inside_a_loop())
    assert sum(counters().get("graph_break", {}).values()) == 0
    assert facts["graphs"] == 0
    assert len(facts["graph_breaks"]) == 1
    assert any("function" in frame for frame in facts["skipped_frames"])


def test_entries_of_2_8_that_only_lack_guards_are_skipped_where_a_break_is_in_them():
    def entry(name, line, guards):
        known = {"co_filename": "/src/model.py", "has_guarded_code": True}
        return SimpleNamespace(co_name=name, co_firstlineno=line, guard_count=guards, **known)

    log = [("graph_breaks", "Graph break in user code at /src/model.py:25\nGraph Break Reason: print")]
    metrics = [entry("nothing_to_do", 5, None), entry("loop", 20, None), entry("later", 40, 3)]
    assert compiler_facts.skipped_frames(metrics, log) == ["loop (model.py:20)"]
    assert compiler_facts.skipped_frames(metrics, []) == []
    assert compiler_facts.skipped_frames([entry("resumed", 20, 8), *metrics], log) == []
    assert compiler_facts.skipped_frames(None, log) is None


def test_a_recurrent_layer_is_skipped_without_a_break():
    """`torch._dynamo.config.allow_rnn` is off: an LSTM looks like a compiled model that gains nothing."""
    facts = facts_of(workloads.recurrent())
    assert facts["graphs"] == 0
    assert facts["ops_captured"] == 0


def test_a_recompilation_has_its_reason_and_line():
    def function(x):
        return torch.relu(x * 2)

    with collect_log() as log:
        call = torch.compile(function, backend="eager", dynamic=False)
        for length in (3, 4, 5):
            call(torch.ones(length))
    facts = compiler_facts.facts(log, cudagraphs_requested=False)
    assert facts["graphs"] == 3
    assert sum(event["count"] for event in facts["recompiles"]) == 2
    assert all(event["location"].startswith("test_facts.py:") for event in facts["recompiles"])
    assert "size mismatch" in facts["recompiles"][0]["reason"]


def test_one_break_is_one_break_however_often_it_is_counted():
    """Dynamo meets a break again whenever it compiles again; the place is one all the same."""

    def function(x):
        x = x + 1
        print("a side effect")
        return x * 2

    with collect_log() as log:
        compiled = torch.compile(function, backend="eager", dynamic=False)
        for length in (2, 3, 4):
            compiled(torch.ones(length))
    (found,) = compiler_facts.facts(log, cudagraphs_requested=False)["graph_breaks"]
    assert found["count"] == 3
    assert found["location"].startswith("test_facts.py:")
    assert sum(counters()["graph_break"].values()) == 3


def test_the_recompile_limit_is_told_though_torch_goes_on_silently():
    def function(x):
        return torch.relu(x * 2)

    with collect_log() as log:
        call = torch.compile(function, backend="eager", dynamic=False)
        for length in range(3, 16):
            call(torch.ones(length))
    facts = compiler_facts.facts(log, cudagraphs_requested=False)
    assert facts["recompile_limit_hit"] is True
    assert facts["graphs"] == 8


def test_locations_name_no_directory():
    assert compiler_facts.short_location("/home/someone/project/model.py:31") == "model.py:31"


def test_texts_of_release_2_6_are_understood():
    log = [
        (
            "graph_breaks",
            "Graph break in user code at /src/model.py:7\nReason: Unsupported: builtin: print\nUser code",
        ),
        (
            "graph_breaks",
            "Graph break in user code at /src/model.py:7\nReason: Unsupported: builtin: print\nUser code",
        ),
        (
            "recompiles",
            "Recompiling function forward in /src/model.py:12\n"
            "    triggered by the following guard failure(s):\n"
            "    - 0/0: tensor 'L['x']' size mismatch at index 0. expected 3, actual 4",
        ),
        ("warning", "torch._dynamo hit config.cache_size_limit (8)\n   function: 'forward'"),
    ]
    (found,) = compiler_facts.graph_breaks(log)
    assert found == {"reason": "Unsupported: builtin: print", "location": "model.py:7", "count": 2}
    (again,) = compiler_facts.recompiles(log)
    assert again["location"] == "model.py:12"
    assert again["reason"] == "tensor 'L['x']' size mismatch at index 0. expected 3, actual 4"
    assert compiler_facts.recompile_limit_hit(log, None)


def test_cuda_graph_skips_have_a_reason_even_if_only_the_counter_tells():
    told = [("cudagraphs", "skipping cudagraphs due to cpu device (add_1)")]
    assert compiler_facts.cudagraph_skips(told, {}) == ["cpu device (add_1)"]
    counted = {"inductor": {"cudagraph_skips": 2}}
    assert compiler_facts.cudagraph_skips([], counted) == ["no reason given (2 times)"]
    assert compiler_facts.cudagraph_skips([], {}) == []


def test_a_cache_that_was_not_asked_is_unknown_and_not_zero():
    assert compiler_facts.cache_counters({})["fx_graph_hits"] is None
    found = compiler_facts.cache_counters({"inductor": {"fxgraph_cache_miss": 1}})
    assert (found["fx_graph_hits"], found["fx_graph_misses"], found["aot_autograd_hits"]) == (0, 1, None)


def test_what_the_compiler_warns_of_and_why_a_cache_refuses_is_kept_once(capfd):
    """As torch says it: a warning of Python from its files, a line of its log at a level that nobody sees."""
    lowering = str(Path(torch.__file__).parent / "_inductor" / "lowering.py")
    refusing = logging.getLogger("torch._functorch._aot_autograd.autograd_cache")
    level = refusing.level
    with warnings.catch_warnings(record=True), collect_log() as log:
        warnings.simplefilter("always")
        for _ in range(2):
            warnings.warn_explicit("no code generation for complex operators", UserWarning, lowering, 1)
            refusing.info("Bypassing autograd cache due to: %s", "Unsupported autograd function")
        warnings.warn_explicit("of the model", UserWarning, "model.py", 1)
        logging.getLogger("torch._inductor.utils").warning("Not enough SMs to use max_autotune_gemm mode")
        logging.getLogger("torch._inductor.codecache").info("Bypassing FX Graph Cache because '%s'", "a hook")
        logging.getLogger("torch._inductor.codecache").info("FX codegen and compilation took 2 s")
    found = compiler_facts.facts(log, cudagraphs_requested=False)
    assert found["warnings"] == [
        "no code generation for complex operators",
        "Not enough SMs to use max_autotune_gemm mode",
    ]
    assert found["cache_bypasses"] == [
        "autograd cache: Unsupported autograd function",
        "FX Graph Cache: a hook",
    ]
    assert refusing.level == level
    assert "Bypassing" not in capfd.readouterr().err
    assert facts_of(workloads.relu_function())["warnings"] is None


def test_a_graph_that_a_cache_refuses_is_counted_apart():
    counted = {"aot_autograd": {"autograd_cache_bypass": 2}, "inductor": {"fxgraph_cache_bypass": 1}}
    assert compiler_facts.cache_counters(counted) == {
        "fx_graph_hits": 0,
        "fx_graph_misses": 0,
        "fx_graph_bypasses": 1,
        "aot_autograd_hits": 0,
        "aot_autograd_misses": 0,
        "aot_autograd_bypasses": 2,
    }


@pytest.mark.parametrize(
    ("file", "counters"),
    [
        ("_inductor/codecache.py", "fxgraph_cache"),
        ("_functorch/_aot_autograd/autograd_cache.py", "autograd_cache"),
    ],
)
def test_torch_has_the_counters_by_these_names(file, counters):
    source = (Path(torch.__file__).parent / file).read_text(encoding="utf-8")
    assert [name for name in ("hit", "miss", "bypass") if f'"{counters}_{name}"' not in source] == []


class Launcher:
    n_regs = n_spills = shared = 0

    def __init__(self, config):
        self.config = config


class Kernel(CachingAutotuner):
    """A Triton kernel of two configurations, timed by torch's own loop; nothing is launched."""

    reset_to_zero_arg_names = ()

    def __init__(self):
        self.inductor_meta = {"kernel_name": "triton_poi_fused_add_0"}
        self.launchers = [Launcher("XBLOCK: 64"), Launcher("XBLOCK: 128")]
        self.coordesc_tuner = SimpleNamespace(cache_benchmark_result=lambda *_: None)
        self.compile_id = self.is_backward = None

    def bench(self, launcher, *_arguments, **_options):
        return {"XBLOCK: 64": 0.5, "XBLOCK: 128": 0.25}.get(launcher.config, 1.0)


def test_the_configuration_of_a_kernel_is_the_one_it_is_launched_with():
    with collect_autotuning() as tunings:
        kernel = Kernel()
        timed = kernel.benchmark_all_configs()
    assert sorted(timed.values()) == [0.25, 0.5]
    (found,) = compiler_facts.autotuned(tunings)
    assert (found["operation"], found["candidate"], found["inputs"]) == (
        *["triton_poi_fused_add_0"] * 2,
        None,
    )
    assert (found["configuration"], found["time_ns"], found["candidates"]) == ("XBLOCK: 128", 250_000, 2)
    # A search that goes on from there ends at a configuration without a time.
    kernel.launchers = [Launcher("XBLOCK: 512")]
    (searched,) = compiler_facts.autotuned(tunings)
    assert (searched["configuration"], searched["time_ns"]) == ("XBLOCK: 512", None)
    kernel.benchmark_all_configs()
    assert len(tunings) == 1, "nothing is watched any more"


def test_an_operation_is_tuned_once_for_all_of_its_inputs():
    def tuning(ms, inputs="2x2 float32"):
        return Tuning("mm", inputs, {("mm", ""): ms, ("triton_mm", "BLOCK_M=16"): 2.0})

    found = compiler_facts.autotuned([tuning(1.0), tuning(1.0), tuning(3.0, "4x4 float32")])
    assert [(each["candidate"], each["configuration"], each["count"]) for each in found] == [
        ("mm", None, 2),
        ("triton_mm", "BLOCK_M=16", 1),
    ]
    failed = Tuning("mm", "", {("mm", ""): float("inf")})
    assert compiler_facts.autotuned([failed]) is compiler_facts.autotuned(None) is None
