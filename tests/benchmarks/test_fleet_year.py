"""A year of a large team on a virtual clock: 200 GPUs of 8 types, 40 teams, 500 workloads, and outages.

`runner.fleet.launch.is_due` decides on launches, by the records that the database would have. The queue is
modelled: per machine type one request at a time, and one that is more urgent beside it.
"""

from __future__ import annotations

import heapq
import itertools
import os
import random
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from db.records.fleet import Launch
from db.store.service.fleet import outdated
from runner.config.sections import LaunchSettings
from runner.fleet.launch import is_due

TYPES, GPUS_A_TYPE, TEAMS, WORKLOADS, STRATEGIES, TRIALS = 8, 25, 40, 500, 3, 3
TYPES_A_TEAM = 3
DAYS = int(os.environ.get("COMPILEWATCH_BENCHMARK_DAYS", "365"))
HOUR, DAY = 3600.0, 86_400.0
START = datetime(2026, 1, 1, tzinfo=UTC)
IDLE_S, LOOK_S, COMMAND_S, RECHECK_S = 120.0, 2.0, 1.5, 60.0
BRING_UP_S, LAUNCH_FAILS = 180.0, 0.02
GPU_FAILS_EVERY_S, REPAIR_S = 30 * DAY, 8 * HOUR
DATABASE_AWAY_S, SCHEDULER_AWAY_S = 0.5 * HOUR, 12 * HOUR
# Medians of a trial's seconds by strategy, eager first, and how far trials of different workloads differ.
TRIAL_S, SPREAD = (30.0, 75.0, 240.0), 0.6
NIGHTLY, UPGRADE, ASKED, CONFIRM = "nightly", "upgrade", "asked", "confirmation"
PRIORITY = {CONFIRM: 0, ASKED: 1, UPGRADE: 2, NIGHTLY: 3}


@dataclass(slots=True)
class Request:
    """Trials of one request by their seconds, and when it came, began and ended."""

    kind: str
    came_s: float
    trials: list[float]
    left: int
    began_s: float | None = None


@dataclass
class Queue:
    """One machine type. `waiting` are requests not begun yet, `open` those whose trials may be taken."""

    name: str
    rules: LaunchSettings
    waiting: list[tuple[int, int, Request]] = field(default_factory=list)
    open: list[Request] = field(default_factory=list)
    broken: int = 0
    idle: dict[int, float] = field(default_factory=dict)
    live: dict[int, float] = field(default_factory=dict)
    pending: deque[Launch] = field(default_factory=deque)
    on_way: int = 0
    most: int = 0
    launches: list[Launch] = field(default_factory=list)

    def fill(self) -> None:
        """Open the next request, or one that is more urgent than the one that is open."""
        self.open = [request for request in self.open if request.trials]
        while self.waiting and len(self.open) < 2:
            priority = self.waiting[0][0]
            if self.open and PRIORITY[self.open[0].kind] <= priority:
                return
            self.open.insert(0, heapq.heappop(self.waiting)[2])

    @property
    def trials(self) -> int:
        return sum(len(request.trials) for request in self.open)


