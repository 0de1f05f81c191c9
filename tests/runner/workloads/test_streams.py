"""Workloads of several batches: different lengths, a ragged last batch, decoding; and the naive ways.

Graphs are counted with Dynamo's own backend, so nothing is generated or built.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from compilewatch.db.records.sampling_facts import StreamFacts
from compilewatch.db.records.strategies import parse_strategy
from compilewatch.db.records.trial import NumericsStatus, Status, Task
from compilewatch.runner.catalog.builtin import STREAMS, WORKLOADS
from compilewatch.runner.worker import cold_start
from compilewatch.runner.worker.compiler import compiler_facts, compiling
from compilewatch.runner.worker.numerics import check
from compilewatch.runner.worker.step import messages
from compilewatch.runner.worker.step.internals import collect_log, counters, listen_to_events
from compilewatch.runner.worker.step.steps import grad_context, make_variant, own_copy
from compilewatch.runner.worker.streams import FirstIteration, facts
from compilewatch.runner.workloads.built import Built
from compilewatch.runner.workloads.decode import Decoder
from compilewatch.runner.workloads.lengths import Lengths, padded_length
from tests.runner import workload_fixtures
from tests.runner.measuring import build, measure

CPU = torch.device("cpu")
OWN = [definition.name for definition in STREAMS if not definition.packages]


pytestmark = pytest.mark.usefixtures("fresh_dynamo")


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def load(name: str, **kwargs: Any) -> Built:
    torch.manual_seed(0)
    definition = WORKLOADS[name]
    return build(definition, kwargs={**definition.kwargs, **kwargs})


def gone_through(built: Built, strategy: str) -> tuple[dict[str, Any], FirstIteration]:
    """Compiler facts of one iteration under `backend:eager` with modifiers, and where it compiled."""
    wanted = messages.read(messages.Strategy, parse_strategy(strategy).model_dump(mode="json"))
    with collect_log() as log:
        first = FirstIteration(log)
        with listen_to_events(first.begin, first.end) as heard:
            first.is_reported = heard
            target = own_copy(built) if compiling.needs_own_model(built, wanted) else built
            call = compiling.apply(target, wanted, Path("unused"))
            with grad_context(built):
                first.run(make_variant(target, call))
        return compiler_facts.facts(log, cudagraphs_requested=False), first


def test_lengths_are_those_of_the_distribution_and_the_same_every_time() -> None:
    lengths = Lengths(batches=500, batch_size=4, median=48, sigma=0.6, shortest=8, longest=256)
    drawn = [length for batch in lengths.drawn() for length in batch]
    assert lengths.drawn() == lengths.drawn()
    assert lengths.tokens() == sum(drawn)
    assert statistics.median(drawn) == pytest.approx(48, rel=0.05)
    # ln 256 lies (ln 256 - ln 48) / 0.6 = 2.79 deviations above the median: 0.26 % are cut there.
    assert min(drawn) >= 8
    assert max(drawn) == 256
    assert drawn.count(256) < 0.01 * len(drawn)
    assert Lengths(5, 4, seed=1).drawn() != Lengths(5, 4, seed=2).drawn()
    with pytest.raises(ValueError, match="shortest <= median"):
        Lengths(1, 1, median=5, shortest=8)


@pytest.mark.parametrize(
    ("policy", "expected"), [("none", 33), ("dynamic", 33), ("buckets", 64), ("max", 256)]
)
def test_a_batch_is_padded_by_the_policy(policy: str, expected: int) -> None:
    assert padded_length([12, 33, 9], policy, (128, 32, 64), 256) == expected


def test_a_policy_that_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="no bucket of 32, 64 holds a sequence of length 65"):
        padded_length([65], "buckets", (32, 64), 256)
    with pytest.raises(ValueError, match="policy is one of none, max, buckets, dynamic, not 'bucket'"):
        padded_length([65], "bucket", (), 256)


@pytest.mark.parametrize("name", OWN)
def test_what_a_plan_counts_is_what_an_iteration_has(name: str) -> None:
    definition, built = WORKLOADS[name], load(name)
    if definition.item == "token":
        assert definition.record().items_per_iteration == built.stream.tokens
    else:
        images = sum(len(batch.target) for batch in built.stream.batches())
        assert definition.record().items_per_iteration == images


def test_padding_changes_the_time_and_not_the_result() -> None:
    results = []
    for name in ("varlen", "varlen-buckets", "varlen-max"):
        built = load(name, batches=2)
        # Embeddings are equal by the seed; tokens are drawn per shape, so they are made equal here.
        tokens = torch.arange(4 * 256).reshape(4, 256) % 1000
        with torch.no_grad():
            masks = [batch.inputs[1] for batch in built.stream.batches()]
            results.append([built.model_or_fn(tokens[:, : mask.shape[1]] * mask, mask) for mask in masks])
    for other in results[1:]:
        for one, two in zip(results[0], other, strict=True):
            torch.testing.assert_close(one, two)


def padding_added(built: Built) -> float:
    assert built.stream.tokens is not None
    assert built.stream.padded_tokens is not None
    return built.stream.padded_tokens / built.stream.tokens - 1


# (workload, strategy, graphs, recompiles, limit hit); every one goes through the same 24 batches of requests.
POLICIES = [
    ("varlen", "backend:eager+static", 8, 8, True),
    ("varlen", "backend:eager", 2, 1, False),
    ("varlen", "backend:eager+dynamic", 1, 0, False),
    ("varlen-dynamic", "backend:eager", 1, 0, False),
    ("varlen-buckets", "backend:eager+static", 3, 2, False),
    ("varlen-max", "backend:eager+static", 1, 0, False),
]


@pytest.mark.parametrize(("name", "strategy", "graphs", "recompiles", "limit"), POLICIES)
def test_recompilations_by_policy(
    name: str, strategy: str, graphs: int, recompiles: int, limit: bool
) -> None:
    """The first line is the trap: exact lengths compile eight times, then all else runs eagerly, unsaid."""
    found, first = gone_through(load(name, batches=24, width=8), strategy)
    assert found["graphs"] == graphs
    assert found["recompile_limit_hit"] is limit
    assert sum(event["count"] for event in found["recompiles"]) >= recompiles
    assert len(first.compiles) >= graphs
    assert first.compiles[0]["batch"] == 1
    assert first.compiles[0]["reason"] is None
    again = [each for each in first.compiles[1:] if each["reason"]]
    assert len(again) >= recompiles
    assert all("size mismatch" in each["reason"] for each in again)
    assert len(first.batches_ns) == 24


def test_what_padding_costs() -> None:
    added = {name: padding_added(load(name)) for name in ("varlen", "varlen-buckets", "varlen-max")}
    # Four sequences of a batch differ, so even padding to the longest of them computes more than is asked.
    assert 0.2 < added["varlen"] < added["varlen-buckets"] < added["varlen-max"]
    # 256 / 57, the mean of the clipped log-normal: 48 exp(0.6^2 / 2) = 57.5.
    assert added["varlen-max"] == pytest.approx(256 / 57 - 1, rel=0.1)


def test_a_ragged_last_batch_compiles_at_the_end_of_the_epoch() -> None:
    """A warm-up of equal batches, as a benchmark of steps has it, never sees the second compilation."""
    naive, first = gone_through(workload_fixtures.ragged_epoch(drop_last=True), "backend:eager")
    assert (naive["graphs"], {each["batch"] for each in first.compiles}) == (1, {1})


@pytest.mark.slow
def test_a_trial_tells_how_long_the_first_epoch_took_and_where_it_compiled() -> None:
    ragged: Any = measure("ragged_epoch", parse_strategy("backend:eager"), task=Task.TRAINING)
    assert ragged.status is Status.OK, ragged.failure
    stream, cold = ragged.stream, ragged.cold_start
    assert (stream.batches, stream.shapes, stream.policy, stream.tokens) == (3, 2, None, None)
    assert sorted({each.batch for each in stream.compiles}) == [1, 3]
    assert any("size mismatch" in (each.reason or "") for each in stream.compiles if each.batch == 3)
    assert len(stream.first_batches_ns) == len(stream.control_first_batches_ns) == 3
    # All that was compiled and every batch are within the first iteration, which is the first call.
    assert sum(each.took_ns for each in stream.compiles) < sum(stream.first_batches_ns) <= cold.first_call_ns
    assert sum(stream.control_first_batches_ns) <= cold.eager_first_ns
    for each in stream.compiles:
        assert each.took_ns < stream.first_batches_ns[each.batch - 1]
    # Neither warm-up nor samples compiled anything more.
    assert ragged.compiler.graphs == sum(each.part == "forward" for each in stream.compiles) == 2
    assert ragged.numerics.status is NumericsStatus.PASS
    assert ragged.numerics.reference == "float64"


def test_a_wrong_result_at_a_later_shape_is_found() -> None:
    built = workload_fixtures.three_lengths()

    def wrong(x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = built.model_or_fn(x)
        return result if x.shape[1] != 11 else result + 1

    found, message = check(make_variant(built), make_variant(built, wrong), None, 0)
    assert found["status"] == "fail"
    assert message is not None
    assert "output 0 of batch 3" in message


def test_a_static_cache_is_one_graph_and_a_growing_one_is_not() -> None:
    built = load("decode")
    found, first = gone_through(built, "backend:eager+static+fullgraph")
    assert (found["graphs"], len(first.compiles), found["recompiles"]) == (1, 1, [])

    def attend(token: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
        grown: torch.Tensor = torch.cat([keys, token], 1)
        return grown

    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    naive, keys = torch.compile(attend, backend="eager", dynamic=False), torch.zeros(1, 1, 4)
    for _ in range(12):
        keys = naive(torch.ones(1, 1, 4), keys)
    # One graph for every length, until the limit; afterwards eager.
    assert counters()["stats"]["unique_graphs"] == 8


def test_decoding_step_by_step_is_the_forward_pass_of_the_whole_text() -> None:
    torch.manual_seed(0)
    model = Decoder(width=16, heads=2, layers=2, batch_size=3, context=10).eval()
    tokens, places = torch.randint(1000, (3, 10)), torch.arange(10)
    with torch.no_grad():
        whole = [model(tokens[:, :end], places[:end]) for end in range(5, 11)]
        model(tokens[:, :4], places[:4])
        steps = [model(tokens[:, at : at + 1], places[at : at + 1]) for at in range(4, 10)]
    for one, other in zip(whole, steps, strict=True):
        torch.testing.assert_close(one, other)


def test_decoding_passes_the_numeric_check_of_its_stream() -> None:
    built = load("decode")
    found, message = check(make_variant(built), make_variant(built), None, 0)
    assert (found["status"], message) == ("pass", None)


def test_an_iteration_counts_batches_and_shapes_without_a_compiler() -> None:
    ticks = iter(range(0, 1000, 10))
    first = FirstIteration(clock=lambda: next(ticks))
    built = workload_fixtures.three_lengths()
    with torch.no_grad():
        first.run(make_variant(built))
    found = StreamFacts.model_validate(facts(built, first, [80, 80, 84], None, []))
    assert found.first_batches_ns == [10, 10, 10]
    assert (found.batches, found.shapes, found.compiles) == (3, 3, None)
    assert (found.tokens, found.padded_tokens) == (40, 46)
    assert found.padding_fraction == pytest.approx(6 / 46)
    assert (found.latency_per_token_ns, found.control_latency_per_token_ns) == (2.0, None)
    both = facts(built, first, [80, 80, 84], first, [160])
    assert (both["control_first_batches_ns"], both["control_latency_per_token_ns"]) == ([10, 10, 10], 4.0)
    assert facts(workload_fixtures.training(), first, [1], None, []) is None


def test_a_compilation_inside_another_is_not_counted_twice() -> None:
    ticks = iter(range(0, 1000, 10))
    first = FirstIteration(clock=lambda: next(ticks))
    both = cold_start.both(first.begin, lambda _event: None)
    for event in ("entire_frame_compile", "inductor_compile", "entire_backward_compile"):
        both(event)
    first.end("entire_backward_compile")
    first.end("inductor_compile")
    first.end("entire_frame_compile")
    assert first.compiles == [{"batch": 1, "part": "forward", "took_ns": 10, "reason": None}]
