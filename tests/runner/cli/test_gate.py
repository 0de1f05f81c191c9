"""`compilewatch gate` in process: verdict lines for CI, and what is remembered of a run."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from compilewatch.db.engine.session import Database, open_database
from compilewatch.db.judge.compare.sides import Selection
from compilewatch.db.judge.results import Comparison
from compilewatch.db.records.people import TriageState
from compilewatch.db.records.trial import Trial
from compilewatch.db.records.vocabulary import Metric, Verdict
from compilewatch.db.service.regressions import regressions_frame, standing_regressions
from compilewatch.db.service.requests import queue
from compilewatch.db.store.trials import save_trials
from compilewatch.db.verdicts.gateway import compare
from compilewatch.runner.cli.app import app
from compilewatch.runner.cli.front import exit_code_of
from compilewatch.runner.cli.judge import confirm
from compilewatch.runner.cli.judge.judging import Decided
from compilewatch.runner.output.comparison_text import BESIDE, worse_beside_lines
from tests.builders import MS, START, make_history
from tests.db.queries.test_causes import AFTER, BEFORE, SENTENCE, explained_history
from tests.regression_cases import RUN_0, RUN_1, stepping_history

BUILDS = ("2.12.0", "2.13.0", "2.13.0")


@pytest.fixture(autouse=True)
def _nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def measured(url: str, *factors: float, builds: tuple[str, ...] = BUILDS, **how: Any) -> None:
    """Store one run per factor; what was stored before is the same and stays."""
    history = stepping_history(*factors, builds=builds[: len(factors)], **how)
    with open_database(url) as database:
        save_trials(database, history)


def gate(url: str, *arguments: str) -> int:
    return exit_code_of(app, ["gate", *arguments, "--db", url])


def recorded(url: str) -> list[str]:
    """The ids of all regressions that are stored."""
    with open_database(url) as database:
        return [str(each) for each in regressions_frame(database)["regression_id"]]


def triage(url: str, state: str, *ids: str) -> None:
    for each in ids:
        assert exit_code_of(app, ["triage", each, "--state", state, "--db", url]) == 0


def states(url: str) -> dict[tuple[str, str], TriageState]:
    with open_database(url) as database:
        return {
            (found.regression.row.workload, found.regression.row.metric.value): found.state
            for found in standing_regressions(database)
        }


def test_one_line_per_regression_on_standard_output(stepped: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert gate(stepped) == 1
    captured = capsys.readouterr()
    lines = captured.out.splitlines()
    assert len(lines) == len(states(stepped)) + 1
    assert lines[-1].startswith("Verdict: torch 2.12.0 → torch 2.13.0: 2 slower of 4 cases, worst mlp")
    latency = next(line for line in lines if line.startswith("mlp (ungated) / default: latency "))
    assert "-> 11.2" in latency
    assert ", torch 2.12.0 -> 2.13.0 [" in latency
    assert ", new]" in latency
    assert "Measure again to confirm: compilewatch run -w bert-base -w mlp" in captured.err


def test_a_break_even_that_is_reached_no_more_is_told_by_both_its_values(
    sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    measured(sqlite_url, 1.0, 2.0)
    assert gate(sqlite_url) == 1
    line = capsys.readouterr().out.splitlines()[0]
    assert re.search(r"break-even [\d,]+ steps -> never", line)


def _of_code(trial: Trial) -> Trial:
    return trial.model_copy(update={"workload": trial.workload.model_copy(update={"name": "os:system"})})


def test_the_next_step_names_no_code_of_a_record(sqlite_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`-w os:system` would import what a record names."""
    history = stepping_history(1.0, 1.4, builds=("2.11.0", "2.12.0"))
    with open_database(sqlite_url) as database:
        save_trials(
            database, [_of_code(trial) if trial.workload.name == "mlp" else trial for trial in history]
        )
    assert gate(sqlite_url) == 1
    said = capsys.readouterr().err
    assert "Measure again to confirm: compilewatch run -w bert-base\n" in said
    assert "-w os:system" not in said


