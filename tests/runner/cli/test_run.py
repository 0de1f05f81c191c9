"""`compilewatch run` for real: fresh processes, a database, a table and a document."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from compilewatch.db.engine.session import open_database
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import trial_records
from tests.runner.fleet_processes import wait_until
from tests.runner.quick_measurement import configuration, interpreter
from tests.runner.terminal import COMMAND, compilewatch, environment, in_this_process

CANARIES = ("canary-gemm", "canary-copy", "canary-launch")
CONFIG = """
[run]
trials = 1
samples = 10
relative_interval = 0.99
warmup_s = 0
timeout_s = 120

[[strategy]]
name = "traced"
backend = "eager"
mode = "default"

[[workload]]
name = "gelu"
target = "mine:gelu"
"""

MINE = """
import torch

def gelu():
    return torch.nn.functional.gelu, (torch.ones(64, 64),)
"""


def laid_out(folder: Path) -> Path:
    (folder / "compilewatch.toml").write_text(CONFIG, encoding="utf-8")
    (folder / "mine.py").write_text(MINE, encoding="utf-8")
    # Locks of the device live there: another run on this host must not keep these waiting.
    (folder / "tmp").mkdir()
    return folder


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    return laid_out(tmp_path)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """A project after its first run, and what the command said."""
    folder = laid_out(tmp_path_factory.mktemp("measured"))
    result = compilewatch(
        *("run", "-w", "gelu", "-s", "eager", "-s", "traced", "-s", "reduce-overhead"),
        *("--device", "cpu", "--json"),
        cwd=folder,
        TMPDIR=str(folder / "tmp"),
        COMPILEWATCH_RUN__CANARIES="true",
    )
    return folder, result


@pytest.fixture
def patient_run(project: Path) -> Iterator[subprocess.Popen[str]]:
    """A run whose only trial takes half a minute."""
    configuration(project, interpreter(project / "build", seconds=30))
    with subprocess.Popen(
        [*COMMAND, "run"],
        cwd=project,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        process.kill()


def _document(text: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(text)
    return document


def _stored(project: Path) -> list[Any]:
    with open_database(f"sqlite:///{project / 'compilewatch.db'}", read_only=True) as database:
        return list(trial_records(database, Filters()))


def test_a_run_prints_one_document_and_stores_every_trial(
    measured: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    project, result = measured
    assert result.returncode == 0, result.stderr
    document = _document(result.stdout)
    assert document["schema"] == "compilewatch.run/1"
    rows = {row["strategy"]: row for row in document["rows"]}
    assert set(rows) == {"eager", "traced", "reduce-overhead"}
    assert rows["eager"]["trials"] == rows["traced"]["trials"] == 1
    assert rows["traced"]["speedup"] > 0
    assert rows["traced"]["speedup_interval"] is None  # one trial leaves no degree of freedom
    assert rows["traced"]["compile_cost_ns"] > 0
    assert rows["traced"]["break_even_steps"] is None  # a first look
    assert rows["traced"]["numerics"] == "pass"
    assert rows["reduce-overhead"]["status"] == "not_applicable"
    assert rows["reduce-overhead"]["latency_ns"] is None
    assert "CUDA graphs" in rows["reduce-overhead"]["reason"]
    trials = _stored(project)
    assert Counter(trial.workload.name for trial in trials) == {"gelu": 2} | dict.fromkeys(CANARIES, 2)
    assert {trial.status for trial in trials} == {"ok"}
    assert {trial.run_id for trial in trials} == {document["run_id"]}
    canaries = [trial for trial in trials if trial.workload.name in CANARIES]
    assert all(min(trial.samples_ns) > 10_000 for trial in canaries)


DOES_NOT_BUILD = """
if spec["workload"]["name"] == "cnn":
    failure = {"kind": "workload_error", "phase": "build_model", "message": "this model does not build"}
    say({"mark": "record", "status": "failed", "failure": failure})
    os._exit(0)
"""


def test_a_failure_is_stored_and_the_suite_goes_on(project: Path) -> None:
    configuration(project, interpreter(project / "build", death=DOES_NOT_BUILD))
    result = in_this_process("run", "-w", "cnn", "-w", "mlp-train", "-s", "eager", cwd=project)
    assert result.returncode == 1
    assert "cnn / eager: workload error: " in result.stdout
    assert "this model does not build" in result.stdout
    assert "Traceback" not in result.stdout + result.stderr
    by_name = {trial.workload.name: trial for trial in _stored(project)}
    assert by_name["mlp-train"].status == "ok"
    assert by_name["cnn"].status == "failed"
    assert by_name["cnn"].failure.phase == "build_model"
    more = f"Its log: `compilewatch show {by_name['cnn'].trial_id}`."
    assert (more in result.stdout, more in result.stderr) == (True, True)
    assert "this model does not build" in by_name["cnn"].failure.message


def test_export_and_import_bring_the_same_records(
    measured: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    project, _ = measured
    assert in_this_process("export", "--output", "out.jsonl", cwd=project).returncode == 0
    other = ["--db", f"sqlite:///{project / 'other.db'}"]
    first = in_this_process("import", "out.jsonl", *other, cwd=project)
    assert (first.returncode, "brought 8 trials." in first.stdout) == (0, True), first.stderr
    again = in_this_process("import", "out.jsonl", "--json", *other, cwd=project)
    assert (_document(again.stdout)["new"], _document(again.stdout)["known"]) == (0, 8)
    exported = in_this_process("export", *other, cwd=project)
    assert exported.stdout == (project / "out.jsonl").read_text(encoding="utf-8")


def test_an_interrupt_stores_what_was_measured(project: Path, patient_run: subprocess.Popen[str]) -> None:
    worker = _worker_of(patient_run.pid)
    patient_run.send_signal(signal.SIGTERM)
    _, error = patient_run.communicate(timeout=60)
    assert patient_run.returncode == 130, error
    assert "Traceback" not in error
    assert not psutil.pid_exists(worker)
    (trial,) = _stored(project)
    assert trial.failure.kind == "cancelled"


def test_a_killed_runner_leaves_no_worker_and_the_next_run_works(
    project: Path, patient_run: subprocess.Popen[str]
) -> None:
    worker = _worker_of(patient_run.pid)
    patient_run.kill()
    patient_run.wait(timeout=10)
    wait_until(lambda: not psutil.pid_exists(worker), 120, "the worker lives")
    interpreter(project / "build")
    assert in_this_process("run", cwd=project).returncode == 0
    assert [trial.status for trial in _stored(project)] == ["ok"]


def _worker_of(runner: int) -> int:
    """The id of the measured process, once `runner` has started it."""
    found: list[int] = []

    def started() -> bool:
        with contextlib.suppress(psutil.NoSuchProcess):
            children = psutil.Process(runner).children(recursive=True)
            found[:] = [child.pid for child in children if "worker/main.py" in " ".join(child.cmdline())]
        return bool(found)

    wait_until(started, 120, "no worker started")
    return found[0]