class Year:
    """Everything that happens, in order of time."""

    def __init__(self, *, load: float, gpus: int, command_s: float, seed: int) -> None:
        self.random = random.Random(seed)
        self.command_s = command_s
        rules = LaunchSettings(command=("sbatch",), at_most=gpus)
        self.queues = [Queue(f"type-{number}", rules) for number in range(TYPES)]
        self.load, self.gpus = load, gpus
        self.now = 0.0
        self.count = itertools.count()
        self.events: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self.done: dict[str, list[tuple[float, float]]] = {kind: [] for kind in PRIORITY}
        self.happened: Counter[str] = Counter()
        self.busy_s = self.held_s = 0.0
        self.away_until = self.no_scheduler_until = 0.0
        self.is_looking = False

    def at(self, moment: float, what: Callable[..., None], *arguments: Any) -> None:
        heapq.heappush(self.events, (moment, next(self.count), what, arguments))

    def moment(self) -> datetime:
        return START + timedelta(seconds=self.now)

    def run(self) -> None:
        self._plan()
        while self.events:
            self.now, _, what, arguments = heapq.heappop(self.events)
            if self.now > DAYS * DAY:
                break
            what(*arguments)

    def _plan(self) -> None:
        draw = self.random
        workloads = round(WORKLOADS / TEAMS * self.load)
        for team in range(TEAMS):
            types = draw.sample(self.queues, TYPES_A_TEAM)
            for day in range(DAYS):
                for queue in types:
                    night = day * DAY + HOUR + 60 * team
                    self.at(night, self.ask, queue, NIGHTLY, workloads, TRIALS)
                    if draw.random() < 0.02 * workloads:
                        self.at(night + 8 * HOUR * draw.random(), self.ask, queue, CONFIRM, 2, 10)
                for _ in range(2):
                    when = day * DAY + draw.uniform(8, 19) * HOUR
                    self.at(when, self.ask, draw.choice(types), ASKED, 4, TRIALS)
            for month in range(DAYS // 30):
                # Both builds of an upgrade, five trials a side.
                self.at((month * 30 + 14) * DAY + 9 * HOUR, self.ask, types[0], UPGRADE, workloads, 10)
        for queue in self.queues:
            for _ in range(self.gpus):
                self.at(draw.expovariate(1 / GPU_FAILS_EVERY_S), self.break_gpu, queue)
        for number in range(6 * DAYS // 365):
            self.at(draw.uniform(0, DAYS * DAY), self.lose, "away_until", DATABASE_AWAY_S)
            if number % 3 == 0:
                self.at(draw.uniform(0, DAYS * DAY), self.lose, "no_scheduler_until", SCHEDULER_AWAY_S)

    def lose(self, name: str, for_s: float) -> None:
        setattr(self, name, self.now + for_s)
        self.happened[name] += 1

    def ask(self, queue: Queue, kind: str, workloads: int, trials: int) -> None:
        draw = self.random.lognormvariate
        of_case = [seconds * draw(0.0, SPREAD) for _ in range(workloads) for seconds in TRIAL_S]
        request = Request(kind, self.now, [each for each in of_case for _ in range(trials)], 0)
        request.left = len(request.trials)
        heapq.heappush(queue.waiting, (PRIORITY[kind], next(self.count), request))
        queue.fill()
        for worker in list(queue.idle):
            self.work(queue, worker)
        self.look_soon()

    def look_soon(self) -> None:
        if not self.is_looking:
            self.is_looking = True
            self.at(self.now + LOOK_S, self.look)

    def look(self) -> None:
        """One round of the service over its queues; commands run one after the other."""
        launched = 0
        if self.now >= self.away_until:
            for queue in self.queues:
                if queue.trials and self._launch(queue):
                    launched += 1
        self.is_looking = any(queue.trials for queue in self.queues)
        if self.is_looking:
            wait_s = launched * self.command_s + LOOK_S if launched else RECHECK_S
            self.at(self.now + wait_s, self.look)

    def _launch(self, queue: Queue) -> bool:
        now = self.moment()
        if not is_due(queue.rules, now, queue.trials, len(queue.live), queue.launches):
            return False
        failed = self.now < self.no_scheduler_until or self.random.random() < LAUNCH_FAILS
        launch = Launch(
            launch_id=str(next(self.count)),
            queue=queue.name,
            host="login",
            launched_at=now,
            worker_due_at=now + timedelta(seconds=queue.rules.timeout_s + queue.rules.start_s),
            ended_at=now,
            exit_code=int(failed),
        )
        gone = {each.launch_id for each in outdated(queue.launches, now)}
        queue.launches = [launch, *(each for each in queue.launches if each.launch_id not in gone)]
        self.happened["launches"] += 1
        self.happened["failed launches"] += failed
        if not failed:
            queue.on_way += 1
            queue.most = max(queue.most, len(queue.live) + queue.on_way)
            self.at(self.now + self.random.expovariate(1 / BRING_UP_S), self.bring_up, queue, launch)
        return True

    def bring_up(self, queue: Queue, launch: Launch) -> None:
        """The scheduler starts the job, where a GPU is free."""
        if len(queue.live) + queue.broken >= self.gpus:
            queue.pending.append(launch)
            return
        worker = next(self.count)
        queue.live[worker] = self.now
        queue.on_way -= 1
        started = launch.model_copy(update={"worker": str(worker), "worker_at": self.moment()})
        queue.launches = [started if each is launch else each for each in queue.launches]
        self.work(queue, worker)

    def work(self, queue: Queue, worker: int) -> None:
        """Take the next trial, or wait for one for `IDLE_S`."""
        if worker not in queue.live:
            return
        if self.now < self.away_until:
            self.at(self.away_until, self.work, queue, worker)
            return
        request = next((each for each in queue.open if each.trials), None)
        if request is None:
            queue.idle[worker] = self.now
            self.at(self.now + IDLE_S, self.give_back, queue, worker, self.now)
            return
        queue.idle.pop(worker, None)
        seconds = request.trials.pop()
        if not request.trials:
            queue.fill()
        if request.began_s is None:
            request.began_s = self.now
        self.at(self.now + seconds, self.store, queue, worker, request, seconds)

    def store(self, queue: Queue, worker: int, request: Request, seconds: float) -> None:
        if worker not in queue.live:
            # Its node went under it: another worker begins the trial again.
            request.trials.append(seconds)
            if request not in queue.open:
                queue.open.append(request)
            self.happened["trials begun again"] += 1
            self.look_soon()
            return
        self.busy_s += seconds
        self.happened["trials"] += 1
        request.left -= 1
        if not request.left and request.began_s is not None:
            self.done[request.kind].append((request.began_s - request.came_s, self.now - request.came_s))
        self.work(queue, worker)

    def give_back(self, queue: Queue, worker: int, since: float) -> None:
        if queue.idle.get(worker) == since:
            del queue.idle[worker]
            self.held_s += self.now - queue.live.pop(worker)
            self.free(queue)

    def free(self, queue: Queue) -> None:
        if queue.pending:
            self.bring_up(queue, queue.pending.popleft())

    def break_gpu(self, queue: Queue) -> None:
        self.happened["GPUs broken"] += 1
        queue.broken += 1
        if len(queue.live) + queue.broken > self.gpus and queue.live:
            lost = self.random.choice(sorted(queue.live))
            self.held_s += self.now - queue.live.pop(lost)
            queue.idle.pop(lost, None)
        self.at(self.now + REPAIR_S, self.repair, queue)

    def repair(self, queue: Queue) -> None:
        queue.broken -= 1
        self.at(self.now + self.random.expovariate(1 / GPU_FAILS_EVERY_S), self.break_gpu, queue)
        self.free(queue)


def hours(values: list[float], share: float) -> str:
    return f"{np.quantile(values, share) / HOUR:.2f}" if values else "-"


@pytest.mark.benchmark
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("load", "gpus", "command_s"),
    [
        *((load, GPUS_A_TYPE, COMMAND_S) for load in (1.0, 2.0, 4.0, 6.0)),
        (1.0, GPUS_A_TYPE, 20.0),
        (6.0, 150, COMMAND_S),
    ],
)
def test_a_year(load: float, gpus: int, command_s: float, capsys: pytest.CaptureFixture[str]) -> None:
    year = Year(load=load, gpus=gpus, command_s=command_s, seed=24)
    year.run()
    share = year.busy_s / (DAYS * DAY * TYPES * gpus)
    with capsys.disabled():
        print(f"\n{DAYS} days, load {load:g}, {gpus} GPUs a type, {command_s:g} s a launch command")
        print(f"{year.happened['trials']:,} trials, GPUs busy {share:.1%}, {dict(year.happened)}")
        print(f"workers busy {year.busy_s / year.held_s:.1%} of the time for which they hold a GPU")
        left = sum(len(queue.waiting) + len(queue.open) for queue in year.queues)
        print(f"requests left {left}, most workers of a type {max(queue.most for queue in year.queues)}")
        for kind, ended in year.done.items():
            waits, whole = [each[0] for each in ended], [each[1] for each in ended]
            print(
                f"{kind}: {len(ended)} ended; hours until begun {hours(waits, 0.5)}, "
                f"p95 {hours(waits, 0.95)}; until ended {hours(whole, 0.5)}, p95 {hours(whole, 0.95)}, "
                f"most {hours(whole, 1)}"
            )
    assert year.happened["trials"] > 0
