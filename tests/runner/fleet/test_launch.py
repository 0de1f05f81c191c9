"""Workers from zero: when a launch is due, what becomes of its command, and one that brings a worker."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event

import psutil
import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilewatch.db.engine.session import Database, open_database
from compilewatch.db.errors import ConfigError
from compilewatch.db.queries.records import trial_records
from compilewatch.db.queries.selection import Filters
from compilewatch.db.records.hosts import OUTPUT_CHARACTERS, STORED_LAUNCHES, Launch, LaunchState
from compilewatch.db.records.requests import RequestState
from compilewatch.db.service.fleet import claim_launch, end_launch, fleet_workers, launches, queue_lengths
from compilewatch.db.service.requests import run_request, save_request
from compilewatch.runner.config.sections import LaunchSettings
from compilewatch.runner.config.sources import load_settings
from compilewatch.runner.fleet.launch import Launcher, is_due, run_command
from tests.house.tracked import ROOT
from tests.runner.fleet.test_exit import queued
from tests.runner.fleet.test_service import asked
from tests.runner.fleet_processes import is_alive, service, wait_until, worker
from tests.runner.quick_measurement import configuration, interpreter
from tests.runner.terminal import in_this_process

NOW = datetime(2026, 11, 20, 3, 0, tzinfo=UTC)
RULES = LaunchSettings(command=("sbatch", "worker.sh"), at_most=3, start_s=600, timeout_s=60, backoff_s=60)
MANIFEST = ROOT / "docs" / "deploy" / "kubernetes" / "worker-job.yaml"


def launch(
    minutes_ago: float, *, exit_code: int | None = 0, ended: bool = True, worker: bool = False
) -> Launch:
    at = NOW - timedelta(minutes=minutes_ago)
    return Launch(
        launch_id=f"{minutes_ago:08.2f}",
        queue="h200",
        host="boss",
        launched_at=at,
        worker_due_at=at + timedelta(seconds=RULES.start_s),
        ended_at=at if ended else None,
        exit_code=exit_code if ended else None,
        worker="box:1" if worker else None,
        worker_at=at if worker else None,
    )


@pytest.mark.parametrize(
    ("waiting", "workers", "so_far", "due"),
    [
        (0, 0, [], False),
        (1, 0, [], True),
        (1, 1, [], False),
        (9, 2, [], True),
        (9, 3, [], False),
        # Its command runs, or its worker may still come.
        (1, 0, [launch(1, ended=False)], False),
        (1, 0, [launch(1)], False),
        (9, 1, [launch(1), launch(2)], False),
        (9, 1, [launch(1)], True),
        # Its worker came, and lives or has ended since.
        (1, 0, [launch(1, worker=True)], True),
        # Failed: a minute, two minutes, four.
        (1, 0, [launch(0.9, exit_code=1)], False),
        (1, 0, [launch(1.1, exit_code=1)], True),
        (1, 0, [launch(1.1, exit_code=None), launch(3, exit_code=1)], False),
        (1, 0, [launch(2.1, exit_code=None), launch(3, exit_code=1)], True),
        (1, 0, [launch(2.1, exit_code=1), launch(3, exit_code=1), launch(4, exit_code=1)], False),
        (1, 0, [launch(2.1, exit_code=1), launch(3, worker=True), launch(4, exit_code=1)], True),
        # No worker came of it within ten minutes: a failure of that moment.
        (1, 0, [launch(10.5)], False),
        (1, 0, [launch(11.1)], True),
    ],
)
def test_when_a_worker_is_launched(waiting: int, workers: int, so_far: list[Launch], due: bool) -> None:
    assert is_due(RULES, NOW, waiting, workers, so_far) is due


@given(st.integers(0, 20), st.lists(st.booleans(), max_size=40), st.integers(1, 5))
def test_never_more_workers_than_allowed_and_no_more_than_trials(
    waiting: int, starts: list[bool], at_most: int
) -> None:
    """Launches one after the other as long as they are due; some bring their worker at once."""
    rules = RULES.model_copy(update={"at_most": at_most})
    so_far: list[Launch] = []
    for starts_at_once in starts:
        workers = sum(each.worker is not None for each in so_far)
        if is_due(rules, NOW, waiting, workers, so_far):
            so_far.insert(0, launch(0, worker=starts_at_once))
    assert len(so_far) == min(waiting, at_most, len(starts))


def test_a_failing_launch_is_tried_again_for_ever_and_at_least_hourly() -> None:
    failed = [launch(n, exit_code=1) for n in range(1, 90)]
    assert not is_due(RULES, NOW + timedelta(minutes=58), 1, 0, failed)
    assert is_due(RULES, NOW + timedelta(minutes=60), 1, 0, failed)


def run(*command: str, timeout_s: float = 60, stop: Event | None = None) -> tuple[int | None, str]:
    is_set = (stop or Event()).is_set
    return run_command(command, directory=ROOT, timeout_s=timeout_s, should_stop=is_set)


def test_no_word_of_a_launch_command_reaches_a_shell(tmp_path: Path) -> None:
    hostile = f"; touch {tmp_path / 'x'} $(touch {tmp_path / 'y'}) `id` > {tmp_path / 'z'}"
    code, output = run(sys.executable, "-c", "import sys; print(sys.argv[1]); sys.exit(3)", hostile)
    assert (code, output) == (3, hostile)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("key", ["command", 'command = ["true"]\njobs_command'])
@pytest.mark.parametrize(
    "command", ['"sbatch --wrap x"', "[]", '[""]', '["a\\u0000b"]', "[1]", '{ shell = "x" }']
)
def test_a_command_of_a_scheduler_is_a_list_of_this_hosts_configuration(
    key: str, command: str, tmp_path: Path
) -> None:
    more = f'[fleet]\nqueues = ["h200"]\n[fleet.launch.h200]\n{key} = {command}\n'
    with pytest.raises(ConfigError, match=key.splitlines()[-1]):
        load_settings(configuration(tmp_path, interpreter(tmp_path / "build"), more))


def test_a_launch_is_for_a_queue_of_this_service(tmp_path: Path) -> None:
    more = '[fleet]\nqueues = ["a100"]\n[fleet.launch.h200]\ncommand = ["true"]\n'
    with pytest.raises(ConfigError, match="h200 has a launch command and is none of the queues"):
        load_settings(configuration(tmp_path, interpreter(tmp_path / "build"), more))


def test_output_is_bounded_and_without_secrets() -> None:
    program = "import sys\nfor n in range(200_000): print('line', n)\nprint('password=hunter2hunter2')"
    code, output = run(sys.executable, "-c", program)
    assert code == 0
    assert len(output) < 10 * OUTPUT_CHARACTERS
    assert "line 199999" in output
    assert "hunter2" not in output


def test_a_command_that_hangs_is_ended_with_its_children() -> None:
    began = time.monotonic()
    code, output = run("sh", "-c", "sleep 600 & echo $!; wait", timeout_s=2)
    assert code is None
    assert time.monotonic() - began < 120
    child, why = output.split("\n")
    assert why == "Ended after 2 s."
    wait_until(lambda: not is_alive(int(child)), 10, "a child lives")


def test_a_program_that_is_not_there_is_said() -> None:
    assert run("/no/such/sbatch") == (None, "/no/such/sbatch cannot be started: No such file or directory.")


def always(_waiting: int, _workers: int, _launches: Sequence[Launch]) -> bool:
    return True


def test_launches_are_stored_and_the_oldest_forgotten(sqlite_database: Database) -> None:
    for n in range(STORED_LAUNCHES + 5):
        each = launch(STORED_LAUNCHES + 5 - n, ended=False)
        assert claim_launch(sqlite_database, each, always, stalled_s=30, alive_after=NOW)
    end_launch(sqlite_database, each.launch_id, at=NOW, exit_code=0, output="a" * 10_000 + "z")
    stored = launches(sqlite_database, limit=1000)
    assert len(stored) == STORED_LAUNCHES
    assert stored[0].launch_id == each.launch_id
    assert (len(stored[0].output), stored[0].output[-1]) == (OUTPUT_CHARACTERS, "z")
    assert stored[0].state(NOW) is LaunchState.PENDING
    assert {each.state(NOW + timedelta(days=1)) for each in stored} == {LaunchState.NO_WORKER}


def test_more_launches_than_are_stored_still_count_while_their_workers_may_come(
    sqlite_database: Database,
) -> None:
    """A hundred jobs in the queue of a scheduler are not forgotten, or each would be launched anew."""
    rules = RULES.model_copy(update={"at_most": STORED_LAUNCHES + 20})
    claimed = [
        claim_launch(
            sqlite_database,
            launch(5 - n / 100),
            lambda _waiting, workers, so_far: is_due(rules, NOW, 1_000, workers, so_far),
            stalled_s=30,
            alive_after=NOW,
        )
        for n in range(STORED_LAUNCHES + 40)
    ]
    assert sum(claimed) == rules.at_most


def test_launches_and_workers_are_listed(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'team.db'}"
    with open_database(url, migrate=True) as database:
        assert claim_launch(database, launch(5, ended=False), always, stalled_s=30, alive_after=NOW)
        end_launch(database, launch(5).launch_id, at=NOW, exit_code=1, output="Invalid account")
    listed = in_this_process("list", "launches", "--json", "--db", url, cwd=tmp_path)
    (row,) = json.loads(listed.stdout)["rows"]
    assert (row["queue"], row["state"], row["exit_code"], row["output"]) == (
        "h200",
        "failed",
        1,
        "Invalid account",
    )
    assert "Invalid account" in in_this_process("list", "launches", "--db", url, cwd=tmp_path).stdout
    nobody = in_this_process("list", "workers", "--db", url, cwd=tmp_path).stdout
    assert nobody == "No workers yet. Start one with `compilewatch worker`.\n"


def test_of_several_services_one_launches(
    tmp_path: Path, database: Database, postgres_database_url: str
) -> None:
    box = worker(tmp_path / "box", postgres_database_url)
    with box.config.open("a", encoding="utf-8") as file:
        file.write('[fleet.launch.cpu]\ncommand = ["sleep", "1"]\nat_most = 2\n')
    settings = load_settings(box.config)
    queued(box, database, postgres_database_url, 9)

    def look(n: int) -> bool:
        launcher = Launcher(settings, database, host=f"boss-{n}", stop=Event())
        return launcher.launch_if_due("cpu")

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(look, range(8))) == 2
    assert [each.exit_code for each in launches(database)] == [0, 0]


def test_the_trial_of_a_dead_worker_waits_where_no_other_lives(
    tmp_path: Path, database: Database, postgres_database_url: str
) -> None:
    box = worker(tmp_path / "box", postgres_database_url)
    with box.config.open("a", encoding="utf-8") as file:
        file.write('[fleet.launch.cpu]\ncommand = ["true"]\n')
    queued(box, database, postgres_database_url, 1)
    with psycopg.connect(postgres_database_url, autocommit=True) as connection:
        row = connection.execute(
            "INSERT INTO procrastinate_workers (last_heartbeat) VALUES (now()) RETURNING id"
        ).fetchone()
        assert row is not None
        connection.execute("UPDATE procrastinate_jobs SET status = 'doing', worker_id = %s", row)
        launcher = Launcher(load_settings(box.config), database, host="boss", stop=Event())
        assert not launcher.launch_if_due("cpu")
        connection.execute("UPDATE procrastinate_workers SET last_heartbeat = now() - interval '1 minute'")
        assert launcher.launch_if_due("cpu")


def kubectl(directory: Path) -> Path:
    """A program named kubectl that finds the tests."""
    path = directory / "kubectl"
    path.write_text(
        f'#!/bin/sh\ncd {ROOT} && exec {sys.executable} -m tests.runner.kubectl_stand_in "$@"\n',
        encoding="utf-8",
    )
    path.chmod(0o755)
    return path


@pytest.mark.slow
def test_the_manifest_of_the_documents_brings_a_worker_that_ends_by_itself(
    tmp_path: Path, database: Database, postgres_database_url: str
) -> None:
    """The service runs the command of the recipe; what it creates measures and gives its place back."""
    boss = service(tmp_path / "boss", postgres_database_url)
    manifest = tmp_path / "worker-job.yaml"
    text = MANIFEST.read_text(encoding="utf-8")
    assert '"--exit-when-idle", "120"' in text
    manifest.write_text(text.replace('"120"', '"3"'), encoding="utf-8")
    with boss.config.open("a", encoding="utf-8") as file:
        command = [str(kubectl(tmp_path)), "create", "-f", str(manifest)]
        file.write(f"[fleet.launch.cpu]\ncommand = {command}\n".replace("'", '"'))
    boss.start()
    try:
        for name in ("first", "second"):
            save_request(database, asked(name, trials=3))
            wait_until(
                lambda name=name: run_request(database, name).state is RequestState.FINISHED,  # type: ignore[misc]
                90,
                str(boss.log),
            )
            wait_until(lambda: all(each.stopped_at for each in fleet_workers(database)), 60, "a worker stays")
    finally:
        boss.stop()
        end_workers(tmp_path)
    assert len(list(trial_records(database, Filters()))) == 6
    assert queue_lengths(database) == {}
    second, first = launches(database)
    assert [(each.state(NOW), each.exit_code, each.output) for each in (first, second)] == [
        (LaunchState.STARTED, 0, "job.batch/worker-7f3k2 created")
    ] * 2
    assert {each.owner: each.measured for each in fleet_workers(database)} == {
        first.worker: 3,
        second.worker: 3,
    }


def end_workers(directory: Path) -> None:
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if str(directory) in process.environ().get("COMPILEWATCH_CONFIG", ""):
                process.kill()
