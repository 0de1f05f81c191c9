"""`compilewatch attribute` over environments that venv and pip make of tiny wheels, with trials made up."""

from __future__ import annotations

import json
import math
import random
import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from compilewatch.db.engine.session import open_database
from compilewatch.db.records.trial import FailureKind
from compilewatch.db.store.trials import save_trials
from compilewatch.runner.cli.app import app
from compilewatch.runner.cli.front import exit_code_of
from compilewatch.runner.config.settings import BuildSettings, Settings
from compilewatch.runner.plan.builds import create_build, known_builds
from compilewatch.runner.plan.host_stacks import HostStacks
from compilewatch.runner.process.execution import RunOutcome
from compilewatch.runner.search import environments
from compilewatch.runner.search.components import environment_of
from tests.builders import MS, make_build, make_machine, make_trial
from tests.runner.plan.test_builds import TORCH, _wheel
from tests.runner.second_environment import make_empty_environment

OLD = ["torch==2.6.0", "transformers==1.0", "numpy==2.0.0"]
NEW = ["torch==2.12.1", "transformers==2.0", "numpy==2.0.0"]


@pytest.fixture(scope="module")
def builds(tmp_path_factory):
    """The folder of the builds `old`, `new` and `clash`, whose transformers works with its torch alone."""
    wheels, data = tmp_path_factory.mktemp("wheels"), tmp_path_factory.mktemp("data")
    for version in ("2.6.0", "2.12.1"):
        _wheel(wheels, "torch", version, TORCH.format(name="__version__", version=version))
    _wheel(wheels, "numpy", "2.0.0", "")
    for version, needs in (("1.0", ""), ("2.0", ""), ("3.0", "Requires-Dist: torch>=2.12\n")):
        _wheel(wheels, "transformers", version, "", more=needs)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("NO_INDEX", "1"), ("FIND_LINKS", str(wheels)), ("CONFIG_FILE", "/dev/null")):
            patch.setenv(f"PIP_{name}", value)
        patch.setattr("compilewatch.runner.plan.builds.make_environment", make_empty_environment)
        settings = Settings(data_dir=data)
        create_build(OLD, settings, name="old", look_up=False)
        create_build(NEW, settings, name="new", look_up=False)
        create_build([NEW[0], "transformers==3.0", NEW[2]], settings, name="clash", look_up=False)
        yield data / "builds"


# By name, each asked once: what is in a build stays as it was made.
INSTALLED = {}


def installed(build, settings):
    if build.name not in INSTALLED:
        INSTALLED[build.name] = environment_of(build, settings)
    return replace(INSTALLED[build.name], build=build)


class Host:
    """Measures as a real one: `effect` of the versions an interpreter really has is the log of latency."""

    def __init__(self, effect, *, failing=lambda versions: False, noise=0.004):
        self.effect, self.failing, self.noise = effect, failing, noise
        self.measured, self.killed_after = [], None
        self.moment = datetime(2026, 11, 23, 9, 0, tzinfo=UTC)

    def measure(self, plan, database, settings, durations):
        versions = {run.run_id: self._versions(run, settings) for run in plan.runs}
        self.measured.append([tuple(each.values()) for each in versions.values()])
        trials = []
        for number, spec in enumerate(plan.trials):
            if self.killed_after == number:
                save_trials(database, trials)
                raise SystemExit("killed")
            mine = versions[spec.run_id]
            self.moment += timedelta(minutes=2)
            noise = 1 + self.noise * math.sin(7.0 * number + len(self.measured))
            trial = make_trial(
                trial_id=spec.trial_id,
                run_id=spec.run_id,
                workload=spec.workload.name,
                strategy=spec.strategy.name,
                machine=make_machine("box", device="cpu"),
                build=make_build(mine["torch"], packages={"transformers": mine["transformers"]}),
                started_at=self.moment,
                latency_ns=8 * MS * math.exp(self.effect(mine)) * noise,
                control_latency_ns=12 * MS * noise,
                failure=FailureKind.CRASH if self.failing(mine) else None,
                seed=number,
            )
            trials.append(trial)
        save_trials(database, trials)
        return RunOutcome(len(plan.trials), 0, 0, False), None

    @staticmethod
    def _versions(run, settings):
        made = installed(BuildSettings(name=run.build, python=run.interpreter), settings)
        return {name: made.version(name) for name in ("torch", "transformers")}


