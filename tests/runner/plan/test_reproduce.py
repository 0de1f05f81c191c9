"""A stored trial is measured again, or becomes a script that needs torch alone."""

from __future__ import annotations

import ast
import json
import re
import statistics
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from compilewatch.db.engine.session import open_database
from compilewatch.db.errors import CompilewatchError
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import trial_records
from compilewatch.db.records.strategies import BUILTIN, parse_strategy
from compilewatch.db.records.trial import Strategy, Trial
from compilewatch.runner.catalog.builtin import WORKLOADS
from compilewatch.runner.config.settings import Settings, SuiteSettings
from compilewatch.runner.config.sources import load_settings
from compilewatch.runner.plan.interpreter import recorded_environment
from compilewatch.runner.plan.reproduce import MOST_THREADS, interpreter_for, plan_again, script_of
from compilewatch.runner.plan.selection import known_workloads
from compilewatch.runner.worker.step.host import torch_variant
from tests.builders import make_build, make_imported, make_machine, make_trial
from tests.runner.bare_environment import make_bare_environment
from tests.runner.terminal import compilewatch, in_this_process

PINNED: dict[str, object] = {"matmul_precision": "high", "environment": recorded_environment({})}
CPU = make_machine(device="cpu", threads=1, device_uuid=None)


def _trial(
    workload: str = "mlp-train",
    strategy: str = "default",
    settings: dict[str, object] | None = None,
    **changes: object,
) -> Trial:
    release, _, local = torch.__version__.partition("+")
    variant = torch_variant(local or None, torch.version.cuda, torch.version.hip)
    fields: dict[str, object] = {
        "workload": WORKLOADS[workload].record(),
        "strategy": parse_strategy(strategy, BUILTIN),
        "machine": CPU,
        "build": make_build(release, torch_variant=variant, settings=settings or PINNED),
    }
    return make_trial(**fields | changes)  # type: ignore[arg-type]


def test_the_specification_is_that_of_the_trial():
    trial = _trial(strategy="default+dynamic+warm")
    (spec,) = plan_again(trial, Settings()).trials
    assert spec.strategy == trial.strategy
    assert spec.trial_id != trial.trial_id
    assert (spec.device, spec.threads, spec.settings.matmul_precision) == ("cpu", 1, "high")
    assert spec.worker_env == {}
    assert str(spec.interpreter) == sys.executable


def _refused(trial: Trial) -> CompilewatchError:
    with pytest.raises(CompilewatchError) as caught:
        plan_again(trial, Settings())
    assert caught.value.next_step
    return caught.value


def _refused_script(trial: Trial) -> CompilewatchError:
    with pytest.raises(CompilewatchError) as caught:
        script_of(trial, Settings())
    return caught.value


def test_another_version_of_the_workload_is_not_the_trial_again():
    now = WORKLOADS["mlp-train"].record()
    other = _refused(
        _trial(workload="mlp-train").model_copy(
            update={"workload": now.model_copy(update={"version": "0ld"})}
        )
    )
    assert other.message == f"Workload mlp-train is now version {now.version}; the trial measured 0ld."
    size = now.model_copy(update={"batch_size": 3})
    assert "another size" in _refused(_trial().model_copy(update={"workload": size})).message


def test_what_cannot_be_repeated_says_so():
    assert "says too little" in _refused(make_imported()).message
    unknown = WORKLOADS["cnn"].record().model_copy(update={"name": "gone"})
    assert (
        "There is no workload 'gone'" in _refused(_trial().model_copy(update={"workload": unknown})).message
    )


