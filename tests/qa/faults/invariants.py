"""What must hold after every fault, in one function."""

from __future__ import annotations

import time
import uuid
from collections.abc import Collection

import psutil

from compilewatch.db.queries.trials import trial_records
from compilewatch.db.records.trial import Status, Trial
from compilewatch.db.service.integrity import find_damage
from tests.qa.faults.place import Place, database_of, measure, spec_of

_ORPHANS_GONE_WITHIN_S = 15.0


def expect_all_is_well(place: Place, acknowledged: Collection[str]) -> dict[str, Trial]:
    """Raise AssertionError unless the place is whole, then run it once more; all stored trials by id.

    `acknowledged` are the trials that somebody was told of. Nothing of them may be lost, nothing may be there
    twice or half, no process and no file of a trial may be left, and the next run must work.
    """
    expect_no_orphan(place)
    run_id = f"after-{uuid.uuid4().hex[:12]}"
    (again,) = measure(place, run_id, [spec_of(place, run_id, "none")])
    assert again.status is Status.OK, again.failure
    assert place.spool.waiting() == [], "the next run left something waiting"
    with database_of(place) as database:
        assert find_damage(database) == []
        trials = list(trial_records(database))
    stored = {trial.trial_id: trial for trial in trials}
    assert len(stored) == len(trials), "a trial is there twice"
    lost = set(acknowledged) - stored.keys()
    assert not lost, f"{len(lost)} acknowledged trials are lost: {sorted(lost)[:3]}"
    for trial in trials:
        expect_told_in_one_line(trial)
    expect_no_orphan(place)
    return stored


def expect_told_in_one_line(trial: Trial) -> None:
    """A failed trial says what happened; one that succeeded has all its samples."""
    if trial.status is Status.OK:
        assert len(trial.samples_ns) == 20
    else:
        first = trial.failure.message.partition("\n")[0]
        assert first.strip(), trial
        assert trial.samples_ns == []


def expect_no_orphan(place: Place) -> None:
    """No process and no directory of a trial is left."""
    deadline = time.monotonic() + _ORPHANS_GONE_WITHIN_S
    while left := [*_processes(place), *_directories(place)]:
        assert time.monotonic() < deadline, f"left behind: {left}"
        time.sleep(0.02)


def _directories(place: Place) -> list[str]:
    return [path.name for path in place.scratch.glob("compilewatch-*") if path != place.locks]


def _processes(place: Place) -> list[str]:
    found = []
    for process in psutil.process_iter():
        try:
            if process.status() != psutil.STATUS_ZOMBIE and str(place.scratch) in process.environ().get(
                "TMPDIR", ""
            ):
                found.append(" ".join(process.cmdline()))
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found
