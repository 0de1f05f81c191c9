"""The recorder of jobs: it changes nothing in what it records, and never fails the job."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from compilewatch.db.records.trial import Trial
from compilewatch.runner import compilewatch_recorder
from tests.db.interchange.reading import read

ROOT = Path(__file__).resolve().parents[2]
TRAIN = """
import sys
import torch
from torch import nn
from torch._dynamo.utils import counters
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
compiled = torch.compile(model, backend="eager")
for number in range(40):
    optimizer.zero_grad()
    loss = compiled(torch.ones(4 if number < 20 else 6, 8)).square().mean()
    loss.backward()
    optimizer.step()
print(repr(loss.item()), sys.argv, __name__, [type(each).__name__ for each in sys.meta_path][:1])
print(vars(torch.__spec__.loader).keys())

# An optimizer inside of what is compiled has the same graph.
counters.clear()
parameter = torch.nn.Parameter(torch.ones(4))
inner = torch.optim.SGD([parameter], lr=0.1)

@torch.compile(backend="eager")
def train(batch):
    inner.step()
    return batch.sin()

for _ in range(3):
    parameter.grad = torch.ones(4)
    train(torch.ones(4))
print(parameter.tolist(), dict(counters["stats"]), dict(counters["graph_break"]))
"""


def run(*arguments: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "COMPILEWATCH_JOBS": str(folder)} | variables
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def without_time(log: str) -> str:
    """Lines of torch's log without moment and process."""
    return re.sub(r"^(\w)\d{4} [\d:.]+ +\d+ ", r"\1 ", log, flags=re.MULTILINE)


def recorded(folder: Path, *, torch: str | None = None) -> list[Trial]:
    """The trials of a folder; of a job that imports no torch, `torch` is what it would have said."""
    return read(folder, torch=torch)


def test_a_recorded_job_is_the_same_job(tmp_path: Path) -> None:
    folder, program = tmp_path / "jobs", tmp_path / "train.py"
    program.write_text(TRAIN)
    plain = run(str(program), folder=folder)
    assert not folder.exists()
    recorder = ("-m", "compilewatch.record", "--name", "ranker", "--")
    traced = run(*recorder, str(program), "argument", folder=folder)
    assert (traced.returncode, without_time(traced.stderr)) == (0, without_time(plain.stderr))
    assert traced.stdout == plain.stdout.replace("train.py']", "train.py', 'argument']")
    (trial,) = recorded(folder)
    start, facts = trial.cold_start, trial.compiler
    assert start.total_ns is not None
    assert start.import_torch_ns
    assert start.phases_ns.dynamo
    compiling_ns = sum(start.phases_ns.model_dump(exclude_none=True).values())
    assert start.total_ns > start.import_torch_ns + compiling_ns
    assert start.process_tree_cpu_ns
    assert [each.location for each in facts.recompiles] != []
    assert "size mismatch at index 0. expected 4, actual 6" in facts.recompiles[0].reason
    assert trial.summary.metrics["steps_recorded"] == 40
    assert trial.summary.metrics["guards"] > 0
    assert trial.memory.peak_rss_bytes


STEPPING = """
import os, signal, sys
from compilewatch import record as recorder
for number in range(400):
    recorder.step()
    if number == 12 and "killed" in sys.argv:
        os.kill(os.getpid(), signal.SIGKILL)
print("done")
"""


def test_a_killed_job_leaves_what_it_did_until_then(tmp_path: Path) -> None:
    folder, job = tmp_path / "jobs", tmp_path / "train.py"
    job.write_text(STEPPING)
    done = run("-m", "compilewatch.record", "--", str(job), "killed", folder=folder)
    assert done.returncode == -signal.SIGKILL
    (trial,) = recorded(folder, torch="2.13.0")
    assert trial.workload.name == "train"
    assert trial.cold_start.total_ns
    assert trial.summary.metrics["steps_recorded"] == 10


