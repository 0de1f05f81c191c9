"""A small server under the recorder: what compiles after it is ready, and the warm-up that was missing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from compilewatch.dashboard.document.sections import sections
from compilewatch.dashboard.pages.trial.one_trial import trial_parts
from compilewatch.db.cause.after_ready import warm_up_script
from compilewatch.db.records.evidence import (
    AfterReady,
    CompileAfterReady,
    CompiledInput,
    CompileKind,
    RequestInput,
)
from compilewatch.db.records.trial import Trial
from compilewatch.runner import compilewatch_recorder as recorder
from compilewatch.runner.cli.app import app
from compilewatch.runner.cli.front import exit_code_of
from tests.dashboard.conftest import DATABASE
from tests.db.interchange.reading import read

_SERVER = """
import json, sys, threading, types
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.request import urlopen

heard = []
hooks = types.SimpleNamespace(jit_cache_hook=None)
hooks.jit_post_compile_hook = lambda **call: heard.append(call["key"])
sys.modules["triton"] = types.SimpleNamespace(knobs=types.SimpleNamespace(runtime=hooks))

import torch
del sys.modules["triton"]
from compilewatch import record


class Ranker(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 1)

    def forward(self, features, options=None, *, scale=1.0):
        return self.linear(features + (options["bias"] if options else 0.0)) * scale


model = torch.compile(Ranker(), backend="eager", dynamic=False)
lock = threading.Lock()


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        size = self.path.rpartition("/")[2]
        if size == "health":
            record.ready()
        else:
            features = torch.randn(int(size.removesuffix("b")), 4)
            options = {"bias": torch.ones(4)} if size.endswith("b") else None
            with lock, record.request(f"batch {size}"):
                model(features, options)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


for batch in (1, 8):
    model(torch.randn(batch, 4))
if sys.argv[1:]:
    from warm_up import warm_up

    warm_up(model)
server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
address = f"http://127.0.0.1:{server.server_port}/"
sys.modules["triton"] = types.SimpleNamespace(knobs=types.SimpleNamespace(runtime=hooks))
for request in ("health", "1", "8", "24", "8b", "24", "health"):
    urlopen(address + request).read()
if not sys.argv[1:]:
    call = {"key": 7, "repr": "add[fp32]", "fn": types.SimpleNamespace(name="add")}
    hooks.jit_cache_hook(**call)
    hooks.jit_post_compile_hook(**call)
    print(heard)
server.shutdown()
"""


# A compiled function behind a decorator, with an object of the job's own: nothing outside can make that.
_WITH_STATE = """
import functools, sys
import torch
from compilewatch import record


