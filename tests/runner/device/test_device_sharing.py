"""One GPU, one trial: across users who share the lock directory, and beside processes that know no lock."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import json
import os
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from compilewatch.runner.device.lock import DeviceBusyError, device_lock, wait_until_idle
from tests.runner.terminal import ROOT

HOLD = """
import os, sys, tempfile
sys.path.insert(0, sys.argv[4])
from pathlib import Path
from compilewatch.runner.device.lock import device_lock
os.umask(0o077)
# The interpreter may be where only root can read: one lock taken before imports all that a lock needs.
with tempfile.TemporaryDirectory() as first, device_lock("GPU-0", Path(first) / "locks", wait_s=0):
    pass
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
def test_users_share_the_locks_in_a_folder_that_root_made(shared: Path) -> None:
    with device_lock("GPU-2", shared, wait_s=0):
        assert stat.S_IMODE(shared.stat().st_mode) == 0o1777
    with hold(shared, ANN) as ann:
        assert ann.stdout.readline() == "held\n", ann.stderr
        assert stat.S_IMODE((shared / "GPU-1.lock").stat().st_mode) == 0o666
        with hold(shared, BEN) as ben:
            _, said = ben.communicate(timeout=30)
            assert ben.returncode != 0
            assert "DeviceBusyError" in said
        with pytest.raises(DeviceBusyError), device_lock("GPU-1", shared, wait_s=0):
            pass
        ann.communicate(timeout=30)
    with hold(shared, BEN, wait_s=5) as ben:
        assert ben.stdout.readline() == "held\n"
        ben.communicate(timeout=30)


@as_root
def test_the_folder_of_another_user_is_refused_and_left_as_it_is(shared: Path) -> None:
    with hold(shared, ANN) as ann:
        assert ann.stdout.readline() == "held\n", ann.stderr
        assert stat.S_IMODE(shared.stat().st_mode) == 0o700
        ann.communicate(timeout=30)
    with hold(shared, BEN) as ben:
        _, said = ben.communicate(timeout=30)
        assert f"belongs to another user (uid {ANN})" in said
    before = {path: path.stat() for path in (shared, *shared.iterdir())}
    with pytest.raises(DeviceBusyError, match="belongs to another user") as refused:
        _take(shared)
    assert f"mkdir -m 1777 {shared}" in refused.value.next_step
    assert "TMPDIR" in refused.value.next_step
    assert {path: path.stat() for path in (shared, *shared.iterdir())} == before


@as_root
@pytest.mark.parametrize("place", ["locks", "locks/cpu.queue", "locks/cpu.lock"])
def test_a_link_of_another_user_opens_no_home(shared: Path, place: str) -> None:
    home = shared.parent / "home"
    home.mkdir(mode=0o700)
    (home / ".bashrc").write_text("export A=1")
    (home / "00000000000000000000-1-1").write_text("mine")
    link = shared.parent / place
    if link.parent != shared.parent:
        link.parent.mkdir()
        link.parent.chmod(0o1777)
    link.symlink_to(home)
    os.chown(link, int(ANN), int(ANN), follow_symlinks=False)
    with contextlib.suppress(DeviceBusyError):
        _take(shared)
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert {path.name for path in home.iterdir()} == {"00000000000000000000-1-1", ".bashrc"}