def slower(**versions):
    """0.3 for each package that is at this version."""
    return lambda mine: sum(0.3 for name, version in versions.items() if mine[name] == version)


@pytest.fixture
def attribute(tmp_path, monkeypatch, capfd, builds, _sqlite_template):
    """A function that runs the command and returns its exit code, document and messages."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(_sqlite_template, "compilewatch.db")
    (tmp_path / ".compilewatch").mkdir()
    (tmp_path / ".compilewatch" / "builds").symlink_to(builds)
    # Which recorded builds are here is for test_host_stacks: each of them would be asked for every test.
    monkeypatch.setattr(HostStacks, "read", lambda _settings: HostStacks(()))
    case = ("-w", "elementwise", "-s", "default")

    def call(host, *arguments, base="old", head="new", case=case, as_json=True):
        monkeypatch.setattr(environments, "measure", host.measure)
        monkeypatch.setattr("compilewatch.runner.cli.measure.attribute.environment_of", installed)
        line = ["attribute", base, head, *case, "--device", "cpu", *arguments]
        code = exit_code_of(app, [*line, *(["--json"] if as_json else [])])
        captured = capfd.readouterr()
        out = captured.out
        return code, (json.loads(out) if out else None) if as_json else out, captured.err

    return call


@pytest.mark.parametrize(
    ("guilty", "version"), [("torch", "2.12.1"), ("transformers", "2.0")], ids=["torch", "transformers"]
)
def test_the_component_that_was_planted_is_named(attribute, guilty, version):
    host = Host(slower(**{guilty: version}))
    code, document, _ = attribute(host)
    assert document["skipped"] == []
    (case,) = document["cases"]
    assert (code, case["named"], case["complete"]) == (0, [guilty], True)
    assert document["components"] == ["torch 2.6.0 to 2.12.1", "transformers 1.0 to 2.0"]
    # Both ends first, then all four mixes by turns, each with the versions that it stands for.
    ends, mixed = host.measured[0], host.measured[1]
    assert ends == [("2.6.0", "1.0"), ("2.12.1", "2.0")]
    assert mixed == [("2.6.0", "1.0"), ("2.12.1", "1.0"), ("2.6.0", "2.0"), ("2.12.1", "2.0")]


def test_what_only_both_do_is_said_to_be_both(attribute):
    host = Host(lambda mine: 0.3 if mine == {"torch": "2.12.1", "transformers": "2.0"} else 0.0)
    _, document, _ = attribute(host)
    (case,) = document["cases"]
    assert [each["real"] for each in case["together"]] == [True]
    assert any("neither of them alone changes it" in line for line in case["sentences"])


def test_where_nothing_moves_no_hybrid_is_made(attribute):
    host = Host(lambda _: 0.0)
    code, document, _ = attribute(host, "--max-trials", "8")
    assert (code, document["cases"]) == (2, [])
    assert document["sentences"] == [
        "Latency is not shown to move in elementwise / default: there is nothing to attribute."
    ]
    assert {len(each) for each in host.measured} == {2}


def test_a_hybrid_that_pip_refuses_is_said_with_its_reason(attribute):
    """transformers 3.0 needs torch 2.12: with torch 2.6.0 it cannot be installed."""
    code, document, messages = attribute(Host(slower(torch="2.12.1")), head="clash")
    (case,) = document["cases"]
    assert (code, case["named"], case["complete"]) == (0, ["torch"], False)
    assert document["skipped"][0]["hybrid"] == "torch 2.6.0 and transformers 3.0"
    assert "torch 2.6.0 and transformers 3.0 is skipped" in messages
    assert case["sentences"][-1] == "What components do together is unknown without it."


def test_a_hybrid_whose_trials_fail_is_said_too(attribute):
    def failing(mine):
        return mine == {"torch": "2.6.0", "transformers": "2.0"}

    code, document, _ = attribute(Host(slower(torch="2.12.1"), failing=failing))
    (case,) = document["cases"]
    assert (code, case["named"]) == (0, ["torch"])
    assert any(
        "torch 2.6.0 and transformers 2.0 cannot be measured: its" in line for line in case["sentences"]
    )


@pytest.mark.slow
def test_after_a_kill_the_same_command_goes_on(attribute):
    host = Host(slower(torch="2.12.1"))
    measure, host.measured = host.measure, []

    def killed(plan, *rest):
        host.killed_after = 5 if len(host.measured) == 1 else None
        return measure(plan, *rest)

    host.measure = killed
    with pytest.raises(SystemExit):
        attribute(host)
    host.measure, host.killed_after = measure, None
    code, document, _ = attribute(host)
    assert (code, document["cases"][0]["named"]) == (0, ["torch"])
    # The ends are not measured again, and what was stored of the round that was cut short counts.
    measured = len(host.measured)
    assert [len(each) for each in host.measured].count(2) == 1
    assert attribute(host)[:2] == (0, document)
    assert len(host.measured) == measured


def test_an_edited_workload_is_another_question(attribute, tmp_path):
    host, measured = Host(lambda _: 0.0), []
    for text in ("text", "text", "another"):
        (tmp_path / "mine.py").write_text(f"def build():\n    return {text!r}\n", encoding="utf-8")
        attribute(host, "--max-trials", "4", case=("-w", "mine:build", "-s", "default"))
        measured.append(len(host.measured))
    assert measured == [1, 1, 2]


def test_a_plan_measures_and_installs_nothing(attribute, builds):
    before, host = set(builds.iterdir()), Host(lambda _: 0.0)
    code, document, _ = attribute(host, "--dry-run")
    assert (code, host.measured, set(builds.iterdir())) == (0, [], before)
    assert document["environments"] == [
        "torch 2.12.1 and transformers 1.0",
        "torch 2.6.0 and transformers 2.0",
    ]
    # 4 trials of 15 s, until one is known: 2 ends and 4 mixes; at most 12.
    assert (document["minutes"], document["minutes_at_most"]) == (6.0, 18.0)


def test_more_builds_than_the_limit_are_refused(attribute, tmp_path):
    (tmp_path / "compilewatch.toml").write_text("[limits]\nbuilds = 3\n")
    code, document, messages = attribute(Host(lambda _: 0.0))
    assert (code, document) == (2, None)
    assert "builds" in messages


def test_a_component_that_stays_undecided_is_named_with_its_versions(attribute):
    """torch's part is certain; that of transformers is smaller than four noisy rounds can tell."""
    rng, planted = random.Random(0), slower(torch="2.12.1")
    host = Host(lambda mine: planted(mine) + rng.gauss(0, 0.05))
    _, document, _ = attribute(host, "--trials", "4", "--max-trials", "4")
    (case,) = document["cases"]
    assert (case["named"], case["undecided"]) == (["torch"], ["transformers"])
    (line,) = (line for line in case["sentences"] if "undecided" in line)
    assert line.startswith("What transformers 1.0 to 2.0 carries is undecided after 4 rounds: ")


