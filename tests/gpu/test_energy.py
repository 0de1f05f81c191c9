"""Energy of a step on a GPU: the power that it makes agrees with the power that NVML says."""

from __future__ import annotations

import statistics
import time
from functools import partial

import pytest
import torch

from compilewatch.runner.device.state import DeviceWatch, nvml_watts
from compilewatch.runner.worker.timed import run_window

pytestmark = pytest.mark.gpu


def test_energy_over_time_is_the_power_that_nvml_says(device):
    left = torch.zeros(4096, 4096, device=device, dtype=torch.bfloat16)
    power: list[float] = []

    def step() -> None:
        torch.mm(left, left)
        if (watts := nvml_watts("nvmlDeviceGetPowerUsage", watch._handle)) is not None:
            power.append(watts)

    watch = DeviceWatch("cuda:0")
    synchronize = partial(torch.cuda.synchronize, device)
    step()
    synchronize()
    started = time.perf_counter_ns()
    step()
    synchronize()
    latency_ns = time.perf_counter_ns() - started
    moments: list[tuple[int, int]] = []

    def announce(steps: int) -> None:
        watch.note_energy("side", steps)
        moments.append((steps, time.perf_counter_ns()))

    # NVML says the mean power of about a second, so the windows before the last one only bring it there.
    for _ in range(3):
        power.clear()
        moments.clear()
        run_window(step, synchronize, announce, latency_ns)
    joules = watch.of_side("side")["energy_per_step_j"]
    if joules is None:
        pytest.skip("This driver or device has no counter of energy.")
    (_, began), (steps, ended) = moments
    assert joules * steps / ((ended - began) / 1e9) == pytest.approx(statistics.fmean(power), rel=0.2)
