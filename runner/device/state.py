"""The GPU as NVML sees it: identity, limits, its state around the timed blocks, and from which CPUs it is
fed. Absent is None.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pynvml

from compilewatch.db.records.trial import DeviceState
from compilewatch.runner.worker.step.host import siblings_of

# nvml.h, nvmlClocksEventReasons. The first four slow a device because something is wrong or too hot; a power
# cap is the normal state of a busy GPU and no reason for doubt.
_SUSPECT_REASONS = {
    0x0000000000000008: "hw_slowdown",
    0x0000000000000020: "sw_thermal_slowdown",
    0x0000000000000040: "hw_thermal_slowdown",
    0x0000000000000080: "hw_power_brake_slowdown",
}
_OTHER_REASONS = {
    0x0000000000000002: "applications_clocks_setting",
    0x0000000000000004: "sw_power_cap",
    0x0000000000000010: "sync_boost",
    0x0000000000000100: "display_clock_setting",
}
_ALL_REASONS = _SUSPECT_REASONS | _OTHER_REASONS


def reasons_in_words(reasons: int) -> list[str]:
    """The clock event reasons of a bit mask, those that cast doubt first; idle clocks are none."""
    return [name for bit, name in _ALL_REASONS.items() if reasons & bit]


def nvml_query(function: str, *arguments: Any) -> Any:
    """One NVML query by name, or None where this driver, device or permission does not answer it."""
    query = getattr(pynvml, function, None)
    if query is None:
        return None
    try:
        return query(*arguments)
    except pynvml.NVMLError:
        return None


def nvml_text(function: str, *arguments: Any) -> str | None:
    """One NVML query that gives a text, which older versions of pynvml leave as bytes."""
    value = nvml_query(function, *arguments)
    return value.decode(errors="replace") if isinstance(value, bytes) else value and str(value)


def nvml_watts(function: str, handle: Any) -> float | None:
    """One NVML query that gives milliwatts."""
    milliwatts = nvml_query(function, handle)
    return None if milliwatts is None else milliwatts / 1000


def clock_event_reasons(handle: Any) -> int | None:
    """The bit mask of why the clock is as it is, under its name of today or of older drivers."""
    reasons = nvml_query("nvmlDeviceGetCurrentClocksEventReasons", handle)
    if reasons is None:
        reasons = nvml_query("nvmlDeviceGetCurrentClocksThrottleReasons", handle)
    return None if reasons is None else int(reasons)


def uncorrected_ecc_errors(handle: Any) -> int | None:
    """Memory errors since the driver was loaded that ECC could not correct."""
    kinds = pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, pynvml.NVML_VOLATILE_ECC
    errors = nvml_query("nvmlDeviceGetTotalEccErrors", handle, *kinds)
    return None if errors is None else int(errors)


def ecc_is_on(handle: Any) -> bool | None:
    """Whether ECC is on now, whatever it will be after the next boot."""
    mode = nvml_query("nvmlDeviceGetEccMode", handle)
    return None if mode is None else bool(mode[0])


def visible_index(device: str, visible: str | None) -> int | str:
    """What `cuda:N` means to NVML under CUDA_VISIBLE_DEVICES: an index in PCI order, or a UUID."""
    number = int(device.partition(":")[2] or 0)
    entries = [entry.strip() for entry in (visible or "").split(",") if entry.strip()]
    if number >= len(entries):
        return number
    return int(entries[number]) if entries[number].isdigit() else entries[number]


def nvml_handle(device: str) -> Any:
    """NVML's handle of "cuda:N", or of the MIG instance that CUDA uses as it; None for another device and
    without a driver.
    """
    if not device.startswith("cuda"):
        return None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    index = visible_index(device, os.environ.get("CUDA_VISIBLE_DEVICES"))
    if isinstance(index, str):
        exact = nvml_query("nvmlDeviceGetHandleByUUID", index)
        return _beginning_with(index) if exact is None else exact
    handle = nvml_query("nvmlDeviceGetHandleByIndex", index)
    # CUDA shows one instance of a GPU that is divided, the first unless another is named.
    return next(_instances(handle), handle)


def _beginning_with(uuid: str) -> Any:
    """The one device whose UUID begins with `uuid`: CUDA takes a shortened one, NVML does not."""
    count = nvml_query("nvmlDeviceGetCount") or 0
    whole = [nvml_query("nvmlDeviceGetHandleByIndex", number) for number in range(count)]
    every = [*whole, *(instance for handle in whole for instance in _instances(handle))]
    found = [handle for handle in every if (nvml_text("nvmlDeviceGetUUID", handle) or "").startswith(uuid)]
    return found[0] if len(found) == 1 else None


def _instances(handle: Any) -> Iterator[Any]:
    """The MIG instances of a GPU that is divided into some."""
    mode = None if handle is None else nvml_query("nvmlDeviceGetMigMode", handle)
    if mode and mode[0]:
        for number in range(nvml_query("nvmlDeviceGetMaxMigDeviceCount", handle) or 0):
            instance = nvml_query("nvmlDeviceGetMigDeviceHandleByIndex", handle, number)
            if instance is not None:
                yield instance


def whole_device(handle: Any) -> Any:
    """The GPU that a MIG instance is a part of, which alone has clocks and a temperature; else `handle`."""
    if not nvml_query("nvmlDeviceIsMigDeviceHandle", handle):
        return handle
    return nvml_query("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", handle) or handle


@dataclass(frozen=True)
class DeviceFacts:
    """What does not change during a run."""

    uuid: str | None = None
    name: str | None = None
    driver: str | None = None
    power_limit_w: float | None = None
    memory_bytes: int | None = None


def device_facts(device: str) -> DeviceFacts:
    """Facts of "cuda:N" from NVML; all None for a CPU or without a driver."""
    handle = nvml_handle(device)
    if handle is None:
        return DeviceFacts()
    memory = nvml_query("nvmlDeviceGetMemoryInfo", handle)
    return DeviceFacts(
        uuid=nvml_text("nvmlDeviceGetUUID", handle),
        name=nvml_text("nvmlDeviceGetName", handle),
        driver=nvml_text("nvmlSystemGetDriverVersion"),
        power_limit_w=nvml_watts("nvmlDeviceGetEnforcedPowerLimit", whole_device(handle)),
        memory_bytes=None if memory is None else int(memory.total),
    )


def _triple(values: list[float]) -> list[float] | None:
    return [min(values), statistics.median(values), max(values)] if values else None


_Number = TypeVar("_Number", int, float)


def _sum(values: list[_Number | None]) -> _Number | None:
    """None where one of them is not known."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