def test_where_no_workload_may_be_named_nothing_else_is_measured(
    sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Bare, `compilewatch run` measures the suite and confirms nothing."""
    with open_database(sqlite_url) as database:
        save_trials(
            database,
            [
                _of_code(trial)
                for trial in stepping_history(1.0, 1.4, builds=("2.11.0", "2.12.0"))
                if trial.workload.name == "mlp"
            ],
        )
    assert gate(sqlite_url) == 1
    said = capsys.readouterr().err
    assert "to confirm" in said
    assert "to confirm: compilewatch run" not in said


def test_a_second_gate_of_the_same_run_adds_nothing(stepped: str, capsys: pytest.CaptureFixture[str]) -> None:
    codes, outputs, frames = [], [], []
    for _ in range(2):
        codes.append(gate(stepped))
        outputs.append(capsys.readouterr().out)
        with open_database(stepped) as database:
            frames.append(regressions_frame(database, revised=True))
    assert codes == [1, 1]
    assert outputs[0] == outputs[1]
    assert frames[0].equals(frames[1])


def test_the_next_run_of_the_same_build_confirms(stepped: str, capsys: pytest.CaptureFixture[str]) -> None:
    gate(stepped)
    measured(stepped, 1.0, 1.4, 1.4)
    capsys.readouterr()
    assert gate(stepped) == 0, "against the run before nothing moved"
    assert "Confirmed: " in capsys.readouterr().err
    assert states(stepped)["mlp", "latency"] is TriageState.CONFIRMED


def test_the_next_run_that_does_not_show_it_takes_it_back(
    stepped: str, capsys: pytest.CaptureFixture[str]
) -> None:
    gate(stepped)
    measured(stepped, 1.0, 1.4, 1.0)
    capsys.readouterr()
    gate(stepped)
    err = capsys.readouterr().err
    assert "Revised: mlp / default: 5 and 5 fresh trials do not show it" in err
    assert states(stepped) == {}
    with open_database(stepped) as database:
        everything = regressions_frame(database, revised=True)
    assert set(everything.loc[everything["revision"] == 1, "cause"]) == {"noise"}


def test_since_and_against_choose_the_base(sqlite_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    measured(sqlite_url, 1.0, 1.4, 1.4)
    assert gate(sqlite_url, "--since", RUN_1) == 0
    assert gate(sqlite_url, "--since", RUN_0) == 1
    assert gate(sqlite_url, "--against", "torch=2.12.0") == 1
    capsys.readouterr()
    assert gate(sqlite_url, "--against", "torch=1.0") == 2
    assert "No build with torch=1.0 was measured." in capsys.readouterr().err
    assert gate(sqlite_url, "--since", RUN_0, "--against", "torch=2.12.0") == 2
    assert "--since and --against name two bases." in capsys.readouterr().err


def test_the_document_names_what_is_recorded(stepped: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert gate(stepped, "--json") == 1
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "compilewatch.compare/1"
    assert {(each["workload"], each["metric"]) for each in document["regressions"]} == states(stepped).keys()
    assert {each["state"] for each in document["regressions"]} == {"new"}
    assert document["policy"]["minimum_trials"] == 3


def test_an_accepted_regression_fails_no_gate(stepped: str, capsys: pytest.CaptureFixture[str]) -> None:
    gate(stepped)
    ids = recorded(stepped)
    triage(stepped, "expected", *ids[1:])
    assert gate(stepped) == 1
    triage(stepped, "acknowledged", ids[0])
    assert gate(stepped) == 1, "somebody knows of it, but nobody accepted it"
    triage(stepped, "false-alarm", ids[0])
    capsys.readouterr()
    assert gate(stepped) == 0
    captured = capsys.readouterr()
    (line,) = captured.out.splitlines()
    assert line.startswith("Verdict: torch 2.12.0 → torch 2.13.0: no slowdown shown, 2 accepted")
    assert captured.err.count("Accepted: ") == len(ids)


def test_a_missed_target_fails_the_gate(sqlite_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    measured(sqlite_url, 1.0, 1.0, trials_per_case=10)
    Path("compilewatch.toml").write_text(
        '[[target]]\nworkload = "mlp"\nstrategy = "default"\nspeedup = 2.0\npeak_bytes = 1e15\n'
    )
    assert gate(sqlite_url) == 1
    missed, verdict = capsys.readouterr().out.splitlines()
    assert missed == "Target missed: mlp / default: speedup is 1.50x, the target is at least 2.00x."
    assert verdict.endswith(", 1 target missed.")


def together(url: str, *order: tuple[str, float], one_run: bool = False) -> None:
    """Builds that took turns, named in this order: (torch, how slow); in a run each or all `one_run`."""
    torches = tuple(torch for torch, _ in order)
    history = stepping_history(*(factor for _, factor in order), builds=torches)
    runs = list(dict.fromkeys(trial.run_id for trial in history))
    numbered = [(number, runs.index(trial.run_id), trial) for number, trial in enumerate(history)]
    size = len(history) // len(runs)
    trials = []
    for number, place, trial in numbered:
        at = history[0].started_at + timedelta(days=1, minutes=2 * (number % size) + place)
        turn = {"started_at": at, "ended_at": at + timedelta(seconds=50)}
        run = {"run_id": "turns", "trial_id": f"turn-{number}"} if one_run else {}
        trials.append(trial.model_copy(update=turn | run))
    with open_database(url) as database:
        save_trials(database, trials)


@pytest.mark.parametrize("one_run", [False, True])
@pytest.mark.parametrize("order", [("2.12.0", "2.13.0"), ("2.13.0", "2.12.0")])
def test_of_builds_that_took_turns_the_newest_release_is_judged_whichever_came_first(
    sqlite_url: str, capsys: pytest.CaptureFixture[str], order: tuple[str, str], one_run: bool
) -> None:
    together(sqlite_url, *((torch, 1.4 if torch == "2.13.0" else 1.0) for torch in order), one_run=one_run)
    assert gate(sqlite_url, "--json") == 1
    document = json.loads(capsys.readouterr().out)
    assert (document["base"]["components"]["torch"], document["head"]["components"]["torch"]) == (
        "2.12.0",
        "2.13.0",
    )
    assert {row["design"] for row in document["rows"] if row["metric"] == "latency"} == {"interleaved"}


def test_builds_of_one_run_end_alike_in_every_command(
    sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run before it is no better base than the other build beside it, unless it is named."""
    measured(sqlite_url, 1.0, builds=("2.11.0",))
    together(sqlite_url, ("2.13.0", 1.4), ("2.12.0", 1.0), one_run=True)
    sides = ("torch=2.12.0", "torch=2.13.0")
    asked = (["gate"], ["compare", *sides], ["compare", "previous", "latest"], ["history"])
    assert [exit_code_of(app, [*words, "--db", sqlite_url]) for words in asked] == [1, 1, 1, 1]
    capsys.readouterr()
    gate(sqlite_url, "--against", "torch=2.11.0", "--json")
    document = json.loads(capsys.readouterr().out)
    assert [document[side]["components"]["torch"] for side in ("base", "head")] == ["2.11.0", "2.13.0"]


def test_a_confirmation_that_nobody_here_can_run_says_so_once(
    stepped: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert gate(stepped, "--confirm", "run") == 1
    assert "torch 2.12.0 (cu130) cannot be measured again on this host" in capsys.readouterr().err
    assert set(states(stepped).values()) == {TriageState.NEW}


def test_a_comment_has_what_the_second_look_decided_and_why_by_its_profiles(
    sqlite_url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second look is made up: its profiles are stored, and compile cost regressed in it besides."""
    said = ("decided: mlp", "waits: bert-base")
    with open_database(sqlite_url) as database:
        save_trials(database, [_of_look(trial, "first") for trial in explained_history(None, None)])

    def measure_again(database: Database, comparison: Comparison, *_: object) -> Decided:
        save_trials(database, [_of_look(trial, "again") for trial in explained_history(BEFORE, AFTER)])
        (cost,) = (
            row
            for row in comparison.rows
            if (row.workload, row.strategy, row.metric) == ("mlp", "default", Metric.COMPILE_COST)
        )
        return Decided((), said, (cost.model_copy(update={"verdict": Verdict.REGRESSED}),))

    monkeypatch.setattr(confirm, "measure_again", measure_again)
    assert gate(sqlite_url, "--confirm", "run", "--markdown") == 1
    captured = capsys.readouterr()
    for line in said:
        assert f"- {line}" in captured.out
        assert line in captured.err
    assert SENTENCE in captured.out
    (cost,) = (
        line for line in captured.out.splitlines() if "| mlp" in line and "| default | Compile cost" in line
    )
    assert "regressed" in cost


def _of_look(trial: Trial, look: str) -> Trial:
    later = timedelta(days=2 * (look == "again"))
    return trial.model_copy(
        update={
            "trial_id": f"{look}-{trial.trial_id}",
            "run_id": f"{look}-{trial.run_id}" if later else trial.run_id,
            "started_at": trial.started_at + later,
            "ended_at": trial.ended_at and trial.ended_at + later,
        }
    )


def test_a_queued_confirmation_names_both_builds_within_the_budget(
    stepped: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert gate(stepped, "--confirm", "queue", "--budget", "14") == 1
    assert "Confirmation of 1 case queued as confirm-" in capsys.readouterr().err
    with open_database(stepped) as database:
        (request,) = queue(database)
    assert [stack.torch for stack in request.spec.stacks] == ["2.12.0", "2.13.0"]
    assert request.spec.budget_trials == 14


def test_what_somebody_accepted_is_decided(sqlite_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing else is of the timings: eager is too noisy to say."""
    measured(sqlite_url, 1.0, 3.0, trials_per_case=4, between_trials=0.05)
    assert gate(sqlite_url) == 1
    triage(sqlite_url, "expected", *recorded(sqlite_url))
    capsys.readouterr()
    assert gate(sqlite_url) == 0, capsys.readouterr().err


def failing(url: str, *runs: int) -> None:
    """Two runs of one workload; in `runs` every trial fails."""
    strategies = ("eager", "default")
    failures = [("mlp", strategy, run) for run in runs for strategy in strategies]
    history = make_history(
        workloads=("mlp",), strategies=strategies, builds=BUILDS[:2], failures=failures, start=START
    )
    with open_database(url) as database:
        save_trials(database, history)


def test_what_never_ran_is_not_unchanged(sqlite_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    failing(sqlite_url, 0, 1)
    assert gate(sqlite_url) == 2
    assert "2 failing" in capsys.readouterr().err


def test_a_failure_that_somebody_accepted_fails_no_gate(sqlite_url: str) -> None:
    failing(sqlite_url, 1)
    assert gate(sqlite_url) == 1
    triage(sqlite_url, "expected", *recorded(sqlite_url))
    assert gate(sqlite_url) == 0


@pytest.mark.parametrize(("canary", "code"), [(1.5, 2), (1.2, 1), (1.0, 1)])
def test_the_same_build_is_judged_and_the_machine_explains_what_its_canary_did(
    sqlite_url: str, capsys: pytest.CaptureFixture[str], canary: float, code: int
) -> None:
    """The code under review is no part of the build."""

    def latency_ns(workload: str, _strategy: str, run: int) -> float:
        return 8 * MS * (1.0 if run == 0 else canary if workload == "canary-gemm" else 1.5)

    history = make_history(
        workloads=("mlp", "bert-base", "canary-gemm"),
        strategies=("eager",),
        builds=("2.12.0", "2.12.0"),
        latency_ns=latency_ns,
        trials_per_case=10,
    )
    with open_database(sqlite_url) as database:
        save_trials(database, history)
    assert gate(sqlite_url) == code
    said = "Cannot tell: the machine explains the change." in capsys.readouterr().err
    assert said is (code == 2)


def test_rare_slow_steps_and_a_slow_start_are_said_beside_a_median_that_stayed(
    sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One step of twelve is ten times as long in mlp, and bert-base starts in three times as long."""
    before, after = ([*each] for each in _by_run(stepping_history(1.0, 1.0, builds=BUILDS[:2])))
    for place, trial in enumerate(after):
        document = trial.to_document()
        if (trial.workload.name, trial.strategy.name) == ("mlp", "default"):
            document["samples_ns"][5] *= 10
        if (trial.workload.name, trial.strategy.name) == ("bert-base", "default"):
            document["cold_start"]["import_libraries_ns"] += 2 * document["cold_start"]["total_ns"]
            document["cold_start"]["total_ns"] *= 3
        after[place] = Trial.model_validate(document)
    with open_database(sqlite_url) as database:
        save_trials(database, [*before, *after])
    assert gate(sqlite_url) == 0
    said = capsys.readouterr()
    (line,) = (each for each in said.err.splitlines() if each.startswith("Worse besides"))
    assert "mlp (ungated) / default p95 latency" in line
    assert "bert-base (ungated) / default time to first result" in line
    assert "eager" not in line
    assert said.out.startswith("Verdict: ")
    assert gate(sqlite_url, "--markdown") == 0
    assert "Worse besides" in capsys.readouterr().out
    gate(sqlite_url, "--json")
    found = json.loads(capsys.readouterr().out)
    assert {row["metric"] for row in found["asked"]} >= {"latency_p95", "time_to_first_result"}
    assert {row["metric"] for row in found["rows"]}.isdisjoint({"latency_p95", "time_to_first_result"})


@pytest.mark.parametrize(("near_end", "is_said"), [(0.02, False), (0.06, True)])
def test_what_may_be_less_than_counts_is_not_said_besides(
    sqlite_url: str, near_end: float, is_said: bool
) -> None:
    """Of three trials a side of two modes all may lie apart by what the modes differ by."""
    before, after = _by_run(stepping_history(1.0, 1.0, builds=BUILDS[:2]))
    with open_database(sqlite_url) as database:
        save_trials(database, [*before, *after])
        sides = (Selection(name=run[0].run_id, run_ids=(run[0].run_id,)) for run in (before, after))
        comparison = compare(database, *sides, asked=BESIDE)
    (row, *_) = (each for each in comparison.asked if each.metric is Metric.LATENCY_P95)
    worse = row.model_copy(
        update={"verdict": Verdict.REGRESSED, "change": 0.15, "interval": (near_end, 0.25), "cause": None}
    )
    assert bool([*worse_beside_lines(comparison, [worse])]) is is_said


def test_what_slowed_every_step_is_not_said_twice(stepped: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert gate(stepped) == 1
    assert "Worse besides" not in capsys.readouterr().err


def _by_run(trials: list[Trial]) -> list[list[Trial]]:
    runs = sorted({each.run_id for each in trials})
    return [[each for each in trials if each.run_id == run] for run in runs]
