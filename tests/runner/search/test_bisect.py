"""`compilewatch bisect` over releases whose trials are made up: what it finds, measures and prints."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from compilewatch.db.records.trial import FailureKind
from compilewatch.db.store.trials import save_trials
from compilewatch.runner.cli.app import app
from compilewatch.runner.cli.front import exit_code_of
from compilewatch.runner.plan.builds import BuildError, BuildFacts, CreatedBuild
from compilewatch.runner.process.execution import RunOutcome
from compilewatch.runner.search import bisection, environments
from tests.builders import MS, make_build, make_machine, make_trial

OFFERED = ["2.9.0", "2.8.0", "2.7.1", "2.7.0", "2.7.1+cpu", "2.6.0", "2.5.1"]


def _facts(name):
    release = name.removeprefix("torch-")
    return BuildFacts(requirements=(f"torch=={release}",), torch=release, python="3.11")


class Host:
    """Makes builds and measures as a real one, with `latency_ms` by release; eager takes 12 ms everywhere."""

    def __init__(self, latency_ms, *, broken=(), failing=(), there=()):
        self.latency_ms, self.broken, self.failing = latency_ms, broken, failing
        self.there = [CreatedBuild(name, Path("/nowhere"), _facts(name)) for name in there]
        self.installed, self.removed, self.measured = [], [], []
        self.moment = datetime(2026, 11, 23, 9, 0, tzinfo=UTC)
        self.killed_after = None

    def create(self, requirements, settings, *, name, before_install, **options):
        release = requirements[0].removeprefix("torch==")
        if release in self.broken:
            raise BuildError(f"pip could not install torch=={release}.", "Try it by hand.")
        self.installed.append(name)
        return CreatedBuild(name, Path("/nowhere") / name, _facts(name))

    def measure(self, plan, database, settings, durations):
        builds = {run.run_id: run.build.removeprefix("torch-") for run in plan.runs}
        self.measured.append(tuple(builds.values()))
        failed, trials = 0, []
        for number, spec in enumerate(plan.trials):
            if self.killed_after == number:
                save_trials(database, trials)
                raise SystemExit("killed")
            release = builds[spec.run_id]
            self.moment += timedelta(minutes=1)
            noise = 1 + 0.004 * (number % 3 - 1)
            failure = FailureKind.CRASH if release in self.failing else None
            failed += failure is not None
            trial = make_trial(
                trial_id=spec.trial_id,
                run_id=spec.run_id,
                workload=spec.workload.name,
                strategy=spec.strategy.name,
                machine=make_machine("box", device="cpu"),
                build=make_build(release),
                started_at=self.moment,
                latency_ns=self.latency_ms.get(release, 8.0) * MS * noise,
                control_latency_ns=12 * MS * noise,
                failure=failure,
                seed=number,
            )
            trials.append(trial)
        save_trials(database, trials)
        return RunOutcome(len(plan.trials), failed, 0, False), None


@pytest.fixture
def bisect(tmp_path, monkeypatch, capsys, _sqlite_template):
    """A function that runs the command on a host and returns its exit code, document and messages."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(_sqlite_template, "compilewatch.db")

    def call(host, *arguments, good="2.6.0", bad="2.8.0", as_json=True):
        monkeypatch.setattr(bisection, "offered_versions", lambda *_, **__: OFFERED)
        monkeypatch.setattr(environments, "create_build", host.create)
        monkeypatch.setattr(environments, "created_builds", lambda _settings: host.there)
        monkeypatch.setattr(bisection, "remove_build", lambda name, _settings: host.removed.append(name))
        monkeypatch.setattr(environments, "measure", host.measure)
        ends = ["--good", f"torch=={good}", "--bad", f"torch=={bad}"]
        case = ["-w", "elementwise", "-s", "default", "--device", "cpu", *(["--json"] if as_json else [])]
        code = exit_code_of(app, ["bisect", *ends, *case, *arguments])
        captured = capsys.readouterr()
        if not as_json:
            return code, captured.out, captured.err
        return code, json.loads(captured.out) if captured.out else None, captured.err

    return call


def test_the_release_is_found_in_four_builds(bisect):
    host = Host({"2.6.0": 4.0, "2.7.0": 4.0, "2.7.1": 4.0, "2.8.0": 9.0})
    code, document, _ = bisect(host)
    assert code == 0
    assert (document["last_before"], document["first_after"], document["between"]) == ("2.7.1", "2.8.0", [])
    assert document["metric"] == "latency"
    assert document["builds_measured"] == 4 == document["builds_at_most"]
    assert [each["place"] for each in document["releases"]] == ["before", "before", "before", "after"]
    # Each release takes turns with the first, and none with another.
    assert {pair[0] for pair in host.measured} == {"2.6.0"}
    assert [pair[1] for pair in host.measured] == ["2.8.0", "2.7.0", "2.7.1"]


