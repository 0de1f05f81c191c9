"""Every way a measured process can die becomes a stored failure with its reason; real processes."""

from __future__ import annotations

import os
import time
from functools import cache
from pathlib import Path

import pytest

from db.records.trial import FailureKind, Status, parse_trial
from runner.process.supervise import run_trial
from tests.runner.measuring import compiled, make_spec, measure

PATH_WITHOUT_COMPILER = "/nonexistent"
died = cache(measure)


@pytest.mark.parametrize(
    ("fixture", "kind", "phase", "message"),
    [
        ("segfaults", FailureKind.CRASH, "build_model", "SIGSEGV"),
        ("killed", FailureKind.CRASH, "build_model", "SIGKILL"),
        ("out_of_memory", FailureKind.OUT_OF_MEMORY, "build_model", "can't allocate memory"),
        ("out_of_address_space", FailureKind.OUT_OF_MEMORY, "build_model", "MemoryError"),
        ("writes_garbage_record", FailureKind.BAD_RECORD, "numerics", "no mark"),
        ("writes_huge_record", FailureKind.BAD_RECORD, "build_model", "larger than any record"),
        ("writes_half_record", FailureKind.BAD_RECORD, "build_model", "breaks off"),
        ("writes_invalid_record", FailureKind.BAD_RECORD, "build_model", "samples_ns"),
        ("exits_quietly", FailureKind.BAD_RECORD, "build_model", "without a record"),
        ("exits_with_three", FailureKind.CRASH, "build_model", "exit code 3"),
        ("raises", FailureKind.WORKLOAD_ERROR, "build_model", "no layer 7"),
        ("returns_nonsense", FailureKind.WORKLOAD_ERROR, "build_model", "A builder returns"),
        ("not_there", FailureKind.IMPORT_ERROR, "import_libraries", "not_there"),
    ],
)
def test_each_death_is_a_failure_with_its_reason(fixture, kind, phase, message):
    trial = died(fixture)
    assert trial.status is Status.FAILED
    assert trial.failure is not None
    assert trial.failure.kind is kind
    assert message in trial.failure.message
    if fixture != "writes_garbage_record":
        assert trial.failure.phase == phase
    assert trial.samples_ns == []
    # What a failed trial ran on is known all the same, and the record is one.
    assert trial.build.torch != "unknown"
    assert parse_trial(trial.to_json()) == trial


def test_a_hang_ends_at_the_deadline_and_says_where():
    started = time.monotonic()
    trial = measure("hangs_in_c", timeout_s=12.0)
    assert time.monotonic() - started < 30
    assert trial.failure is not None
    assert trial.failure.kind is FailureKind.TIMEOUT
    assert trial.failure.phase == "build_model"
    assert trial.failure.signal is not None
    # faulthandler writes from the signal handler itself, so even a hang in C leaves its Python stack.
    assert "workload_fixtures.py" in (trial.failure.log_tail or "")


def test_a_flood_of_output_is_no_failure():
    trial = measure("prints_garbage")
    assert trial.status is Status.OK, trial.failure


def test_an_unknown_backend_is_a_compile_error_and_of_a_flood_the_last_64_kilobytes_are_kept():
    trial = measure("prints_garbage", strategy=compiled("no_such_backend"))
    assert trial.failure is not None
    assert trial.failure.kind is FailureKind.COMPILE_ERROR
    log = trial.failure.log_tail or ""
    assert "no_such_backend" in log
    assert len(log.encode()) <= 4 * 65_536
    assert len(log) <= 65_536


def test_messages_and_logs_carry_no_addresses():
    trial = died("raises")
    assert trial.failure is not None
    text = trial.failure.message + (trial.failure.log_tail or "")
    assert "example.org" not in text
    assert "token=abc" not in text


def test_a_detached_daemon_does_not_outlive_its_trial(tmp_path):
    pid_file = tmp_path / "daemon.pid"
    trial = measure("leaves_a_daemon", kwargs={"pid_file": str(pid_file)})
    assert trial.status is Status.OK, trial.failure
    assert not Path(f"/proc/{pid_file.read_text()}").exists()


def test_nothing_but_the_locks_is_left_on_disk(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert measure("healthy").status is Status.OK
    assert measure("segfaults").status is Status.FAILED
    assert [path.name for path in tmp_path.iterdir()] == ["compilewatch-locks"]


def test_a_torch_less_interpreter_is_an_import_error(tmp_path):
    import venv

    venv.create(tmp_path / "bare", with_pip=False)
    trial = measure("healthy", interpreter=str(tmp_path / "bare" / "bin" / "python"))
    assert trial.failure is not None
    assert trial.failure.kind is FailureKind.IMPORT_ERROR
    assert trial.failure.phase == "import_torch"
    assert trial.build.torch == "unknown"


def test_an_interpreter_that_is_none_is_a_crash():
    trial = measure("healthy", interpreter="/bin/false")
    assert trial.failure is not None
    assert trial.failure.kind is FailureKind.CRASH
    assert trial.failure.phase is None


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
    assert trial.failure is not None
    assert trial.failure.kind is FailureKind.DISK_FULL, trial.failure.message


def test_a_missing_compiler_is_named_as_such():
    spec_env = {"CXX": "/nonexistent/g++", "PATH": PATH_WITHOUT_COMPILER}
    trial = measure("relu_function", compiled("inductor"), task="function", worker_env=spec_env)
    assert trial.failure is not None
    assert trial.failure.kind is FailureKind.MISSING_COMPILER, trial.failure.message
    assert trial.failure.phase == "first_call"
    assert trial.build.compiler is None


def test_a_compilation_that_fails_says_on_one_line_what_the_compiler_said(tmp_path):
    compiler = tmp_path / "g++"
    compiler.write_text(
        "#!/bin/sh\n"
        'case "$1" in *version) exec g++ "$@" ;; esac\n'
        "echo 'In file included from here:' >&2\n"
        "echo '/tmp/some/cache/abc.main.cpp:2:10: fatal error: Python.h: No such file or directory' >&2\n"
        "echo 'compilation terminated.' >&2\n"
        "exit 1\n"
    )
    compiler.chmod(0o755)
    trial = measure("relu_function", compiled("inductor"), task="function", worker_env={"CXX": str(compiler)})
    assert trial.failure is not None
    assert trial.failure.kind is FailureKind.COMPILE_ERROR, trial.failure.message
    assert trial.failure.message == (
        "CppCompileError: C++ compile error: "
        "abc.main.cpp:2:10: fatal error: Python.h: No such file or directory"
    )


def test_an_untraceable_operation_under_fullgraph_is_unsupported():
    trial = measure("unfakeable", compiled("eager", fullgraph=True), task="function")
    assert trial.failure is not None
    assert trial.failure.kind is FailureKind.UNSUPPORTED, trial.failure.message


def test_a_graph_break_under_fullgraph_is_unsupported():
    trial = measure("breaks_graph", compiled("eager", fullgraph=True), task="function")
    assert trial.failure is not None
    assert trial.failure.kind is FailureKind.UNSUPPORTED, trial.failure.message


def test_a_wrong_compiled_result_is_a_failure():
    trial = measure("wrong_relu", compiled("inductor"), task="function")
    assert trial.failure is not None
    assert trial.failure.kind is FailureKind.WRONG_RESULT, trial.failure.message
    assert trial.numerics is not None
    assert trial.numerics.status == "fail"