def test_a_folder_where_everybody_may_delete_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "locks"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(DeviceBusyError, match=r"chmod \+t"):
        _take(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o777


def test_what_is_no_lock_stays_as_it_is(tmp_path: Path) -> None:
    elsewhere = tmp_path / "letter"
    elsewhere.write_text("dear Ann")
    locks = tmp_path / "locks"
    locks.mkdir(mode=0o750)
    (locks / "GPU-1.lock").symlink_to(elsewhere)
    (locks / "GPU-2.lock").hardlink_to(elsewhere)
    os.mkfifo(locks / "GPU-3.lock")
    for device in ("GPU-1", "GPU-2", "GPU-3"):
        with pytest.raises(DeviceBusyError, match="cannot be used"), device_lock(device, locks, wait_s=0):
            pass
    waiting = "cpu.queue.00000000000000000000"
    others = [".bashrc", "cpu.queue.notes", f"{waiting}-1-1.txt", "gpu.lock"]
    for name in others:
        (locks / name).write_text("mine")
    (locks / f"{waiting}-1-1").touch()
    (locks / f"{waiting}-2-2").symlink_to(elsewhere)
    os.mkfifo(locks / f"{waiting}-3-3")
    _take(locks)
    left = sorted(path.name for path in locks.iterdir() if not path.name.startswith("GPU-"))
    assert left == sorted([*others, "cpu.lock", f"{waiting}-2-2", f"{waiting}-3-3"])
    assert elsewhere.read_text() == "dear Ann"
    assert stat.S_IMODE(locks.stat().st_mode) == 0o750


WAIT = """
import sys, time
sys.path.insert(0, sys.argv[3])
from pathlib import Path
from compilewatch.runner.device.lock import device_lock
with device_lock("GPU-1", Path(sys.argv[1]), what=sys.argv[2], on_wait=lambda who: print(who, flush=True)):
    print("held", flush=True)
    time.sleep(0.3)
print("left", time.monotonic(), flush=True)
"""


def test_who_comes_first_is_served_first_and_hears_who_is_in_the_way(tmp_path: Path) -> None:
    waiting = []
    with device_lock("GPU-1", tmp_path, what="gpt2 / default"):
        for number in range(4):
            command = [sys.executable, "-c", WAIT, str(tmp_path), f"case {number}", str(ROOT)]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            waiting.append(process)
            first = process.stdout.readline()
            assert first.startswith(f"process {os.getpid()} measures gpt2 / default, since "), first
        # One that ends before its turn is no reason to wait.
        with waiting.pop(1) as ended:
            ended.kill()
    left = []
    for process in waiting:
        said, _ = process.communicate(timeout=60)
        assert "held\n" in said
        left.append(float(said.split()[-1]))
    assert left == sorted(left)
    assert min(b - a for a, b in itertools.pairwise(left)) >= 0.25
    assert [path.name for path in tmp_path.iterdir()] == ["GPU-1.lock"]


def test_a_run_that_wants_the_device_waits_as_long_as_it_was_told(tmp_path: Path) -> None:
    told: list[str] = []
    with (
        device_lock("cpu", tmp_path, what="gpt2 / default"),
        pytest.raises(DeviceBusyError, match=r"cpu is taken: process \d+ measures gpt2") as busy,
        device_lock("cpu", tmp_path, wait_s=0.5, on_wait=told.append),
    ):
        pass
    assert len(told) == 1
    assert "--wait" in busy.value.next_step
    with device_lock("cpu", tmp_path, wait_s=0):
        pass


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{",
        b'{"pid": "x", "since_s": 1, "what": "a"}',
        b'{"pid": 1e400, "since_s": 0, "what": ""}',
        b'{"pid": 1' + b"0" * 30 + b', "since_s": 0, "what": ""}',
        b'{"pid": 4, "since_s": 0, "what": "\\ud800"}',
        b"[" * 4096,
        b'{"a":' * 800,
    ],
)
def test_what_others_wrote_into_the_lock_is_not_believed(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "cpu.lock").write_bytes(content)
    with _flocked(tmp_path / "cpu.lock"), pytest.raises(DeviceBusyError, match="cpu is taken: "):
        _take(tmp_path)


def test_what_a_process_left_behind_is_said_and_drives_no_terminal(tmp_path: Path) -> None:
    with subprocess.Popen(["true"]) as gone:
        gone.wait()
    holder = {"pid": gone.pid, "since_s": time.time() - 90, "what": "\x1b[31mgpt2\x07" + "x" * 500}
    (tmp_path / "cpu.lock").write_text(json.dumps(holder))
    with _flocked(tmp_path / "cpu.lock"), pytest.raises(DeviceBusyError) as busy:
        _take(tmp_path)
    text = str(busy.value)
    assert f"what process {gone.pid}, which has ended, left behind" in text
    assert "1.50 min" in text
    assert "\x1b" not in text
    assert len(text) < 400


def _take(directory: Path) -> None:
    with device_lock("cpu", directory, wait_s=0):
        pass


@contextlib.contextmanager
def _flocked(path: Path) -> Iterator[None]:
    with path.open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def test_other_processes_are_waited_for_and_then_put_up_with() -> None:
    found, told = iter([{os.getpid(), 4_000_000}, {os.getpid()}, set()]), []
    assert wait_until_idle("cuda:0", 60, on_wait=told.append, others=lambda _device: next(found))
    (text,) = told
    assert text.startswith(f"process {os.getpid()} (")
    assert " since " in text
    assert text.endswith(" and 1 more computes on cuda:0")
    assert not wait_until_idle("cuda:0", 0, others=lambda _device: {3})
    assert not wait_until_idle("cuda:0", 60, should_stop=lambda: True, others=lambda _device: {3})


@pytest.mark.parametrize("pids", [set(), None])
def test_where_nobody_is_or_nothing_is_told_there_is_no_wait(pids: set[int] | None) -> None:
    assert wait_until_idle("cuda:0", 60, others=lambda _device: pids)
    assert wait_until_idle("cpu", 60)
