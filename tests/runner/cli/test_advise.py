"""`compilewatch advise` over made-up trials: what is measured, what is said, what is gone on with."""

from __future__ import annotations

import json
import math
import tomllib
from collections import Counter
from collections.abc import Callable, Collection
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compilewatch.db.engine.session import Database, open_database
from compilewatch.db.queries.run_parts import newest_advice
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import trials_frame
from compilewatch.db.records.requests import RunStatus
from compilewatch.db.records.sampling_facts import Profile, ProfileSide
from compilewatch.db.records.strategies import EAGER
from compilewatch.db.records.trial import FailureKind
from compilewatch.db.store.trials import end_run, save_trial, start_run
from compilewatch.db.verdicts.advice import answer, paste
from compilewatch.runner.cli.measure import advise as command
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.output.progress import Wanted
from compilewatch.runner.plan.durations import Durations, TimeBudget
from compilewatch.runner.plan.interpreter import InterpreterFacts
from compilewatch.runner.plan.plan import Plan
from compilewatch.runner.plan.trial_spec import Job
from compilewatch.runner.process.execution import RunOutcome
from compilewatch.runner.search.advice import Objective, Price
from tests.builders import MS, START, make_machine, make_memory, make_trial
from tests.runner.terminal import compilewatch, in_this_process

TRIAL_S = 10.0
SPEEDUP = {"freezing": 1.5, "cpp-wrapper": 1.2, "max-autotune": 0.5}


class MadeUp:
    """Stands where trials are measured: each takes ten seconds and is `speedup` times as fast as eager."""

    def __init__(self, *, speedup: dict[str, float] = SPEEDUP, noise: float = 0.01) -> None:
        self.speedup, self.noise = speedup, noise
        self.measured: list[str] = []
        self.failing: dict[str, FailureKind] = {}
        self.stop_after = math.inf
        self.interrupted = False

    def measure(
        self,
        plan: Plan,
        database: Database,
        settings: Settings,
        durations: Durations,
        seconds: float,
        *,
        wanted: Wanted,
        begun: Collection[str] = (),
    ) -> tuple[RunOutcome, TimeBudget]:
        now, before = 0.0, len(self.measured)
        budget = TimeBudget(seconds, durations, canaries=False, monotonic=lambda: now)
        run = plan.runs[0]
        if run.run_id not in begun:
            start_run(
                database,
                run_id=run.run_id,
                suite=None,
                label=None,
                started_at=START,
                planned_trials=run.planned_trials,
            )
        for spec in plan.trials:
            if len(self.measured) - before >= self.stop_after:
                break
            if not wanted(Job((spec,)), budget=budget):
                continue
            number = len(self.measured)
            generator = np.random.default_rng(number)
            speedup = self.speedup.get(spec.strategy.name.removesuffix("+warm"), 1.0)
            is_eager = spec.strategy.name == EAGER.name
            latency = 10 * MS if is_eager else 10 * MS / speedup * math.exp(self.noise * generator.normal())
            began = START + timedelta(seconds=TRIAL_S * number)
            facts: dict[str, Any] = {
                "control_latency_ns": None if is_eager else 10 * MS,
                "latency_ns": latency,
                "spread": 0.0,
                "failure": self.failing.get(spec.strategy.name),
                "memory": make_memory(control_peak_bytes=None if is_eager else 2**20, peak_bytes=2**20),
            }
            save_trial(
                database,
                make_trial(
                    trial_id=spec.trial_id,
                    run_id=spec.run_id,
                    workload=spec.workload.model_copy(update={}),
                    strategy=spec.strategy,
                    machine=make_machine(device="cpu"),
                    started_at=began,
                    ended_at=began + timedelta(seconds=TRIAL_S),
                    device_state=None,
                    **facts,
                ),
            )
            now += TRIAL_S
            durations.note((spec.workload.name, spec.strategy.name), TRIAL_S)
            self.measured.append(spec.strategy.name)
        end_run(database, run.run_id, START, RunStatus.FINISHED)
        return RunOutcome(len(self.measured) - before, 0, 0, self.interrupted), budget


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> MadeUp:
    made = MadeUp()
    monkeypatch.setattr(command, "measure", made.measure)
    facts = InterpreterFacts("python", "3.11", "2.13.0", None, None, 0)
    monkeypatch.setattr(command, "check_interpreter", lambda: facts)
    return made