def test_the_other_way_round_finds_what_made_it_faster(bisect):
    host = Host({"2.6.0": 4.0, "2.7.0": 4.0, "2.7.1": 9.0, "2.8.0": 9.0})
    code, document, _ = bisect(host, good="2.8.0", bad="2.6.0")
    assert (code, document["last_before"], document["first_after"]) == (0, "2.7.1", "2.7.0")
    assert document["releases"][0]["release"] == "2.8.0"


def test_after_a_kill_the_same_command_goes_on(bisect):
    host = Host({"2.7.1": 18.0, "2.8.0": 18.0})
    host.killed_after = 3
    with pytest.raises(SystemExit):
        bisect(host)
    host.killed_after = None
    code, document, _ = bisect(host)
    assert (code, document["first_after"]) == (0, "2.7.1")
    # The half pair that was stored is judged with the pairs after it; nothing decided is measured again.
    measured = len(host.measured)
    code, again, _ = bisect(host)
    assert (code, again) == (0, document)
    assert len(host.measured) == measured


def test_a_release_is_judged_by_as_many_trials_as_were_named(bisect):
    """Killed after one pair of the release in the middle: that pair alone does not place it."""
    host = Host({"2.7.0": 18.0, "2.7.1": 18.0, "2.8.0": 18.0})
    measure = host.measure

    def killed(plan, *rest):
        host.killed_after = 2 if len(host.measured) == 1 else None
        return measure(plan, *rest)

    host.measure = killed
    with pytest.raises(SystemExit):
        bisect(host)
    host.measure, host.killed_after = measure, None
    _, document, _ = bisect(host)
    placed = [each for each in document["releases"] if each["place"] and each["release"] != "2.6.0"]
    assert [each["trials"] for each in placed] == [4, 3]


def test_a_release_that_cannot_be_installed_is_named(bisect):
    host = Host({"2.7.1": 18.0, "2.8.0": 18.0}, broken=("2.7.0",))
    code, document, messages = bisect(host)
    assert (code, document["last_before"], document["first_after"]) == (2, "2.6.0", "2.7.1")
    assert document["between"] == ["2.7.0"]
    assert document["releases"][1]["skipped"] == "pip could not install torch==2.7.0."
    assert "torch 2.7.0 is skipped" in messages


def test_a_release_whose_trials_fail_is_named(bisect):
    code, document, _ = bisect(Host({"2.7.1": 18.0, "2.8.0": 18.0}, failing=("2.7.1",)))
    assert (code, document["between"]) == (2, ["2.7.1"])
    assert document["releases"][2]["skipped"] == "The trials of torch 2.7.1 failed."


def test_where_nothing_changed_nothing_is_searched(bisect):
    host = Host({})
    code, document, messages = bisect(host, "--max-trials", "6")
    assert (code, document) == (2, None)
    assert "No change of any metric is shown between torch 2.6.0 and 2.8.0." in messages
    assert host.measured == [("2.6.0", "2.8.0")] * 2


def test_environments_that_were_made_for_it_are_removed(bisect):
    host = Host({"2.8.0": 18.0})
    bisect(host, "--discard")
    made = ["torch-2.6.0", "torch-2.7.0", "torch-2.7.1", "torch-2.8.0"]
    assert sorted(host.removed) == made
    host.removed.clear()
    bisect(host, "--discard")
    assert host.removed == []


def test_environments_that_were_there_are_never_removed(bisect):
    host = Host({"2.8.0": 18.0}, there=("torch-2.6.0", "torch-2.7.0"))
    bisect(host, "--discard")
    assert sorted(host.removed) == ["torch-2.7.1", "torch-2.8.0"]


@pytest.mark.parametrize(
    ("good", "bad", "told"),
    [
        ("2.6.0", "2.6.0", "Both ends are the same release."),
        ("2.6.0", "2.99.0", "pip finds no torch==2.99.0"),
        ("2.5.1", "2.8.0", "torch==2.5.1 is too old"),
    ],
)
def test_ends_that_make_no_sense_are_refused(bisect, good, bad, told):
    host = Host({})
    code, document, messages = bisect(host, good=good, bad=bad)
    assert (code, document) == (2, None)
    assert told in messages
    assert host.measured == []


def test_a_damaged_state_is_no_traceback(bisect, tmp_path):
    bisect(Host({"2.8.0": 18.0}))
    (state,) = (tmp_path / ".compilewatch" / "bisect").glob("*.json")
    state.write_text("{", encoding="utf-8")
    code, document, messages = bisect(Host({"2.8.0": 18.0}))
    assert (code, document) == (2, None)
    assert "cannot be read" in messages
