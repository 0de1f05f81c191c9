"""Each finding on a machine that has the trouble and on one that has not, and the noise by hand."""

from __future__ import annotations

import json
import math
import os
import sqlite3
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from runner.doctor.noise import noise_of

from db.errors import CompilewatchError
from db.migrations import VERSION_TABLE
from db.queries.filters import Filters
from db.queries.trials import trial_records
from db.session import open_database
from db.verdicts.noise_floor import smallest_effect
from db.verdicts.significance import trials_needed
from runner import device_state
from runner.config import Settings
from runner.device_setup import DeviceSetup, device_setup
from runner.doctor import hardware, software
from runner.doctor.findings import Standing
from runner.interpreter import InterpreterError, InterpreterFacts
from runner.spool import Spool
from tests.builders import make_trial
from tests.runner.terminal import compilewatch
from tests.runner.test_supervise_device_state import Driver

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


def _gpu(**changes: object) -> dict[str, Standing]:
    setup = DeviceSetup(**{**vars(IDLE), **changes})  # type: ignore[arg-type]
    return {finding.subject: finding.standing for finding in hardware.gpu_findings(setup, 1)}


def test_an_idle_gpu_is_fine_and_an_unknown_one_says_unknown():
    assert set(_gpu().values()) == {Standing.OK}
    for finding in hardware.gpu_findings(UNKNOWN, 1):
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


def test_without_a_gpu():
    assert hardware.gpu_findings(None, 0)[0].standing is Standing.OK
    assert hardware.gpu_findings(None, 0)[0].fact == (
        "none; not measured on a CPU: reduce-overhead, max-autotune, max-autotune-no-cudagraphs"
    )
    assert "NVML does not" in hardware.gpu_findings(None, 1)[0].fact
    assert "torch cannot use it" in hardware.gpu_findings(IDLE, 0)[0].fact