Advise = Callable[..., dict[str, Any]]


@pytest.fixture
def advise(made_up: MadeUp, tmp_path: Path) -> Advise:
    def typed(*arguments: str, workload: str = "encoder") -> dict[str, Any]:
        ended = in_this_process("advise", workload, "--json", *arguments, cwd=tmp_path)
        document: dict[str, Any] = json.loads(ended.stdout)
        return document | {"code": ended.returncode, "said": ended.stderr}

    return typed


def stands(document: dict[str, Any]) -> dict[str, str]:
    return {row["candidate"]: row["stands"] for row in document["candidates"]}


def test_the_best_is_found_shown_and_to_be_pasted(advise: Advise, made_up: MadeUp) -> None:
    document = advise("--minutes", "20")
    assert document["choice"] == "freezing"
    assert document["shown"]
    assert document["decided"]
    assert document["paste"] == "model = torch.compile(model, options={'freezing': True})"
    row = document["candidates"][0]
    assert row["gain"] == pytest.approx(1.5, rel=0.02)
    low, high = row["interval"]
    assert 1.0 < low < 1.5 < high
    assert stands(document)["max-autotune"] == "worse"
    # Eager first, each once, and in the end the choice from filled caches.
    assert made_up.measured[0] == "eager"
    assert max(Counter(made_up.measured[1:8]).values()) == 1
    assert made_up.measured[-1] == "freezing+warm"
    assert made_up.measured.count("max-autotune") == 2
    assert document["code"] == 0


def test_no_time_is_spent_beyond_its_own(advise: Advise, made_up: MadeUp) -> None:
    document = advise("--minutes", "1.2")
    assert len(made_up.measured) <= 7
    assert not document["decided"]
    assert "not measured" in stands(document).values()
    assert document["one_more_hour"].startswith("One more hour has ")


def test_what_was_ended_goes_on_and_loses_nothing(advise: Advise, made_up: MadeUp) -> None:
    made_up.stop_after = 6
    first = advise("--minutes", "20")
    made_up.stop_after = math.inf
    second = advise("--minutes", "20")
    assert second["run_id"] == first["run_id"]
    assert "goes on, with 6 trials" in second["said"]
    interrupted = list(made_up.measured)
    made_up.measured.clear()
    # All was decided: this is a new question, and measures the same in one go.
    third = advise("--minutes", "20")
    assert third["run_id"] != first["run_id"]
    assert made_up.measured == interrupted
    assert third["choice"] == second["choice"]


def test_another_objective_is_another_question(advise: Advise, made_up: MadeUp) -> None:
    made_up.stop_after = 3
    first = advise("--minutes", "20")
    assert advise("--minutes", "20", "--objective", "cost")["run_id"] != first["run_id"]


def test_equal_ones_are_told_to_stay_eager(advise: Advise, made_up: MadeUp) -> None:
    made_up.speedup = {}
    document = advise("--minutes", "120")
    assert document["choice"] == "eager"
    assert not document["shown"]
    assert document["decided"]
    assert document["configuration"][-1] == 'strategies = ["eager", "default"]'


def test_what_keeps_the_choice_measured_is_toml(advise: Advise, made_up: MadeUp) -> None:
    document = advise("--minutes", "20")
    lines = tomllib.loads("\n".join(document["configuration"]))
    (suite,), (strategy,) = lines["suite"], lines["strategy"]
    assert suite == {"name": "advised", "workloads": ["encoder"], "strategies": ["eager", "freezing"]}
    assert strategy == {"name": "freezing", "options": {"freezing": True}}


