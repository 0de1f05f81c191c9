"""A guard that is killed leaves nothing behind: neither processes of the trial nor its directory."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

from compilewatch.runner.process.pipe import GuardedProcess, ProcessOutcome
from tests.runner.fleet_processes import is_alive, wait_until

# Starts a child and one that has left the session, as a compiler's server would; then works on. Both are
# found by their directory; the program itself has none there, and ends with its guard or not at all.
PROGRAM = """
import os, subprocess, sys, time
own = {"PATH": os.environ["PATH"], "TMPDIR": sys.argv[2]}
children = [subprocess.Popen(["sleep", "600"], env=own, start_new_session=new) for new in (False, True)]
os.write(int(sys.argv[1]), f"{os.getpid()} {children[0].pid} {children[1].pid}\\n".encode())
time.sleep(600)
"""


def test_what_a_killed_guard_leaves_is_ended(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    (scratch / "tmp").mkdir(parents=True)
    said: list[bytes] = []
    process = GuardedProcess(
        [sys.executable, "-I", "-S", "-c", PROGRAM, "{record_fd}", str(scratch / "tmp")],
        environment={"PATH": os.environ["PATH"]},
        scratch=scratch,
        stdin=b"{}\n",
        grace_s=0.3,
        on_line=said.append,
    )
    outcomes: list[ProcessOutcome] = []
    running = threading.Thread(target=lambda: outcomes.append(process.run(60)))
    running.start()
    wait_until(lambda: bool(said), 30, "the program did not start")
    pids = [int(pid) for pid in said[0].split()]
    process._guard.kill()
    running.join(30)
    assert outcomes[0].guard_lost
    wait_until(lambda: not any(map(is_alive, pids)), 10, f"one of {pids} is left over")
    assert not scratch.exists()
