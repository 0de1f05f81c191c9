"""A name in a filter that nothing stored has: which one, which there are, exit 2, nothing written."""

from __future__ import annotations

from pathlib import Path

import pytest

from compilewatch.db.engine.session import open_database
from compilewatch.db.records.ids import machine_identity
from compilewatch.db.store.trials import save_trials
from compilewatch.runner.cli.app import app
from compilewatch.runner.cli.front import exit_code_of
from tests.builders import make_history, make_machine
from tests.regression_cases import RUN_0, stepping_history

SIDES = ("compare", "torch=2.12.0", "torch=2.13.0")
MACHINE_ID = machine_identity(make_machine())
WHICH_MACHINE = f"  Stored: {MACHINE_ID} (gpu-box-3)."


@pytest.fixture
def url(stepped: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Two runs of two builds in a suite, from an empty working directory."""
    monkeypatch.chdir(tmp_path)
    return stepped


@pytest.mark.parametrize(
    ("command", "option", "name", "next_step"),
    [
        (SIDES, "--machine", "elsewhere", WHICH_MACHINE),
        (SIDES, "--machine", "", WHICH_MACHINE),
        (SIDES, "--workload", "mlpp", "  Did you mean mlp?"),
        (SIDES, "--strategy", "x", "  Stored: default, eager."),
        (("gate",), "--machine", "elsewhere", WHICH_MACHINE),
        (("history",), "--machine", "elsewhere", WHICH_MACHINE),
        (("break-even",), "--workload", "x", "  Stored: bert-base, mlp."),
        (("export",), "--machine", "elsewhere", WHICH_MACHINE),
        (("export",), "--workload", "bert-bse", "  Did you mean bert-base?"),
        (("export",), "--strategy", "defualt", "  Did you mean default?"),
        (("export",), "--suite", "x", "  Stored: standard."),
        (("list", "trials"), "--workload", "mlpp", "  Did you mean mlp?"),
        (("db", "remove-trials", "--yes"), "--workload", "mlpp", "  Did you mean mlp?"),
        (("db", "remove-trials", "--yes"), "--run", "run-gpu-box-3-0-0009", "  Did you mean run-gpu-box-3-"),
        (("export",), "--run", "run-gpu-box-3-0-0009", "  Did you mean run-gpu-box-3-0-0001 or "),
    ],
    ids=lambda part: " ".join(part) if isinstance(part, tuple) else None,
)
def test_a_name_that_nothing_stored_has(
    url: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    command: tuple[str, ...],
    option: str,
    name: str,
    next_step: str,
) -> None:
    assert exit_code_of(app, [*command, option, name, "--db", url]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    first, second = shown.err.splitlines()
    assert first == f"compilewatch: No {option.removeprefix('--')} {name!r} is stored."
    assert second.startswith(next_step)


@pytest.mark.parametrize("named", ["RUN-gpu", "RUN-GPU-BOX-3-0-0001-0099", "runs"])
def test_a_trial_that_is_not_there_has_the_nearest_beside_it(
    tmp_path: Path, sqlite_url: str, capsys: pytest.CaptureFixture[str], named: str
) -> None:
    trials = stepping_history(1.0, 1.4, builds=("2.12.0", "2.13.0"))
    renamed = [trial.model_copy(update={"trial_id": trial.trial_id.upper()}) for trial in trials]
    with open_database(sqlite_url) as database:
        save_trials(database, renamed)
    assert exit_code_of(app, ["show", named, "--db", sqlite_url]) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert first == f"compilewatch: There is no trial {named}."
    near = second.removeprefix("  Did you mean ").removesuffix("?").split(" or ")
    assert 1 <= len(near) <= 3
    assert set(near) <= {trial.trial_id for trial in renamed}
    assert all(each.startswith(named.upper()[:3]) for each in near)


def test_a_trial_like_none_is_looked_up_in_the_list(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(app, ["show", "x", "--db", url]) == 2
    assert "`compilewatch list trials`" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["break-even", "history"])
def test_a_case_that_failed_has_its_reason_and_where_more_is(
    sqlite_url: str, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    trials = make_history(
        workloads=("mlp",), builds=("2.12.0", "2.13.0"), failures=[("mlp", "default", run) for run in (0, 1)]
    )
    with open_database(sqlite_url) as database:
        save_trials(database, trials)
    named = ("-w", "mlp", "-s", "default")
    assert exit_code_of(app, [command, *named, "--db", sqlite_url]) == (0 if command == "break-even" else 2)
    shown = capsys.readouterr()
    newest = max((trial for trial in trials if trial.failure is not None), key=lambda trial: trial.started_at)
    assert newest.failure is not None
    more = f"Its log: `compilewatch show {newest.trial_id}`."
    wanted = f"mlp / default: out of memory: {newest.failure.message} {more}"
    assert wanted in " ".join((shown.out + shown.err).split())


def test_an_unknown_build_is_told_how_a_build_is_named(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(app, ["export", "--build", "x", "--db", url]) == 2
    second = capsys.readouterr().err.splitlines()[1]
    assert second.startswith("  Name torch=2.13.0, ")


def test_a_name_is_checked_before_a_file_is_replaced(url: str, tmp_path: Path) -> None:
    kept = tmp_path / "kept.jsonl"
    kept.write_text("an earlier export\n", encoding="utf-8")
    assert exit_code_of(app, ["export", "--workload", "x", "--output", str(kept), "--db", url]) == 2
    assert kept.read_text(encoding="utf-8") == "an earlier export\n"


def test_a_stored_name_on_one_side_only_is_not_called_unknown(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with open_database(url) as database:
        later = stepping_history(1.0, 1.4, 1.4, builds=("2.12.0", "2.13.0", "2.14.0"))
        alone = [trial for trial in later if trial.workload.name == "mlp" or trial.build.torch != "2.14.0"]
        save_trials(database, alone)
    assert exit_code_of(app, ["compare", RUN_0, "torch=2.14.0", "-w", "bert-base", "--db", url]) == 2
    shown = capsys.readouterr()
    assert shown.err.splitlines() == [
        "compilewatch: No trial of torch=2.14.0 fits these filters.",
        "  Leave out one of them.",
    ]
    assert shown.out == ""


def test_a_word_that_no_choice_has_comes_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(app, ["history", "--metric", "latncy"]) == 2
    assert "Did you mean latency?" in capsys.readouterr().err
