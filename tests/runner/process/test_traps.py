"""Traps that were found while measuring, each beside the naive way that walks into it.

The others are where their subject is: lengths, ragged batches and the recompile limit in
test_workloads_streams, models that leave nothing to compile in test_workloads_graphs, breaks that no counter
sees in test_facts, page faults in test_trial, bypassed caches in test_strategies_measured.
"""

from __future__ import annotations

import itertools
import statistics

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from runner.worker import internals
from runner.worker.compiler import compiler_facts, compiling
from runner.worker.loading import build_workload
from runner.worker.messages import Strategy, Workload
from runner.worker.sampling import Sampler, SamplingPlan, Side
from runner.worker.steps import make_variant, own_copy
from tests.runner.worker.test_sampling import CALM, FakeTimer, FakeWatch

MS = 1_000_000


class SlowingHost:
    """A host that gets slower while it measures: every step takes 1 % longer than the one before."""

    def __init__(self) -> None:
        self.pace = 1.0

    def step(self, latency_ns: int) -> int:
        self.pace *= 1.01
        return round(latency_ns * self.pace)


def test_a_host_that_slows_down_favours_neither_side() -> None:
    """Measured one after the other, equal sides differ by the host; in alternating blocks they do not."""
    host = SlowingHost()
    eager = [host.step(MS) for _ in range(50)]
    compiled = [host.step(MS) for _ in range(50)]
    naive = statistics.median(eager) / statistics.median(compiled)
    assert naive < 0.65

    host = SlowingHost()
    sides = [Side(lambda: host.step(MS), FakeTimer(), warmup_ns=[MS] * 10) for _ in range(2)]
    plan = SamplingPlan(samples=50, max_samples=50)
    watch = FakeWatch(itertools.repeat(CALM))
    Sampler(plan, cpu_bound=True, watch=watch, canary=lambda: 1).take(sides)
    assert len(sides[0].times["samples_ns"]) == 50
    ours = statistics.median(sides[0].times["samples_ns"]) / statistics.median(sides[1].times["samples_ns"])
    assert ours == pytest.approx(1.0, abs=0.03)


def test_eager_and_compiled_share_inputs_dtype_and_layout() -> None:
    """Published tables compare batch 256 with batch 1024; here there is one set of inputs to hand over."""
    handed: list[tuple[torch.Tensor, ...]] = []

    class Watching(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            handed.append((x, self.weight))
            return super().forward(x)

    def build(batch_size: int) -> object:
        return Watching(4, 4), torch.randn(4, batch_size).t()

    workload = Workload("watching", "inference", "bfloat16", batch_size=3)
    built = build_workload(build, workload, torch.device("cpu"))
    strategy = Strategy("compile", backend="eager", scope="regional")
    assert compiling.needs_own_model(built, strategy)
    for variant in (make_variant(built), make_variant(own_copy(built))):
        variant.step()
    (x, weight), (other_x, other_weight) = handed
    assert x is other_x
    assert x.stride() == (1, 3)
    assert (weight.dtype, weight.stride()) == (other_weight.dtype, other_weight.stride())
    assert torch.equal(weight, other_weight)


@pytest.mark.usefixtures("fresh_dynamo")
def test_one_break_is_one_break_however_often_it_is_counted() -> None:
    """Dynamo meets a break again whenever it compiles again; the place is one all the same."""

    def function(x: torch.Tensor) -> torch.Tensor:
        x = x + 1
        print("a side effect")
        return x * 2

    with internals.collect_log() as log:
        compiled = torch.compile(function, backend="eager", dynamic=False)
        for length in (2, 3, 4):
            compiled(torch.ones(length))
    (found,) = compiler_facts.facts(log, cudagraphs_requested=False)["graph_breaks"]
    assert found["count"] == 3
    assert found["location"].startswith("test_traps.py:")
    assert sum(internals.counters()["graph_break"].values()) == 3


@pytest.mark.usefixtures("fresh_dynamo")
def test_checkpointing_hides_the_operations_of_a_block() -> None:
    """The body sits in one higher-order operation, so counts of operations are not comparable with it."""

    def block(x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(torch.relu(x * 2 + 1) * 3 - 1)

    def checkpointed(x: torch.Tensor) -> torch.Tensor:
        return checkpoint(block, x, use_reentrant=False)  # type: ignore[no-any-return]

    counts = []
    for call in (block, checkpointed):
        torch._dynamo.utils.counters.clear()
        torch.compile(call, backend="eager", fullgraph=True)(torch.ones(2, requires_grad=True))
        counts.append(internals.counters()["stats"]["calls_captured"])
    plain, hidden = counts
    assert plain == 6
    assert hidden < plain


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning")
@pytest.mark.usefixtures("fresh_dynamo")
def test_bert_with_checkpointing_breaks_unless_its_cache_is_off() -> None:
    transformers = pytest.importorskip("transformers", reason="needs pip install 'compilewatch[models]'")

    def breaks(use_cache: bool) -> int:
        config = transformers.BertConfig(
            vocab_size=50,
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=32,
            use_cache=use_cache,
            is_decoder=True,
        )
        model = transformers.BertForSequenceClassification(config).train()
        # Release 5.23 renames it.
        enable = getattr(model, "activation_checkpointing_enable", model.gradient_checkpointing_enable)
        enable()
        torch._dynamo.reset()
        with internals.collect_log() as log:
            torch.compile(model, backend="eager")(torch.ones(2, 4, dtype=torch.long))
        found = compiler_facts.facts(log, cudagraphs_requested=False)["graph_breaks"]
        return sum(event["count"] for event in found)

    assert breaks(use_cache=True) > 0
    assert breaks(use_cache=False) == 0