CXX = "/tmp/foreign"
WIDE = "\N{FULLWIDTH LATIN CAPITAL LETTER C}XX"
CLAIMED = recorded_environment({})


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"environment": {**CLAIMED, "CXX": CXX}}, f"CXX '{CXX}' in the record, unset here"),
        ({"environment": {**CLAIMED, "BROWSER": "sh -c x"}}, "BROWSER 'sh -c x'"),
        ({"environment": {**CLAIMED, "pythonwarnings": "all:0:x.y:0:0"}}, "pythonwarnings"),
        (
            {"environment": {**PINNED["environment"], WIDE: CXX}},
            "XX '/tmp",
        ),
        ({"environment": {**CLAIMED, "TORCHINDUCTOR_VEC_ISA_OK": 1}}, "VEC_ISA_OK 1 in"),
        ({"environment": {**CLAIMED, "OMP_PLACES": "1; sh"}}, "'1; sh'"),
        ({"environment": {**CLAIMED, "OMP_NUM_THREADS": "2"}}, "OMP_NUM_THREADS '2'"),
        ({"environment": {**CLAIMED, "PATH": "."}}, "PATH '.' in the record, unset here"),
        ({"environment": {}}, "OMP_PLACES unset in the record, 'cores' here"),
        ({"environment": None}, "environment is no table"),
        ({"environment": [["CXX", CXX]]}, "environment is no table"),
        ({"matmul_precision": "'high'); import os #"}, "claims \"'high'); import os #\""),
        ({"matmul_precision": ["high"]}, "claims ['high']"),
        ({"matmul_precision": None}, "claims None"),
    ],
)
def test_an_environment_that_a_record_claims_is_not_taken(changes: dict[str, object], named: str):
    trial = _trial(settings=PINNED | changes)
    for refused in (_refused(trial), _refused_script(trial)):
        assert named in refused.message
        assert "compilewatch run -w mlp-train -s default" in refused.next_step


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"options": {"cpp.cxx": [CXX]}}, "options {'cpp.cxx'"),
        ({"options": {"post_grad_custom_pre_pass": "os.system"}}, "options"),
        ({"backend": "tvm"}, "backend 'tvm' in the record, 'inductor' here"),
        ({"backend": None}, "backend unset in the record"),
        ({"mode": "../x"}, "mode '../x'"),
        ({"scope": "submodule:__class__"}, "scope"),
        ({"kind": "aot_package", "cache": "packaged"}, "kind"),
        ({"fullgraph": True}, "fullgraph True in the record, False here"),
        ({"dynamic": False}, "dynamic False"),
        ({"cache": "warm"}, "cache"),
    ],
)
def test_a_strategy_that_a_record_claims_is_not_taken(changes: dict[str, object], named: str):
    claimed = BUILTIN["default"].model_dump() | changes
    trial = _trial(strategy="default").model_copy(update={"strategy": Strategy.model_validate(claimed)})
    for refused in (_refused(trial), _refused_script(trial)):
        assert named in refused.message


@pytest.mark.parametrize(
    "name",
    [
        "backend:tvm",
        "backend:onnxrt+dynamic",
        "backend:inductor_",
        "Default",
        "default ",
        WIDE,
    ],
)
def test_a_strategy_is_found_by_its_exact_name_among_those_of_this_host(name: str):
    trial = _trial()
    strategy = trial.strategy.model_copy(update={"name": name, "backend": "inductor"})
    refused = _refused(trial.model_copy(update={"strategy": strategy}))
    assert "Data cannot name the backend" in refused.message or "There is no strategy" in refused.message


@pytest.mark.parametrize(
    "name", ["os:system", "mine:build", "mlp-train:build", "Mlp-train", "../mlp-train", "mlp-train\x1b[2J"]
)
def test_a_workload_of_a_record_is_no_code(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "mine.py").write_text("def build():\n    raise SystemExit('executed')\n")
    monkeypatch.chdir(tmp_path)
    workload = WORKLOADS["mlp-train"].record().model_copy(update={"name": name})
    trial = _trial().model_copy(update={"workload": workload})
    for refused in (_refused(trial), _refused_script(trial)):
        assert refused.message.startswith(("Data cannot name the code at", "There is no workload"))


@pytest.mark.parametrize(
    "name", ["hf:bert-base-uncased", "hf:/etc", "timm:resnet50@b8", "torchvision:vit_b_16"]
)
def test_a_record_loads_no_model_of_a_library(name: str, monkeypatch: pytest.MonkeyPatch):
    def looked_up(*_: object) -> None:
        raise AssertionError("a library was looked up")

    monkeypatch.setattr("compilewatch.runner.catalog.libraries.importlib.util.find_spec", looked_up)
    workload = WORKLOADS["mlp-train"].record().model_copy(update={"name": name})
    trial = _trial().model_copy(update={"workload": workload})
    for refused in (_refused(trial), _refused_script(trial)):
        assert refused.message == f"Data cannot name the code at {name!r}."
        assert refused.next_step == "Name it in a [[workload]] or a [[suite]] of the configuration."


def test_threads_of_a_record_are_bounded():
    trial = _trial(machine=CPU.model_copy(update={"threads": MOST_THREADS}))
    assert plan_again(trial, Settings()).trials[0].threads == MOST_THREADS
    trial = _trial(machine=CPU.model_copy(update={"threads": MOST_THREADS + 1}))
    assert "claims 1,025 threads" in _refused(trial).message


