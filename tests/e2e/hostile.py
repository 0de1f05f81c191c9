"""A database in which every text that is not an id tries to be more than text."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from pydantic import ValidationError

from compilewatch.db.engine.session import open_database
from compilewatch.db.judge.compare.recorded_regressions import TriageEvent
from compilewatch.db.judge.compare.sides import Selection
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import trials_frame
from compilewatch.db.records.hosts import HostDevice, HostState
from compilewatch.db.records.people import TriageState
from compilewatch.db.records.requests import RequestKind, RequestSpec, ScheduleSpec
from compilewatch.db.records.trial import Trial
from compilewatch.db.service.hosts import save_host
from compilewatch.db.service.recording import record_comparison, triage
from compilewatch.db.service.regressions import standing_regressions
from compilewatch.db.service.requests import new_request, save_request
from compilewatch.db.service.schedules import save_schedule
from compilewatch.db.store.trials import save_trials, start_run
from compilewatch.db.verdicts.gateway import compare
from tests.builders import MS, START, make_build, make_history, make_machine

FOREIGN = "http://evil.example"
NAMES = (
    f'<script>window.ran=1</script><img src="{FOREIGN}/i.png" onerror="window.ran=1">',
    f"![i]({FOREIGN}/i.png) [go](javascript:window.ran=1) **b** `c` $x^2$ :smile: :red[r] | a | b |",
    "\u202eforwards is backwards\u202c \u2067rtl\u2069 \x1b[31mred\x07 one\ntwo\r\tthree\x0b\x85\u2028",
    "W" * 200,
)
"""Markup, Markdown, control and direction characters, and one word of the greatest length a name may have."""
LONG = f'{NAMES[0]}\n# head\n{NAMES[1]} {FOREIGN}/x "><svg onload="window.ran=1"> ' + "W" * 9_000
_PARTS = (
    *("failure", "compiler", "device_state", "cold_start", "numerics", "source", "stream", "profile"),
    *("trace", "sampling"),
)


def fill(url: str) -> None:
    """Trials, runs, regressions, triage, requests, schedules and hosts with texts of `NAMES`."""
    with open_database(url, migrate=True) as database:
        trials = [_poisoned(trial, NAMES[n % len(NAMES)]) for n, trial in enumerate(_history())]
        save_trials(database, trials)
        for number, name in enumerate(NAMES):
            start_run(
                database,
                run_id=f"running-{number}",
                suite=name,
                label=name,
                started_at=START,
                planned_trials=9,
            )
            spec = RequestSpec(suite=name, workloads=(name,), machine=name, label=name)
            request = new_request(f"r{number}", RequestKind.MANUAL, spec, by=name, at=START, note=LONG)
            save_request(database, request)
            schedule = ScheduleSpec(cron="0 2 * * *", suite=name, machine=name)
            save_schedule(database, name, schedule, from_config=True, at=START)
            save_host(database, _host(name))
        found = trials_frame(database, Filters())
        base, head = (
            Selection(name=build, build_ids=(build,)) for build in list(found["build_id"].unique())[-2:]
        )
        record_comparison(database, compare(database, base, head), at=START)
        for number, each in enumerate(standing_regressions(database)):
            event = TriageEvent(
                state=TriageState.ACKNOWLEDGED,
                author=NAMES[number % len(NAMES)],
                at=START,
                note=LONG,
                url=f'{FOREIGN}/"><script>window.ran=1</script>',
            )
            triage(database, each.regression.regression_id, event)


def _history() -> list[Trial]:
    """Three builds; compiled cases get slower with the last, so that there is something to triage."""

    def latency_ns(_workload: str, strategy: str, run: int) -> float:
        return 10 * MS * (1 if strategy == "eager" else 0.9 if run == 2 else 0.6)

    builds = [
        make_build(
            f"2.1{n}.0",
            label=NAMES[n],
            driver=NAMES[n],
            compiler=NAMES[n],
            packages={NAMES[1]: NAMES[n], NAMES[0]: "1"},
            settings={NAMES[0]: "same", NAMES[3]: {NAMES[2]: NAMES[1]}},
        )
        for n in range(3)
    ]
    return make_history(
        workloads=NAMES,
        strategies=("eager", "default", NAMES[0], NAMES[2]),
        builds=builds,
        latency_ns=latency_ns,
        failures=[(NAMES[0], NAMES[0], 2)],
        start=START - timedelta(days=3),
    )


def _host(name: str) -> HostState:
    return HostState(
        name=name,
        owner=name,
        started_at=START,
        seen_at=START,
        program_version=name,
        devices=(HostDevice(name=name, uuid=name, throttle_reasons=(name,)),),
        devices_read_at=START,
    )


def _poisoned(trial: Trial, text: str) -> Trial:
    """`trial` with `text` for every text of its parts that may hold it."""
    data = trial.model_dump(mode="json", by_alias=True)
    machine = make_machine(NAMES[1], device_name=NAMES[0], device_uuid=NAMES[2], cpu_name=NAMES[2])
    data |= {"suite": text, "label": text, "machine": machine.model_dump(mode="json")}
    for part in _PARTS:
        data[part] = _replaced(data, (part,), data[part], text)
    return Trial.model_validate(data)


def _replaced(whole: dict[str, Any], path: tuple[Any, ...], value: Any, text: str) -> Any:
    if isinstance(value, dict):
        return {key: _replaced(whole, (*path, key), each, text) for key, each in value.items()}
    if isinstance(value, list):
        return [_replaced(whole, (*path, n), each, text) for n, each in enumerate(value)]
    return text if isinstance(value, str) and _may_hold(whole, path, text) else value


def _may_hold(whole: dict[str, Any], path: tuple[Any, ...], text: str) -> bool:
    """Whether the record takes `text` there: words of a fixed set and ids it does not."""
    changed = _with(whole, path, text)
    try:
        Trial.model_validate(changed)
    except ValidationError:
        return False
    return True


def _with(value: Any, path: tuple[Any, ...], text: str) -> Any:
    if not path:
        return text
    if isinstance(value, list):
        return [_with(each, path[1:], text) if n == path[0] else each for n, each in enumerate(value)]
    return {key: _with(each, path[1:], text) if key == path[0] else each for key, each in value.items()}