def test_the_setup_is_what_nvml_answers(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    answers = {
        "nvmlDeviceGetPersistenceMode": 0,
        "nvmlDeviceGetEnforcedPowerLimit": 450_000,
        "nvmlDeviceGetPowerManagementDefaultLimit": 700_000,
        "nvmlDeviceGetMigMode": [[1, 1]],
        "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=42),
        "nvmlDeviceGetComputeRunningProcesses": [["a", "b"]],
    }
    monkeypatch.setattr(device_state, "pynvml", Driver(**answers))
    setup = device_setup("cuda:0")
    assert setup is not None
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
    finding = hardware.quota_finding(tmp_path)
    assert finding.fact.startswith(says)
    assert (finding.standing is Standing.WARN) == finding.fact[0].isdigit()


def test_the_governor(tmp_path: Path):
    assert "not visible" in hardware.governor_finding(tmp_path).fact
    file = tmp_path / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"
    file.parent.mkdir(parents=True)
    file.write_text("powersave\n")
    assert hardware.governor_finding(tmp_path).standing is Standing.WARN
    file.write_text("performance\n")
    assert hardware.governor_finding(tmp_path).standing is Standing.OK


def test_a_busy_machine_is_told_from_a_quiet_one(monkeypatch: pytest.MonkeyPatch):
    stalls = iter([0, 10_000_000, 0, 400_000_000])
    monkeypatch.setattr(hardware, "cpu_stall_ns", lambda: next(stalls))
    monkeypatch.setattr(hardware.psutil, "cpu_percent", lambda _seconds: 12.0)
    assert hardware.load_finding().standing is Standing.OK
    assert hardware.load_finding().standing is Standing.WARN
    monkeypatch.setattr(hardware, "cpu_stall_ns", lambda: None)
    assert hardware.load_finding().fact == "CPUs 12.0 % busy"


def test_torch_and_the_compiler(tmp_path: Path):
    facts = InterpreterFacts("python", "3.11.7", "2.13.0+cpu", None, None, 0)
    assert software.torch_finding(facts).fact == "2.13.0+cpu for the CPU, Python 3.11.7, no GPU"
    missing = software.torch_finding(InterpreterError("There is no torch.", "Install it."))
    assert (missing.standing, missing.next_step) == (Standing.FAIL, "Install it.")
    assert software.compiler_finding({"PATH": str(tmp_path)}).standing is Standing.FAIL


def test_the_headers_that_kernels_include(tmp_path: Path):
    missing = software.headers_finding(tmp_path)
    assert missing.standing is Standing.FAIL
    assert f"python3.{sys.version_info.minor}-dev" in missing.next_step
    (tmp_path / "Python.h").touch()
    assert software.headers_finding(tmp_path).standing is Standing.OK


def test_a_place_without_room_or_rights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def free(amount: int) -> Standing:
        monkeypatch.setattr(software.shutil, "disk_usage", lambda _path: SimpleNamespace(free=amount))
        return software.place_finding("cache directory", tmp_path / "new" / "deep", runs_code=True).standing

    assert [free(100 * 2**20), free(GIB), free(10 * GIB)] == [Standing.FAIL, Standing.WARN, Standing.OK]
    monkeypatch.setattr(software.os, "statvfs", lambda _path: SimpleNamespace(f_flag=os.ST_NOEXEC))
    assert free(10 * GIB) is Standing.FAIL
    monkeypatch.setattr(software.os, "access", lambda *_: False)
    assert "cannot be written" in software.place_finding("data directory", tmp_path, runs_code=False).fact


def test_the_spool_and_the_database(tmp_path: Path):
    settings = Settings(data_dir=tmp_path, database_url=f"sqlite:///{tmp_path / 'x.db'}")
    assert software.spool_finding(settings).standing is Standing.OK
    Spool(tmp_path / "spool").put(make_trial())
    assert software.spool_finding(settings).fact == "1 trial waiting"
    (tmp_path / "spool" / "bad").mkdir()
    (tmp_path / "spool" / "bad" / "A.json").touch()
    assert "1 trial set aside" in software.spool_finding(settings).fact

    assert "not there yet" in software.database_finding(settings).fact
    assert not (tmp_path / "x.db").exists()
    open_database(settings.database_url, migrate=True).close()
    assert software.database_finding(settings).standing is Standing.OK
    (tmp_path / "other.db").write_text("no database at all, but long enough to be looked at" * 20)
    other = Settings(data_dir=tmp_path, database_url=f"sqlite:///{tmp_path / 'other.db'}")
    assert software.database_finding(other).standing is Standing.FAIL
    with sqlite3.connect(tmp_path / "x.db") as connection:
        connection.execute(f"UPDATE {VERSION_TABLE} SET version_num = '0000'")
    connection.close()
    assert software.database_finding(settings).standing is Standing.WARN


def test_the_noise_by_hand():
    """Logarithms -0.01, 0, 0.01 have the standard deviation 0.01."""
    noise = noise_of([1e6 * math.exp(step) for step in (-0.01, 0.0, 0.01)])
    assert noise.cv == pytest.approx(0.01)
    assert noise.visible[10] == pytest.approx(0.01 * 4.455 * math.sqrt(0.2))
    assert noise.needed == {0.02: 10, 0.05: 2, 0.10: 2}
    with pytest.raises(CompilewatchError, match="Only 2 trials"):
        noise_of([1.0, 1.0])


@pytest.mark.parametrize("trials", [3, 10, 200])
def test_the_smallest_effect_is_the_one_that_needs_just_that_many_trials(trials: int):
    effect = smallest_effect(0.03, trials)
    assert trials_needed(0.03, effect * 1.0001) == trials
    assert trials_needed(0.03, effect * 0.999) == trials + 1


def test_the_command_changes_nothing(tmp_path: Path):
    result = compilewatch("doctor", "--json", cwd=tmp_path)
    document = json.loads(result.stdout)
    assert document["schema"] == "compilewatch.doctor/1"
    assert document["noise"] is None
    standings = {finding["subject"]: finding["standing"] for finding in document["findings"]}
    assert standings["torch"] == "ok"
    assert result.returncode == (1 if "fail" in standings.values() else 0)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_identical_trials_are_measured_and_stored(tmp_path: Path):
    (tmp_path / "tmp").mkdir()
    result = compilewatch(
        "doctor", "--noise", "--trials", "3", "--json", cwd=tmp_path, TMPDIR=str(tmp_path / "tmp")
    )
    assert result.returncode == 0, result.stderr
    noise = json.loads(result.stdout)["noise"]
    with open_database(f"sqlite:///{tmp_path / 'compilewatch.db'}") as database:
        trials = list(trial_records(database, Filters()))
    assert {(trial.suite, trial.strategy.name, trial.status.value) for trial in trials} == {
        ("noise", "eager", "ok")
    }
    assert noise["trials"] == len(trials) == 3
    assert noise["cv"] > 0
    changes = [entry["change"] for entry in noise["smallest_change"]]
    assert changes == sorted(changes, reverse=True)