def test_the_environment_of_a_suite_is_that_of_this_host():
    """A suite of the record is a name as well: one of ours, or none."""
    own = SuiteSettings(name="nightly", workloads=("mlp-train",), worker_env={"A": "1"})
    settings = Settings(suite=(own,))
    measured = PINNED | {"environment": recorded_environment({"A": "1"})}
    (spec,) = plan_again(_trial(suite="nightly", settings=measured), settings).trials
    assert spec.worker_env == {"A": "1"}
    refused = _refused(_trial(suite="nightly", settings=measured))
    assert "A '1' in the record, unset here" in refused.message


def test_no_text_of_a_record_leaves_the_docstring_of_its_script():
    text = 'x"""\nimport os\nos.abort()\n# coding: utf-7\n\\"""\u2028os.abort()\x0c'
    machine = CPU.model_copy(update={"device_name": text})
    build = _trial().build
    trial = _trial(machine=machine, build=build.model_copy(update={"torch_variant": text, "label": text}))
    tree = ast.parse(script_of(trial, Settings()))
    assert isinstance(tree.body[0], ast.Expr)
    assert isinstance(tree.body[0].value, ast.Constant)
    harmless = ast.parse(script_of(trial.model_copy(update={"machine": CPU, "build": build}), Settings()))
    assert ast.dump(ast.Module(tree.body[1:], [])) == ast.dump(ast.Module(harmless.body[1:], []))


def test_a_next_step_holds_no_command_of_a_record(tmp_path: Path):
    trial = _trial(build=make_build("2.6.0`; sh -c x", torch_variant="cpu", settings=PINNED))
    with pytest.raises(CompilewatchError) as caught:
        interpreter_for(trial, Settings(data_dir=tmp_path))
    assert caught.value.next_step == "Name a --python or --build."


def test_an_imported_record_runs_nothing(tmp_path: Path):
    """From the file to the compiler, by the commands: a compiler of the record would leave a trace."""
    compiler = tmp_path / "cxx"
    compiler.write_text(f'#!/bin/sh\ntouch {tmp_path}/executed\nexec g++ "$@"\n')
    compiler.chmod(0o755)
    environment = {**CLAIMED, "CXX": str(compiler), "BROWSER": f"touch {tmp_path}/executed"}
    trial = _trial(settings=PINNED | {"environment": environment})
    (tmp_path / "foreign.jsonl").write_text(trial.to_json() + "\n")
    assert in_this_process("import", "foreign.jsonl", cwd=tmp_path).returncode == 0
    again = in_this_process("reproduce", trial.trial_id, cwd=tmp_path)
    script = in_this_process("reproduce", trial.trial_id, "--script", "script.py", cwd=tmp_path)
    assert (again.returncode, script.returncode) == (2, 2)
    assert "CXX" in again.stderr
    assert not (tmp_path / "executed").exists()
    assert not (tmp_path / "script.py").exists()
    shown = in_this_process("show", trial.trial_id, cwd=tmp_path)
    assert f"CXX={compiler}" in "".join(shown.stdout.split())


def test_a_torch_that_is_not_here(tmp_path: Path):
    trial = _trial(build=make_build("2.6.0", torch_variant="cu124"))
    with pytest.raises(CompilewatchError, match=r"which is not here") as caught:
        interpreter_for(trial, Settings(data_dir=tmp_path))
    assert "builds create torch==2.6.0" in caught.value.next_step


def test_every_script_has_all_it_names_and_nothing_of_ours(tmp_path: Path):
    for workload in WORKLOADS:
        text = script_of(_trial(workload), Settings())
        assert not re.search(r"^(from|import) (compilewatch|runner|db)\b", text, re.MULTILINE), workload
        (tmp_path / f"{workload}.py").write_text(text)
    rules = ["--isolated", "--select", "F811,F821", "--target-version", "py310"]
    checked = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--no-cache", *rules, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout


def test_a_script_carries_the_modules_of_a_project_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "compilewatch.toml").write_text('[[workload]]\nname = "mine"\ntarget = "mine:build"\n')
    (tmp_path / "mine.py").write_text(
        "import torch\nfrom layers import Block\n\ntorch.set_grad_enabled(False)\n\n"
        "def build(batch_size=2):\n    return Block(), torch.ones(batch_size, 4)\n"
    )
    (tmp_path / "layers.py").write_text(
        "from torch import nn\n\nclass Block(nn.Linear):\n"
        "    def __init__(self):\n        super().__init__(4, 4)\n"
    )
    settings = load_settings()
    mine = known_workloads(settings)["mine"].record()
    trial = _trial(strategy="eager", settings=PINNED | {"environment": recorded_environment({})})
    text = script_of(trial.model_copy(update={"workload": mine}), settings)
    (tmp_path / "elsewhere").mkdir()
    script = tmp_path / "elsewhere" / "script.py"
    script.write_text(text)
    assert "set_grad_enabled" in text
    assert "eager" in _latencies_ns(script)