def checked(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


class State:
    def __init__(self, rows):
        self.sums = torch.zeros(rows)


@torch.compile(backend="eager", dynamic=False)
@checked
@checked
def forward(features, state):
    state.sums += features
    return state.sums * 2


def answer(features, mask, times, options):
    state = State(len(features))
    for _ in range(times if mask.all() else 0):
        forward(features, state)


def ask(rows):
    told = {"features": torch.randn(rows), "mask": torch.ones(rows, dtype=torch.bool)}
    told |= {"times": 2, "options": {"names": ["a"], "none": None, "empty": {}}}
    with record.request(f"{rows} rows", **(told if sys.argv[1] != "untold" else {})):
        answer(**told)


# A module of torch's own, behind a wrapper of torch.
layers = torch.compile(torch.nn.Sequential(torch.nn.ReLU()), backend="eager", dynamic=False)
layers(torch.ones(2))
ask(8)
if sys.argv[1] == "warm":
    from warm_up import warm_up

    warm_up(answer)
record.ready()
for rows in (8, 24, 48):
    ask(rows)
if sys.argv[1] == "untold":
    layers(torch.ones(3))
"""
_GENERATE = """
import sys
import torch
from compilewatch import record
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
sizes = {"hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2}
config = LlamaConfig(vocab_size=128, num_hidden_layers=1, max_position_embeddings=64, **sizes)
model = LlamaForCausalLM(config).eval()
model.forward = torch.compile(model.forward, backend="eager", dynamic=False)
# A cache of one length: else it grows with the longest prompt so far, and with it what is compiled.
model.generation_config.update(cache_implementation="static", max_cache_len=32, pad_token_id=0)


def ask(rows, length):
    ids = torch.randint(1, 128, (rows, length))
    told = {"inputs": ids, "attention_mask": torch.ones_like(ids), "max_new_tokens": 4, "do_sample": False}
    with record.request(f"{rows} x {length}", **told):
        model.generate(**told)


ask(1, 8)
if sys.argv[1] == "warm":
    from warm_up import warm_up

    warm_up(model.generate)
record.ready()
for rows, length in ((1, 8), (2, 8), (1, 12)):
    ask(rows, length)
"""


def _served(folder: Path, *arguments: str) -> tuple[str, Path]:
    jobs = folder / "-".join(("jobs", *arguments))
    words = [
        sys.executable,
        "-m",
        "compilewatch.record",
        "--name",
        "ranker-serve",
        "--",
        "serve.py",
        *arguments,
    ]
    environment = os.environ | {"COMPILEWATCH_JOBS": str(jobs)}
    ended = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout, jobs


def _after_ready(trial: Trial) -> AfterReady:
    assert trial.compiler is not None
    assert trial.compiler.after_ready is not None
    return trial.compiler.after_ready


def test_what_compiled_after_ready_is_found_and_its_warm_up_leaves_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "serve.py").write_text(_SERVER)
    printed, jobs = _served(tmp_path)
    # A hook of Triton that was there is asked as before.
    assert printed == "[7]\n"
    (trial,) = read(jobs)
    facts = _after_ready(trial)
    assert [(each.kind, each.request) for each in facts.compiles] == [
        (CompileKind.RECOMPILATION, "batch 24"),
        (CompileKind.RECOMPILATION, "batch 8b"),
        (CompileKind.TRITON, None),
    ]
    larger, biased, kernel = facts.compiles
    assert larger.inputs == [CompiledInput(source="L['features']", size=[24, 4], dtype="float32")]
    assert larger.function == "forward (serve.py:21)"
    assert "expected 8, actual 24" in (larger.reason or "")
    assert {each.source for each in biased.inputs or ()} == {"L['features']", "L['options']['bias']"}
    assert (kernel.function, kernel.reason) == ("add", "add[fp32]")
    assert facts.count == 3
    assert facts.cost_ns == sum(each.cost_ns for each in facts.compiles) > 0
    assert facts.watched_ns is not None
    assert facts.watched_ns > facts.cost_ns
    assert trial.summary is not None
    assert trial.summary.metrics["compiles_after_ready"] == 3

    database = f"sqlite:///{tmp_path / 'new.db'}"
    assert exit_code_of(app, ["import", str(jobs), "--db", database]) == 0
    monkeypatch.setenv(DATABASE, database)
    page = str(list(sections([*trial_parts(trial)])))
    assert "3 compilations after ready cost" in page
    assert "features 24 x 4 float32" in page
    capsys.readouterr()
    assert exit_code_of(app, ["warm-up", "ranker-serve", "--db", database]) == 0
    (tmp_path / "warm_up.py").write_text(capsys.readouterr().out)
    _, warm = _served(tmp_path, "warm")
    (again,) = read(warm)
    assert _after_ready(again).compiles == []

    # As of one release and the next: what compiled after ready is a target, compared exactly.
    config = tmp_path / "compilewatch.toml"
    config.write_text('[[target]]\nworkload = "ranker-*"\ncompiles_after_ready = 0\n')
    case = ["--workload", "ranker-serve", "--strategy", "compiled", "--metric", "compiles_after_ready"]
    asked = ["history", *case, "--db", database, "--config", str(config)]
    exit_code_of(app, asked)
    assert "at most 0: missed by the newest run." in capsys.readouterr().out
    assert exit_code_of(app, ["import", str(warm), "--db", database]) == 0
    exit_code_of(app, asked)
    told = capsys.readouterr().out
    assert "3 to 0, compared exactly." in told
    assert "at most 0: met by the newest run." in told
    capsys.readouterr()
    assert exit_code_of(app, ["warm-up", "ranker-serve", "--db", database]) == 0
    assert capsys.readouterr().out == "# ranker-serve compiled nothing after ready.\n"


def _warm_up(jobs: Path, database: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert exit_code_of(app, ["import", str(jobs), "--db", database]) == 0
    capsys.readouterr()
    exit_code_of(app, ["warm-up", "ranker-serve", "--db", database])
    return "".join(capsys.readouterr())


def test_a_request_is_warmed_up_where_a_compiled_function_gets_what_only_the_job_can_make(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "serve.py").write_text(_WITH_STATE)
    _, untold = _served(tmp_path, "untold")
    (trial,) = read(untold)
    # What is compiled is a wrapper; its name is that of what it wraps, with its line.
    *compiles, of_module = _after_ready(trial).compiles
    assert {each.function for each in compiles} == {"forward (serve.py:20)"}
    assert {tuple(each.objects or ()) for each in compiles} == {("L['args'][1]",)}
    assert (of_module.function or "").startswith("Sequential.forward (container.py:")
    module: dict[str, Any] = {}
    exec(_warm_up(untold, f"sqlite:///{tmp_path / 'untold.db'}", capsys), module)
    assert [*module["INPUTS"].values()] == [[{"args": {0: ([3], "float32")}}]]
    (left_out,) = module["LEFT_OUT"]
    assert left_out.endswith("args.1: more than tensors, name the inputs of `record.request`")

    _, told = _served(tmp_path, "told")
    (trial,) = read(told)
    assert [each.request for each in _after_ready(trial).compiles] == ["24 rows", "48 rows"]
    script = _warm_up(told, f"sqlite:///{tmp_path / 'told.db'}", capsys)
    module = {}
    exec(script, module)
    ((first, second),) = module["INPUTS"].values()
    assert first == {
        "features": ([24], "float32"),
        "mask": ([24], "bool", 1),
        "times": 2,
        "options": {"names": {0: "a"}, "none": None, "empty": {}},
    }
    assert second["features"] == ([48], "float32")
    called: list[dict[str, Any]] = []
    module["warm_up"](lambda **arguments: called.append(arguments))
    assert called[0]["options"] == {"names": ["a"], "none": None, "empty": {}}
    assert called[0]["mask"].all()
    (tmp_path / "warm_up.py").write_text(script)
    _, warm = _served(tmp_path, "warm")
    (again,) = read(warm)
    assert _after_ready(again).compiles == []


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_generate_loop_with_a_static_cache_is_warmed_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("transformers")
    (tmp_path / "serve.py").write_text(_GENERATE)
    _, cold = _served(tmp_path, "cold")
    (trial,) = read(cold)
    compiles = _after_ready(trial).compiles
    assert [each.request for each in compiles] == ["2 x 8", "2 x 8", "1 x 12"]
    assert all(
        (each.function or "").startswith("LlamaForCausalLM.forward (modeling_llama.py:") for each in compiles
    )
    assert all("User stack" not in (each.reason or "") for each in compiles)
    (tmp_path / "warm_up.py").write_text(_warm_up(cold, f"sqlite:///{tmp_path / 'new.db'}", capsys))
    _, warm = _served(tmp_path, "warm")
    (again,) = read(warm)
    assert _after_ready(again).compiles == []


def test_what_a_request_was_called_with_is_told_as_it_can_be_made(tmp_path: Path) -> None:
    described: list[dict[str, Any]] = []
    for value in (
        float("inf"),
        "x" * 2_000,
        object,
        [torch.ones(2, 0)],
        torch.full((2,), -3),
        torch.arange(3),
    ):
        recorder._describe(value, "L['x']", described)
    assert [each.get("made_of") for each in described[:3]] == ["float", "str", "type"]
    assert [(each["source"], each.get("filled_with")) for each in described[3:]] == [
        ("L['x'][0]", None),
        ("L['x']", -3),
        ("L['x']", None),
    ]
    many: list[dict[str, Any]] = []
    recorder._describe(list(range(1_000)), "L['x']", many)
    assert len(many) == 101
    assert many[-1]["made_of"] == "more than 100 values"


@pytest.mark.parametrize(
    "told",
    [
        {"made_of": "CompileConfig"},
        {"literal": "Infinity"},
        {"literal": "[1]"},
        {"literal": "import os"},
        {"size": [2], "dtype": "int64, os"},
    ],
)
def test_a_request_with_an_argument_that_cannot_be_made_is_left_out(told: dict[str, Any]) -> None:
    inputs = [RequestInput(source="L['n']", literal="4"), RequestInput(source="L['config']", **told)]
    seen = RequestInput(source="L['n']", literal="3")
    compiles = [
        CompileAfterReady(after_ns=0, cost_ns=1, kind=CompileKind.COMPILATION, request_inputs=each)
        for each in ([seen], inputs)
    ]
    script = warm_up_script("ranker", [AfterReady(count=2, cost_ns=2, compiles=compiles)])
    assert script is not None
    module: dict[str, Any] = {}
    exec(script, module)
    assert list(module["INPUTS"].values()) == [[{"n": 3}]]
    assert len(module["LEFT_OUT"]) == 1
    if "made_of" in told:
        assert module["LEFT_OUT"] == ["compilation: config is a CompileConfig"]


def test_a_job_is_ready_after_steps_and_one_that_never_is_is_told_how(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = "from compilewatch import record\nimport torch\nfor _ in range(4):\n    record.step()\n"
    (tmp_path / "steps.py").write_text(program)
    for name, options in (("late", ["--ready-after", "3"]), ("never", [])):
        words = [sys.executable, "-m", "compilewatch.record", "--name", name, "--directory", name, *options]
        subprocess.run([*words, "--", "steps.py"], cwd=tmp_path, check=True)
    (trial,) = read(tmp_path / "late")
    assert _after_ready(trial).count == 0
    database = f"sqlite:///{tmp_path / 'new.db'}"
    assert exit_code_of(app, ["import", str(tmp_path / "never"), "--db", database]) == 0
    assert exit_code_of(app, ["warm-up", "never", "--db", database]) == 2
    assert "--ready-after STEPS" in capsys.readouterr().err
    words = [sys.executable, "-m", "compilewatch.record", "--ready-after", "soon", "--", "steps.py"]
    ended = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "--ready-after soon: is no number of steps." in ended.stderr


@pytest.mark.parametrize("name", ["x = 1\nimport os #", '"""', "{job}", "'] + [open('/etc/passwd') #"])
def test_what_a_record_says_is_no_code_of_the_warm_up(name: str) -> None:
    hostile = CompileAfterReady(
        after_ns=0,
        cost_ns=1,
        kind=CompileKind.RECOMPILATION,
        function=name,
        reason=name,
        inputs=[CompiledInput(source="L['x']", size=[2], dtype="float32")],
    )
    unmade = hostile.model_copy(update={"inputs": [CompiledInput(source=name, size=[2], dtype="float32")]})
    script = warm_up_script(name, [AfterReady(count=2, cost_ns=2, compiles=[hostile, unmade])])
    assert script is not None
    module: dict[str, object] = {}
    exec(script, module)
    assert module["JOB"] == name
    assert module["INPUTS"] == {name: [{"x": ([2], "float32")}]}
    assert set(module) >= {"torch", "warm_up"}
    assert {key for key in module if key.islower() and not key.startswith("_")} == {"torch", "warm_up"}
