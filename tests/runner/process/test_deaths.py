"""Every way a measured process can die becomes a stored failure with its reason; real processes."""

from __future__ import annotations

import os
import time
from functools import cache
from pathlib import Path
from statistics import median

import pytest

from compilewatch.dashboard.pages.trial.facts import figures
from compilewatch.db.records.trial import FailureKind, Status, parse_trial
from compilewatch.db.units import duration
from compilewatch.runner.cli.stored.show import facts_of
from compilewatch.runner.process.supervise import run_trial
from tests.qa.faults.memory_group import memory_group
from tests.runner.measuring import compiled, make_spec, measure
from tests.runner.quick_measurement import interpreter

died = cache(measure)


@pytest.mark.parametrize(
    ("fixture", "kind", "message"),
    [
        ("out_of_address_space", FailureKind.OUT_OF_MEMORY, "MemoryError"),
        ("raises", FailureKind.WORKLOAD_ERROR, "no layer 7"),
    ],
)
def test_each_death_is_a_failure_with_its_reason(fixture, kind, message):
    trial = died(fixture)
    expect_failure(trial, kind, message)
    assert trial.failure.phase == "build_model"
    # What a failed trial ran on is known all the same.
    assert trial.build.torch != "unknown"


@pytest.mark.parametrize(
    ("death", "kind", "message"),
    [
        ("os.kill(os.getpid(), 9)", FailureKind.CRASH, "SIGKILL"),
        ("os.kill(os.getpid(), 11)", FailureKind.CRASH, "SIGSEGV"),
        ("os._exit(3)", FailureKind.CRASH, "exit code 3"),
        ("os._exit(0)", FailureKind.BAD_RECORD, "without a record"),
        (r"os.write(fd, b'\x00\xff not a mark\n')", FailureKind.BAD_RECORD, "no mark"),
        ("for _ in range(64): os.write(fd, b'x' * (1 << 20))", FailureKind.BAD_RECORD, "larger than any"),
        ('os.write(fd, b\'{"mark": "record", "sta\'); os._exit(0)', FailureKind.BAD_RECORD, "breaks off"),
        (
            "say({'mark': 'record', 'status': 'ok', 'samples_ns': [-5]}); os._exit(0)",
            FailureKind.BAD_RECORD,
            "samples_ns",
        ),
    ],
)
def test_what_a_dying_process_wrote_is_no_measurement(death, kind, message, tmp_path):
    trial = measure("healthy", interpreter=str(interpreter(tmp_path / "build", death=death)))
    expect_failure(trial, kind, message)
    assert trial.build.torch == "2.13.0"


def expect_failure(trial, kind, message):
    assert trial.status is Status.FAILED
    assert trial.failure.kind is kind
    assert message in trial.failure.message
    assert trial.samples_ns == []
    assert parse_trial(trial.to_json()) == trial


def test_a_hang_ends_at_the_deadline_and_says_where():
    started = time.monotonic()
    trial = measure("hangs_in_c", timeout_s=20.0)
    assert time.monotonic() - started < 120
    assert trial.failure.kind is FailureKind.TIMEOUT
    assert trial.failure.phase == "build_model"
    assert trial.failure.signal is not None
    # faulthandler writes from the signal handler itself, so even a hang in C leaves its Python stack.
    assert "workload_fixtures.py" in (trial.failure.log_tail or "")


FLOOD = """
for chunk in [os.urandom(1 << 20)] * 50:
    sys.stdout.buffer.write(chunk)
    sys.stderr.buffer.write(chunk)
sys.stderr.buffer.write(b"\\nthe last words\\n")
"""


def test_a_flood_of_output_is_no_failure(tmp_path):
    """100 MB on stdout and stderr, a good part of it no text."""
    trial = measure("healthy", interpreter=str(interpreter(tmp_path / "build", death=FLOOD)))
    assert trial.status is Status.OK, trial.failure


def test_of_a_flood_the_last_64_kilobytes_are_kept(tmp_path):
    python = interpreter(tmp_path / "build", death=f"{FLOOD}sys.exit(1)")
    trial = measure("healthy", interpreter=str(python))
    log = trial.failure.log_tail or ""
    assert "the last words" in log
    assert len(log.encode()) <= 4 * 65_536
    assert len(log) <= 65_536