def test_a_build_against_itself_has_no_component(attribute):
    code, document, messages = attribute(Host(lambda _: 0.0), head="old")
    assert (code, document) == (2, None)
    assert "old and old have the same versions of everything." in messages


def test_without_a_case_and_without_trials_it_says_what_to_do(attribute):
    code, document, messages = attribute(Host(lambda _: 0.0), case=())
    assert (code, document) == (2, None)
    assert "No trial of old is stored" in messages
    assert "-w and -s" in messages


def test_only_the_stored_cases_that_moved_are_measured(attribute, monkeypatch, tmp_path):
    """What trials were recorded with finds the builds of this host."""
    host = Host(slower(torch="2.12.1"))
    attribute(host)
    builds = known_builds(Settings(data_dir=tmp_path / ".compilewatch"))
    like = {"2.6.0": builds["old"], "2.12.1": builds["new"]}
    monkeypatch.setattr(HostStacks, "build_like", lambda _, stack, but=(): like[stack.torch])
    code, document, messages = attribute(host, case=())
    *before, last = messages.splitlines()
    assert (code, last) == (0, "Database: sqlite:///compilewatch.db")
    # Time and disk are said before anything is installed or measured.
    assert "of trials" in before[-2]
    assert "are free" in before[-1]
    assert [(each["workload"], each["strategy"]) for each in document["cases"]] == [
        ("elementwise", "default")
    ]


