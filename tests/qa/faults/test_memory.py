"""The kernel ends a process for memory: alone in its limit, or in one with the runner, as in a container."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compilewatch.db.records.trial import FailureKind
from tests.qa.faults.conftest import ROUNDS, Tally
from tests.qa.faults.invariants import expect_all_is_well
from tests.qa.faults.memory_group import memory_group
from tests.qa.faults.place import Place, measure, spec_of
from tests.qa.faults.runner_process import running

_LIMIT_BYTES = 256 << 20


@pytest.mark.faults
@pytest.mark.timeout(1800)
def test_the_kernel_kills_a_measured_process_for_memory(
    place: Place, tally: Tally, numbered: Callable[[str], str]
) -> None:
    acknowledged: list[str] = []
    with memory_group(_LIMIT_BYTES) as group:
        for _ in range(ROUNDS):
            with tally.fault("measured process", "out of memory by cgroup"):
                run_id = numbered("run")
                told = {"COMPILEWATCH_FAULT_GROUP": str(group.members)}
                spec = spec_of(place, run_id, "out of memory by cgroup", worker_env=told)
                (trial,) = measure(place, run_id, [spec])
                assert trial.failure.kind is FailureKind.OUT_OF_MEMORY, trial.failure.message
                said = "The kernel killed the process for memory during build model. "
                assert trial.failure.message.startswith(said)
                acknowledged.append(trial.trial_id)
                expect_all_is_well(place, acknowledged)


@pytest.mark.faults
@pytest.mark.timeout(1800)
def test_a_runner_that_shares_its_limit_with_what_it_measures_goes_on(
    place: Place, tally: Tally, numbered: Callable[[str], str]
) -> None:
    """As in a container with a memory limit: the largest goes, and that is what is measured."""
    acknowledged: list[str] = []
    with memory_group(_LIMIT_BYTES) as group:
        for _ in range(ROUNDS):
            with tally.fault("runner and measured process", "out of memory by one cgroup"):
                faults = ["none", "takes all memory", "none"]
                with running(place, numbered("run"), faults, group=group.members) as runner:
                    assert runner.wait() == 0
                assert len(runner.finished) == len(faults)
                acknowledged += runner.finished
                stored = expect_all_is_well(place, acknowledged)
                failures = [stored[each].failure for each in runner.finished]
                kinds = [failure and failure.kind for failure in failures]
                assert kinds == [None, FailureKind.OUT_OF_MEMORY, None]
