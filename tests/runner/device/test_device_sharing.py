"""One GPU, one trial: across users who share the lock directory, and beside processes that know no lock."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from runner.device.idle import wait_until_idle
from runner.device.lock import DeviceBusyError, device_lock
from tests.runner.terminal import ROOT

HOLD = """
import os, sys, time
sys.path.insert(0, sys.argv[4])
from pathlib import Path
from runner.device.lock import device_lock
os.umask(0o077)
# The interpreter may be where only root can read, so everything is imported by now.
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(int(sys.argv[3]))
    os.setuid(int(sys.argv[3]))
with device_lock("GPU-1", Path(sys.argv[1]), wait_s=float(sys.argv[2])):
    print("held", flush=True)
    sys.stdin.read()
"""
ANN, BEN = "65531", "65532"
as_root = pytest.mark.skipif(os.getuid() != 0, reason="becoming two other users needs root")


def hold(directory: Path, user: str, wait_s: float = 0) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", HOLD, str(directory), str(wait_s), user, str(ROOT)]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.fixture
def shared(open_to_all: Path) -> Path:
    """Where a directory can be made by anybody, as in /tmp."""
    open_to_all.chmod(0o1777)
    return open_to_all / "locks"


@as_root
def test_users_share_the_locks_of_whoever_came_first(shared: Path) -> None:
    with hold(shared, ANN) as ann:
        assert ann.stdout is not None
        assert ann.stdout.readline() == "held\n", ann.stderr
        assert stat.S_IMODE(shared.stat().st_mode) == 0o1777
        assert stat.S_IMODE((shared / "GPU-1.lock").stat().st_mode) == 0o666
        with hold(shared, BEN) as ben:
            _, said = ben.communicate(timeout=30)
            assert ben.returncode != 0
            assert "DeviceBusyError" in said
        with pytest.raises(DeviceBusyError), device_lock("GPU-1", shared, wait_s=0):
            pass
        ann.communicate(timeout=30)
    with hold(shared, BEN, wait_s=5) as ben:
        assert ben.stdout is not None
        assert ben.stdout.readline() == "held\n"
        ben.communicate(timeout=30)


def test_a_link_in_the_place_of_a_lock_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "target"
    (tmp_path / "GPU-1.lock").symlink_to(target)
    with pytest.raises(DeviceBusyError, match="cannot be opened"), device_lock("GPU-1", tmp_path, wait_s=0):
        pass
    assert not target.exists()


def test_other_processes_are_waited_for_and_then_put_up_with() -> None:
    others, told = iter([2, 1, 0]), []
    assert wait_until_idle("cuda:0", 60, on_wait=lambda: told.append(1), count=lambda _device: next(others))
    assert told == [1]
    assert not wait_until_idle("cuda:0", 0, count=lambda _device: 3)
    assert not wait_until_idle("cuda:0", 60, should_stop=lambda: True, count=lambda _device: 3)


@pytest.mark.parametrize("count", [0, None])
def test_where_nobody_is_or_nothing_is_told_there_is_no_wait(count: int | None) -> None:
    assert wait_until_idle("cuda:0", 60, count=lambda _device: count)
    assert wait_until_idle("cpu", 60)
