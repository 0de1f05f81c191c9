"""Workloads of the user's own: found without being run, versioned by their file, swept over sizes."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from compilewatch.db.errors import CompilewatchError, ConfigError, NotFoundError
from compilewatch.db.records.trial import Status, Task
from compilewatch.runner.catalog.definition import WorkloadDefinition
from compilewatch.runner.catalog.targets import check_builder, check_target, locate_module
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.config.sources import load_settings
from compilewatch.runner.plan.plan import plan_run, require_one_rank
from compilewatch.runner.plan.selection import known_workloads, select
from compilewatch.runner.process.supervise import run_trial
from compilewatch.runner.worker.step import messages
from compilewatch.runner.worker.step.loading import build_workload, import_builder
from compilewatch.runner.worker.step.messages import read
from compilewatch.runner.worker.step.steps import make_variant
from tests.runner.measuring import build

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"


@pytest.fixture(autouse=True)
def _own_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COMPILEWATCH_CONFIG", raising=False)
    modules = set(sys.modules)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    for name in set(sys.modules) - modules:
        if name.split(".")[0] in {"my_models", "package"}:
            del sys.modules[name]


def block(language: str, number: int = 0, *, page: str = "workloads") -> str:
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)[number]


def write(file: str, content: str) -> None:
    path = Path(file)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def test_the_documented_example_is_ten_lines_and_is_measured() -> None:
    write("my_models.py", block("python"))
    write("compilewatch.toml", block("toml"))
    assert len(block("python").strip().splitlines()) <= 10
    plan = plan_run(
        load_settings(options={"run": {"samples": 5, "relative_interval": 0.99, "timeout_s": 120}}),
        workloads=["ranker"],
        strategies=["eager"],
        trials=1,
        device="cpu",
    )
    (spec,) = plan.trials
    trial = run_trial(spec)
    assert trial.status is Status.OK, trial.failure
    assert (trial.workload.name, trial.workload.batch_size, trial.workload.item) == ("ranker", 64, "request")
    assert trial.workload.shape == {"features": 256}
    assert len(trial.samples_ns) >= 5


@pytest.mark.parametrize("name", ["adamw", "scheduled", "mixed", "accumulated"])
def test_each_documented_training_step_is_found_to_be_one_and_takes_its_step(name: str) -> None:
    write("my_models.py", block("python", page="training"))
    plan = plan_run(Settings(), workloads=[f"my_models:{name}"], strategies=["eager"], device="cpu", trials=1)
    (spec,) = plan.trials
    assert spec.workload.task is Task.TRAINING
    builder = import_builder(spec.workload.target, spec.workload.path)
    workload = read(messages.Workload, spec.workload.model_dump(mode="json"))
    variant = make_variant(build_workload(builder, workload, torch.device("cpu")))
    model, optimizer = variant.module, variant.optimizer
    calls: list[object] = []
    model.register_forward_hook(lambda *_: calls.append(None))
    before = [parameter.detach().clone() for parameter in model.parameters()]
    for _ in range(3):
        assert variant.step().isfinite()
    assert any(not torch.equal(was, now) for was, now in zip(before, model.parameters(), strict=True))
    assert len(calls) == (12 if name == "accumulated" else 3)
    if name == "scheduled":
        assert optimizer.param_groups[0]["lr"] == pytest.approx(0.1 * 0.99**3)
    assert isinstance(optimizer, torch.optim.AdamW if name == "adamw" else torch.optim.SGD)


@pytest.mark.parametrize(
    ("returned", "task"),
    [
        ("model, x, loss", Task.TRAINING),
        ("model, x", Task.INFERENCE),
        ("Built(model, x, 'function')", Task.FUNCTION),
        ("Built(model, x, task=built.TRAINING)", Task.TRAINING),
        ("Built(model, x)", Task.INFERENCE),
        ("made()", Task.INFERENCE),
    ],
)
def test_what_a_function_returns_shows_its_task(returned: str, task: Task) -> None:
    write("my_models.py", f"def build():\n    return {returned}\n")
    (chosen,) = select(Settings(), workloads=["my_models:build"]).workloads
    assert (chosen.task, chosen.task_is_open) == (task, True)
    named = Settings.model_validate({"run": {"task": "function"}})
    (chosen,) = select(named, workloads=["my_models:build"]).workloads
    assert (chosen.task, chosen.task_is_open) == (Task.FUNCTION, False)


@pytest.mark.slow
def test_a_task_is_what_the_measured_process_finds(tmp_path: Path) -> None:
    """A loss that only a call returns, and a step that calls backward() itself."""
    write(
        "my_models.py",
        """
