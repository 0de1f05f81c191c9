"""Whatever a measured process does, its trial is stored once, with the reason, and nothing of it is left."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compilewatch.db.records.trial import FailureKind, Status
from tests.qa.faults.conftest import ROUNDS, Tally
from tests.qa.faults.invariants import expect_all_is_well
from tests.qa.faults.place import Place, measure, spec_of

# What the stored record says: its kind of failure, None for a success.
EXPECTED: dict[str, FailureKind | None] = {
    "hangs in C": FailureKind.TIMEOUT,
    "hangs in Python, ignores TERM": FailureKind.TIMEOUT,
    "is stopped": FailureKind.TIMEOUT,
    "segmentation fault": FailureKind.CRASH,
    "abort": FailureKind.CRASH,
    "kill -9": FailureKind.CRASH,
    "TERM": FailureKind.CRASH,
    "exits 0 without a record": FailureKind.BAD_RECORD,
    "exits 3": FailureKind.CRASH,
    "forks and leaves children": None,
    "detaches a daemon": None,
    "100 MB on stdout": None,
    "a record of 36 MB": FailureKind.BAD_RECORD,
    "half a record": FailureKind.BAD_RECORD,
    "two records": FailureKind.BAD_RECORD,
    "a record with other ids": None,
    "bytes that are no record": FailureKind.BAD_RECORD,
    "a record 50,000 deep": FailureKind.BAD_RECORD,
    "samples that are none": FailureKind.BAD_RECORD,
    "infinite samples": FailureKind.BAD_RECORD,
    "a failure of no known kind": FailureKind.BAD_RECORD,
    "out of memory by rlimit": FailureKind.OUT_OF_MEMORY,
    "out of processor time by rlimit": FailureKind.CRASH,
    "a compile worker killed": FailureKind.COMPILE_ERROR,
}
_UNTIL_TIMEOUT_S = {
    "hangs in C": 0.6,
    "hangs in Python, ignores TERM": 0.6,
    "is stopped": 0.6,
}


@pytest.mark.faults
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("fault", EXPECTED)
def test_a_process_that_goes_wrong(
    fault: str, place: Place, tally: Tally, numbered: Callable[[str], str]
) -> None:
    acknowledged: list[str] = []
    for _ in range(ROUNDS * 2):
        with tally.fault("measured process", fault):
            run_id = numbered("run")
            timeout_s = _UNTIL_TIMEOUT_S.get(fault, 8.0)
            (trial,) = measure(place, run_id, [spec_of(place, run_id, fault, timeout_s=timeout_s)])
            assert trial.run_id == run_id
            if EXPECTED[fault] is None:
                assert trial.status is Status.OK, trial.failure
            else:
                assert trial.failure.kind is EXPECTED[fault], trial.failure.message
            acknowledged.append(trial.trial_id)
            stored = expect_all_is_well(place, acknowledged)
            assert stored[trial.trial_id] == trial
            assert not any("SOMEBODY" in trial_id for trial_id in stored)