@dataclass
class _SideReadings:
    """What was read after the blocks of one side."""

    sm_clock_mhz: list[float] = field(default_factory=list)
    reasons: int = 0
    energy_began_mj: int | None = None
    energy_per_step_j: float | None = None


@dataclass
class DeviceWatch:
    """Collects the state of one device each time the worker pauses between timed blocks; of the `others`, on
    which further ranks run, what casts doubt on the trial, and energy, which is that of all.
    """

    device: str
    others: Sequence[str] = ()
    _others: list[DeviceWatch] = field(init=False)
    _handle: Any = field(init=False)
    _whole: Any = field(init=False)
    _series: dict[str, list[float]] = field(default_factory=dict, init=False)
    _reasons: int | None = field(default=None, init=False)
    _readings: int = field(default=0, init=False)
    _slow_readings: dict[str, int] = field(default_factory=dict, init=False)
    _energy: list[int] = field(default_factory=list, init=False)
    _processes: list[int] = field(default_factory=list, init=False)
    _ecc_errors: list[int] = field(default_factory=list, init=False)
    _sides: dict[str, _SideReadings] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._others = [DeviceWatch(each) for each in self.others]
        self._handle = nvml_handle(self.device)
        self._whole = whole_device(self._handle) if self.is_there else None

    @property
    def is_there(self) -> bool:
        """Whether there is anything to ask."""
        return self._handle is not None

    def _note(self, name: str, value: Any) -> None:
        if value is not None:
            self._series.setdefault(name, []).append(float(value))

    def sample(self, side: str = "") -> bool:
        """Read everything once; called while the worker waits, so never inside a timed block. `side` is the
        one whose block has just ended.

        Whether a device was slowed just then, so that its clock says nothing of the software.
        """
        handle, whole = self._handle, self._whole
        # First: an idle device lowers its clock soon.
        clock = nvml_query("nvmlDeviceGetClockInfo", whole, pynvml.NVML_CLOCK_SM)
        self._note("sm", clock)
        self._note("memory", nvml_query("nvmlDeviceGetClockInfo", whole, pynvml.NVML_CLOCK_MEM))
        self._note("temperature", nvml_query("nvmlDeviceGetTemperature", whole, pynvml.NVML_TEMPERATURE_GPU))
        self._note("power", nvml_watts("nvmlDeviceGetPowerUsage", handle))
        rates = nvml_query("nvmlDeviceGetUtilizationRates", handle)
        self._note("utilization", None if rates is None else rates.gpu)
        reasons = clock_event_reasons(whole)
        readings = self._sides.setdefault(side, _SideReadings())
        readings.sm_clock_mhz += [] if clock is None else [float(clock)]
        readings.reasons |= reasons or 0
        slowed = [name for bit, name in _SUSPECT_REASONS.items() if (reasons or 0) & bit]
        if reasons is not None:
            self._reasons = (self._reasons or 0) | reasons
            self._readings += 1
            for name in slowed:
                self._slow_readings[name] = self._slow_readings.get(name, 0) + 1
        energy = nvml_query("nvmlDeviceGetTotalEnergyConsumption", handle)
        if energy is not None:
            self._energy.append(int(energy))
        errors = uncorrected_ecc_errors(whole)
        if errors is not None:
            self._ecc_errors.append(errors)
        # Inside a container NVML lists no process at all, which does not mean that none is there.
        running = nvml_query("nvmlDeviceGetComputeRunningProcesses", handle)
        if running:
            self._processes.append(len({entry.pid for entry in running}) - 1)
        others_slowed = [each.sample(side) for each in self._others]
        return bool(slowed) or any(others_slowed)

    def note_energy(self, side: str, steps: int) -> None:
        """Read the counter of energy before (`steps` 0) or after that many steps of `side`."""
        energy = nvml_query("nvmlDeviceGetTotalEnergyConsumption", self._handle)
        readings = self._sides.setdefault(side, _SideReadings())
        began, readings.energy_began_mj = readings.energy_began_mj, energy
        if steps > 0 and energy is not None and began is not None and energy > began:
            readings.energy_per_step_j = (energy - began) / 1000 / steps
        for each in self._others:
            each.note_energy(side, steps)

    def of_side(self, side: str) -> dict[str, Any]:
        """`sm_clock_mhz`, `throttle_reasons` and `energy_per_step_j` of what was read of `side`, for the
        record's `timing`; empty where nothing was.
        """
        readings = self._sides.get(side)
        if readings is None:
            return {}
        others = [each.of_side(side).get("energy_per_step_j") for each in self._others]
        return {
            "sm_clock_mhz": _triple(readings.sm_clock_mhz),
            "throttle_reasons": reasons_in_words(readings.reasons),
            "energy_per_step_j": _sum([readings.energy_per_step_j, *others]),
        }

    def state(self) -> DeviceState | None:
        """`DeviceState` of the record; None where nothing was read."""
        if not self._series and self._reasons is None:
            return None
        active = reasons_in_words(self._reasons or 0)
        doubts = [
            f"{name} in {count} of {self._readings} readings" for name, count in self._slow_readings.items()
        ]
        others = max(self._processes) if self._processes else None
        if others:
            doubts.append(f"other processes on the device: {others}")
        broken = self._ecc_errors[-1] - self._ecc_errors[0] if self._ecc_errors else None
        if broken:
            doubts.append(f"memory errors that ECC could not correct: {broken}")
        states = [(each.device, each.state()) for each in self._others]
        doubts += [
            f"{device}: {reason}"
            for device, state in states
            if state
            for reason in state.suspect_reasons or ()
        ]
        energy = self._energy[-1] - self._energy[0] if len(self._energy) > 1 else None
        utilization = self._series.get("utilization")
        return DeviceState(
            sm_clock_mhz=_triple(self._series.get("sm", [])),
            memory_clock_mhz=_triple(self._series.get("memory", [])),
            temperature_c=_triple(self._series.get("temperature", [])),
            power_w=_triple(self._series.get("power", [])),
            utilization_percent=statistics.median(utilization) if utilization else None,
            throttle_reasons=None if self._reasons is None else active,
            other_processes=others,
            ecc=ecc_is_on(self._whole),
            ecc_errors=broken,
            energy_mj=_sum([energy, *(state.energy_mj if state else None for _, state in states)]),
            suspect=bool(doubts),
            suspect_reasons=doubts,
        )