@pytest.mark.slow
def test_a_trial_again_and_as_a_script(tmp_path: Path):
    """For real, with Inductor: the stored trial, the repeated one, and the script where only torch is."""
    (tmp_path / "tmp").mkdir()
    places = {"TMPDIR": str(tmp_path / "tmp")}
    case = ("-w", "elementwise", "-s", "default", "--trials", "1")
    ran = compilewatch("run", *case, cwd=tmp_path, **places)
    assert ran.returncode == 0, ran.stderr
    (stored,) = _stored(tmp_path)

    again = compilewatch("reproduce", stored.trial_id, "--json", cwd=tmp_path, **places)
    assert again.returncode == 0, again.stderr
    document = json.loads(again.stdout)
    assert document["schema"] == "compilewatch.reproduction/1"
    assert document["stored"]["latency_ns"] == statistics.median(stored.samples_ns)
    assert document["again"]["trial_id"] != stored.trial_id
    assert document["differences"] == []
    first, second = _stored(tmp_path)
    assert (first.workload, first.strategy, first.build) == (second.workload, second.strategy, second.build)
    assert second.suite is None

    written = compilewatch("reproduce", stored.trial_id, "--script", "issue.py", cwd=tmp_path)
    assert (written.returncode, written.stdout) == (0, "")
    _lands_within_its_interval(tmp_path / "issue.py", make_bare_environment(tmp_path / "bare"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "workload", ["varlen-buckets", "first-epoch", "decode", "encoder-train-checkpointing"]
)
def test_every_kind_of_workload_as_a_script(tmp_path: Path, workload: str):
    (tmp_path / "tmp").mkdir()
    case = ("-w", workload, "-s", "default", "--trials", "1")
    ran = compilewatch("run", *case, cwd=tmp_path, TMPDIR=str(tmp_path / "tmp"))
    assert ran.returncode == 0, ran.stderr
    (stored,) = _stored(tmp_path)
    written = compilewatch("reproduce", stored.trial_id, "--script", "issue.py", cwd=tmp_path)
    assert written.returncode == 0, written.stderr
    _lands_within_its_interval(tmp_path / "issue.py", make_bare_environment(tmp_path / "bare"))


def _lands_within_its_interval(script: Path, python: Path) -> None:
    """The speedup of the script is one that the stored trial's samples had. A busy host moves both sides of
    it alike, but not always at once, so that one run in three is enough.
    """
    said = []
    for _ in range(3):
        said.append(_output(script, python))
        found = re.search(r"^speedup: +([\d.]+) x \(stored: [\d.]+ x, ([\d.]+) to ([\d.]+)\)", said[-1], re.M)
        assert found is not None, said[-1]
        now, low, high = map(float, found.groups())
        if low <= now <= high:
            return
    pytest.fail("\n".join(said))


def test_a_trial_that_is_not_stored(tmp_path: Path):
    assert in_this_process("db", "upgrade", cwd=tmp_path).returncode == 0
    missing = in_this_process("reproduce", "NOSUCH", cwd=tmp_path)
    assert (missing.returncode, missing.stdout) == (2, "")
    assert "NOSUCH" in missing.stderr
    assert "Traceback" not in missing.stderr


def _stored(project: Path) -> list[Trial]:
    with open_database(f"sqlite:///{project / 'compilewatch.db'}") as database:
        return sorted(trial_records(database, Filters()), key=lambda trial: trial.trial_id)


def _latencies_ns(script: Path) -> dict[str, float]:
    """Run a script as a person who has only torch would, and read what it prints."""
    found = re.findall(
        r"^(eager|compiled): +([\d.e+-]+) ms", _output(script, Path(sys.executable)), re.MULTILINE
    )
    return {name: float(value) * 1e6 for name, value in found}


def _output(script: Path, python: Path) -> str:
    finished = subprocess.run(
        [str(python), "-I", script.name],
        cwd=script.parent,
        env={"PATH": "/usr/bin:/bin", "HOME": str(script.parent)},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout
