"""A guard that is killed leaves nothing behind: neither processes of the trial nor its directory."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import psutil

from runner.process.pipe import GuardedProcess, ProcessOutcome
from tests.runner.fleet_processes import wait_until

# Starts a child and one that has left the session, as a compiler's server would; then works on.
PROGRAM = """
import os, subprocess, sys, time
children = [subprocess.Popen(["sleep", "600"]), subprocess.Popen(["sleep", "600"], start_new_session=True)]
os.write(int(sys.argv[1]), " ".join(str(child.pid) for child in children).encode() + b"\\n")
time.sleep(600)
"""


def is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_what_a_killed_guard_leaves_is_ended(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    (scratch / "tmp").mkdir(parents=True)
    said: list[bytes] = []
    process = GuardedProcess(
        [sys.executable, "-I", "-S", "-c", PROGRAM, "{record_fd}"],
        environment={"PATH": os.environ["PATH"], "TMPDIR": str(scratch / "tmp")},
        scratch=scratch,
        stdin=b"{}\n",
        grace_s=0.3,
        on_line=said.append,
    )
    outcomes: list[ProcessOutcome] = []
    running = threading.Thread(target=lambda: outcomes.append(process.run(60)))
    running.start()
    wait_until(lambda: bool(said), 30, "the program did not start")
    children = [int(pid) for pid in said[0].split()]
    process._guard.kill()
    running.join(30)
    assert outcomes[0].guard_lost
    wait_until(lambda: not any(map(is_alive, children)), 10, f"{children} are left over")
    assert not scratch.exists()
