"""Workloads of several ranks: real processes that take each step together, and whom the others wait for."""

from __future__ import annotations

import json

import pytest

from compilewatch.db.cause.notes import ranks_sentence
from compilewatch.db.records.evidence import RankFacts
from compilewatch.db.records.strategies import EAGER
from compilewatch.db.records.trial import FailureKind, Status, Task, parse_trial
from compilewatch.runner.process.supervise import run_trial
from compilewatch.runner.worker.step import host
from tests.runner.measuring import compiled, make_spec


def measured(name, strategy, task, number=2, **changes):
    spec = make_spec(name, strategy, target=f"ranked_models:{name}", task=task, **changes)
    workload = spec.workload.model_copy(update={"ranks": number})
    trial = run_trial(spec.model_copy(update={"workload": workload, "threads": 2, "timeout_s": 500.0}))
    return parse_trial(trial.to_json())


def facts_of(trial) -> list[RankFacts]:
    assert trial.status is Status.OK, trial.failure
    assert [each.rank for each in trial.compiler.ranks] == [0, 1]
    return trial.compiler.ranks


@pytest.mark.slow
@pytest.mark.parametrize("name", ["replicated", "sharded"])
def test_both_ranks_of_a_training_step_compile_it(name):
    trial = measured(name, compiled("aot_eager"), Task.TRAINING)
    first, other = facts_of(trial)
    # The steps of the compiled side, the first call among them.
    assert first.steps == other.steps > len(trial.samples_ns)
    assert first.compile_ns > 0
    assert other.compile_ns > 0
    assert len(first.compiles) == len(other.compiles) > 0
    assert {each.step for each in other.compiles} == {1}
    assert trial.numerics.status == "not_checked"


def test_a_rank_that_meets_another_size_is_named_with_the_step():
    trial = measured("uneven", compiled("eager", dynamic=False), Task.FUNCTION)
    ranks = facts_of(trial)
    assert len(ranks[1].compiles) == len(ranks[0].compiles) + 2
    said = ranks_sentence(ranks)
    assert said.startswith("Rank 1 compiled ")
    assert said.endswith("the first difference is size 0 of inputs (8, then 12) at step 2.")


@pytest.mark.skipif(len(host.ALL) < 2, reason="one core for two ranks")
def test_a_rank_compiles_on_all_cores_and_is_timed_on_its_own(tmp_path):
    trial = measured("tells_its_cores", EAGER, Task.FUNCTION, kwargs={"folder": str(tmp_path)})
    assert trial.status is Status.OK, trial.failure
    timed = []
    for rank in range(2):
        steps = [json.loads(line) for line in (tmp_path / f"rank{rank}").read_text().splitlines()]
        assert steps[0]["built"] == sorted(host.ALL)
        assert steps[0]["compile_threads"] == host.compile_threads_of_a_script()
        timed.append(set(min((each["stepped"] for each in steps), key=len)))
    assert timed[1] == host.share_of(1, 2)
    assert not timed[0] & timed[1]


@pytest.mark.slow
def test_a_rank_that_computes_longer_is_waited_for():
    ranks = facts_of(measured("more_work_on_rank_1", compiled("eager"), Task.FUNCTION))
    assert ranks[1].cpu_ns > 1.25 * ranks[0].cpu_ns


@pytest.mark.slow
def test_one_rank_has_a_process_group_too():
    trial = measured("replicated", compiled("aot_eager"), Task.TRAINING, number=1)
    assert trial.status is Status.OK, trial.failure
    assert trial.workload.ranks == 1
    assert [each.rank for each in trial.compiler.ranks] == [0]
    assert trial.numerics.status == "not_checked"


@pytest.mark.slow
def test_eager_of_several_ranks_is_measured_too():
    trial = measured("replicated", EAGER, Task.TRAINING)
    assert trial.status is Status.OK, trial.failure
    assert trial.compiler is None


@pytest.mark.slow
def test_the_rank_that_failed_is_named():
    trial = measured("fails_on_rank_1", compiled("eager"), Task.TRAINING)
    assert trial.failure.kind is FailureKind.WORKLOAD_ERROR
    assert trial.failure.message == "Rank 1: ValueError: no shard of the data for rank 1"
    assert trial.failure.phase == "build_model"


def facts(rank: int, **changes) -> RankFacts:
    compiles = changes.pop("compiles", [{"step": 1, "part": "forward"}])
    return RankFacts(rank=rank, compiles=compiles, **changes)


def test_sentences_by_what_differs_first():
    once = facts(0, compile_ns=4_000_000_000, cpu_ns=1_000_000)
    again = [{"step": step, "part": "forward", "reason": "self.calls == 1"} for step in (2, 3)]
    more = facts(1, compiles=[{"step": 1, "part": "forward"}, *again])
    assert ranks_sentence([once, more]) == (
        "Rank 1 compiled 3 times, rank 0 once: the first difference is self.calls == 1 at step 2."
    )
    slower = facts(1, compile_ns=9_000_000_000)
    assert ranks_sentence([once, slower]) == "Rank 1 compiles 9.00 s, rank 0 4.00 s: rank 0 waits for it."
    busier = facts(2, compile_ns=4_000_000_000, cpu_ns=2_000_000)
    assert ranks_sentence([once, busier]) == (
        "Rank 2 computes 2.00 ms a step, rank 0 1.00 ms: rank 0 waits for it."
    )
    equal = facts(1, compile_ns=4_100_000_000, cpu_ns=1_000_000)
    assert ranks_sentence([once, equal]) == "No rank waits for another: 1 compilation each."
    assert ranks_sentence([once]) is None
    assert ranks_sentence([once, facts(1, compiles=None)]) == "What each rank compiled is not known."
    nothing = [facts(rank, compiles=[], compile_ns=0) for rank in range(2)]
    assert ranks_sentence(nothing) == "No rank waits for another: 0 compilations each."
