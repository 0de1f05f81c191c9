"""A stored trial is measured again, or becomes a script that needs torch alone."""

from __future__ import annotations

import json
import re
import statistics
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from db.errors import CompilewatchError
from db.queries.filters import Filters
from db.queries.trials import trial_records
from db.records import Trial
from db.session import open_database
from db.strategies import BUILTIN, parse_strategy
from runner.config import Settings
from runner.reproduce import interpreter_for, plan_again, script_of
from runner.worker.host import torch_variant
from runner.workloads.catalog import WORKLOADS
from tests.builders import make_build, make_imported, make_machine, make_trial
from tests.runner.bare_environment import make_bare_environment
from tests.runner.terminal import compilewatch, in_this_process

PINNED = {"matmul_precision": "high", "environment": {"TORCHINDUCTOR_VEC_ISA_OK": "1"}}
CPU = make_machine(device="cpu", threads=1, device_uuid=None)


def _trial(workload: str = "mlp-train", strategy: str = "default", **changes: object) -> Trial:
    release, _, local = torch.__version__.partition("+")
    variant = torch_variant(local or None, torch.version.cuda, torch.version.hip)
    fields: dict[str, object] = {
        "workload": WORKLOADS[workload].record(),
        "strategy": parse_strategy(strategy, BUILTIN),
        "machine": CPU,
        "build": make_build(release, torch_variant=variant, settings=PINNED),
    }
    return make_trial(**fields | changes)  # type: ignore[arg-type]


def test_the_specification_is_that_of_the_trial():
    trial = _trial(strategy="default+dynamic+warm")
    (spec,) = plan_again(trial, Settings()).trials
    assert spec.strategy == trial.strategy
    assert spec.trial_id != trial.trial_id
    assert (spec.device, spec.threads, spec.settings.matmul_precision) == ("cpu", 1, "high")
    assert spec.worker_env == PINNED["environment"]
    assert str(spec.interpreter) == sys.executable


def _refused(trial: Trial) -> CompilewatchError:
    with pytest.raises(CompilewatchError) as caught:
        plan_again(trial, Settings())
    assert caught.value.next_step
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


def test_a_torch_that_is_not_here(tmp_path: Path):
    trial = _trial(build=make_build("2.6.0", torch_variant="cu124"))
    with pytest.raises(CompilewatchError, match=r"no build here has") as caught:
        interpreter_for(trial, Settings(data_dir=tmp_path))
    assert "builds create torch==2.6.0" in caught.value.next_step


@pytest.mark.parametrize("workload", WORKLOADS)
def test_every_script_has_all_it_names_and_nothing_of_ours(tmp_path: Path, workload: str):
    text = script_of(_trial(workload), Settings())
    assert not re.search(r"^(from|import) (runner|db)\b", text, re.MULTILINE)
    file = tmp_path / "script.py"
    file.write_text(text)
    rules = ["--isolated", "--select", "F811,F821", "--target-version", "py310"]
    checked = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--no-cache", *rules, str(file)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout


def test_a_script_carries_the_modules_of_a_project_whole(tmp_path: Path):
    (tmp_path / "compilewatch.toml").write_text('[[workload]]\nname = "mine"\ntarget = "mine:build"\n')
    (tmp_path / "mine.py").write_text(
        "import torch\nfrom layers import Block\n\ntorch.set_grad_enabled(False)\n\n"
        "def build(batch_size=2):\n    return Block(), torch.ones(batch_size, 4)\n"
    )
    (tmp_path / "layers.py").write_text(
        "from torch import nn\n\nclass Block(nn.Linear):\n"
        "    def __init__(self):\n        super().__init__(4, 4)\n"
    )
    (tmp_path / "tmp").mkdir()
    places = {"TMPDIR": str(tmp_path / "tmp")}
    ran = compilewatch("run", "-w", "mine", "-s", "eager", "--trials", "1", cwd=tmp_path, **places)
    assert ran.returncode == 0, ran.stderr
    (trial,) = _stored(tmp_path)
    written = compilewatch("reproduce", trial.trial_id, "--script", "-", cwd=tmp_path)
    (tmp_path / "elsewhere").mkdir()
    script = tmp_path / "elsewhere" / "script.py"
    script.write_text(written.stdout)
    assert "set_grad_enabled" in written.stdout
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
