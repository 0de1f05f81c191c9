"""What can be chosen, in its order: as the whole facets have it, of whatever is stored now."""

from __future__ import annotations

from datetime import timedelta

from compilewatch.dashboard.read.choices import Choices, choices
from compilewatch.dashboard.text.theme import ordered
from compilewatch.db import units
from compilewatch.db.engine.session import Database
from compilewatch.db.queries.facets import build_rows, builds, machines, offered, runs, workloads
from compilewatch.db.queries.trials import trials_frame
from compilewatch.db.store.trials import save_trials
from tests.builders import START, make_history, make_imported, make_machine, make_trial

NEWEST = 3
OTHER = make_machine("cpu-box", device="cpu")
TRIALS = [
    *make_history(trials_per_case=1),
    *make_history(workloads=("mlp",), machines=(OTHER,), builds=("2.14.1",), start=START - timedelta(9)),
    make_imported(suite=None, run_id="imported"),
    make_trial(suite="smoke", strategy="max-autotune", run_id="smoke-run", label="candidate"),
]


def _choices(database: Database) -> Choices:
    return choices(offered(database, newest_runs=NEWEST), build_rows(database))


def _check(found: Choices, database: Database) -> None:
    """`found` is what the whole frames of `database` say."""
    every, trials = machines(database), trials_frame(database)
    assert list(found.machines) == list(every["machine_id"])
    assert found.newest_machine == every.sort_values("last_seen_at")["machine_id"].iloc[-1]
    assert found.newest_result_at == every["last_seen_at"].max()
    assert list(found.builds) == list(found.build_rows) == list(builds(database)["build_id"])
    assert list(found.suites) == sorted(set(trials["suite"].dropna()))
    assert list(found.workloads) == sorted(set(workloads(database)["workload"]))
    assert list(found.strategies) == ordered(set(trials["strategy"]))
    newest = runs(database, newest=NEWEST)
    words = [
        f"{units.moment(began)} · {suite if isinstance(suite, str) else 'no suite'}"
        for began, suite in zip(newest["started_at"], newest["suite"], strict=True)
    ]
    assert list(found.runs.items()) == list(zip(newest["run_id"], words, strict=True))
    assert found.oldest_run_at == runs(database)["started_at"].min()


def test_choices_are_those_of_the_whole_facets(sqlite_database: Database) -> None:
    save_trials(sqlite_database, TRIALS)
    _check(_choices(sqlite_database), sqlite_database)


def test_the_newest_result_of_a_machine_is_its_own(sqlite_database: Database) -> None:
    save_trials(sqlite_database, TRIALS)
    every, found = machines(sqlite_database), _choices(sqlite_database)
    by_machine = dict(zip(every["machine_id"], every["last_seen_at"], strict=True))
    assert len(set(by_machine.values())) > 1
    for machine, newest in by_machine.items():
        assert found.on_machine(machine, ()).newest_result_at == newest


def test_an_empty_database_offers_nothing(sqlite_database: Database) -> None:
    found = _choices(sqlite_database)
    assert not any((found.machines, found.builds, found.suites, found.workloads, found.runs))
    assert (found.newest_machine, found.newest_result_at, found.oldest_run_at) == (None, None, None)


def test_a_device_stands_behind_the_name_of_a_machine_only_where_it_tells_machines_apart(
    sqlite_database: Database,
) -> None:
    names = ("left", "right", "twin", "twin")
    cpus = [
        make_machine(name, device="cpu", device_name="AMD EPYC", threads=threads)
        for threads, name in enumerate(names, start=1)
    ]
    there = [*cpus, make_machine("gpu", device_name="L4")]
    save_trials(sqlite_database, [make_trial(machine=machine) for machine in there])
    found = _choices(sqlite_database)
    twins = ["twin (AMD EPYC)"] * 2
    assert sorted(found.machines.values()) == ["gpu (L4)", "left", "right", *twins]
    in_full = ["gpu (L4)", "left (AMD EPYC)", "right (AMD EPYC)", *twins]
    assert sorted(found.machines_with_device.values()) == in_full
    assert [name for name, _ in found.called["machine"]][: len(there)] == list(
        found.machines_with_device.values()
    )
