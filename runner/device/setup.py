"""How a GPU is set up and who else uses it, for `compilewatch doctor`. What NVML does not answer is None."""

from __future__ import annotations

from dataclasses import dataclass

import pynvml

from compilewatch.runner.device.state import (
    device_facts,
    ecc_is_on,
    nvml_handle,
    nvml_query,
    nvml_watts,
    whole_device,
)


@dataclass(frozen=True)
class DeviceSetup:
    """Settings that change speed, and signs of other users, of one GPU at this moment."""

    name: str | None
    driver: str | None
    persistence: bool | None
    power_limit_w: float | None
    power_default_w: float | None
    sm_clock_mhz: int | None
    sm_clock_max_mhz: int | None
    ecc: bool | None
    mig: bool | None
    utilization_percent: int | None
    memory_used_bytes: int | None
    processes: int | None
    """Compute processes that NVML lists; in a container it may list none where there are some."""


def device_setup(device: str) -> DeviceSetup | None:
    """The setup of "cuda:N"; None for a CPU or without a driver."""
    handle = nvml_handle(device)
    if handle is None:
        return None
    facts, whole = device_facts(device), whole_device(handle)
    persistence = nvml_query("nvmlDeviceGetPersistenceMode", whole)
    mig = nvml_query("nvmlDeviceGetMigMode", whole)
    rates = nvml_query("nvmlDeviceGetUtilizationRates", handle)
    memory = nvml_query("nvmlDeviceGetMemoryInfo", handle)
    running = nvml_query("nvmlDeviceGetComputeRunningProcesses", handle)
    return DeviceSetup(
        name=facts.name,
        driver=facts.driver,
        persistence=None if persistence is None else bool(persistence),
        power_limit_w=facts.power_limit_w,
        power_default_w=nvml_watts("nvmlDeviceGetPowerManagementDefaultLimit", whole),
        sm_clock_mhz=nvml_query("nvmlDeviceGetClockInfo", whole, pynvml.NVML_CLOCK_SM),
        sm_clock_max_mhz=nvml_query("nvmlDeviceGetMaxClockInfo", whole, pynvml.NVML_CLOCK_SM),
        ecc=ecc_is_on(whole),
        mig=None if mig is None else bool(mig[0]),
        utilization_percent=None if rates is None else int(rates.gpu),
        memory_used_bytes=None if memory is None else int(memory.used),
        processes=None if running is None else len(running),
    )