@pytest.mark.parametrize("case", [("evil:build", "default"), ("hf:gpt2", "default"), ("mlp", "backend:evil")])
def test_what_a_record_calls_its_case_is_no_code(attribute, monkeypatch, case):
    monkeypatch.setattr("compilewatch.runner.cli.measure.attribute.moved_cases", lambda *_: [case])
    code, _, messages = attribute(Host(slower(torch="2.12.1")), case=())
    assert code == 2
    assert "Data cannot name the" in messages


def store_drivers(carried, *, torches=("2.6.0",)):
    """Nights of each torch with each driver, on two hosts of one hardware: `carried` is what 580 adds."""
    moment = datetime(2026, 11, 1, 9, 0, tzinfo=UTC)
    database, trials = open_database("sqlite:///compilewatch.db"), []
    for night in range(6):
        for torch in torches:
            for driver, host, extra in (("570", "left", 0.0), ("580", "right", carried)):
                for number in range(4):
                    moment += timedelta(minutes=7)
                    noise = 1 + 0.004 * math.sin(7.0 * number + night)
                    trial = make_trial(
                        run_id=f"{night}-{torch}-{driver}",
                        workload="elementwise",
                        strategy="default",
                        machine=make_machine(host, device="cpu"),
                        build=make_build(torch, driver=driver),
                        started_at=moment + timedelta(days=night),
                        latency_ns=8 * MS * math.exp(extra) * noise,
                        control_latency_ns=12 * MS * noise,
                    )
                    trials.append(trial)
    save_trials(database, trials)


@pytest.fixture
def both_drivers(monkeypatch, tmp_path):
    """What was recorded with either driver is found among the builds of this host."""
    builds = known_builds(Settings(data_dir=tmp_path / ".compilewatch"))
    like = {"2.6.0": builds["old"], "2.12.1": builds["new"]}
    monkeypatch.setattr(HostStacks, "build_like", lambda _, stack, but=(): like[stack.torch])


def test_what_a_driver_carries_is_in_the_trials_of_two_hosts(attribute, both_drivers):
    host = Host(lambda _: 0.0)
    store_drivers(0.2)
    code, document, _ = attribute(host, base="driver=570", head="driver=580", case=())
    (share,) = document["fixed_shares"]
    assert (code, document["fixed"], host.measured) == (0, ["driver 570 to 580"], [])
    assert share["interval"][0] < math.expm1(0.2) < share["interval"][1]
    assert "driver 570 to 580 carries +2" in document["sentences"][0]


def test_a_driver_that_changes_nothing_is_not_named(attribute, both_drivers):
    store_drivers(0.0)
    code, document, _ = attribute(Host(lambda _: 0.0), base="driver=570", head="driver=580", case=())
    assert code == 2
    assert not any("carries +" in line or "carries -" in line for line in document["sentences"])


@pytest.mark.slow
def test_discarded_environments_are_those_that_were_made(attribute, builds):
    before = {path.name for path in builds.iterdir() if path.is_dir()}
    for made in before - {"old", "new", "clash"}:
        shutil.rmtree(builds / made)
    attribute(Host(slower(torch="2.12.1")), "--discard")
    assert {path.name for path in builds.iterdir() if path.is_dir()} == {"old", "new", "clash"}