_WORD_BITS = 64
_WORDS = 64
"""Of NVML's mask: more CPUs than any host has."""


def rank_devices(device: str, ranks: int | None) -> list[str]:
    """The device of each rank: the same CPU for all, or as many GPUs from "cuda:N" on; one without ranks."""
    if ranks is None:
        return [device]
    kind, _, number = device.partition(":")
    return (
        [device] * ranks if kind == "cpu" else [f"{kind}:{int(number or 0) + rank}" for rank in range(ranks)]
    )


def feeding_cpus(device: str) -> tuple[int, ...]:
    """The share of "cuda:N" in the CPUs that are near it; empty for a CPU, and where NVML does not tell.

    Inside a container NVML may show only the GPUs that it was given, so that two containers can meet.
    """
    handle = nvml_handle(device)
    if handle is None:
        return ()
    index = nvml_query("nvmlDeviceGetIndex", whole_device(handle))
    count = nvml_query("nvmlDeviceGetCount") or 0
    near = [_near(nvml_query("nvmlDeviceGetHandleByIndex", number)) for number in range(count)]
    return () if index is None or index >= count else tuple(sorted(shares(near)[index]))


def _near(handle: object) -> frozenset[int]:
    """The CPUs of the GPU's own NUMA node."""
    words = None if handle is None else nvml_query("nvmlDeviceGetCpuAffinity", handle, _WORDS)
    return frozenset(
        number * _WORD_BITS + bit
        for number, word in enumerate(words or ())
        for bit in range(_WORD_BITS)
        if word >> bit & 1
    )


def shares(near: Sequence[frozenset[int]]) -> list[frozenset[int]]:
    """One set of CPUs for each GPU, of those near it: whole cores dealt out in turn, so that no two share a
    core, and the same on every call. Core 0, where interrupts land, is dealt last. A GPU that got none has
    all that are near it.
    """
    cores = {siblings_of(cpu) for cpus in near for cpu in cpus}
    dealt: list[set[int]] = [set() for _ in near]
    for core in sorted(cores, key=lambda each: (0 in each, min(each))):
        takers = [number for number, cpus in enumerate(near) if core & cpus]
        dealt[min(takers, key=lambda number: (len(dealt[number]), number))] |= core
    return [frozenset(mine & cpus) or cpus for mine, cpus in zip(dealt, near, strict=True)]
