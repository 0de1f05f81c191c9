"""`gate`, `compare` and `history` end alike on the same trials, and say by which metric."""

from __future__ import annotations

import pytest

from compilewatch.db.engine.session import open_database
from compilewatch.db.store.trials import save_trials
from compilewatch.runner.cli.app import app
from compilewatch.runner.cli.front import exit_code_of
from tests.builders import MS, make_history
from tests.house.tracked import ROOT
from tests.regression_cases import RUN_0, RUN_1, stepping_history

CASE = ("--workload", "mlp", "--strategy", "default", "--metric", "latency")


@pytest.mark.parametrize(("factor", "code", "word"), [(2.5, 1, "regressed"), (1.12, 2, "inconclusive")])
def test_two_runs_of_three_trials(
    sqlite_url: str, capsys: pytest.CaptureFixture[str], factor: float, code: int, word: str
) -> None:
    with open_database(sqlite_url) as database:
        save_trials(database, stepping_history(1.0, factor, builds=("2.12.0", "2.13.0"), trials_per_case=3))
    commands = (("gate",), ("compare", RUN_0, RUN_1), ("history",), ("history", *CASE))
    ends, said = {}, ""
    for command in commands:
        ends[command] = exit_code_of(app, [*command, "--db", sqlite_url])
        told = "".join(capsys.readouterr())
        assert "latency" in told.lower(), command
        assert code == 2 or command[-1] == "latency" or " slower" in told, command
        said += told
    assert set(ends.values()) == {code}, ends
    assert f"| {code} |" in (ROOT / "docs" / "commands.md").read_text()
    # What cannot be told is told of the undecided cases alone.
    assert ("separate runs in latency of 2 other cases: a change below" in said) is (code == 1)
    assert "Latency over 2 runs" in said
    assert f"the newest against the one before: {word}" in said


def test_the_history_of_eager_is_of_its_latency(sqlite_url: str) -> None:
    """Its speedup is 1 whatever happens, and no other door asks which metric is meant."""
    history = make_history(
        workloads=("mlp",),
        strategies=("eager",),
        builds=("2.12.0", "2.13.0"),
        latency_ns=lambda _workload, _strategy, run: (1.0, 2.5)[run] * MS,
    )
    with open_database(sqlite_url) as database:
        save_trials(database, history)
    asked = (["gate"], ["history"], ["history", "-w", "mlp", "-s", "eager"])
    assert [exit_code_of(app, [*words, "--db", sqlite_url]) for words in asked] == [1, 1, 1]
