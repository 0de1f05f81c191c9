"""`run --until-decided`: both commits by turns until it is decided, whatever ends it before."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import pytest

from compilewatch.db.engine.session import open_database
from compilewatch.db.errors import ConfigError, DatabaseError, NotFoundError
from compilewatch.db.judge.results import Comparison
from compilewatch.db.queries.facets import runs
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import trials_frame
from compilewatch.db.records.people import TriageState
from compilewatch.db.service.regressions import standing_regressions
from compilewatch.runner.cli.measure.until_decided import UntilDecided, most_rounds
from compilewatch.runner.config.settings import BuildSettings, Settings
from compilewatch.runner.plan.durations import Durations, TimeBudget, require_fit
from compilewatch.runner.plan.plan import Plan, plan_run
from compilewatch.runner.plan.selection import select
from compilewatch.runner.plan.trial_spec import Job
from tests.runner.cli.test_ci_recipe import Project
from tests.runner.terminal import compilewatch, in_this_process

CASE, OTHER = ("cnn", "default"), ("cnn", "eager")


def plan(tmp_path: Path, rounds: int = 40) -> Plan:
    builds = [BuildSettings(name=name, python=tmp_path) for name in ("base", "head")]
    return plan_run(
        Settings(),
        workloads=["cnn"],
        strategies=[CASE[1], OTHER[1]],
        device="cpu",
        trials=rounds,
        builds=builds,
    )


def worked_off(turns: UntilDecided, seconds: float = math.inf, trial_s: float = 1.0) -> list[tuple[str, str]]:
    """The cases and runs of the trials that are measured, in their order; each takes `trial_s`."""
    now = 0.0
    budget = TimeBudget(
        seconds, Durations({CASE: trial_s, OTHER: trial_s}), canaries=False, monotonic=lambda: now
    )
    measured = []
    for spec in turns.plan.trials:
        assert turns.wanted is not None
        if turns.wanted(Job((spec,)), budget=budget):
            now += trial_s
            measured.append((spec.strategy.name, spec.run_id))
    return measured


def a_side(measured: Sequence[tuple[str, str]], turns: UntilDecided, case: tuple[str, str]) -> list[int]:
    """Trials of a case, of base and head."""
    return [measured.count((case[1], run.run_id)) for run in turns.plan.runs]


def judged(monkeypatch: pytest.MonkeyPatch, *open_after: set[tuple[str, str]]) -> tuple[list[int], object]:
    """Comparisons of which look after look the cases are open that are given; the last one for ever."""
    looks: list[int] = []

    class Named:
        def __init__(self, case: tuple[str, str]) -> None:
            self.workload, self.strategy = case

    class Compared:
        rows = (Named(CASE), Named(OTHER))

    def compare() -> list[Compared]:
        looks.append(1)
        return [Compared()]

    def open_now(_comparison: Comparison) -> tuple[Named, ...]:
        return tuple(map(Named, open_after[min(len(looks), len(open_after)) - 1]))

    monkeypatch.setattr("compilewatch.runner.cli.measure.until_decided.still_open", open_now)
    return looks, compare


def test_a_case_that_is_decided_is_measured_no_more_and_the_other_one_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks, compare = judged(monkeypatch, {CASE, OTHER}, {OTHER}, set())
    turns = UntilDecided(plan(tmp_path), ("head",), compare=compare)  # type: ignore[arg-type]
    measured = worked_off(turns)
    assert a_side(measured, turns, CASE) == [6, 6], "decided at the second look"
    assert a_side(measured, turns, OTHER) == [8, 8], "decided at the third"
    assert len(looks) == 3


def test_sides_are_measured_together_or_not_at_all_when_the_time_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, compare = judged(monkeypatch, {CASE, OTHER})
    turns = UntilDecided(plan(tmp_path), ("head",), compare=compare)  # type: ignore[arg-type]
    measured = worked_off(turns, seconds=11.0)
    assert len(measured) == 10
    assert a_side(measured, turns, CASE) == [3, 3]
    assert a_side(measured, turns, OTHER) == [2, 2]


def test_of_what_was_ended_between_the_sides_the_missing_one_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks, compare = judged(monkeypatch, {CASE}, set())
    begun = plan(tmp_path)
    base, head = (run.run_id for run in begun.runs)
    turns = UntilDecided(begun, (head,), compare=compare)  # type: ignore[arg-type]
    turns.counts.update({(CASE, base): 5, (CASE, head): 4, (OTHER, base): 4, (OTHER, head): 4})
    measured = worked_off(turns)
    mine = [run for strategy, run in measured if strategy == CASE[1]]
    assert mine[0] == head
    assert a_side(measured, turns, CASE) == [1, 2], "then 6 a side, which decide"
    assert a_side(measured, turns, OTHER) == [0, 0], "decided by what was stored"
    assert len(looks) == 2


def test_a_database_that_is_away_ends_no_measuring_and_a_base_that_is_not_known_does(tmp_path: Path) -> None:
    def fails(error: Exception) -> UntilDecided:
        def compare() -> list[Comparison]:
            raise error

        return UntilDecided(plan(tmp_path, rounds=9), ("head",), compare=compare)

    away = fails(DatabaseError("The database is locked.", "Wait."))
    assert a_side(worked_off(away), away, CASE) == [9, 9]
    unknown = fails(NotFoundError("There is no run before this one.", "Measure again."))
    assert a_side(worked_off(unknown), unknown, CASE) == [4, 4]
    assert unknown.lines(Durations({}), TimeBudget(1.0, Durations({}), canaries=False)) == []


def test_no_more_is_planned_than_there_is_time_for() -> None:
    few = select(Settings(), workloads=["cnn"], strategies=["eager"])
    assert most_rounds(2.0, few, builds=0) == 60
    many = select(Settings(), suite="smoke")
    rounds = most_rounds(600.0, many, builds=0)
    assert 4 <= rounds < 600
    assert 2 * rounds * len(many.workloads) * len(many.strategies) <= 5_000


def test_a_time_into_which_both_sides_do_not_fit_is_refused(tmp_path: Path) -> None:
    durations = Durations({CASE: 20.0, OTHER: 12.0})
    require_fit(plan(tmp_path), durations, 24.0, together=2)
    with pytest.raises(ConfigError, match=r"No trial of all sides fits into 23\.0 s"):
        require_fit(plan(tmp_path), durations, 23.0, together=2)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--until-decided"], "needs a time at which it ends"),
        (["--until-decided", "--minutes", "-2"], "at least 0.1"),
        (["--until-decided", "--minutes", "0.1", "-w", "rankr"], "There is no workload 'rankr'"),
    ],
)
def test_what_is_typed_wrongly_measures_nothing(tmp_path: Path, options: list[str], said: str) -> None:
    finished = in_this_process("run", *options, cwd=tmp_path)
    assert finished.returncode == 2
    assert said in finished.stderr
    assert not (tmp_path / "compilewatch.db").exists()


def until_decided(project: Project, minutes: str, *more: str) -> str:
    """What the command says on standard error, with its exit at the end."""
    arguments = ("--workload", "ranker", "--strategy", "eager", "--until-decided")
    finished = compilewatch("run", *arguments, "--minutes", minutes, *more, cwd=project.root)
    return f"{finished.stderr}\nexit {finished.returncode}"


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_change_is_decided_by_turns_without_a_run_of_the_base_and_stays_decided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = Project(tmp_path / "project", monkeypatch)
    base = project.step_takes(0.02)
    project.git("checkout", "--quiet", "-b", "change")
    head = project.step_takes(0.05)
    said = until_decided(project, "3")
    assert said.endswith("exit 1"), said
    assert f"1 case of {base[:7]} and {head[:7]} by turns for 3.00 min at most" in said
    assert "Decided: 1 of 1 case, 1 slower." in said
    with open_database(project.url) as database:
        frame = trials_frame(database, Filters())
        assert sorted(frame.groupby("code_commit")["trial_id"].count().tolist()) == [4, 4]
        (found,) = standing_regressions(database)
    assert found.state is TriageState.CONFIRMED
    judged_ = in_this_process("gate", "--confirm", "run", cwd=project.root)
    assert judged_.returncode == 1
    assert f"code {base[:7]} -> {head[:7]}" in judged_.stdout
    assert "nothing is measured again" in judged_.stderr
    assert project.git("status", "--porcelain") == ""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_what_is_open_at_the_end_of_the_time_goes_on_with_the_next_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = Project(tmp_path / "project", monkeypatch)
    noisy = "import random\nFACTOR = random.SystemRandom().uniform(1, 3)\n"
    base = project.commit("base", ranking_py=noisy + RANDOM_STEP)
    project.git("checkout", "--quiet", "-b", "change")
    same = project.commit("same", README_md="a word")
    first = until_decided(project, "5", "--trials", "5")
    assert "Open: ranker / eager: latency" in first
    assert "One more hour, about " in first
    with open_database(project.url) as database:
        stored, ids = len(trials_frame(database, Filters())), set(runs(database)["run_id"])
    second = until_decided(project, "5", "--trials", "1")
    assert f"goes on, with {stored} trials of both commits so far" in second
    with open_database(project.url) as database:
        assert len(trials_frame(database, Filters())) == stored + 2
        assert set(runs(database)["run_id"]) == ids
    gate = in_this_process("gate", cwd=project.root)
    assert "--confirm run" not in gate.stdout + gate.stderr
    assert f"{base[:7]} → {same[:7]}: " in gate.stdout


RANDOM_STEP = """
import time

def step(x):
    time.sleep(0.01 * FACTOR)
    return x + 1
"""


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_outside_a_repository_trials_are_added_against_the_run_that_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = Project(tmp_path / "project", monkeypatch)
    project.step_takes(0.02)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    (project.root / ".git").rename(tmp_path / "gone")
    project.measure()
    (project.root / "ranking.py").write_text(
        "import time\n\ndef step(x):\n    time.sleep(0.06)\n    return x + 1\n"
    )
    said = until_decided(project, "1")
    assert "The base is not measured: No workload is code of a git work tree." in said
    assert "Trials are added against the run that is stored." in said
    assert "Decided: 1 of 1 case, 1 slower." in said
    with open_database(project.url) as database:
        assert sorted(trials_frame(database, Filters()).groupby("run_id")["trial_id"].count()) == [3, 4]
