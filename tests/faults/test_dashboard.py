"""The dashboard killed while it starts and while it answers, as the runner writes."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.conftest import ROUNDS, Tally
from tests.faults.dashboard_process import DashboardProcess, dashboard_of
from tests.faults.invariants import expect_all_is_well
from tests.faults.place import Place
from tests.faults.runner_process import running

_PATHS = ("/healthz", "/metrics", "/api/v1/trials", "/api/v1/runs", "/")
_LONGEST_S = 0.6


@pytest.mark.faults
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("when", ["starts", "answers"])
def test_the_dashboard_is_killed_while_the_runner_writes(
    when: str, place: Place, tally: Tally, numbered: Callable[[str], str], tmp_path: Path
) -> None:
    """The runner does not notice, and the dashboard that is started next shows what there is."""
    chance = random.Random(when)
    answers: Counter[int | None] = Counter()
    acknowledged: list[str] = []
    for number in range(ROUNDS):
        with (
            tally.fault("dashboard", f"kill -9 while it {when} and the runner writes"),
            dashboard_of(place, tmp_path / f"log-{number}") as dashboard,
            running(place, numbered("run"), ["slow"] * 2) as runner,
        ):
            if when == "answers":
                dashboard.wait_until_up()
                asking = _asking(dashboard, answers)
            time.sleep(chance.uniform(0.0, _LONGEST_S))
            dashboard.kill()
            if when == "answers":
                asking.join()
            assert runner.wait() == 0
            assert len(runner.finished) == 2
            acknowledged += runner.finished
            expect_all_is_well(place, acknowledged)
    if when == "answers":
        assert answers[200] > ROUNDS, "nothing was asked of it"
        assert answers[None] == ROUNDS
    with dashboard_of(place, tmp_path / "log") as dashboard:
        dashboard.wait_until_up()
        assert [dashboard.status(path) for path in _PATHS] == [200] * len(_PATHS)


def _asking(dashboard: DashboardProcess, answers: Counter[int | None]) -> threading.Thread:
    """Asks for one path after the other until there is no answer any more."""

    def ask() -> None:
        for number in range(100_000):
            status = dashboard.status(_PATHS[number % len(_PATHS)])
            answers[status] += 1
            if status is None:
                return

    thread = threading.Thread(target=ask)
    thread.start()
    return thread
