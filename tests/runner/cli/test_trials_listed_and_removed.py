"""`list trials` has the ids that `show` takes, and `db remove-trials` takes out a run or a workload."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from compilewatch.db.engine.session import open_database
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import trial_ids
from compilewatch.db.service.integrity import find_damage
from compilewatch.db.store import removal
from compilewatch.db.store.trials import save_trials
from compilewatch.runner.cli.app import app
from compilewatch.runner.cli.front import exit_code_of
from compilewatch.runner.cli.stored import listing
from tests.builders import make_machine, make_trial
from tests.regression_cases import RUN_0


@pytest.fixture
def url(stepped: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    return stepped


def stored(url: str, filters: Filters = Filters()) -> set[str]:  # noqa: B008
    with open_database(url) as database:
        return set(trial_ids(database, filters))


def listed(url: str, capsys: pytest.CaptureFixture[str], *options: str) -> list[str]:
    assert exit_code_of(app, ["list", "trials", *options, "--json", "--db", url]) == 0
    return [row["trial_id"] for row in json.loads(capsys.readouterr().out)["rows"]]


def test_each_listed_id_is_one_that_show_takes(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = listed(url, capsys)
    assert set(found) == stored(url)
    assert exit_code_of(app, ["show", found[0], "--db", url]) == 0


def test_a_run_or_a_workload_narrows_the_list(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    of_run = stored(url, Filters(runs=(RUN_0,)))
    assert set(listed(url, capsys, "--run", RUN_0)) == of_run != stored(url)
    both = Filters(runs=(RUN_0,), workloads=("mlp",))
    assert set(listed(url, capsys, "--run", RUN_0, "-w", "mlp")) == stored(url, both) != of_run


def test_each_trial_has_the_host_it_ran_on(sqlite_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Hosts of the same hardware are one machine, under the name of the last."""
    with open_database(sqlite_url, migrate=True) as database:
        save_trials(database, [make_trial(machine=make_machine(name)) for name in ("gpu-1", "gpu-2")])
    assert exit_code_of(app, ["list", "trials", "--json", "--db", sqlite_url]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert {row["machine"] for row in rows} == {"gpu-1", "gpu-2"}


def test_a_table_of_many_says_that_there_are_more(
    url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    every = listed(url, capsys)
    monkeypatch.setattr(listing, "_NEWEST_TRIALS", 3)
    assert exit_code_of(app, ["list", "trials", "--db", url]) == 0
    shown = capsys.readouterr().out
    assert [each for each in every if each in shown] == every[:3]
    assert f"The newest 3 of {len(every)} trials" in shown
    assert exit_code_of(app, ["list", "trials", "--workload", "mlp", "--db", url]) == 0
    shown = capsys.readouterr().out
    assert {each for each in every if each in shown} == stored(url, Filters(workloads=("mlp",)))


@pytest.mark.parametrize("subject", ["trials", "runs"])
def test_an_id_is_whole_where_there_is_little_room(
    subject: str, sqlite_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of twenty-six letters, as measured trials and runs have; those of one run begin alike."""
    trials = [
        make_trial(
            workload="elementwise",
            strategy="default+dynamic",
            run_id="01M7XSSY1T49JE1V8MNTF9AJ20",
            trial_id=f"01M7XT2VAQTN1HV1SC1BEJF78{end}",
        )
        for end in "XYZ"
    ]
    with open_database(sqlite_url) as database:
        save_trials(database, trials)
    monkeypatch.setenv("COLUMNS", "80")
    assert exit_code_of(app, ["list", subject, "--db", sqlite_url]) == 0
    shown = capsys.readouterr().out.split()
    ids = {each.trial_id for each in trials} if subject == "trials" else {trials[0].run_id}
    assert ids <= {*shown}


@pytest.mark.parametrize("option", ["--run", "--workload"])
def test_trials_are_chosen_of_no_other_subject(
    option: str, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code_of(app, ["list", "runs", option, "mlp", "--db", url]) == 2
    assert "choose trials, not runs" in capsys.readouterr().err


@pytest.mark.parametrize("at_once", [10_000, 3])
@pytest.mark.parametrize(
    ("option", "named"),
    [(("--run", RUN_0), Filters(runs=(RUN_0,))), (("--workload", "mlp"), Filters(workloads=("mlp",)))],
    ids=["run", "workload"],
)
def test_what_is_named_goes_and_nothing_else(
    option: tuple[str, str], named: Filters, at_once: int, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removal, "_IDS_AT_ONCE", at_once)
    before, mine = stored(url), stored(url, named)
    assert exit_code_of(app, ["db", "remove-trials", *option, "--yes", "--db", url]) == 0
    assert stored(url) == before - mine < before
    with open_database(url) as database:
        assert find_damage(database) == []


def test_nothing_goes_without_yes_or_with_two_ways(
    url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = stored(url)
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    command = ["db", "remove-trials", "--workload", "mlp", "--db", url]
    assert exit_code_of(app, command) == 2
    assert "Nothing was changed" in capsys.readouterr().err
    assert exit_code_of(app, [*command, "--run", RUN_0, "--yes"]) == 2
    assert stored(url) == before
