"""Every kind of strategy through the real worker, by the name that a person types.

Most with Dynamo's own backend: what a modifier means is decided before code is generated.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from compilewatch.db.records.strategies import parse_strategy
from compilewatch.db.records.trial import FailureKind, NumericsStatus, Status, Strategy, Task, Trial
from compilewatch.db.verdicts.advice import paste
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.config.sources import load_settings
from compilewatch.runner.plan import plan
from compilewatch.runner.worker.compiler import compiler_facts, compiling
from compilewatch.runner.worker.failures import kind_of
from compilewatch.runner.worker.numerics import check
from compilewatch.runner.worker.step import messages
from compilewatch.runner.worker.step.internals import collect_log
from compilewatch.runner.worker.step.loading import UnsupportedCaseError, build_workload, import_builder
from compilewatch.runner.worker.step.messages import read
from compilewatch.runner.worker.step.state import State
from compilewatch.runner.worker.step.steps import make_variant
from compilewatch.runner.workloads.built import Built
from tests.runner import workload_fixtures
from tests.runner.measuring import FIXTURES, compiled, measure

CONFIGURATION = f"""
[[strategy]]
name = "careful"
backend = "eager"
dynamic = false
fullgraph = true

[[workload]]
name = "stack"
target = "workload_fixtures:two_kinds_of_blocks"
path = ["{FIXTURES}"]
regions = ["Block"]
"""


def counted(trial: Trial) -> tuple[int | None, int | None]:
    """(graphs, operations captured) of a trial that went well."""
    assert trial.status is Status.OK, trial.failure
    assert trial.numerics.status is NumericsStatus.PASS
    return trial.compiler.graphs, trial.compiler.ops_captured


@pytest.mark.slow
def test_a_trial_of_an_exported_program() -> None:
    trial = measure("three_blocks", parse_strategy("export"))
    graphs, _ = counted(trial)
    assert graphs == 0
    assert trial.strategy.name == "export"
    assert len(trial.control_samples_ns) == len(trial.samples_ns) > 0


def test_an_exported_program_gives_what_eager_gives() -> None:
    built = workload_fixtures.three_blocks()
    strategy = read(messages.Strategy, parse_strategy("export").model_dump(mode="json"))
    with torch.no_grad():
        call = compiling.apply(built, strategy, Path("unused"))
        assert isinstance(call, torch.fx.GraphModule)
        torch.testing.assert_close(call(*built.inputs), built.model_or_fn(*built.inputs))


def refused(built: Built, strategy: Strategy) -> str:
    """What the failure says of a strategy that cannot execute `built`; its kind is `unsupported`."""
    with pytest.raises(UnsupportedCaseError) as caught:
        compiling.apply(built, read(messages.Strategy, strategy.model_dump(mode="json")), Path("unused"))
    assert kind_of(caught.value, "first_call") == FailureKind.UNSUPPORTED
    return str(caught.value)


def test_what_cannot_be_executed_is_unsupported() -> None:
    stream, training = workload_fixtures.three_lengths(), workload_fixtures.training()
    for name in ("export", "aot-compile"):
        assert "goes through several" in refused(stream, parse_strategy(name))
    for name in ("packaged", "onnxruntime"):
        assert "needs an nn.Module in inference" in refused(training, parse_strategy(name))
    regional = compiled("eager", scope="regional")
    blok = replace(workload_fixtures.three_blocks(), regions=("Blok",))
    assert "no repeated blocks of class Blok" in refused(blok, regional)
    seven = compiled("eager", scope="submodule:seven")
    assert "no submodule 'seven'" in refused(workload_fixtures.three_blocks(), seven)
    assert "no repeated blocks to compile" in refused(training, regional)
    assert "needs an nn.Module; this workload is a function" in refused(
        workload_fixtures.relu_function(), regional
    )


@pytest.mark.usefixtures("fresh_dynamo")
def test_a_combination_of_the_configuration_on_regions_named_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by themselves they would be Block and two `Sequential`; named, they are Block alone."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "compilewatch.toml").write_text(CONFIGURATION)
    planned = plan.plan_run(
        load_settings(), workloads=["stack"], strategies=["careful+regional"], trials=1, device="cpu"
    )
    (spec,) = planned.trials
    strategy = spec.strategy
    workload = read(messages.Workload, spec.workload.model_dump(mode="json"))
    built = build_workload(import_builder(workload.target, workload.path), workload, torch.device("cpu"))
    with collect_log() as log, torch.no_grad():
        expected = built.model_or_fn(*built.inputs)
        chosen = read(messages.Strategy, strategy.model_dump(mode="json"))
        assert torch.equal(compiling.apply(built, chosen, Path("unused"))(*built.inputs), expected)
    found = compiler_facts.facts(log, cudagraphs_requested=False)
    # One graph serves all three blocks: a linear layer and a ReLU.
    assert (found["graphs"], found["ops_captured"]) == (1, 2)
    assert (strategy.name, strategy.scope, strategy.fullgraph) == ("careful+regional", "regional", True)
    assert strategy.dynamic is False


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_options_reach_inductor_as_a_dictionary() -> None:
    """Which knows the one and refuses the other."""

    def apply(**options: object) -> None:
        strategy = compiled("inductor", options=options).model_dump(mode="json")
        compiling.apply(workload_fixtures.three_blocks(), read(messages.Strategy, strategy), Path("unused"))

    apply(freezing=True)
    with pytest.raises(RuntimeError, match="Unexpected optimization option freezes"):
        apply(freezes=True)


@pytest.mark.slow
def test_a_bypassed_cache_is_neither_hit_nor_miss() -> None:
    """Freezing bakes the weights into the graph, so AOTAutograd does not cache it: no miss, and cold."""
    options = {"freezing": True, "max_fusion_size": 8, "coordinate_descent_tuning": True}
    trial = measure("three_blocks", compiled("inductor", options=options, mode=None))
    assert counted(trial)[0] == 1
    assert trial.strategy.options["freezing"] is True
    cache = trial.compiler.cache
    assert (cache.aot_autograd_hits, cache.aot_autograd_misses) == (0, 0)
    assert cache.fx_graph_hits == 0


@pytest.mark.parametrize(("path", "operations"), [("blocks.0.linear", 1), ("blocks.1", 2)])
def test_a_part_is_compiled_whether_its_class_is_torchs_or_not(path: str, operations: int) -> None:
    """`Module.compile` of a plain `nn.Linear` compiles nothing: Dynamo passes over torch's own files."""
    torch._dynamo.reset()
    built, compiled_graphs = workload_fixtures.three_blocks(), []

    def keep(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> object:
        compiled_graphs.append(graph)
        return graph.forward

    strategy = messages.Strategy(kind="compile", backend=keep, scope=f"submodule:{path}")  # type: ignore[arg-type]
    with torch.no_grad():
        expected = built.model_or_fn(*built.inputs)
        assert torch.equal(compiling.apply(built, strategy, Path("unused"))(*built.inputs), expected)
    (graph,) = compiled_graphs
    assert len([node for node in graph.graph.nodes if node.op.startswith("call_")]) == operations


@pytest.mark.parametrize("path", ["blocks.0.linear", "blocks.1"])
def test_a_part_stays_compiled_when_the_state_of_its_model_is_put_back(path: str) -> None:
    """Before each block of samples: what is timed then would be the part as it was written."""
    torch._dynamo.reset()
    built, calls = workload_fixtures.three_blocks(), 0

    def count(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> object:
        def run(*arguments: Any) -> Any:
            nonlocal calls
            calls += 1
            return graph(*arguments)

        return run

    state = State(built)
    strategy = messages.Strategy(kind="compile", backend=count, scope=f"submodule:{path}")  # type: ignore[arg-type]
    call = compiling.apply(built, strategy, Path("unused"))
    with torch.no_grad():
        for expected in (1, 2):
            call(*built.inputs)
            assert calls == expected
            state.restore()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["default+regional", "default+submodule:blocks.1"])
def test_parts_of_a_model_are_timed_compiled(name: str) -> None:
    trial = measure("three_blocks", parse_strategy(name))
    assert trial.status is Status.OK, trial.failure
    assert trial.compiler.compiled_share is not None
    assert trial.compiler.compiled_share > 0.3


def test_nested_regions_are_one_region_called_three_times() -> None:
    graphs: list[torch.fx.GraphModule] = []

    def keep(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> object:
        graphs.append(graph)
        return graph.forward

    built = workload_fixtures.three_blocks()
    strategy = messages.Strategy(kind="compile", backend=keep, scope="nested")  # type: ignore[arg-type]
    with torch.no_grad():
        for number, block in enumerate(built.model_or_fn.blocks):
            block.linear.bias += number
        expected = built.model_or_fn(*built.inputs)
        assert torch.equal(compiling.apply(built, strategy, Path("unused"))(*built.inputs), expected)
    (graph,) = graphs
    calls = [node for node in graph.graph.nodes if "invoke_subgraph" in str(node.target)]
    assert len(calls) == 3
    assert len({node.args[0].target for node in calls}) == 1


def test_a_release_without_an_api_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("nested_compile_region", "load_compiled_function"):
        monkeypatch.delattr(torch.compiler, name, raising=False)
    blocks = workload_fixtures.three_blocks()
    assert "no torch.compiler.nested_compile_region" in refused(blocks, parse_strategy("default+nested"))
    assert "no torch.compiler.load_compiled_function" in refused(blocks, parse_strategy("aot-compile"))


@pytest.mark.slow
@pytest.mark.parametrize(("workload", "task"), [("three_blocks", "inference"), ("relu_function", "function")])
def test_a_package_of_dynamo_is_loaded_without_tracing(workload: str, task: str) -> None:
    """On a CPU g++ builds its libraries once more: the package has their sources, and no machine code."""
    trial = measure(workload, parse_strategy("aot-compile"), task=task)
    assert counted(trial)[0] == 0
    phases = trial.cold_start.phases_ns
    assert (phases.dynamo, phases.aot_autograd, phases.inductor) == (None, None, None)


def test_onnx_runtime_gives_what_eager_gives() -> None:
    pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")
    trial = measure("three_blocks", parse_strategy("onnxruntime"))
    assert counted(trial)[0] == 0
    assert trial.strategy.backend == "onnxruntime"


class NamedResults(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> dict[str, Any]:
        return {"logits": x.sin(), "hidden": [x + 1, x * 2]}


@pytest.mark.usefixtures("fresh_dynamo")
@pytest.mark.filterwarnings("default")  # of torch's exporter
def test_onnx_runtime_gives_results_by_the_names_of_the_model() -> None:
    pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")
    built = Built(NamedResults().eval(), (torch.randn(2, 4),))
    with torch.no_grad():
        other = make_variant(built, compiling.session_of(built))
        found, wrong = check(make_variant(built), other, None, 0)
    assert (found["status"], wrong) == ("pass", None)


def test_where_a_package_is_missing_onnx_runtime_is_not_applicable(monkeypatch: pytest.MonkeyPatch) -> None:
    for place in (plan, compiling):
        monkeypatch.setattr(place, "find_spec", lambda name: None if name == "onnxscript" else name)
    planned = plan.plan_run(
        Settings(), workloads=["encoder"], strategies=["eager", "onnxruntime"], device="cpu"
    )
    assert [case.reason for case in planned.not_applicable] == [
        "onnxscript is not installed; the extra onnx brings it"
    ]
    assert "onnxscript is not installed" in refused(
        workload_fixtures.three_blocks(), parse_strategy("onnxruntime")
    )


@pytest.mark.usefixtures("fresh_dynamo")
def test_a_setting_of_dynamo_is_an_option() -> None:
    """Of three lengths a limit of two compiles two."""
    few = {"dynamo.recompile_limit": 2}
    limited = messages.Strategy("compile", backend="eager", dynamic=False, options=few)
    with collect_log() as log, torch._dynamo.config.patch(recompile_limit=8):
        call = compiling.apply(Built(workload_fixtures.relu_function().model_or_fn, ()), limited, Path())
        for length in (2, 3, 4):
            call(torch.ones(length))
    assert compiler_facts.facts(log, cudagraphs_requested=False)["graphs"] == 2


@pytest.mark.slow
def test_settings_of_dynamo_and_its_guards_are_recorded() -> None:
    guards = {"guard_filter_fn": "skip_guard_on_all_nn_modules_unsafe", "skip_guard_eval_unsafe": True}
    each = [{"dynamo.recompile_limit": 2}, guards]
    trials = [measure("three_lengths", compiled("eager", dynamic=False, options=own)) for own in each]
    assert [trial.failure for trial in trials] == [None, None]
    assert [trial.compiler.graphs for trial in trials if trial.compiler is not None] == [2, 3]
    assert [trial.strategy.options for trial in trials] == each


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("dynamo.recompile_limits", 2, "Did you mean dynamo.recompile_limit?"),
        ("dynamo.recompile_limit", True, "is a number, not True"),
        ("functorch.cse", 1, "is true or false, not 1"),
        ("dynamo.debug_dir_root", "/tmp/elsewhere", "has no switch or number 'dynamo.debug_dir_root'"),
        ("guard_filter_fn", "os.system", "has no guard filter 'os.system'"),
    ],
)
def test_what_this_torch_does_not_know_is_set_nowhere(option: str, value: object, says: str) -> None:
    before = torch._dynamo.config.get_config_copy()
    strategy = messages.Strategy("compile", backend="eager", options={option: value})
    with pytest.raises(UnsupportedCaseError, match=re.escape(says)):
        compiling.apply(Built(torch.relu, (torch.ones(2),)), strategy, Path())
    assert torch._dynamo.config.get_config_copy() == before


@pytest.mark.usefixtures("fresh_dynamo")
def test_regions_are_compiled_each_by_its_own_settings() -> None:
    """The first part by a backend of its own, the third with dynamic shapes, the second not at all."""
    model = nn.Sequential(*(nn.Sequential(nn.Linear(4, 4), nn.ReLU()) for _ in range(3)))
    built = Built(model, (torch.randn(2, 4),))
    regions = {"0": {"backend": "eager"}, "2": {"dynamic": True}}
    strategy = messages.Strategy(
        "compile", backend="aot_eager", mode="default", scope="regions", regions=regions
    )
    first, third = compiling.regions_of(strategy)
    assert (first.backend, first.dynamic, first.mode) == ("eager", None, "default")
    assert (third.backend, third.dynamic, third.scope) == ("aot_eager", True, "submodule:2")
    with collect_log() as log, torch.no_grad():
        expected = model(*built.inputs)
        assert torch.equal(compiling.apply(built, strategy, Path("unused"))(*built.inputs), expected)
    assert compiler_facts.facts(log, cudagraphs_requested=False)["graphs"] == 2
    with pytest.raises(UnsupportedCaseError, match="no submodule '7'"):
        compiling.apply(built, replace(strategy, regions={"7": {}}), Path("unused"))


@pytest.mark.usefixtures("fresh_dynamo")
def test_regions_of_two_classes_are_no_recompilation_of_each_other() -> None:
    model = nn.Sequential(nn.Sequential(nn.Linear(4, 4), nn.ReLU()), nn.Linear(4, 4))
    strategy = messages.Strategy("compile", backend="eager", scope="regions", regions={"0": {}, "1": {}})
    with collect_log() as log, torch.no_grad():
        compiling.apply(Built(model, ()), strategy, Path("unused"))(torch.ones(2, 4))
    assert not compiler_facts.facts(log, cudagraphs_requested=False)["recompiles"]


def test_a_region_with_mode_or_options_has_not_those_of_the_whole() -> None:
    whole = messages.Strategy("compile", options={"freezing": True}, scope="regions")
    (part,) = compiling.regions_of(replace(whole, regions={"0": {"mode": "max-autotune"}}))
    assert (part.mode, part.options) == ("max-autotune", {})
    (part,) = compiling.regions_of(
        replace(whole, options={}, mode="default", regions={"0": {"options": {"dce": True}}})
    )
    assert (part.mode, part.options) == (None, {"dce": True})
    assert compiling.uses_cudagraphs(replace(whole, regions={"0": {"mode": "reduce-overhead"}}), "cuda")
    assert not compiling.uses_cudagraphs(replace(whole, regions={"0": {"dynamic": True}}), "cuda")


class Gate(nn.Sequential):
    """A class of its own."""


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(("regions", "count"), [((), 2), (("Gate",), 1)])
def test_what_advise_has_pasted_compiles_the_blocks_of_a_trial(regions: tuple[str, ...], count: int) -> None:
    """Of a model whose blocks are not in `model.layers`."""
    blocks = [nn.Sequential(nn.Linear(2, 2), nn.ReLU()) for _ in range(2)]
    model = nn.Sequential(nn.ReLU(), nn.ReLU(), *blocks, Gate(nn.Linear(2, 2)))
    exec(paste(parse_strategy("default+regional"), Task.INFERENCE, regions), {"torch": torch, "model": model})
    parts = [part for part in model.modules() if part._compiled_call_impl is not None]
    assert len(parts) == count
    assert parts == list(compiling.repeated_blocks(model, regions))