import functools
import time

import torch

once_a_process = functools.cache(lambda: time.sleep(0.5))

def three():
    return torch.nn.Linear(4, 2), torch.randn(3, 4), lambda output: output.square().mean()

def made():
    return three()

def own_step():
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x):
        once_a_process()
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step, torch.randn(3, 4)
""",
    )
    sampling = {"samples": 5, "max_samples": 5, "warmup_calls": 3, "warmup_s": 0}
    settings = Settings.model_validate({"run": sampling})
    names = ["my_models:made", "my_models:own_step"]
    plan = plan_run(settings, workloads=names, strategies=["backend:eager"], device="cpu", trials=1)
    for spec in plan.trials:
        trial = run_trial(spec)
        assert trial.status is Status.OK, trial.failure
        assert trial.workload.task is Task.TRAINING
        assert trial.numerics.status == "pass"
        slept = trial.workload.name == "my_models:own_step"
        assert (trial.cold_start.eager_first_ns > 500_000_000) == slept


def test_the_documented_training_example_trains() -> None:
    write("my_models.py", block("python", 1))
    write(
        "compilewatch.toml",
        '[[workload]]\nname = "t"\ntarget = "my_models:build_training"\ntask = "training"\n',
    )
    (definition,) = select(load_settings(), workloads=["t"]).workloads
    ready = build(definition)
    assert ready.task == "training"
    assert ready.model_or_fn.training
    ready.loss(ready.model_or_fn(*ready.inputs)).backward()
    assert all(parameter.grad is not None for parameter in ready.model_or_fn.parameters())


def test_the_documented_stream_and_strategy_are_known() -> None:
    write("compilewatch.toml", block("toml", page="training") + block("toml", page="strategies"))
    settings = load_settings()
    one, eight = (known_workloads(settings)[name] for name in ("chat-b1", "chat-b8"))
    stream = build(eight).stream
    assert (stream.policy, stream.tokens) == ("buckets", eight.record().items_per_iteration)
    assert one.record().items_per_iteration < stream.tokens
    assert {batch.inputs[0].shape[1] for batch in stream.batches()} <= {64, 128, 256, 512}
    (strategy,) = select(settings, workloads=["chat-b1"], strategies=["freezing+regional"]).strategies
    assert (strategy.name, strategy.scope) == ("freezing+regional", "regional")
    assert strategy.options == {"freezing": True, "coordinate_descent_tuning": True}


def test_the_documented_sweep_makes_the_documented_names() -> None:
    write("compilewatch.toml", block("toml", 1))
    known = known_workloads(load_settings())
    names = [name for name in known if name.startswith("encoder-sweep")]
    assert names == [f"encoder-sweep-b{b}-s{s}" for b in (1, 8, 32) for s in (64, 128)]
    last = known["encoder-sweep-b32-s128"]
    assert (last.batch_size, last.shape, last.kwargs["width"]) == (32, {"sequence_length": 128}, 64)
    # The encoder's items are tokens.
    assert last.record().items_per_iteration == 32 * 128
    assert last.version == known["encoder"].version


TOKENS = {
    "name": "own",
    "target": "my_models:build",
    "batch_size": [1, 8],
    "shape": {"sequence_length": [16, 64], "width": 4},
    "item": "token",
}


@pytest.mark.parametrize(
    ("given", "counted"),
    [
        ({}, (1, 8, 16, 64)),
        ({"items_per_iteration": ["batch_size", "width"]}, (4, 32, 1, 1)),
        ({"item": "request"}, (1, 8, 1, 1)),
        ({"ranks": 2}, (2, 16, 16, 64)),
    ],
    ids=["tokens", "named sizes", "requests", "two ranks"],
)
def test_every_size_of_a_sweep_counts_its_own_items(given, counted) -> None:
    small, large, short, long = counted
    write("my_models.py", block("python"))
    known = known_workloads(Settings.model_validate({"workload": [TOKENS | given]}))
    items = {
        name: definition.record().items_per_iteration
        for name, definition in known.items()
        if name.startswith("own-")
    }
    assert items == {
        "own-b1-s16": small * short,
        "own-b1-s64": small * long,
        "own-b8-s16": large * short,
        "own-b8-s64": large * long,
    }


def test_a_list_of_ranks_is_a_workload_of_each_and_without_one_there_is_no_process_group() -> None:
    write("my_models.py", block("python"))
    entry = {"name": "ddp", "target": "my_models:build", "kwargs": {"batch_size": 2, "features": 4}}
    listed = {**entry, "ranks": [1, 4], "dtype": ["float32", "bfloat16"]}
    known = known_workloads(Settings.model_validate({"workload": [listed, {**entry, "name": "alone"}]}))
    one, four, alone = (known[name].record() for name in ("ddp-r1-float32", "ddp-r4-bfloat16", "alone"))
    assert (one.ranks, four.ranks, alone.ranks) == (1, 4, None)
    assert one.version == four.version == alone.version
    # Of a workload without a batch the steps of each rank are counted.
    assert [(each.items_per_iteration, each.item) for each in (one, four, alone)] == [
        *((1, "step"), (4, "step"), (None, "item")),
    ]
    with pytest.raises(ConfigError, match="one process, and ddp-r1-float32 takes 1 rank"):
        require_one_rank(known["ddp-r1-float32"], "--submodules")


@pytest.mark.parametrize(
    ("given", "said"), [(128, "is one number"), (["batch_size", "depth"], "Its sizes are batch_size, width")]
)
def test_items_that_fit_no_size_are_refused(given, said) -> None:
    write("my_models.py", block("python"))
    with pytest.raises(ConfigError, match=said):
        known_workloads(Settings.model_validate({"workload": [TOKENS | {"items_per_iteration": given}]}))


@pytest.mark.parametrize("given", [True, 0, -1, "many"])
def test_what_is_no_number_of_items_is_refused(given) -> None:
    entry = {"name": "own", "target": "cnn", "items_per_iteration": given}
    with pytest.raises(ValueError, match="items_per_iteration"):
        Settings.model_validate({"workload": [entry]})


def test_tokens_that_nothing_counts_are_asked_for() -> None:
    write("my_models.py", block("python"))
    entry = TOKENS | {"shape": {"features": 16}}
    with pytest.raises(ConfigError, match=r"How many tokens one iteration of .* is not known"):
        known_workloads(Settings.model_validate({"workload": [entry]}))
    (definition, _) = (
        each
        for name, each in known_workloads(
            Settings.model_validate({"workload": [entry | {"items_per_iteration": ["batch_size"]}]})
        ).items()
        if name.startswith("own-")
    )
    assert definition.record().items_per_iteration == 1


def test_a_sweep_may_vary_the_dtype() -> None:
    entry = {"name": "own", "target": "encoder", "batch_size": [1, 8], "dtype": ["float32", "bfloat16"]}
    known = known_workloads(Settings.model_validate({"workload": [entry]}))
    found = {name: known[name].dtype for name in known if name.startswith("own")}
    assert found == {
        "own-b1-float32": "float32",
        "own-b1-bfloat16": "bfloat16",
        "own-b8-float32": "float32",
        "own-b8-bfloat16": "bfloat16",
    }


def test_the_name_of_a_sweep_stands_for_all_that_it_makes() -> None:
    write("my_models.py", "def build(batch_size=8):\n    return None\n")
    write(
        "compilewatch.toml",
        """
        [[workload]]
        name = "ranker"
        target = "my_models:build"
        batch_size = [1, 64]

        [[suite]]
        name = "nightly"
        workloads = ["cnn", "ranker"]
        strategies = ["eager", "default"]
        trials = 2
        worker_env = { A = "b" }
        """,
    )
    settings = load_settings()

    def names(**options: Any) -> list[str]:
        return [definition.name for definition in select(settings, **options).workloads]

    both = ["ranker-b1", "ranker-b64"]
    assert names(workloads=["ranker"]) == both
    assert names(workloads=["ranker-b64", "ranker"]) == both[::-1]
    assert names(suite="nightly") == ["cnn", *both]
    assert names(suite="nightly", workloads=["ranker"]) == both
    assert names(suite="nightly", workloads=["ranker-b1"]) == both[:1]
    with pytest.raises(NotFoundError, match="it has cnn, ranker-b1, ranker-b64"):
        names(suite="nightly", workloads=["mlp"])
    # On its own, a case has the environment of the suite that it is at home in.
    assert set(select(settings, workloads=["ranker"]).worker_env) == set(both)
    assert select(settings, workloads=["ranker-b1"]).worker_env["ranker-b1"] == {"A": "b"}


def test_a_function_named_on_the_command_line() -> None:
    write("my_models.py", "import torch\n\ndef build(width=8):\n    return torch.relu, torch.randn(width)\n")
    (definition,) = select(Settings(), workloads=["my_models:build"]).workloads
    assert (definition.name, definition.task, definition.batch_size) == (
        "my_models:build",
        Task.INFERENCE,
        None,
    )
    ready = build(definition)
    assert ready.model_or_fn(*ready.inputs).shape == (8,)


def test_a_built_in_workload_at_another_size() -> None:
    write(
        "compilewatch.toml",
        '[[workload]]\nname = "e"\ntarget = "encoder"\nbatch_size = 3\ndtype = "bfloat16"\n'
        "shape = { sequence_length = 5 }\nkwargs = { layers = 2 }\n",
    )
    e = known_workloads(load_settings())["e"]
    ready = build(e)
    assert ready.inputs[0].shape == (3, 5, 64)
    assert ready.inputs[0].dtype is torch.bfloat16
    assert len(ready.model_or_fn.blocks) == 2


def test_modules_are_looked_for_beside_the_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(
        "project/compilewatch.toml", '[[workload]]\nname = "w"\ntarget = "package.deep:f"\npath = ["src"]\n'
    )
    write("project/src/package/__init__.py", "raise RuntimeError('planning must not run user code')\n")
    write("project/src/package/deep.py", "def f(): ...\n")
    settings = load_settings(Path("project/compilewatch.toml"))
    monkeypatch.chdir("/")
    (definition,) = select(settings, workloads=["w"]).workloads
    assert definition.path == (str(tmp_path / "project"), str(tmp_path / "project" / "src"))


REFUSED = [
    ("my_models", "'my_models' does not name a function as module:function", ""),
    ("my_models:", "does not name a function", "my_models:build"),
    ("my_modles:build", "There is no Python file for module my_modles", "relative to the configuration file"),
    ("my_models:biuld", "has no function biuld", "Did you mean my_models:build?"),
    ("my_models.deeper:build", "There is no Python file for module my_models.deeper", ""),
    ("sys:exit", "There is no Python file for module sys", ""),
]


@pytest.mark.parametrize(("target", "message", "next_step"), REFUSED)
def test_a_target_that_is_not_there(tmp_path: Path, target: str, message: str, next_step: str) -> None:
    write("my_models.py", "def build(): ...\n")
    with pytest.raises(ConfigError) as caught:
        check_target(target, (str(tmp_path),))
    assert message in caught.value.message
    assert next_step in caught.value.next_step


def test_a_syntax_error_names_its_line(tmp_path: Path) -> None:
    write("my_models.py", "import torch\n\ndef build(:\n")
    with pytest.raises(ConfigError, match=r"my_models\.py is not valid Python: line 3"):
        check_target("my_models:build", (str(tmp_path),))


@pytest.mark.parametrize(
    "content",
    [
        "from somewhere import build\n",
        "from somewhere import *\n",
        "build = make()\n",
        "if True:\n    def build(): ...\n",
        "def __getattr__(name): ...\n",
        "import other as build\n",
    ],
)
def test_what_may_define_the_function_is_let_through(tmp_path: Path, content: str) -> None:
    write("my_models.py", content)
    assert check_target("my_models:build", (str(tmp_path),)) == tmp_path / "my_models.py"


def test_an_unknown_target_in_the_configuration_stops_every_plan() -> None:
    write("compilewatch.toml", '[[workload]]\nname = "w"\ntarget = "encodr"\n')
    with pytest.raises(CompilewatchError) as caught:
        plan_run(load_settings(), device="cpu")
    assert "'encodr'" in caught.value.message
    assert caught.value.next_step == "Did you mean encoder?"


def test_two_sweeps_cannot_make_one_name() -> None:
    write(
        "compilewatch.toml",
        '[[workload]]\nname = "a-b1"\ntarget = "encoder"\n'
        '[[workload]]\nname = "a"\ntarget = "encoder"\nbatch_size = [1, 2]\n',
    )
    with pytest.raises(ConfigError, match="Two workloads are named 'a-b1'"):
        known_workloads(load_settings())


@pytest.mark.parametrize(
    ("listed", "said"),
    [
        ("ranks = [1, 2, 1]", "ranks of [[workload]] 'a' has 1 more than once."),
        ("shape = { sequence_length = [8, 8] }", "sequence_length of [[workload]] 'a' has 8 more than once."),
        ('variants = ["bf16", "bf16"]', "variants of [[workload]] 'a' has bf16 more than once."),
    ],
)
def test_a_list_that_has_a_value_twice_is_named(listed: str, said: str) -> None:
    write("compilewatch.toml", f'[[workload]]\nname = "a"\ntarget = "encoder"\n{listed}\n')
    with pytest.raises(ConfigError, match=re.escape(said)):
        known_workloads(load_settings())


def test_the_version_is_that_of_the_file_and_the_arguments(tmp_path: Path) -> None:
    def version(**changes: Any) -> str:
        fields = {"name": "w", "task": Task.FUNCTION, "target": "my_models:f", "path": (str(tmp_path),)}
        return WorkloadDefinition(**(fields | changes)).version

    write("my_models.py", "def f():\n    return 1\n")
    first = version()
    assert re.fullmatch("[0-9a-f]{8}", first)
    write("other.py", "x = 1\n")
    same = [version(batch_size=8), version(shape={"n": 2}), version(dtype="float16"), version(name="renamed")]
    assert set(same) == {first}
    assert version(kwargs={"a": 1}) != first
    assert version(kwargs={"a": 1, "b": 2}) == version(kwargs={"b": 2, "a": 1})
    Path("my_models.py").write_bytes(b"def f():\r\n    return 1\r\n")
    assert version() == first
    write("my_models.py", "def f():\n    return 2\n")
    assert version() != first


def test_a_module_is_found_as_python_would_import_it() -> None:
    assert (
        locate_module("compilewatch.runner.workloads.cnn")
        == ROOT / "compilewatch" / "runner" / "workloads" / "cnn.py"
    )


@pytest.mark.parametrize(
    ("content", "message", "next_step"),
    [
        (
            "class Ranker(torch.nn.Module):\n    def __init__(self, dim, depth=2):\n        pass\n",
            "Ranker in mine.py is a class; a workload is a function that returns (model, inputs).",
            "def build(): return Ranker(dim=...), (torch.randn(8, 64),)",
        ),
        (
            "def Ranker():\n    model = net()\n    model.train()\n    return model, (1,)\n",
            "calls train() and returns no loss, and is measured in eval mode.",
            "Return Built(model, inputs, 'inference')",
        ),
    ],
)
def test_what_would_be_measured_otherwise_than_it_is_meant_is_refused_before_a_trial(
    tmp_path: Path, content: str, message: str, next_step: str
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(content)
    with pytest.raises(ConfigError) as caught:
        check_builder("mine:Ranker", file, (), is_training=False)
    assert message in caught.value.message
    assert next_step in caught.value.next_step


@pytest.mark.parametrize("returned", ["Built(model, (1,), 'inference')", "model, (1,), loss"])
def test_a_model_that_is_to_train_may_say_so(tmp_path: Path, returned: str) -> None:
    file = tmp_path / "mine.py"
    file.write_text(f"def build():\n    model.train()\n    return {returned}\n")
    check_builder("mine:build", file, (), is_training=False)