def test_a_wrong_result_leaves_at_once(advise: Advise, made_up: MadeUp) -> None:
    made_up.failing["freezing"] = FailureKind.WRONG_RESULT
    document = advise("--minutes", "20")
    assert made_up.measured.count("freezing") == 1
    assert stands(document)["freezing"] == "wrong"
    assert document["choice"] == "cpp-wrapper"
    assert "freezing leaves: its result is wrong." in document["said"]


def test_a_model_that_fails_by_itself_is_said_once(advise: Advise, made_up: MadeUp) -> None:
    made_up.failing["default"] = FailureKind.WORKLOAD_ERROR
    document = advise("--minutes", "20")
    assert made_up.measured == ["eager", "default"]
    assert document["broken"].startswith("workload error: ")
    assert document["code"] == 1


@pytest.mark.parametrize("objective", ["throughput", "memory", "cold-start", "cost"])
def test_every_objective_has_an_answer(advise: Advise, objective: str) -> None:
    document = advise("--minutes", "4", "--objective", objective)
    assert document["objective"] == objective
    assert document["choice"] in stands(document)
    assert document["candidates"][0]["trials"] > 0


def test_a_process_of_few_steps_does_not_pay_its_compilation(advise: Advise, made_up: MadeUp) -> None:
    made_up.speedup = {"freezing": 1.5}
    # Compiling takes 6 s, and a step saves 3.3 ms.
    assert advise("--minutes", "5", "--objective", "cost", "--steps", "100")["choice"] == "eager"
    assert advise("--minutes", "5", "--objective", "cost", "--steps", "100000")["choice"] == "freezing"


def test_a_restart_finds_what_the_first_start_filled() -> None:
    equal = {"latency_ns": MS, "control_latency_ns": MS}
    cold, warm = equal | {"trial_compile_cost_ns": 5000 * MS}, equal | {"trial_compile_cost_ns": 500 * MS}

    def cost(trial: dict[str, Any], restarts: int | None, cold_ns: float = math.nan) -> float:
        """Of 1,000 steps of 1 ms, compiled as in eager, so many times that of eager."""
        return math.exp(Price(Objective.COST, 1000, restarts).log_cost(trial, cold_ns) or 0.0)

    assert cost(cold, None) == cost(cold, 9) == pytest.approx(6.0)
    assert cost(warm, None) == pytest.approx(1.5)
    assert cost(warm, 0, 5000 * MS) == pytest.approx(6.0)
    # Ten starts: once 5 s, nine times 0.5 s.
    assert cost(warm, 9, 5000 * MS) == pytest.approx(1.95)


def test_filled_caches_pay_with_the_restarts(advise: Advise, made_up: MadeUp) -> None:
    """A trial from filled caches costs here what one from empty caches does: starts alone tell nothing."""
    asked = ("--minutes", "8", "--objective", "cost", "--steps", "1000")
    assert advise(*asked, "--restarts", "50")["restarts"] == 50
    assert advise(*asked)["restarts"] is None


def test_what_was_found_is_stored_with_its_run(advise: Advise, tmp_path: Path) -> None:
    document = advise("--minutes", "20")
    with open_database(f"sqlite:///{tmp_path / 'compilewatch.db'}") as database:
        (machine,) = set(trials_frame(database, Filters(runs=(document["run_id"],)))["machine_id"])
        _, stored = newest_advice(database, "encoder", machine) or (None, {})
        assert newest_advice(database, "cnn", machine) is None
    assert stored == {name: document[name] for name in stored}
    assert set(document) - set(stored) == {"code", "said"}


def test_throughput_names_the_batch(advise: Advise, made_up: MadeUp, tmp_path: Path) -> None:
    document = advise("--minutes", "5", "--objective", "throughput", workload="cnn")
    # Made-up latencies do not depend on the batch: the largest has the best throughput.
    assert document["candidates"][0]["batch_size"] == 64
    assert document["choice"] == "freezing, batch 64"
    with open_database(f"sqlite:///{tmp_path / 'compilewatch.db'}") as database:
        stored = trials_frame(database, Filters(runs=(document["run_id"],)))
    assert set(stored["workload"]) == {"cnn", "cnn-b32", "cnn-b64"}