def test_messages_and_logs_carry_no_addresses():
    trial = died("raises")
    text = trial.failure.message + (trial.failure.log_tail or "")
    assert "example.org" not in text
    assert "token=abc" not in text


def test_of_a_trial_no_daemon_and_no_file_but_the_locks_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    pid_file = tmp_path / "daemon.pid"
    python = interpreter(tmp_path / "build", death=f"leave_a_daemon({str(pid_file)!r})")
    trial = measure("healthy", interpreter=str(python))
    assert trial.status is Status.OK, trial.failure
    assert not Path(f"/proc/{pid_file.read_text().strip()}").exists()
    assert measure("healthy", interpreter="/bin/false").status is Status.FAILED
    assert {path.name for path in tmp_path.iterdir()} == {"build", "compilewatch-locks", "daemon.pid"}


def test_a_torch_less_interpreter_is_an_import_error(tmp_path):
    import venv

    venv.create(tmp_path / "bare", with_pip=False)
    trial = measure("healthy", interpreter=str(tmp_path / "bare" / "bin" / "python"))
    assert trial.failure.kind is FailureKind.IMPORT_ERROR
    assert trial.failure.phase == "import_torch"
    assert trial.build.torch == "unknown"


def test_an_interpreter_that_is_none_is_a_crash():
    trial = measure("healthy", interpreter="/bin/false")
    assert trial.failure.kind is FailureKind.CRASH
    assert trial.failure.phase is None


@pytest.mark.slow
def test_a_full_disk_is_named_as_such(tmp_path):
    small_disk = tmp_path / "small"
    small_disk.mkdir()
    if os.geteuid() != 0 or os.system(f"mount -t tmpfs -o size=64k none {small_disk} 2>/dev/null") != 0:
        pytest.skip("mounting a small file system needs root and the capability to mount")
    try:
        spec = make_spec("relu_function", compiled("inductor"), task="function")
        small = {"TORCHINDUCTOR_CACHE_DIR": str(small_disk / "inductor"), "TMPDIR": str(small_disk)}
        trial = run_trial(spec.model_copy(update={"worker_env": spec.worker_env | small}))
    finally:
        os.system(f"umount {small_disk}")
    assert trial.failure.kind is FailureKind.DISK_FULL, trial.failure.message


@pytest.mark.slow
def test_a_wrong_compiled_result_is_a_failure():
    trial = measure("wrong_when_compiled", compiled("eager"), task="function")
    assert trial.failure.kind is FailureKind.WRONG_RESULT, trial.failure.message
    assert trial.numerics.status == "fail"


def test_a_compilation_that_outlives_the_deadline_leaves_what_was_measured_before_it():
    trial = measure(
        "compiles_for_ever", compiled("eager"), target="field_models:compiles_for_ever", timeout_s=25.0
    )
    assert (trial.failure.kind, trial.failure.phase) == (FailureKind.TIMEOUT, "first_call")
    assert "timeout_s" in trial.failure.message
    assert trial.cold_start.eager_first_ns > 0
    assert trial.cold_start.import_torch_ns > 0
    assert trial.cold_start.first_call_ns is None
    assert len(trial.control_warmup_ns) == 5
    shown = f"{duration(median(trial.control_warmup_ns))}, median of 5 calls before anything was compiled"
    assert ("eager", shown) in facts_of(trial, Path())
    assert ("Eager", shown.partition(",")[0]) in [(each.title, each.text) for each in figures(trial)]
    assert parse_trial(trial.to_json()) == trial


def test_a_process_that_is_killed_for_memory_leaves_what_was_measured_before_it():
    with memory_group(400 << 20) as group:
        trial = measure(
            "takes_all_memory",
            compiled("eager"),
            target="field_models:takes_all_memory",
            kwargs={"group": str(group.members)},
        )
    assert (trial.failure.kind, trial.failure.phase) == (FailureKind.OUT_OF_MEMORY, "warmup")
    assert "`batch_size`" in trial.failure.message
    assert trial.cold_start.first_call_ns > 0
    assert trial.control_warmup_ns
