"""FlexAttention, an operator of one's own and dropout, measured; options of Inductor change its code."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from compilewatch.db.records.strategies import BUILTIN
from compilewatch.db.records.trial import Status, Trial
from compilewatch.runner.catalog.builtin import WORKLOADS
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.plan.plan import plan_run
from compilewatch.runner.process.supervise import run_trial
from compilewatch.runner.worker.compiler.compiling import compile_arguments
from compilewatch.runner.worker.numerics import check
from compilewatch.runner.worker.step.messages import Strategy, read
from compilewatch.runner.worker.step.steps import make_variant
from compilewatch.runner.worker.timing.sampling import SamplingPlan
from tests.runner.measuring import FAST_COMPILE, FEW, build


def _measured(workload: str, strategy: str) -> Trial:
    plan = plan_run(Settings(), workloads=[workload], strategies=[strategy], trials=1, device="cpu")
    changes = {"worker_env": FAST_COMPILE, "sampling": SamplingPlan(**FEW)}
    trial = run_trial(plan.trials[0].model_copy(update=changes))
    assert trial.status is Status.OK, trial.failure
    return trial


@pytest.mark.usefixtures("fresh_dynamo")
def test_an_operator_of_ones_own_is_captured_without_a_break_and_right() -> None:
    built = build(WORKLOADS["custom-op"])
    call = torch.compile(built.model_or_fn, backend="aot_eager", fullgraph=True)
    found, message = check(make_variant(built), make_variant(built, call), None, 0)
    assert (found["status"], message) == ("pass", None)


# Eager FlexAttention captures its own operator with Dynamo, which counts as a graph of the process.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("workload", "strategy", "graphs"),
    [
        ("custom-op", "default", 1),
        ("flex-attention", "default", 2),
    ],
)
def test_a_trial_captures_it_without_a_break_and_right(workload: str, strategy: str, graphs: int) -> None:
    trial = _measured(workload, strategy)
    assert trial.numerics.status == "pass"
    assert (trial.compiler.graphs, trial.compiler.graph_breaks) == (graphs, [])


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_flex_attention_is_attention_with_a_mask_and_a_bias() -> None:
    ready = build(WORKLOADS["flex-attention"], batch_size=1, shape={"sequence_length": 16})
    model, (x,) = ready.model_or_fn, ready.inputs
    query, key, value = model.query_key_value(x).view(1, 16, 3, 4, 16).permute(2, 0, 3, 1, 4)
    at = torch.arange(16)
    bias = torch.tensor([2.0 ** (-2 * head) for head in range(1, 5)]).view(4, 1, 1) * (at - at.view(-1, 1))
    bias = bias.masked_fill(at > at.view(-1, 1), float("-inf"))
    attended = functional.scaled_dot_product_attention(query, key, value, attn_mask=bias)
    expected = model.projection(attended.transpose(1, 2).reshape(1, 16, 64))
    with torch.no_grad():
        torch.testing.assert_close(model(x), expected)


@pytest.mark.slow
def test_dropout_repeats_from_one_seed_and_is_compared_where_both_draw_alike() -> None:
    assert _measured("dropout-train", "default").numerics.status == "reproducible"
    alike = _measured("dropout-train", "fallback-random").numerics
    assert alike.status == "pass"
    assert alike.max_abs_error < 1e-4


def _twelve(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return tuple(torch.sin(x * number) for number in range(1, 13))


@pytest.mark.slow
@pytest.mark.usefixtures("fresh_dynamo")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(("strategy", "kernels"), [("default", 1), ("max-fusion-8", 2)])
def test_the_size_of_a_fusion_is_bounded(
    strategy: str, kernels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twelve outputs of one input fuse into one kernel, and into two of at most eight."""
    from torch._inductor import config, metrics

    monkeypatch.setenv("TORCHINDUCTOR_VEC_ISA_OK", "1")
    chosen = read(Strategy, BUILTIN[strategy].model_dump(mode="json"))
    metrics.reset()
    with config.patch({"fx_graph_cache": False, "cpp_cache_precompile_headers": False}):
        torch.compile(_twelve, **compile_arguments(chosen))(torch.randn(64, 64))
    assert metrics.generated_kernel_count == kernels
