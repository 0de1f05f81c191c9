"""The small process between the runner and a measured process: nothing a trial started outlives it.

    python -I -S guard.py LIFELINE_FD STATUS_FD GRACE_S SCRATCH KEEP WORKER...

It starts WORKER in a session of its own and ends everything below itself, then removes the directory SCRATCH,
when the worker exits, when it gets SIGTERM (the runner's deadline), or when the runner dies (LIFELINE_FD,
whose other end only the runner holds, reads end-of-file even after kill -9). As a child subreaper it
inherits what detached itself, so daemons are found too. Then it writes one JSON line to STATUS_FD. Standard
library only. With KEEP "keep" the directory stays after a regular exit, for the next process of the trial.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import select
import shutil
import signal
import sys
import time
from pathlib import Path

# linux/prctl.h
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
# A process in uninterruptible sleep (a hung driver) ignores SIGKILL; waiting for it would hang the runner.
KILL_WAIT_S = 10.0


def prctl(option: int, value: int) -> None:
    """Linux only; elsewhere nothing happens and the runner's own kill of the tree remains."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def descendants(root: int) -> list[int]:
    """Every process below `root`, by the parent links in /proc."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError, ValueError):
            # The command name may hold spaces and parentheses; the fields follow its last one.
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    pids, queue = [], [root]
    while queue:
        below = children.get(queue.pop(), [])
        pids += below
        queue += below
    return pids


class Guard:
    """One worker and everything it starts."""

    def __init__(self, worker: list[str], lifeline: int, status: int) -> None:
        self.lifeline = lifeline
        self.exit_status: int | None = None
        self.spawned_ns = time.monotonic_ns()
        self.pid = os.fork()
        if self.pid == 0:
            self._become(worker, (lifeline, status))

    @staticmethod
    def _become(worker: list[str], close: tuple[int, ...]) -> None:
        guard = os.getppid()
        try:
            os.setsid()
            # The guard itself may be killed; it has one thread only, so this fires at its end and not before.
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != guard:
                os._exit(1)
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
                signal.signal(number, signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            for descriptor in close:
                os.close(descriptor)
            os.execv(worker[0], worker)  # noqa: S606
        finally:
            os._exit(127)

    def reap(self) -> bool:
        """Collect the dead; False when no child is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.pid:
                self.exit_status = status

    def wait(self, wakeup: int, stop: list[int]) -> str:
        """Until the worker exits, SIGTERM arrives or the runner is gone; says which."""
        while True:
            ready, _, _ = select.select([wakeup, self.lifeline], [], [])
            if wakeup in ready:
                os.read(wakeup, 4096)
            if self.lifeline in ready and not os.read(self.lifeline, 1):
                return "runner_died"
            self.reap()
            if self.exit_status is not None:
                return "exited"
            if stop:
                return "stopped"

    def end_all(self, grace_s: float) -> None:
        """TERM to the worker's group, `grace_s` to comply, then KILL to the group and every descendant."""
        if grace_s > 0:
            self._signal_group(signal.SIGTERM)
            deadline = time.monotonic() + grace_s
            while self.reap() and self.exit_status is None and time.monotonic() < deadline:
                time.sleep(0.01)
        self._signal_group(signal.SIGKILL)
        deadline = time.monotonic() + KILL_WAIT_S
        while self.reap() and time.monotonic() < deadline:
            for pid in descendants(os.getpid()):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.002)

    def _signal_group(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)


def report(guard: Guard, ended_ns: int, survivors: int, *, stopped: bool) -> bytes:
    """How the worker ended, as a line of JSON; times by the monotonic clock and for its whole tree, in ns.

    `stopped` says that the guard had SIGTERM.
    """
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    code = None if guard.exit_status is None else os.waitstatus_to_exitcode(guard.exit_status)
    content = {
        "exit_code": code if code is not None and code >= 0 else None,
        "signal": -code if code is not None and code < 0 else None,
        "stopped": stopped,
        "spawned_ns": guard.spawned_ns,
        "ended_ns": ended_ns,
        "tree_cpu_ns": int((usage.ru_utime + usage.ru_stime) * 1e9),
        "survivors": survivors,
    }
    return json.dumps(content).encode() + b"\n"


def main(arguments: list[str]) -> None:
    """Start the worker, wait for it or for the runner's end, leave no process behind, and report."""
    lifeline, status, grace_s = int(arguments[0]), int(arguments[1]), float(arguments[2])
    scratch, keep_scratch, worker = arguments[3], arguments[4] == "keep", arguments[5:]
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    signal.set_wakeup_fd(write_end)
    stop: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: stop.append(number))
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    guard = Guard(worker, lifeline, status)
    reason = guard.wait(read_end, stop)
    ended_ns = time.monotonic_ns()
    guard.end_all(grace_s if reason == "stopped" else 0.0)
    survivors = len(descendants(os.getpid()))
    if not (keep_scratch and reason == "exited"):
        shutil.rmtree(scratch, ignore_errors=True)
    with contextlib.suppress(OSError):
        os.write(status, report(guard, ended_ns, survivors, stopped=reason == "stopped"))


if __name__ == "__main__":
    main(sys.argv[1:])
