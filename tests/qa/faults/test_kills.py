"""The runner, its guard and the measured process killed or stopped at random moments."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable

import pytest

from tests.qa.faults.conftest import ROUNDS, Tally
from tests.qa.faults.invariants import expect_all_is_well
from tests.qa.faults.place import Place
from tests.qa.faults.runner_process import running

_TRIALS = ["slow"] * 4
_LONGEST_S = 2.0


@pytest.mark.faults
@pytest.mark.timeout(1800)
def test_the_runner_is_killed(place: Place, tally: Tally, numbered: Callable[[str], str]) -> None:
    chance = random.Random(20261121)
    acknowledged: list[str] = []
    cut_short = 0
    for _ in range(ROUNDS * 8):
        with tally.fault("runner", "kill -9 at a random moment"):
            with running(place, numbered("run"), _TRIALS) as runner:
                time.sleep(chance.uniform(0.0, _LONGEST_S))
                runner.kill()
                cut_short += runner.wait() == -signal.SIGKILL
            acknowledged += runner.finished
            expect_all_is_well(place, acknowledged)
    assert cut_short > ROUNDS * 2, "the kills came too late to test anything"
    assert acknowledged, "the kills came too early to test anything"


@pytest.mark.faults
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("who", "depth", "number"),
    [
        ("guard", 1, signal.SIGKILL),
        ("guard", 1, signal.SIGTERM),
        ("worker", 2, signal.SIGKILL),
        ("worker", 2, signal.SIGSEGV),
        ("worker", 2, signal.SIGTERM),
    ],
)
def test_what_the_runner_started_is_killed(
    who: str, depth: int, number: signal.Signals, place: Place, tally: Tally, numbered: Callable[[str], str]
) -> None:
    chance = random.Random(depth * 100 + number)
    acknowledged: list[str] = []
    hit = 0
    for _ in range(ROUNDS * 2):
        with tally.fault(who, f"{number.name} at a random moment"):
            with running(place, numbered("run"), _TRIALS) as runner:
                target = runner.when_there_is_one(depth)
                time.sleep(chance.uniform(0.0, 0.12))
                hit += _send(target, number)
                assert runner.wait() == 0
            assert len(runner.finished) == len(_TRIALS)
            acknowledged += runner.finished
            expect_all_is_well(place, acknowledged)
    assert hit > ROUNDS, "nothing was there to kill"


@pytest.mark.faults
@pytest.mark.timeout(1800)
def test_the_runner_is_stopped_and_continued(
    place: Place, tally: Tally, numbered: Callable[[str], str]
) -> None:
    """As a laptop that sleeps, or a debugger, does it; another runner works in the meantime."""
    chance = random.Random(5)
    acknowledged: list[str] = []
    for _ in range(ROUNDS):
        with tally.fault("runner", "SIGSTOP, then SIGCONT"):
            with running(place, numbered("run"), _TRIALS[:2]) as runner:
                time.sleep(chance.uniform(0.05, 0.4))
                os.kill(runner.pid, signal.SIGSTOP)
                time.sleep(0.3)
                os.kill(runner.pid, signal.SIGCONT)
                assert runner.wait() == 0
            acknowledged += runner.finished
            assert len(runner.finished) == 2
            expect_all_is_well(place, acknowledged)


def _send(target: int, number: signal.Signals) -> bool:
    """Whether it was still there."""
    try:
        os.kill(target, number)
    except ProcessLookupError:
        return False
    return True
