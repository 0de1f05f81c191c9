"""NVML answers, partial answers and no answer at all, from a stand-in for the driver's library."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path
from threading import Thread
from types import SimpleNamespace

import pynvml
import pytest

from compilewatch.runner.device import state as device_state
from compilewatch.runner.device.lock import DeviceBusyError, device_lock, device_locks
from compilewatch.runner.device.state import DeviceWatch, device_facts, visible_index
from compilewatch.runner.process import supervise
from compilewatch.runner.process.supervise import run_trial
from tests.runner.measuring import make_spec

ROOT = Path(__file__).resolve().parents[3]


class Driver:
    """Stands where `pynvml` is: the names that are set answer, all others are not supported."""

    NVMLError = pynvml.NVMLError
    NVML_CLOCK_SM = pynvml.NVML_CLOCK_SM
    NVML_CLOCK_MEM = pynvml.NVML_CLOCK_MEM
    NVML_TEMPERATURE_GPU = pynvml.NVML_TEMPERATURE_GPU
    NVML_MEMORY_ERROR_TYPE_UNCORRECTED = pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED
    NVML_VOLATILE_ECC = pynvml.NVML_VOLATILE_ECC

    def __init__(self, **answers):
        self.answers = {"nvmlInit": None, "nvmlDeviceGetHandleByIndex": "handle"} | answers

    def __getattr__(self, name):
        def ask(*_arguments):
            if name not in self.answers:
                raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
            answer = self.answers[name]
            return answer.pop(0) if isinstance(answer, list) else answer

        return ask


@pytest.fixture
def driver(monkeypatch):
    def use(**answers):
        monkeypatch.setattr(device_state, "pynvml", Driver(**answers))

    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return use


def test_without_a_driver_everything_is_unknown():
    program = (
        "from compilewatch.runner.device.state import DeviceWatch, device_facts; import pynvml\n"
        "def absent(): raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)\n"
        "pynvml.nvmlInit = absent\n"
        "watch = DeviceWatch('cuda:0')\n"
        "assert not watch.is_there and watch.state() is None and device_facts('cuda:0').uuid is None"
    )
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)


def test_a_cpu_has_no_device_state():
    watch = DeviceWatch("cpu")
    assert not watch.is_there
    assert watch.state() is None


def test_facts(driver):
    driver(
        nvmlDeviceGetUUID="GPU-1",
        nvmlDeviceGetName=b"NVIDIA H200",
        nvmlSystemGetDriverVersion="580.1",
        nvmlDeviceGetEnforcedPowerLimit=700_000,
    )
    facts = device_facts("cuda:0")
    assert (facts.uuid, facts.name, facts.driver, facts.power_limit_w) == (
        "GPU-1",
        "NVIDIA H200",
        "580.1",
        700.0,
    )
    assert facts.memory_bytes is None


def test_samples_become_ranges_and_heat_is_suspect(driver):
    driver(
        nvmlDeviceGetClockInfo=[1980, 3201, 1500, 3201, 1980, 3201],
        nvmlDeviceGetTemperature=[41, 58, 55],
        nvmlDeviceGetPowerUsage=[180_000, 520_000, 410_000],
        nvmlDeviceGetUtilizationRates=[SimpleNamespace(gpu=value) for value in (90, 97, 99)],
        nvmlDeviceGetCurrentClocksEventReasons=[0x0, 0x20, 0x4],
        nvmlDeviceGetTotalEnergyConsumption=[1000, 2000, 4500],
        nvmlDeviceGetComputeRunningProcesses=[[], [], []],
    )
    watch = DeviceWatch("cuda:0")
    for _ in range(3):
        watch.sample()
    state = watch.state()
    assert state.sm_clock_mhz == [1500, 1980, 1980]
    assert state.temperature_c == [41, 55, 58]
    assert state.power_w == [180.0, 410.0, 520.0]
    assert state.energy_mj == 3500
    assert state.other_processes is None
    assert state.throttle_reasons == ["sw_thermal_slowdown", "sw_power_cap"]
    assert state.suspect is True
    assert state.suspect_reasons == ["sw_thermal_slowdown in 1 of 3 readings"]


def test_a_power_cap_alone_is_the_normal_state_of_a_busy_device(driver):
    driver(nvmlDeviceGetCurrentClocksThrottleReasons=0x4, nvmlDeviceGetTemperature=50)
    watch = DeviceWatch("cuda:0")
    watch.sample()
    state = watch.state()
    assert state.suspect is False
    assert state.throttle_reasons == ["sw_power_cap"]
    assert state.power_w is None


def test_another_process_on_the_device_is_suspect(driver):
    processes = [SimpleNamespace(pid=1), SimpleNamespace(pid=2)]
    driver(nvmlDeviceGetTemperature=50, nvmlDeviceGetComputeRunningProcesses=processes)
    watch = DeviceWatch("cuda:0")
    watch._handle = "handle"
    driver(nvmlDeviceGetTemperature=50, nvmlDeviceGetComputeRunningProcesses=[processes])
    watch.sample()
    assert watch.state().other_processes == 1
    assert watch.state().suspect is True


@pytest.mark.parametrize(
    ("device", "visible", "expected"),
    [
        ("cuda:0", None, 0),
        ("cuda:1", "", 1),
        ("cuda:0", "3,1", 3),
        ("cuda:1", "3,1", 1),
        ("cuda", "GPU-abc", "GPU-abc"),
    ],
)
def test_visible_devices_are_renumbered(device, visible, expected):
    assert visible_index(device, visible) == expected


class Host(Driver):
    """GPUs with the CPUs near them, some of them divided into instances. Handles are UUIDs."""

    def __init__(self, gpus, instances=None, cpus=None):
        super().__init__()
        self.gpus, self.instances, self.cpus = gpus, instances or {}, cpus or {}

    def __getattr__(self, name):
        whole = {part: gpu for gpu, parts in self.instances.items() for part in parts}
        found = {
            "nvmlInit": lambda: None,
            "nvmlDeviceGetCount": lambda: len(self.gpus),
            "nvmlDeviceGetIndex": self.gpus.index,
            "nvmlDeviceGetHandleByIndex": lambda index: self.gpus[index],
            "nvmlDeviceGetHandleByUUID": lambda uuid: uuid if uuid in {*self.gpus, *whole} else self._none(),
            "nvmlDeviceGetUUID": lambda handle: handle,
            "nvmlDeviceGetMigMode": lambda handle: (int(handle in self.instances), 0),
            "nvmlDeviceGetMaxMigDeviceCount": lambda _handle: 7,
            "nvmlDeviceGetMigDeviceHandleByIndex": lambda handle, number: (
                self.instances[handle][number] if number < len(self.instances[handle]) else self._none()
            ),
            "nvmlDeviceIsMigDeviceHandle": lambda handle: handle in whole,
            "nvmlDeviceGetDeviceHandleFromMigDeviceHandle": lambda handle: whole[handle],
            "nvmlDeviceGetClockInfo": lambda handle, _kind: self._none() if handle in whole else 1410,
            "nvmlDeviceGetTotalEnergyConsumption": lambda handle: self._none() if handle in whole else 5,
            "nvmlDeviceGetCpuAffinity": lambda handle, words: [
                sum(1 << cpu - 64 * word for cpu in self.cpus[handle] if cpu // 64 == word)
                for word in range(words)
            ],
        }
        return found.get(name, lambda *_arguments: self._none())

    def _none(self):
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)


@pytest.fixture
def host(monkeypatch):
    def use(visible, *arguments, **more):
        monkeypatch.setattr(device_state, "pynvml", Host(*arguments, **more))
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        if visible is not None:
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)

    return use


@pytest.mark.parametrize(
    ("visible", "expected"),
    [
        (None, "GPU-aa11"),
        ("1", "MIG-1234"),
        ("GPU-aa11", "GPU-aa11"),
        ("GPU-bb", "GPU-bb33"),
        ("GPU-aa", None),
        ("MIG-5678", "MIG-5678"),
        ("MIG-56", "MIG-5678"),
        ("GPU-ee", None),
    ],
)
def test_instances_and_shortened_uuids_are_found_as_cuda_finds_them(host, visible, expected):
    host(visible, ["GPU-aa11", "GPU-aa22", "GPU-bb33"], {"GPU-aa22": ["MIG-1234", "MIG-5678"]})
    assert device_facts("cuda:0").uuid == expected


def test_an_instance_has_the_clock_of_its_gpu_and_not_its_energy(host):
    host("MIG-1", ["GPU-a"], {"GPU-a": ["MIG-1", "MIG-2"]})
    watch = DeviceWatch("cuda:0")
    for _ in range(2):
        watch.sample()
    assert device_facts("cuda:0").uuid == "MIG-1"
    assert watch.state().sm_clock_mhz == [1410, 1410, 1410]
    assert watch.state().energy_mj is None


def test_two_gpus_are_never_fed_from_one_core(host, monkeypatch):
    monkeypatch.setattr(device_state, "siblings_of", lambda cpu: frozenset({cpu % 80, cpu % 80 + 80}))
    first, second = [*range(40), *range(80, 120)], [*range(40, 80), *range(120, 160)]
    gpus = [f"GPU-{number}" for number in range(8)]
    cpus = {gpu: first if number < 4 else second for number, gpu in enumerate(gpus)}
    found = []
    for number in range(8):
        host(None, gpus, cpus=cpus)
        found.append(set(device_state.feeding_cpus(f"cuda:{number}")))
        assert found[-1] <= set(cpus[gpus[number]])
        assert len(found[-1]) == 20
    assert not any(a & b for a, b in itertools.combinations(found, 2))
    host("GPU-5", gpus, cpus=cpus)
    assert set(device_state.feeding_cpus("cuda:0")) == found[5]
    assert device_state.feeding_cpus("cpu") == ()


def test_shares_of_few_cores_and_of_unknown_ones():
    assert device_state.shares([frozenset(), frozenset()]) == [frozenset(), frozenset()]
    one = frozenset({max(os.sched_getaffinity(0))})
    assert device_state.shares([one, one]) == [one, one]


def test_what_is_read_after_the_blocks_of_a_side_is_that_side_s(driver):
    driver(
        nvmlDeviceGetClockInfo=[1980, 877, 1830, 877, 1905, 877, 1755, 877],
        nvmlDeviceGetCurrentClocksEventReasons=[0, 4, 0, 4],
    )
    watch = DeviceWatch("cuda:0")
    for side in ("", "side", "control", "side"):
        watch.sample(side)
    assert watch.of_side("side") == {
        "sm_clock_mhz": [1755.0, 1792.5, 1830.0],
        "throttle_reasons": ["sw_power_cap"],
        "energy_per_step_j": None,
    }
    control = {"sm_clock_mhz": [1905.0, 1905.0, 1905.0], "throttle_reasons": [], "energy_per_step_j": None}
    assert watch.of_side("control") == control
    assert watch.state().sm_clock_mhz[0] == 1755.0
    assert DeviceWatch("cuda:0").of_side("side") == {}


def test_energy_of_a_step_is_what_the_counter_grew_by(driver):
    driver(nvmlDeviceGetTotalEnergyConsumption=[1_000, 1_900, 2_000, 2_000])
    watch = DeviceWatch("cuda:0")
    watch.note_energy("side", 0)
    watch.note_energy("side", 3)
    watch.note_energy("control", 0)
    watch.note_energy("control", 3)
    assert watch.of_side("side")["energy_per_step_j"] == pytest.approx(0.3)
    # A counter that stood still says nothing.
    assert watch.of_side("control")["energy_per_step_j"] is None


def test_a_driver_without_a_counter_leaves_the_energy_open(driver):
    driver()
    watch = DeviceWatch("cuda:0")
    watch.note_energy("side", 0)
    watch.note_energy("side", 3)
    assert watch.of_side("side")["energy_per_step_j"] is None


class TwoGpus(Host):
    """The second one is hot, and has a process of somebody else."""

    def __init__(self):
        super().__init__(["GPU-b", "GPU-a"])
        self.drawn_mj = {"GPU-b": 0, "GPU-a": 0}

    def __getattr__(self, name):
        def drawn(handle):
            self.drawn_mj[handle] += 1_000 if handle == "GPU-b" else 500
            return self.drawn_mj[handle]

        found = {
            "nvmlDeviceGetTotalEnergyConsumption": drawn,
            "nvmlDeviceGetCurrentClocksEventReasons": lambda handle: 0x40 * (handle == "GPU-a"),
            "nvmlDeviceGetComputeRunningProcesses": lambda handle: [
                SimpleNamespace(pid=pid) for pid in range(1 + (handle == "GPU-a"))
            ],
        }
        return found.get(name) or super().__getattr__(name)


@pytest.fixture
def two_gpus(monkeypatch):
    monkeypatch.setattr(device_state, "pynvml", TwoGpus())
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


@pytest.mark.usefixtures("two_gpus")
def test_the_device_of_every_rank_is_watched():
    alone, both = DeviceWatch("cuda:0"), DeviceWatch("cuda:0", ["cuda:1"])
    assert [alone.sample("side"), alone.sample("side")] == [False, False]
    assert [both.sample("side"), both.sample("side")] == [True, True]
    assert (alone.state().suspect, alone.state().energy_mj) == (False, 1_000)
    state = both.state()
    assert state.suspect_reasons == [
        "cuda:1: hw_thermal_slowdown in 2 of 2 readings",
        "cuda:1: other processes on the device: 1",
    ]
    assert (state.suspect, state.other_processes, state.energy_mj) == (True, 0, 1_500)
    both.note_energy("side", 0)
    both.note_energy("side", 3)
    assert both.of_side("side")["energy_per_step_j"] == pytest.approx(0.5)


@pytest.mark.usefixtures("two_gpus")
def test_a_trial_of_two_ranks_begins_once_it_holds_both_devices(tmp_path, monkeypatch):
    monkeypatch.setattr(supervise, "default_lock_dir", lambda: tmp_path)
    begun = []
    monkeypatch.setattr(supervise, "_run", lambda _attempt, locks: begun.append(len(locks)))
    one = make_spec("ranks", device="cuda:0")
    both = one.model_copy(update={"workload": one.workload.model_copy(update={"ranks": 2})})
    for spec in (one, both):
        run_trial(spec, wait_s=0)
    assert begun == [1, 2]
    with device_lock("GPU-a", tmp_path, wait_s=0):
        run_trial(one, wait_s=0)
        with pytest.raises(DeviceBusyError, match="GPU-a is taken"):
            run_trial(both, wait_s=0)
    assert begun == [1, 2, 1]


def test_two_runs_that_share_devices_do_not_wait_for_each_other_for_ever(tmp_path):
    """Each names the other's first device last."""
    held = {"wait_s": 20, "what": "a run", "should_stop": lambda: False, "on_wait": lambda _who: None}
    measured = []

    def measure(names):
        for _ in range(20):
            with device_locks(names, tmp_path, **held) as locks:
                measured.append(len(locks))

    threads = [Thread(target=measure, args=(names,)) for names in (["a", "b"], ["b", "a", "b"])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert measured == [2] * 40