def test_a_suite_shares_the_time(made_up: MadeUp, tmp_path: Path) -> None:
    ended = in_this_process("advise", "--suite", "smoke", "--minutes", "4", "--json", cwd=tmp_path)
    models = json.loads(ended.stdout)["models"]
    assert [each["workload"] for each in models] == ["cnn", "encoder", "elementwise", "mlp-train"]
    assert len({each["run_id"] for each in models}) == 4
    assert max(each["measured"] for each in models) <= 4 * 60 / TRIAL_S
    assert min(each["measured"] for each in models) >= 5
    # Weights that a training step changes cannot be frozen.
    assert "freezing" not in stands(models[-1])
    made_up.stop_after = 0
    said = in_this_process("advise", "--suite", "smoke", "--minutes", "4", cwd=tmp_path).stdout
    assert "elementwise" in said.splitlines()[-3]


def test_models_whose_gain_is_open_come_first(made_up: MadeUp, tmp_path: Path) -> None:
    """Twelve models that gain the less, the more matrix products they have; of the suite one gains for sure,
    and two that may gain or lose come before it.
    """
    shares = {f"known-{n}": n / 11 for n in range(12)}
    shares |= {"cnn": 0.05, "encoder": 0.9, "elementwise": 0.85}
    with open_database(f"sqlite:///{tmp_path / 'compilewatch.db'}", migrate=True) as database:
        for number, (name, share) in enumerate(shares.items()):
            eager = ProfileSide(step_ns=MS, operators=50, matrix_fraction=share)
            save_trial(
                database,
                make_trial(
                    workload=name,
                    machine=make_machine(device="cpu"),
                    profile=Profile(steps=5, own=eager, control=eager),
                    control_latency_ns=MS,
                    latency_ns=MS / math.exp(0.8 - 0.9 * share + 0.02 * (-1) ** number),
                    trial_id=f"known-{number}",
                    device_state=None,
                ),
            )
    ended = in_this_process("advise", "--suite", "smoke", "--minutes", "8", "--json", cwd=tmp_path)
    models = json.loads(ended.stdout)["models"]
    assert [each["workload"] for each in models] == ["encoder", "elementwise", "mlp-train", "cnn"]
    looks = {each["workload"]: each["look"] for each in models}
    assert looks["mlp-train"] is None
    assert looks["cnn"]["range"]["low"] > 1.0
    assert looks["encoder"]["range"]["low"] < 1.0 < looks["encoder"]["range"]["high"]
    assert looks["encoder"]["known"] == 14
    # Eager of one was measured to know the machine, and of the one without a profile.
    assert made_up.measured[:3] == ["eager", "eager", "eager"]
    said = in_this_process("advise", "--suite", "smoke", "--minutes", "1", cwd=tmp_path).stdout
    assert "by the 14 models known here, default has a speedup of" in said


def test_ctrl_c_while_models_are_looked_at_ends_the_command(made_up: MadeUp, tmp_path: Path) -> None:
    made_up.interrupted, made_up.stop_after = True, 1
    ended = in_this_process("advise", "--suite", "smoke", "--minutes", "4", cwd=tmp_path)
    assert ended.returncode == 130
    assert made_up.measured == ["eager"]
    assert "the same command goes on" in ended.stderr


def test_the_answer_reads_as_sentences(made_up: MadeUp, tmp_path: Path) -> None:
    ended = in_this_process("advise", "encoder", "--minutes", "20", cwd=tmp_path)
    first = ended.stdout.splitlines()
    assert first[0] == "encoder: model = torch.compile(model, options={'freezing': True})"
    assert first[1].startswith("Shown: it is 1.5")
    assert "Ruled out: max-autotune: " in ended.stdout
    assert 'options = { "freezing" = true }' in ended.stdout
    assert f"sqlite:///{'compilewatch.db'}" in ended.stderr
    assert "Run: " in ended.stderr


