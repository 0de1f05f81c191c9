"""The guard: deadline, stubborn processes, and a runner killed with -9. No torch in these children."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from compilewatch.runner.process.pipe import GuardedProcess
from tests.runner.fleet_processes import is_alive, wait_until
from tests.runner.terminal import ROOT


def start(program: str, tmp_path: Path, *arguments: str, grace_s: float = 0.3, **options) -> GuardedProcess:
    scratch = tmp_path / "scratch"
    scratch.mkdir(exist_ok=True)
    return GuardedProcess(
        [sys.executable, "-I", "-S", "-c", program, "{record_fd}", *arguments],
        environment={"PATH": os.environ["PATH"]},
        scratch=scratch,
        stdin=options.pop("stdin", b"{}\n"),
        grace_s=grace_s,
        **options,
    )


def test_lines_exit_code_and_cpu_time_come_back(tmp_path):
    program = (
        "import os, sys; fd = int(sys.argv[1]); os.write(fd, b'one\\ntwo\\nhal'); print('said');"
        "sum(range(3_000_000)); sys.exit(7)"
    )
    outcome = start(program, tmp_path).run(30)
    assert outcome.lines == [b"one", b"two"]
    assert outcome.unfinished == b"hal"
    assert outcome.exit_code == 7
    assert outcome.signal is None
    assert outcome.log_tail == b"said\n"
    assert outcome.tree_cpu_ns is not None
    assert outcome.tree_cpu_ns > 10_000_000
    assert not (tmp_path / "scratch").exists()


def test_answers_reach_the_worker(tmp_path):
    program = (
        "import os, sys; fd = int(sys.argv[1]); sys.stdin.readline(); os.write(fd, b'ask\\n');"
        "os.write(fd, sys.stdin.readline().encode())"
    )
    process = start(program, tmp_path, on_line=lambda line: b"answer\n" if line == b"ask" else None)
    assert process.run(30).lines == [b"ask", b"answer"]


def test_a_deadline_ends_a_process_that_ignores_term(tmp_path):
    program = (
        "import os, signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        "os.write(int(sys.argv[1]), b'%d\\n' % os.getpid()); time.sleep(3600)"
    )
    outcome = start(program, tmp_path).run(1.0)
    assert outcome.stopped == "timeout"
    assert outcome.signal == signal.SIGKILL
    assert not is_alive(int(outcome.lines[0]))


def test_a_stopped_process_ends_too(tmp_path):
    """SIGSTOP leaves a process deaf to SIGTERM; only the group's SIGKILL reaches it."""
    program = "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)"
    outcome = start(program, tmp_path).run(1.0)
    assert (outcome.stopped, outcome.signal) == ("timeout", signal.SIGKILL)


def test_term_comes_first_so_that_the_last_words_are_logged(tmp_path):
    program = (
        "import signal, sys, time;"
        "signal.signal(signal.SIGTERM, lambda *_: (print('last words', flush=True), sys.exit(0)));"
        "print('ready', flush=True); time.sleep(3600)"
    )
    outcome = start(program, tmp_path, grace_s=5.0).run(1.5)
    assert outcome.stopped == "timeout"
    assert b"last words" in outcome.log_tail


RUNNER = """
import os, sys
from pathlib import Path
from compilewatch.runner.process.pipe import GuardedProcess
GuardedProcess([sys.executable, "-I", "-S", "-c", sys.argv[1], "{record_fd}", sys.argv[2]],
               environment={"PATH": os.environ["PATH"]}, scratch=Path(sys.argv[3]),
               stdin=b"", grace_s=5).run(600)
"""

# Holds on against SIGTERM, and has a child in its group and a daemon in a session of its own.
STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen(["sleep", "3600"])
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        while True:
            time.sleep(0.05)
            with open(sys.argv[2] + ".tmp", "w") as file:
                file.write(f"{os.getppid()} {os.getpid()} {child.pid}")
            os.rename(sys.argv[2] + ".tmp", sys.argv[2])
    os._exit(0)
os.wait()
with open(sys.argv[2] + ".worker", "w") as file:
    file.write(str(os.getpid()))
time.sleep(3600)
"""


@pytest.mark.parametrize("delay_s", [0.0, 0.05, 0.3, 1.5])
def test_kill_9_of_the_runner_leaves_no_process_and_no_directory(tmp_path, delay_s):
    pid_file, scratch = tmp_path / "pids", tmp_path / "scratch"
    scratch.mkdir()
    runner = subprocess.Popen([sys.executable, "-c", RUNNER, STUBBORN, str(pid_file), str(scratch)], cwd=ROOT)
    marker = str(scratch)
    wait_until(lambda: bool(guards_of(marker)) or runner.poll() is not None, 20, "no guard", every_s=0.01)
    time.sleep(delay_s)
    runner.kill()
    runner.wait()
    wait_until(lambda: not guards_of(marker), 20, "the guard lives")
    wait_until(lambda: not scratch.exists(), 20, "the directory is left")
    pids = [int(pid) for pid in pid_file.read_text().split()] if pid_file.exists() else []
    pids += [int(path.read_text() or 0) for path in tmp_path.glob("pids.worker")]
    wait_until(lambda: not any(is_alive(pid) for pid in pids if pid > 1), 20, "a process is left")
    if delay_s > 1:
        assert len(pids) == 4


def guards_of(scratch: str) -> list[int]:
    """Processes whose command line names `scratch`: the guard of one test, and nothing of anyone else's."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if scratch.encode() in command and any(part.endswith(b"guard.py") for part in command):
            found.append(int(entry.name))
    return found


@pytest.mark.parametrize("is_guard", [True, False])
@pytest.mark.parametrize(("heard_after_s", "stopped"), [(0.4, "cancelled"), (None, None)])
def test_a_signal_that_ends_all_processes_of_a_job_is_no_crash_of_one(
    heard_after_s: float | None, stopped: str | None, is_guard: bool, tmp_path: Path
) -> None:
    """A scheduler sends SIGTERM to each process of a node; the measured one may get it before the runner."""
    program = (
        "import os, sys, time; os.write(int(sys.argv[1]), str(os.getpid()).encode() + b'\\n'); time.sleep(60)"
    )
    ended = threading.Event()

    def end_all(line: bytes) -> None:
        pid = int(line)
        os.kill(int(Path(f"/proc/{pid}/stat").read_text().split()[3]) if is_guard else pid, signal.SIGTERM)
        if heard_after_s is not None:
            threading.Timer(heard_after_s, ended.set).start()

    outcome = start(program, tmp_path, on_line=end_all).run(30, ended.is_set)
    assert (outcome.stopped, outcome.signal) == (stopped, signal.SIGTERM)
