"""What the caller of a trial sees: phases, Ctrl-C, waiting for a device, pauses for its state."""

from __future__ import annotations

import _thread
import signal
import threading
import time
from pathlib import Path

import pytest

from compilewatch.db.records.trial import DeviceState, FailureKind, Status
from compilewatch.runner.device.lock import default_lock_dir, device_lock
from compilewatch.runner.process import measured_process, supervise
from compilewatch.runner.process.supervise import TrialInterrupted, run_trial
from tests.runner.measuring import make_spec
from tests.runner.quick_measurement import interpreter


@pytest.fixture
def ctrl_c():
    """Python's own answer to SIGINT: a shell that starts the tests in the background has it ignored."""
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, former)


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_leaves_a_cancelled_trial_and_no_process(tmp_path):
    own, daemon = tmp_path / "pid", tmp_path / "pid.daemon"

    def interrupt(phase):
        if phase == "measure":
            threading.Timer(0.5, _thread.interrupt_main).start()

    left = f"open({str(own)!r}, 'w').write(str(os.getpid())); leave_a_daemon({str(daemon)!r})"
    python = interpreter(tmp_path / "build", seconds=60, death=left)
    with pytest.raises(TrialInterrupted) as caught:
        run_trial(make_spec("healthy"), interpreter=str(python), on_phase=interrupt)
    assert isinstance(caught.value, KeyboardInterrupt)
    assert caught.value.trial.failure.kind is FailureKind.CANCELLED
    left = [int(path.read_text()) for path in (own, daemon)]
    deadline = time.monotonic() + 10
    while any(Path(f"/proc/{pid}").exists() for pid in left) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(Path(f"/proc/{pid}").exists() for pid in left)


def test_a_busy_device_is_waited_for_and_the_wait_is_no_part_of_the_trial():
    phases = []
    held = threading.Event()
    release = threading.Event()

    def hold():
        with device_lock("cpu", default_lock_dir()):
            held.set()
            release.wait(30)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(10)

    def hear(phase):
        phases.append((phase, time.monotonic()))
        if phase.startswith(supervise.WAITING):
            threading.Timer(1.0, release.set).start()

    spec = make_spec("hangs", timeout_s=0.1)
    trial = run_trial(spec, on_phase=hear)
    holder.join()
    assert phases[0][0].startswith(supervise.WAITING)
    assert trial.failure.kind is FailureKind.TIMEOUT


class RecordingWatch:
    """Stands for a GPU on a machine that has none: counts how often the worker waits to be looked at."""

    def __init__(self, _device, _others):
        self.sides = []
        RecordingWatch.last = self

    is_there = True

    def sample(self, side):
        self.sides.append(side)

    def of_side(self, side):
        return {"sm_clock_mhz": [1800.0, 1900.0, float(self.sides.count(side))]}

    def state(self):
        return DeviceState(suspect=False)


def test_the_device_is_looked_at_between_blocks(monkeypatch):
    monkeypatch.setattr(measured_process, "DeviceWatch", RecordingWatch)
    trial = run_trial(make_spec("healthy"))
    assert trial.status is Status.OK, trial.failure
    assert RecordingWatch.last.sides == ["", *["side"] * trial.host_state.blocks]
    assert trial.timing.side.sm_clock_mhz == [1800.0, 1900.0, trial.host_state.blocks]
    assert (trial.timing.side.method, trial.timing.headline) == ("host", "samples")
    assert trial.device_state == DeviceState(suspect=False)