def test_of_eager_its_own_start_is_said_once(made_up: MadeUp, tmp_path: Path) -> None:
    made_up.speedup = {}
    ended = in_this_process("advise", "encoder", "--minutes", "120", cwd=tmp_path)
    assert "encoder: stay eager." in ended.stdout
    assert ended.stdout.count("first result") == ended.stdout.count("peak memory") == 1
    assert "eager's" not in ended.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nothing"], "There is no workload 'nothing'."),
        ([], "advise is for one workload or for one suite."),
        (["encoder", "--suite", "smoke"], "advise is for one workload or for one suite."),
        (["--suite", "smok"], "There is no suite 'smok'."),
        (["encoder", "--restarts", "5"], "--restarts is for --objective cost, and this is latency."),
        (["encoder", "--steps", "5"], "--steps is for --objective cost, and this is latency."),
        (["varlen", "--objective", "speed"], "'speed' is not one of"),
    ],
)
def test_wrong_words_are_told_in_a_sentence(arguments: list[str], sentence: str, tmp_path: Path) -> None:
    ended = in_this_process("advise", *arguments, cwd=tmp_path)
    assert ended.returncode == 2
    assert sentence in ended.stderr
    assert ended.stdout == ""
    assert not (tmp_path / "compilewatch.db").exists()


def test_a_name_of_ours_for_something_else_is_refused(made_up: MadeUp, tmp_path: Path) -> None:
    (tmp_path / "compilewatch.toml").write_text('[[strategy]]\nname = "freezing"\nmode = "default"\n')
    ended = in_this_process("advise", "encoder", cwd=tmp_path)
    assert ended.returncode == 2
    assert "[[strategy]] 'freezing' has other options" in ended.stderr


def test_an_interval_that_says_nothing_is_not_shown() -> None:
    row = {
        "candidate": "default",
        "trials": 2,
        "gain": 2.0,
        "stands": "choice",
        "batch_size": None,
        "why": None,
    }
    document = {"workload": "encoder", "batch_size": None, "choice": "default", "objective": "latency"}
    document |= {"broken": None, "paste": "PASTE", "shown": False}
    said = [
        list(answer(document | {"candidates": [row | {"interval": ends}]}))[1]
        for ends in (None, (1e-9, 1e9), (0.9, 4.0))
    ]
    assert said[0] == said[1] == "Not shown yet, by 2 trials: it is 2.00x as fast as eager."
    assert "0.900x to 4.00x" in said[2]
    # What is not shown is not told to be pasted as if it were.
    first, _ = answer(document | {"candidates": [row | {"interval": None}]})
    assert first == "encoder: best so far: PASTE"


def test_paste_says_what_the_strategy_does() -> None:
    from compilewatch.db.records.strategies import parse_strategy
    from compilewatch.db.records.trial import Task

    assert paste(EAGER, Task.INFERENCE) == "# stay eager: no torch.compile"
    assert paste(parse_strategy("default"), Task.FUNCTION) == "function = torch.compile(function)"
    assert (
        paste(parse_strategy("max-autotune+dynamic"), Task.INFERENCE)
        == "model = torch.compile(model, mode='max-autotune', dynamic=True)"
    )
    threads = parse_strategy("default").model_copy(update={"options": {"compile_threads": 1}})
    assert paste(threads, Task.INFERENCE) == (
        "os.environ['TORCHINDUCTOR_COMPILE_THREADS'] = '1'; model = torch.compile(model)"
    )


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_real_model_in_real_processes(tmp_path: Path) -> None:
    (tmp_path / "my_models.py").write_text(
        "import torch\n\n\ndef build(batch_size=64):\n"
        "    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))\n"
        "    return model, (torch.randn(batch_size, 64),)\n"
    )
    ended = compilewatch("advise", "my_models:build", "--minutes", "2", "--json", cwd=tmp_path, timeout_s=800)
    assert ended.returncode == 0, ended.stderr
    document = json.loads(ended.stdout)
    assert document["candidates"][0]["trials"] >= 1
    assert document["compiled"]["numerics_status"] == "pass"