LIMITED = """
import resource, runpy, sys
from compilewatch.runner import compilewatch_recorder
from tests.db.interchange.reading import read
compilewatch_recorder.start("limited")
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, 1_000))
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def test_a_full_disk_ends_the_recording_and_not_the_job(tmp_path: Path) -> None:
    folder, job = tmp_path / "jobs", tmp_path / "train.py"
    job.write_text(STEPPING)
    limited = run("-c", LIMITED, str(job), folder=folder)
    assert (limited.returncode, limited.stdout, limited.stderr) == (0, "done\n", "")
    (path,) = folder.iterdir()
    assert path.stat().st_size == 1_000
    assert len(recorded(folder, torch="2.13.0")) == 1


@pytest.mark.parametrize("name", ["_memory", "_at_first_step"])
def test_an_exception_inside_the_recorder_does_not_reach_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    failed = []

    def fails() -> None:
        failed.append(name)
        raise RuntimeError("inside the recorder")

    monkeypatch.setattr(compilewatch_recorder, name, fails)
    compilewatch_recorder.start("broken", directory=tmp_path)
    for _ in range(60):
        compilewatch_recorder.step()
    compilewatch_recorder.stop()
    assert failed == [name]
    assert capfd.readouterr() == ("", "")
    assert len(recorded(tmp_path, torch="2.13.0")) == 1


def test_a_folder_that_cannot_be_made_leaves_a_warning(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "job.py").write_text("print('done')\n")
    done = run("-m", "compilewatch.record", "--", str(tmp_path / "job.py"), folder=tmp_path / "file" / "jobs")
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert "The job is not recorded" in done.stderr


def test_an_exception_of_the_job_is_its_own(tmp_path: Path) -> None:
    (tmp_path / "fails.py").write_text("import sys\nsys.exit(7)\n")
    assert (
        run("-m", "compilewatch.record", "--", str(tmp_path / "fails.py"), folder=tmp_path / "j").returncode
        == 7
    )
    assert run("-m", "compilewatch.record", folder=tmp_path / "j").returncode == 1


FORKED = """
import os, sys
from compilewatch import record as recorder
recorder.start("parent")
for _ in range(3):
    recorder.step()
if os.fork() == 0:
    for _ in range(60):
        recorder.step()
    sys.exit()
os.wait()
for _ in range(2):
    recorder.step()
recorder.stop()
recorder.step()
"""


def test_a_forked_process_writes_nothing(tmp_path: Path) -> None:
    assert run("-c", FORKED, folder=tmp_path).returncode == 0
    (path,) = tmp_path.glob("*.jsonl")
    lines: list[dict[str, Any]] = [json.loads(line) for line in path.read_text().splitlines()]
    assert sum(len(line.get("steps_ns", ())) for line in lines) == 5
    assert [line for line in lines if "ended" in line] == lines[-1:]


def test_ranks_of_a_launch_share_a_run(tmp_path: Path) -> None:
    for rank in "01":
        variables = {"RANK": rank, "WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "7"}
        program = "from compilewatch import record as r; r.start('ddp'); r.step(); r.stop()"
        assert run("-c", program, folder=tmp_path, **variables).returncode == 0
    trials = recorded(tmp_path, torch="2.13.0")
    assert len({trial.run_id for trial in trials}) == 1
    assert [trial.summary.metrics["rank"] for trial in trials if trial.summary] == [0.0, 1.0]
    assert {trial.strategy.name for trial in trials} == {"eager"}


_LOOP = """
import time
import torch
from torch import nn
from torch.utils.data import DataLoader
from compilewatch import record

class Slow:
    def __len__(self):
        return 12
    def __getitem__(self, number):
        time.sleep(0.02)
        return torch.ones(4)

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in record.batches(DataLoader(Slow(), batch_size=1)):
    optimizer.zero_grad()
    model(batch).square().mean().backward()
    optimizer.step()
"""


def test_a_program_that_is_misspelt_is_named_and_nothing_recorded(tmp_path: Path) -> None:
    done = run("-m", "compilewatch.record", "trian.py", folder=tmp_path / "jobs")
    assert done.returncode == 1
    assert done.stderr.startswith("There is no program trian.py.\nusage: ")
    assert not (tmp_path / "jobs").exists()


def test_what_a_loop_waits_for_its_data_is_noted(tmp_path: Path) -> None:
    """Twelve batches of 20 ms each; a step of so small a model takes next to nothing."""
    folder, program = tmp_path / "jobs", tmp_path / "train.py"
    program.write_text(_LOOP)
    done = run("-m", "compilewatch.record", "--name", "loader", "--", str(program), folder=folder)
    assert done.returncode == 0, done.stderr
    (trial,) = recorded(folder)
    figures = trial.summary.metrics
    assert 0.24 <= figures["loop_data_s"] <= figures["loop_s"]
    assert figures["steady_data_share"] > 0.5
    assert figures["loop_compile_s"] == 0
