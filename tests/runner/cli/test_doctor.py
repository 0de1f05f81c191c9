"""Each finding on a machine that has the trouble and on one that has not, and a validation of a real one."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from compilewatch.db.engine.schema import VERSION_TABLE
from compilewatch.db.engine.session import open_database
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import trial_records
from compilewatch.db.verdicts.noise_floors import read_noise_floors
from compilewatch.runner.cli.app import app
from compilewatch.runner.cli.front import exit_code_of
from compilewatch.runner.cli.measure import machine_checks
from compilewatch.runner.cli.measure.machine_checks import DeviceSetup, Standing, device_setup
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.device import state as device_state
from compilewatch.runner.plan.interpreter import InterpreterError, InterpreterFacts
from compilewatch.runner.process.spool import Spool
from tests.builders import make_trial
from tests.runner.process.test_device_state import Driver
from tests.runner.terminal import compilewatch, in_this_process

GIB = 2**30
IDLE = DeviceSetup(
    name="NVIDIA H200",
    driver="580.10",
    persistence=True,
    power_limit_w=700.0,
    power_default_w=700.0,
    sm_clock_mhz=345,
    sm_clock_max_mhz=1980,
    ecc=True,
    mig=False,
    utilization_percent=0,
    memory_used_bytes=600 * 2**20,
    processes=0,
)
UNKNOWN = DeviceSetup(*[None] * 12)


def test_a_kernel_that_counts_no_instructions_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_self: object) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(machine_checks.InstructionCounter, "__init__", refused)
    finding = machine_checks.instructions_finding()
    assert finding.standing is Standing.OK, "nothing keeps this machine from measuring"
    assert "not counted here (Operation not permitted)" in finding.fact


def _gpu(**changes: object) -> dict[str, Standing]:
    setup = DeviceSetup(**{**vars(IDLE), **changes})  # type: ignore[arg-type]
    return {finding.subject: finding.standing for finding in machine_checks.gpu_findings(setup, 1)}


def test_an_idle_gpu_is_fine_and_an_unknown_one_says_unknown():
    assert set(_gpu().values()) == {Standing.OK}
    for finding in machine_checks.gpu_findings(UNKNOWN, 1):
        assert finding.standing is Standing.OK
        assert "None" not in finding.fact
        assert "unknown" in finding.fact


@pytest.mark.parametrize(
    ("subject", "changes"),
    [
        ("persistence mode", {"persistence": False}),
        ("power cap", {"power_limit_w": 450.0}),
        ("partitions", {"mig": True}),
        ("other users of the GPU", {"processes": 2}),
        ("other users of the GPU", {"memory_used_bytes": 3 * GIB}),
        ("other users of the GPU", {"utilization_percent": 80}),
    ],
)
def test_what_disturbs_a_gpu_is_a_warning_of_its_own(subject: str, changes: dict[str, object]):
    found = _gpu(**changes)
    assert {name for name, standing in found.items() if standing is not Standing.OK} == {subject}


@pytest.mark.parametrize(("processes", "said"), [(0, "0 processes"), (1, "1 process"), (2, "2 processes")])
def test_processes_are_counted_in_words(processes: int, said: str):
    setup = DeviceSetup(**{**vars(IDLE), "processes": processes, "utilization_percent": 80})
    assert machine_checks.gpu_findings(setup, 1)[-1].fact.endswith(f", {said} listed")


def test_without_a_gpu():
    assert machine_checks.gpu_findings(None, 0)[0].standing is Standing.OK
    assert machine_checks.gpu_findings(None, 0)[0].fact == "none; not measured on a CPU: reduce-overhead"
    assert "NVML does not" in machine_checks.gpu_findings(None, 1)[0].fact
    assert "torch cannot use it" in machine_checks.gpu_findings(IDLE, 0)[0].fact


def test_the_setup_is_what_nvml_answers(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    answers = {
        "nvmlDeviceGetPersistenceMode": 0,
        "nvmlDeviceGetEnforcedPowerLimit": 450_000,
        "nvmlDeviceGetPowerManagementDefaultLimit": 700_000,
        "nvmlDeviceGetMigMode": (1, 1),
        "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=42),
        "nvmlDeviceGetComputeRunningProcesses": [["a", "b"]],
    }
    monkeypatch.setattr(device_state, "pynvml", Driver(**answers))
    setup = device_setup("cuda:0")
    assert (setup.persistence, setup.power_limit_w, setup.power_default_w) == (False, 450.0, 700.0)
    assert (setup.mig, setup.utilization_percent, setup.processes) == (True, 42, 2)
    assert (setup.name, setup.ecc, setup.sm_clock_mhz, setup.memory_used_bytes) == (None, None, None, None)
    assert device_setup("cpu") is None


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({}, "none, or not visible here"),
        ({"sys/fs/cgroup/cpu.max": "max 100000"}, "none, or not visible here"),
        ({"sys/fs/cgroup/cpu.max": "50000 100000"}, "0.5 CPUs of "),
        (
            {
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "25000",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
            },
            "0.25 CPUs of ",
        ),
        (
            {"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000"},
            "none, or not visible here",
        ),
    ],
)
def test_the_container_limit_in_both_layouts(tmp_path: Path, files: dict[str, str], says: str):
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content + "\n")
    finding = machine_checks.quota_finding(tmp_path)
    assert finding.fact.startswith(says)
    assert (finding.standing is Standing.WARN) == finding.fact[0].isdigit()


def test_the_governor(tmp_path: Path):
    assert "not visible" in machine_checks.governor_finding(tmp_path).fact
    file = tmp_path / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"
    file.parent.mkdir(parents=True)
    file.write_text("powersave\n")
    assert machine_checks.governor_finding(tmp_path).standing is Standing.WARN
    file.write_text("performance\n")
    assert machine_checks.governor_finding(tmp_path).standing is Standing.OK


def test_a_busy_machine_is_told_from_a_quiet_one(monkeypatch: pytest.MonkeyPatch):
    stalls = iter([0, 10_000_000, 0, 400_000_000])
    monkeypatch.setattr(machine_checks, "cpu_stall_ns", lambda: next(stalls))
    monkeypatch.setattr(machine_checks.psutil, "cpu_percent", lambda _seconds: 12.0)
    assert machine_checks.load_finding().standing is Standing.OK
    assert machine_checks.load_finding().standing is Standing.WARN
    monkeypatch.setattr(machine_checks, "cpu_stall_ns", lambda: None)
    assert machine_checks.load_finding().fact == "CPUs 12.0 % busy"


def test_torch_and_the_compiler(tmp_path: Path):
    facts = InterpreterFacts("python", "3.11.7", "2.13.0+cpu", None, None, 0)
    assert machine_checks.torch_finding(facts).fact == "2.13.0+cpu for the CPU, Python 3.11.7, no GPU"
    missing = machine_checks.torch_finding(InterpreterError("There is no torch.", "Install it."))
    assert (missing.standing, missing.next_step) == (Standing.FAIL, "Install it.")
    assert machine_checks.compiler_finding({"PATH": str(tmp_path)}).standing is Standing.FAIL


def test_the_headers_that_kernels_include(tmp_path: Path):
    missing = machine_checks.headers_finding(tmp_path)
    assert missing.standing is Standing.FAIL
    assert f"python3.{sys.version_info.minor}-dev" in missing.next_step
    (tmp_path / "Python.h").touch()
    assert machine_checks.headers_finding(tmp_path).standing is Standing.OK


def test_a_place_without_room_or_rights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def free(amount: int) -> Standing:
        monkeypatch.setattr(machine_checks.shutil, "disk_usage", lambda _path: SimpleNamespace(free=amount))
        return machine_checks.place_finding(
            "cache directory", tmp_path / "new" / "deep", runs_code=True
        ).standing

    assert [free(100 * 2**20), free(GIB), free(10 * GIB)] == [Standing.FAIL, Standing.WARN, Standing.OK]
    monkeypatch.setattr(machine_checks.os, "statvfs", lambda _path: SimpleNamespace(f_flag=os.ST_NOEXEC))
    assert free(10 * GIB) is Standing.FAIL
    monkeypatch.setattr(machine_checks.os, "access", lambda *_: False)
    assert (
        "cannot be written" in machine_checks.place_finding("data directory", tmp_path, runs_code=False).fact
    )


def test_the_spool_and_the_database(tmp_path: Path):
    settings = Settings(data_dir=tmp_path, database_url=f"sqlite:///{tmp_path / 'x.db'}")
    assert machine_checks.spool_finding(settings).standing is Standing.OK
    Spool(tmp_path / "spool").put(make_trial())
    assert machine_checks.spool_finding(settings).fact == "1 trial waiting"
    (tmp_path / "spool" / "bad").mkdir()
    (tmp_path / "spool" / "bad" / "A.json").touch()
    assert "1 trial set aside" in machine_checks.spool_finding(settings).fact

    assert "not there yet" in machine_checks.database_finding(settings).fact
    assert not (tmp_path / "x.db").exists()
    open_database(settings.database_url, migrate=True).close()
    assert machine_checks.database_finding(settings).standing is Standing.OK
    (tmp_path / "other.db").write_text("no database at all, but long enough to be looked at" * 20)
    other = Settings(data_dir=tmp_path, database_url=f"sqlite:///{tmp_path / 'other.db'}")
    assert machine_checks.database_finding(other).standing is Standing.FAIL
    with closing(sqlite3.connect(tmp_path / "x.db")) as connection, connection:
        connection.execute(f"UPDATE {VERSION_TABLE} SET version_num = '0000'")
    connection.close()
    assert machine_checks.database_finding(settings).standing is Standing.WARN


def test_the_command_changes_nothing(tmp_path: Path):
    result = in_this_process("doctor", "--json", cwd=tmp_path)
    document = json.loads(result.stdout)
    assert document["schema"] == "compilewatch.doctor/1"
    assert document["validation"] is None
    standings = {finding["subject"]: finding["standing"] for finding in document["findings"]}
    assert standings["torch"] == "ok"
    assert result.returncode == (1 if "fail" in standings.values() else 0)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("option", ["--minutes", "--processes"])
def test_options_of_a_validation_need_one(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    assert exit_code_of(app, ["doctor", option, "5"]) == 2
    shown = capsys.readouterr()
    assert shown.err == f"compilewatch: {option} is for a validation.\n  Add --validate, or leave it out.\n"
    assert shown.out == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_machine_is_validated_and_its_noise_floor_stored(tmp_path: Path):
    (tmp_path / "tmp").mkdir()
    options = ("--validate", "--processes", "3", "--minutes", "12", "--json")
    result = compilewatch("doctor", *options, cwd=tmp_path, timeout_s=800, TMPDIR=str(tmp_path / "tmp"))
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)["validation"]
    with open_database(f"sqlite:///{tmp_path / 'compilewatch.db'}") as database:
        trials = list(trial_records(database, Filters()))
        (floors,) = read_noise_floors(database).values()
    assert {(trial.suite, trial.strategy.name) for trial in trials} == {("validate", "default")}
    assert found["trials"] == len(trials) >= 3
    assert {check["name"] for check in found["checks"]} == {"latency", "speedup"}
    assert [floor["metric"] for floor in found["noise_floor"]] == ["latency", "speedup"]
    # The database has the trials in another order, so sums differ in the last bit.
    assert [floor["cv"] for floor in found["noise_floor"]] == pytest.approx(
        [floor.cv for floor in floors], rel=1e-12
    )
