"""Where the compiler's own log goes, and the report of it; tlparse is a stand-in but for one real run."""

from __future__ import annotations

import os
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from compilewatch.db.records.trial import Status
from compilewatch.runner.plan.trial_spec import Diagnostics
from compilewatch.runner.process import trace
from compilewatch.runner.process.trace import forget_traces, trace_directory, trace_in
from tests.runner.measuring import compiled, make_spec


def _log(data_dir: Path, text: str, name: str = "dedicated_log_torch_trace_ab.log") -> Path:
    directory = trace_directory(data_dir, "T1")
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / name
    path.write_text(text)
    return path


def _stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    command = tmp_path / "bin" / "tlparse"
    command.parent.mkdir()
    command.write_text("#!/bin/sh\n" + script)
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(trace, "tlparse_command", lambda: str(command))


def test_a_log_is_named_below_the_data_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace, "tlparse_command", lambda: None)
    _log(tmp_path, "12345")
    found = trace_in(tmp_path, "T1")
    assert (found.directory, found.size_bytes, found.report) == ("traces/T1", 5, None)


def test_old_traces_are_deleted_and_new_ones_kept(tmp_path: Path) -> None:
    now = datetime(2026, 11, 20, tzinfo=UTC)
    for name, days in (("old", 31), ("new", 29)):
        directory = trace_directory(tmp_path, name)
        (directory / "report").mkdir(parents=True)
        (directory / "a.log").write_text("log")
        at = (now - timedelta(days=days)).timestamp()
        os.utime(directory, (at, at))
    assert forget_traces(tmp_path, None, now) == 0
    assert forget_traces(tmp_path, 30, now) == 1
    assert [path.name for path in (tmp_path / "traces").iterdir()] == ["new"]
    assert forget_traces(tmp_path / "no" / "traces", 30, now) == 0


def test_the_longest_log_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _stand_in(tmp_path, monkeypatch, 'mkdir -p "$3" && echo "$1" > "$3/index.html"\n')
    longest = _log(tmp_path, "a long log", "one.log")
    _log(tmp_path, "short", "two.log")
    found = trace_in(tmp_path, "T1")
    assert found.report == "traces/T1/report/index.html"
    assert (tmp_path / found.report).read_text().strip() == str(longest)


def test_a_tlparse_that_fails_leaves_the_log_and_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    _stand_in(tmp_path, monkeypatch, "echo 'no such log line' >&2; exit 3\n")
    _log(tmp_path, "12345")
    found = trace_in(tmp_path, "T1")
    assert found.report is None
    assert "no such log line" in caplog.text


def test_no_log_leaves_no_directory(tmp_path: Path) -> None:
    _log(tmp_path, "")
    assert trace_in(tmp_path, "T1") is None
    assert not trace_directory(tmp_path, "T1").exists()


@pytest.mark.slow
def test_a_real_trial_keeps_its_log_and_tlparse_reads_it(tmp_path: Path) -> None:
    from compilewatch.runner.process.supervise import run_trial

    heard: list[str] = []
    strategy = compiled("inductor", mode="default")
    diagnostics = Diagnostics(profile=True, trace_into=tmp_path)
    spec = make_spec("relu_function", strategy, task="function", diagnostics=diagnostics)
    trial = run_trial(spec, on_phase=heard.append)
    assert trial.status is Status.OK, trial.failure
    directory = tmp_path / trial.trace.directory
    assert trial.trace.directory == f"traces/{trial.trial_id}"
    assert any('"dynamo_start"' in log.read_text() for log in directory.glob("*.log"))
    # Three processes: the timed one, the profiled one from its caches, the traced one from empty ones.
    assert heard.count("first_call") == 3
    assert heard.index("sampling") < heard.index("profile")
    (source,) = trial.trace.sources
    assert source.hash == trial.compiler.generated[0].hash
    assert "def call(" in source.source
    assert (trial.profile.control.operators, trial.profile.own.operators) == (3, 0)
    assert trial.profile.flops == 0
    if trace.tlparse_command() is None:
        pytest.skip("tlparse is not installed: pip install compilewatch[trace]")
    assert trial.trace.report is not None
    assert "<html" in (tmp_path / trial.trace.report).read_text()


def test_only_folders_of_traces_are_deleted(tmp_path: Path) -> None:
    """A link among them leads elsewhere, and neither it nor a file stops what deletes the others."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "kept").touch()
    traces = trace_directory(tmp_path, "old").parent
    (traces / "old").mkdir(parents=True)
    (traces / "link").symlink_to(elsewhere)
    (traces / "file").touch()
    for path in (elsewhere, traces / "old", traces / "file"):
        os.utime(path, (0, 0))
    assert forget_traces(tmp_path, 30, datetime(2026, 11, 20, tzinfo=UTC)) == 1
    assert (elsewhere / "kept").exists()
    assert not (traces / "old").exists()
