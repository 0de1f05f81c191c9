"""Two runners never measure on one device at once; real processes and real locks."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from compilewatch.runner.device.lock import DeviceBusyError, device_lock

ROOT = Path(__file__).resolve().parents[3]
HOLD = """
import sys, time
from pathlib import Path
from compilewatch.runner.device.lock import device_lock
with device_lock(sys.argv[1], Path(sys.argv[2])):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, "GPU-1", str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_held_device_is_refused_and_another_is_free(holder, tmp_path):
    with pytest.raises(DeviceBusyError, match="GPU-1"), device_lock("GPU-1", tmp_path, wait_s=0.3):
        pass
    with device_lock("cpu", tmp_path, wait_s=0.3):
        pass


def test_waiting_is_told_and_ends_when_the_other_dies(holder, tmp_path):
    told = threading.Event()
    threading.Timer(0.5, holder.kill).start()
    with device_lock("GPU-1", tmp_path, wait_s=20, on_wait=lambda _who: told.set()):
        assert told.is_set()


def test_waiting_can_be_cancelled(holder, tmp_path):
    started = time.monotonic()
    with pytest.raises(DeviceBusyError), device_lock("GPU-1", tmp_path, should_stop=lambda: True):
        pass
    assert time.monotonic() - started < 60


def test_an_orphan_that_inherited_the_lock_keeps_the_next_one_out(tmp_path):
    with device_lock("GPU-1", tmp_path) as descriptor:
        orphan = subprocess.Popen(["sleep", "60"], pass_fds=[descriptor])
    with orphan:
        with pytest.raises(DeviceBusyError), device_lock("GPU-1", tmp_path, wait_s=0.3):
            pass
        orphan.kill()
    with device_lock("GPU-1", tmp_path, wait_s=5):
        pass


def test_a_directory_that_cannot_be_made_is_one_sentence(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(DeviceBusyError) as caught, device_lock("cpu", file / "locks"):
        pass
    assert caught.value.next_step
