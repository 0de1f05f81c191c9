"""What the supervisor costs: a suite's wall time over the sum of its trials' own process times.

The reference is taken from outside: the interpreter is a two-line wrapper that notes when each measured
process starts and ends, and nothing of the supervisor is between those two moments.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from tests.runner.terminal import compilewatch

WRAPPER = """#!/bin/sh
case "$*" in *worker/main.py*) date +%s%N >> {log} ;; esac
{python} "$@"
code=$?
case "$*" in *worker/main.py*) date +%s%N >> {log} ;; esac
exit $code
"""


@pytest.mark.benchmark
@pytest.mark.timeout(1200)
def test_suite_wall_time_over_trial_process_times(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, python, scratch = tmp_path / "times.log", tmp_path / "python", tmp_path / "tmp"
    python.write_text(WRAPPER.format(log=log, python=sys.executable), encoding="utf-8")
    python.chmod(0o755)
    scratch.mkdir()
    started = time.perf_counter()
    result = compilewatch(
        *("run", "--suite", "smoke", "--python", str(python)),
        cwd=tmp_path,
        timeout_s=1100,
        TMPDIR=str(scratch),
    )
    command_s = time.perf_counter() - started
    assert result.returncode == 0, result.stderr
    moments = [int(line) for line in log.read_text(encoding="utf-8").split()]
    assert len(moments) == 2 * result.stderr.count("per iteration")
    spans = [(end - start) / 1e9 for start, end in zip(moments[::2], moments[1::2], strict=True)]
    suite_s = (moments[-1] - moments[0]) / 1e9
    own_s = sum(spans)
    with capsys.disabled():
        print(f"\n{len(spans)} trials, sum of their process times: {own_s:.2f} s")
        print(f"first process start to last process end: {suite_s:.2f} s, ratio {suite_s / own_s:.3f}")
        print(f"the whole command: {command_s:.2f} s, ratio {command_s / own_s:.3f}")
    assert suite_s >= own_s
