"""What a service says of its host, how often, and that it asks no GPU while something is measured."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from compilewatch.db.engine.session import Database
from compilewatch.db.records.hosts import HostDevice
from compilewatch.db.service.hosts import HOSTS
from compilewatch.runner.device import state as device_state
from compilewatch.runner.device.host import disk_room
from compilewatch.runner.service.keeper import SAVE_INTERVAL_S, HostFacts, read_devices
from compilewatch.runner.service.timetable import Host

NOW = datetime(2026, 11, 20, 20, 0, tzinfo=UTC)


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds

    def now(self) -> datetime:
        return NOW + timedelta(seconds=self.seconds)


def test_devices_are_asked_only_while_nothing_is_measured(sqlite_database: Database, tmp_path: Path) -> None:
    clock, asked = Clock(), []

    def devices() -> tuple[HostDevice, ...]:
        asked.append(clock.seconds)
        return (HostDevice(name="H200", temperature_c=30.0 + len(asked)),)

    facts = HostFacts(
        sqlite_database,
        Host("box", "box:1"),
        tmp_path / "not" / "yet" / "there",
        clock=clock.now,
        monotonic=clock.monotonic,
        devices=devices,
    )
    facts.save(idle=False)
    (state,) = HOSTS.all(sqlite_database)
    assert (state.devices, state.devices_read_at, state.seen_at) == (None, None, NOW)
    assert state.free_bytes is not None
    assert state.total_bytes is not None
    assert 0 < state.free_bytes <= state.total_bytes
    clock.seconds = SAVE_INTERVAL_S - 1
    facts.save(idle=True)
    assert asked == []
    clock.seconds = SAVE_INTERVAL_S
    facts.save(idle=True)
    clock.seconds = 2 * SAVE_INTERVAL_S
    facts.save(idle=False)
    (state,) = HOSTS.all(sqlite_database)
    assert asked == [SAVE_INTERVAL_S]
    assert state.devices == (HostDevice(name="H200", temperature_c=31.0),)
    assert state.devices_read_at == NOW + timedelta(seconds=SAVE_INTERVAL_S)
    assert state.seen_at == NOW + timedelta(seconds=2 * SAVE_INTERVAL_S)
    facts.stopped()
    assert HOSTS.all(sqlite_database)[0].stopped_at == clock.now()


def test_a_service_that_asks_no_gpu_leaves_what_a_worker_told(database: Database, tmp_path: Path) -> None:
    gpu = HostDevice(name="H200", uuid="GPU-1")
    box = Host("box", "box:1")
    HostFacts(database, box, tmp_path, clock=Clock().now, devices=lambda: (gpu,)).save(idle=True)
    later = Clock()
    later.seconds = 60
    HostFacts(database, Host("box", "box:2"), tmp_path, clock=later.now).save(idle=False)
    (state,) = HOSTS.all(database)
    assert (state.owner, state.devices, state.devices_read_at) == ("box:2", (gpu,), NOW)


def test_a_machine_without_a_driver_has_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise device_state.pynvml.NVMLError(device_state.pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

    monkeypatch.setattr(device_state.pynvml, "nvmlInit", missing)
    assert read_devices() == ()


def test_what_the_driver_does_not_tell_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = device_state.pynvml

    def refuse(*_: object) -> None:
        raise nvml.NVMLError(nvml.NVML_ERROR_NOT_SUPPORTED)

    told = {
        "nvmlInit": lambda: None,
        "nvmlDeviceGetCount": lambda: 1,
        "nvmlDeviceGetHandleByIndex": lambda index: index,
        "nvmlDeviceGetName": lambda _: b"NVIDIA H200",
        "nvmlDeviceGetTemperature": lambda *_: 34,
        "nvmlDeviceGetPowerUsage": lambda _: 76_500,
        "nvmlDeviceGetCurrentClocksEventReasons": lambda _: 0x40 | 0x4 | 0x1,
    }
    for name in dir(nvml):
        if name.startswith("nvmlDeviceGet") or name == "nvmlInit":
            monkeypatch.setattr(nvml, name, told.get(name, refuse))
    (device,) = read_devices()
    assert device == HostDevice(
        name="NVIDIA H200",
        temperature_c=34.0,
        power_w=76.5,
        throttle_reasons=("hw_thermal_slowdown", "sw_power_cap"),
    )


def test_a_disk_that_is_gone_is_missing_not_full(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def gone(_: Path) -> None:
        raise OSError("stale file handle")

    monkeypatch.setattr("compilewatch.runner.device.host.shutil.disk_usage", gone)
    assert disk_room(tmp_path) == (None, None)
