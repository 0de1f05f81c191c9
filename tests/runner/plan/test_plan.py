"""The plan: what is measured, in what order, and what a wrong name is answered with."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilewatch.db.errors import ConfigError, NotFoundError
from compilewatch.db.records.strategies import BUILTIN, parse_strategy
from compilewatch.runner.catalog.builtin import WORKLOADS
from compilewatch.runner.config.settings import BuildSettings, Settings
from compilewatch.runner.config.sources import load_settings
from compilewatch.runner.plan.plan import Plan, plan_run
from compilewatch.runner.plan.selection import SUITES
from compilewatch.runner.process.measured_process import ProcessRole, worker_specification
from compilewatch.runner.worker.step.messages import Specification

ROOT = Path(__file__).resolve().parents[3]
TWO_BUILDS = (
    BuildSettings(name="old", python=Path("/old/python")),
    BuildSettings(name="new", python=Path("/new/python")),
)


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in os.environ:
        if name.startswith("COMPILEWATCH_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def rounds_of(plan: Plan) -> dict[int, list[tuple[str, str, str | None]]]:
    rounds = defaultdict(list)
    for trial in plan.trials:
        rounds[trial.round].append((trial.workload.name, trial.strategy.name, trial.build))
    return rounds


def test_smoke_on_a_cpu() -> None:
    plan = plan_run(Settings(), suite="smoke", device="cpu")
    cases = Counter((trial.workload.name, trial.strategy.name) for trial in plan.trials)
    assert cases == dict.fromkeys(
        ((w, s) for w in ("cnn", "encoder", "elementwise", "mlp-train") for s in ("eager", "default")), 3
    )
    assert {(case.workload, case.strategy) for case in plan.not_applicable} == {
        (workload, "reduce-overhead") for workload in SUITES["smoke"].workloads
    }
    assert all("CUDA graphs do not exist on a CPU" in case.reason for case in plan.not_applicable)
    assert plan.runs[0].planned_trials == len(plan.trials) == 24
    assert {trial.run_id for trial in plan.trials} == {plan.runs[0].run_id}
    assert len({trial.trial_id for trial in plan.trials}) == 24


@pytest.mark.parametrize("suite", SUITES)
def test_no_built_in_suite_changes_the_environment_of_a_users_process(suite: str) -> None:
    plan = plan_run(Settings(), suite=suite, device="cpu", builds=TWO_BUILDS[:1])
    assert all(trial.worker_env == {} for trial in plan.trials)


def test_standard_on_a_gpu_leaves_nothing_out() -> None:
    plan = plan_run(Settings(), suite="standard", device="cuda:0", builds=TWO_BUILDS[:1])
    assert plan.not_applicable == ()
    assert len(plan.trials) == 10 * 5 * 3


def test_planning_imports_no_torch() -> None:
    program = (
        "import sys\n"
        "from compilewatch.runner.config.sources import load_settings\n"
        "from compilewatch.runner.plan.plan import plan_run\n"
        "from compilewatch.runner.config.settings import BuildSettings\n"
        "other = BuildSettings(name='other', python='python')\n"
        "plan_run(load_settings(), suite='standard', device='cuda:0', builds=[other])\n"
        "assert not {'torch', 'transformers', 'diffusers'} & set(sys.modules), sorted(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT, timeout=60)


def test_the_worker_gets_what_it_needs_and_nothing_of_the_parents() -> None:
    spec = plan_run(Settings(), workloads=["encoder"], device="cpu", label="night", builds=TWO_BUILDS).trials[
        0
    ]
    sent = worker_specification(spec, ProcessRole(Path()), sample_device=False, artifacts=Path("artifacts"))
    assert sent.workload.target == "compilewatch.runner.workloads.transformer:build"
    assert sent.workload.kwargs == {"width": 64, "heads": 4, "layers": 1}
    assert (sent.device, sent.artifacts) == ("cpu", "artifacts")
    assert sent.strategy.kind == spec.strategy.kind
    line = sent.line()
    assert Specification.from_line(line) == sent
    # What a later release adds is passed over.
    assert Specification.from_line(line.replace(b'{"workload"', b'{"new": 1, "workload"', 1)) == sent
    assert not {"interpreter", "build", "round", "label"} & set(json.loads(line))


case_counts = st.fixed_dictionaries(
    {
        "workloads": st.lists(
            st.sampled_from(["cnn", "encoder", "elementwise", "unet"]), min_size=1, unique=True
        ),
        "strategies": st.lists(
            st.sampled_from([name for name in BUILTIN if BUILTIN[name].kind in ("eager", "compile")]),
            min_size=1,
            unique=True,
        ),
        "trials": st.integers(1, 7),
    }
)


@given(case_counts, st.booleans(), st.integers(0, 10_000))
def test_order_is_balanced(wanted: dict[str, object], two_builds: bool, seed: int) -> None:
    settings = Settings(run={"seed": seed})
    builds = TWO_BUILDS if two_builds else ()
    plan = plan_run(settings, device="cuda:0", builds=builds, **wanted)
    names = [build.name for build in builds] or [None]
    every = {(w, s, b) for w in wanted["workloads"] for s in wanted["strategies"] for b in names}
    positions = defaultdict(Counter)
    first_build = defaultdict(Counter)
    for number, cases in rounds_of(plan).items():
        # Each round is one whole pass: drift over minutes meets every case alike.
        assert set(cases) == every
        assert len(cases) == len(every)
        for workload in wanted["workloads"]:
            mine = [(s, b) for w, s, b in cases if w == workload]
            where = [index for index, case in enumerate(cases) if case[0] == workload]
            assert where == list(range(where[0], where[0] + len(where))), "one workload's cases are apart"
            for position, strategy in enumerate(dict.fromkeys(s for s, _ in mine)):
                positions[workload, strategy][position] += 1
                first_build[workload, strategy][next(b for s, b in mine if s == strategy)] += 1
        assert number < wanted["trials"]
    for counts in positions.values():
        # Every strategy goes first, second, ... equally often, up to the rounds left over.
        expected = [counts[position] for position in range(len(wanted["strategies"]))]
        assert max(expected) - min(expected) <= 1


def test_two_builds_take_turns_as_abba() -> None:
    plan = plan_run(
        Settings(), workloads=["cnn"], strategies=["default"], trials=4, device="cpu", builds=TWO_BUILDS
    )
    assert [trial.build for trial in plan.trials] == ["old", "new", "new", "old", "old", "new", "new", "old"]
    assert [run.build for run in plan.runs] == ["old", "new"]
    by_build = {run.build: run.run_id for run in plan.runs}
    assert all(trial.run_id == by_build[trial.build] for trial in plan.trials)
    assert [str(trial.interpreter) for trial in plan.trials[:2]] == ["/old/python", "/new/python"]
    assert [run.planned_trials for run in plan.runs] == [4, 4]


def test_two_strategies_take_turns_as_abba() -> None:
    plan = plan_run(Settings(), workloads=["cnn"], trials=4, device="cpu")
    assert [trial.strategy.name for trial in plan.trials] == ["eager", "default", "default", "eager"] * 2


def test_the_order_of_workloads_follows_the_seed() -> None:
    def order(seed: int) -> list[str]:
        plan = plan_run(Settings(run={"seed": seed}), trials=6, device="cpu")
        return [trial.case for trial in plan.trials]

    assert order(1) == order(1)
    assert order(1) != order(2)
    first_round, *_, last_round = rounds_of(plan_run(Settings(), trials=6, device="cpu")).values()
    assert [case[0] for case in first_round] != [case[0] for case in last_round]


UNKNOWN = [
    ({"workloads": ["encodr"]}, "There is no workload 'encodr'.", "encoder", "`compilewatch list workloads`"),
    ({"suite": "smok"}, "There is no suite 'smok'.", "smoke", "`compilewatch list suites`"),
    (
        {"strategies": ["reduce-overhed"]},
        "There is no strategy 'reduce-overhed'.",
        "reduce-overhead",
        "`compilewatch list strategies`",
    ),
    ({"workloads": ["zzz"]}, "There is no workload 'zzz'.", "", "`compilewatch list workloads` shows all."),
    (
        {"suite": "smoke", "workloads": ["gpt2"]},
        "Suite smoke has no workload 'gpt2'",
        "",
        "Leave --suite out",
    ),
]


@pytest.mark.parametrize(("arguments", "message", "near", "command"), UNKNOWN)
def test_an_unknown_name(arguments: dict[str, object], message: str, near: str, command: str) -> None:
    with pytest.raises(NotFoundError) as caught:
        plan_run(Settings(), device="cpu", **arguments)
    assert caught.value.message.startswith(message)
    assert near in caught.value.next_step
    assert command in caught.value.next_step


def test_nothing_left_to_measure_is_an_error() -> None:
    with pytest.raises(ConfigError, match="Nothing of this can be measured on cpu: CUDA graphs do not exist"):
        plan_run(Settings(), strategies=["reduce-overhead"], device="cpu")


def test_what_has_no_repeated_blocks_has_no_regions() -> None:
    plan = plan_run(Settings(), strategies=["default", "default+regional"], device="cpu")
    assert [(case.workload, case.strategy, case.reason) for case in plan.not_applicable] == [
        ("elementwise", "default+regional", "a function has no submodules to compile one by one"),
        ("mlp-train", "default+regional", "the model has no repeated blocks to compile one by one"),
    ]


def test_what_cannot_be_exported_is_known_before_it_is_built() -> None:
    names = ["encoder", "mlp-train", "elementwise", "decode"]
    plan = plan_run(Settings(), workloads=names, strategies=["export", "packaged"], device="cpu")
    assert {trial.workload.name for trial in plan.trials} == {"encoder"}
    assert {(case.workload, case.reason) for case in plan.not_applicable} == {
        ("mlp-train", "only a model in inference is exported"),
        ("elementwise", "only a model in inference is exported"),
        ("decode", "an exported program is for one batch, and this goes through several"),
    }


def test_smoke_under_every_strategy_and_cache_state() -> None:
    plan = plan_run(Settings(), suite="smoke-all", device="cpu")
    measured = Counter(trial.workload.name for trial in plan.trials)
    # 13 of 14 strategies mean something on a CPU; a function has no regions, what trains is not exported.
    assert measured == {"cnn": 13, "encoder": 13, "elementwise": 10, "mlp-train": 10}
    assert {trial.strategy.cache.value for trial in plan.trials} == {
        *("none", "cold", "warm", "portable", "packaged"),
    }
    assert len(plan.trials) + len(plan.not_applicable) == 4 * len(SUITES["smoke-all"].strategies)


def test_a_missing_package_is_named_before_anything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError) as caught:
        plan_run(Settings(), suite="standard", device="cpu")
    assert caught.value.message.startswith(
        "resnet50, bert-base, bert-base-train, vit-b16, gpt2, sd-unet need"
    )
    assert caught.value.message.endswith("transformers, which is not installed.")
    assert caught.value.next_step == "Install it with: pip install 'compilewatch[models]'"


def test_packages_of_another_interpreter_are_its_own_business(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert plan_run(Settings(), workloads=["gpt2"], device="cpu", builds=TWO_BUILDS).trials


def test_a_workload_alone_continues_the_series_of_its_suite() -> None:
    alone = plan_run(Settings(), workloads=["cnn"], device="cpu").trials[0]
    in_suite = next(t for t in plan_run(Settings(), device="cpu").trials if t.workload.name == "cnn")
    assert (alone.suite, in_suite.suite) == (None, "smoke")
    assert alone.workload == in_suite.workload


def test_the_configuration_is_the_default_of_options() -> None:
    Path("compilewatch.toml").write_text(
        '[run]\nsuite = "mine"\ntrials = 2\nthreads = 3\ntimeout_s = 9\nsamples = 7\n'
        '[[suite]]\nname = "mine"\nworkloads = ["unet"]\nstrategies = ["eager", "loose"]\n'
        'worker_env = { A = "b" }\n'
        '[[strategy]]\nname = "loose"\ndynamic = true\n'
    )
    plan = plan_run(load_settings(), device="cpu")
    assert [trial.case for trial in plan.trials] == [
        "unet / eager",
        "unet / loose",
        "unet / loose",
        "unet / eager",
    ]
    trial = plan.trials[1]
    assert (trial.threads, trial.timeout_s, trial.sampling.samples, trial.worker_env) == (3, 9, 7, {"A": "b"})
    assert trial.strategy.dynamic is True
    assert len(plan_run(load_settings(), device="cpu", trials=1, strategies=["loose+static"]).trials) == 1


def test_built_in_suites_name_known_things() -> None:
    for suite in SUITES.values():
        assert set(suite.workloads) <= set(WORKLOADS)
        assert [parse_strategy(name).name for name in suite.strategies] == list(suite.strategies)


def test_a_build_carries_the_name_that_somebody_gave_it_and_no_other() -> None:
    names = ("ours", "torch-2.12.1", "python1")
    builds = [
        build.model_copy(update={"name": name}) for name, build in zip(names, TWO_BUILDS * 2, strict=False)
    ]
    plan = plan_run(Settings(), workloads=["encoder"], device="cpu", builds=builds)
    assert {spec.build: spec.label for spec in plan.trials} == {
        "ours": "ours",
        "torch-2.12.1": None,
        "python1": None,
    }
