"""Which core feeds a GPU, and what is recorded of the host."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from compilewatch.runner.worker.step import host

INTERRUPTS = """\
            CPU0       CPU1       CPU2       CPU3
   0:         40          0          0          0   IO-APIC    2-edge      timer
  24:    1000000        200        300         10   PCI-MSI 1-edge      nvme0q0
 LOC:          5          5          5          5   Local timer interrupts
 ERR:          0
"""


def test_interrupts_are_summed_by_cpu():
    assert host.interrupts_by_cpu(INTERRUPTS) == {0: 1000045, 1: 205, 2: 305, 3: 15}
    assert host.interrupts_by_cpu("") == {}


@pytest.fixture
def hyperthreads(monkeypatch, tmp_path):
    """Four CPUs of two cores: 0 and 2, 1 and 3."""
    for cpu, siblings in enumerate(("0,2", "1,3", "0,2", "1,3")):
        place = tmp_path / f"cpu{cpu}/topology"
        place.mkdir(parents=True)
        (place / "thread_siblings_list").write_text(siblings + "\n")
    monkeypatch.setattr(host, "_CPUS", tmp_path)


@pytest.mark.usefixtures("hyperthreads")
def test_a_gpu_is_fed_from_the_core_with_the_fewest_interrupts_away_from_core_0():
    counts = host.interrupts_by_cpu(INTERRUPTS)
    assert host.siblings_of(2) == {0, 2}
    assert host.launching_core(frozenset(range(4)), counts) == 3
    # CPU 2 has next to no interrupts of its own here, and shares its core with CPU 0.
    assert host.launching_core(frozenset({0, 1, 2}), counts | {2: 0}) == 1
    assert host.launching_core(frozenset({0, 2}), counts) == 2
    assert host.launching_core(frozenset(), counts) is None


@pytest.mark.parametrize(
    ("cpus", "environment", "threads"),
    [
        (range(4), {}, 2),
        ((0, 2), {}, 1),
        ((0, 1), {}, 1),
        ((3,), {}, 1),
        (range(4, 7), {}, 2),
        (range(4), {"OMP_NUM_THREADS": "1"}, 1),
        (range(4), {"OMP_NUM_THREADS": "1,2"}, 1),
        (range(4), {"OMP_NUM_THREADS": "3"}, 2),
        (range(4), {"OMP_NUM_THREADS": "2", "MKL_NUM_THREADS": "1"}, 1),
        (range(4), {"OMP_NUM_THREADS": "many", "MKL_NUM_THREADS": "0"}, 2),
    ],
)
@pytest.mark.usefixtures("hyperthreads")
def test_a_step_has_the_threads_that_torch_takes_but_a_cpu_stays_free(
    monkeypatch, cpus, environment, threads
):
    monkeypatch.setattr(host, "ALL", frozenset(cpus))
    assert host.step_threads(environment) == threads


@pytest.mark.parametrize("environment", [{}, {"OMP_NUM_THREADS": "1"}, {"OMP_NUM_THREADS": "1,2"}])
def test_torch_itself_takes_as_many_of_more_cpus(environment):
    """By a plain script of this interpreter, which nobody sets anything in."""
    clean = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    script = [sys.executable, "-c", "import torch; print(torch.get_num_threads())"]
    told = subprocess.run(script, env=clean | environment, capture_output=True, text=True, check=True).stdout
    most = max(1, len(host.ALL) - 1)
    assert host.step_threads(clean | environment) == min(int(told), most)


def test_without_the_kernel_s_word_a_cpu_is_a_core_of_its_own(monkeypatch, tmp_path):
    monkeypatch.setattr(host, "_CPUS", tmp_path)
    assert host.siblings_of(5) == {5}
    assert host.launching_core(frozenset({0, 1, 2}), {}) == 2


def test_autograd_s_threads_get_the_nearest_core_that_is_neither_core_0_nor_the_launching_one(
    monkeypatch, tmp_path
):
    """Sixteen CPUs of eight cores, four to a cache, eight to a socket."""
    for cpu in range(16):
        place = tmp_path / f"cpu{cpu}"
        for part in ("topology", "cache/index3"):
            (place / part).mkdir(parents=True)
        core, cache, socket = cpu // 2 * 2, cpu // 4 * 4, cpu // 8 * 8
        (place / "topology/thread_siblings_list").write_text(f"{core}-{core + 1}\n")
        (place / "cache/index3/shared_cpu_list").write_text(f"{cache}-{cache + 3}\n")
        (place / "topology/package_cpus_list").write_text(f"{socket}-{socket + 7}\n")
    monkeypatch.setattr(host, "_CPUS", tmp_path)
    every = frozenset(range(16))
    assert host.backward_core(13, every, {}) == 15
    assert host.backward_core(13, every, {15: 9}) == 14
    assert host.backward_core(13, every - {14, 15}, {}) == 11
    assert host.backward_core(13, frozenset({12, 13, 2}), {}) == 2
    # Core 0 and its hyperthread before the launching core's own, and that before none.
    assert host.backward_core(13, frozenset({12, 13, 1}), {}) == 1
    assert host.backward_core(13, frozenset({12, 13}), {}) == 12
    assert host.backward_core(13, frozenset({13}), {}) is None


def test_only_the_launching_thread_and_what_autograd_starts_are_bound():
    program = """
import os, threading
from compilewatch.runner.worker.step import host
ready, done, started = threading.Event(), threading.Event(), threading.Event()
other = threading.Thread(target=lambda: (ready.set(), done.wait()))
other.start(); ready.wait()
before = os.sched_getaffinity(0)
autograd = threading.Thread(target=lambda: (started.set(), done.wait()))
cores = host.bind_feeding_threads(lambda: (autograd.start(), started.wait()))
assert cores.launching in before and os.sched_getaffinity(0) == {cores.launching}, cores
assert os.sched_getaffinity(other.native_id) == before
if len(before) > 1:
    assert cores.backward in before - {cores.launching}
    assert os.sched_getaffinity(autograd.native_id) == {cores.backward}
else:
    assert cores.backward is None and not autograd.is_alive()
done.set()
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_share_of_a_gpu_is_kept_to_where_this_process_may_run_there(monkeypatch):
    monkeypatch.setattr(host, "ALL", frozenset({4, 5, 6, 7}))
    bound = []
    monkeypatch.setattr(host.os, "sched_setaffinity", lambda _pid, cpus: bound.append(set(cpus)))
    monkeypatch.setattr(host, "siblings_of", lambda cpu: frozenset({cpu}))
    monkeypatch.setattr(host, "interrupts_by_cpu", dict)
    for share, expected in (((5, 6, 40), {5, 6}), ((40, 41), {6, 7}), ((6,), {6, 7}), ((), {6, 7})):
        cores = host.bind_feeding_threads(lambda: None, share)
        assert {cores.launching, cores.backward} == expected, share
    assert {7} in bound


# Autograd starts a thread for each device that torch knows of. A CPU has none; a device of Python has one.
AUTOGRAD = """
import hashlib, os, time, sys
from pathlib import Path
import torch
from torch.utils import backend_registration
from compilewatch.runner.worker import setup
from compilewatch.runner.worker.step import host

backend_registration._setup_privateuseone_for_python_backend("simulated")

def new():
    return torch._C._acc.create_empty_tensor([4], torch.float32)

def work(ms):
    until = time.perf_counter() + ms / 1e3
    while time.perf_counter() < until:
        hashlib.sha256(bytes(1 << 18)).digest()

class Layer(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        work(2)
        return new()
    @staticmethod
    def backward(ctx, gradient):
        work(3)
        return new()

def step():
    x = new().requires_grad_()
    torch.autograd.grad(Layer.apply(x), x, new())
    time.sleep(0.001)

launching = min(os.sched_getaffinity(0))
if sys.argv[1] == "inherited":
    os.sched_setaffinity(0, {launching})
else:
    launching = host.bind_feeding_threads(setup.start_backward_threads).launching
step()
autograd = [
    int(task.name) for task in Path("/proc/self/task").iterdir()
    if (task / "comm").read_text().startswith("pt_autograd")
]
print(launching, *({*os.sched_getaffinity(thread)} for thread in autograd), sep=";")
# The kernel lets a thread that is woken run before the one that woke it, if it finds that fair. Here it
# always does, and no other process of the host is in the way.
for thread, priority in ((autograd[0], 2), (0, 1)):
    os.sched_setscheduler(thread, os.SCHED_FIFO, os.sched_param(priority))
def waited_ns():
    return int(Path("/proc/self/schedstat").read_text().split()[1])
before, began = waited_ns(), time.perf_counter_ns()
for _ in range(50):
    step()
print((waited_ns() - before) / (time.perf_counter_ns() - began))
sys.stdout.flush()
os._exit(0)
"""


def trained(how):
    """Lines that the program printed; the last one is left out where this user may not set priorities."""
    result = subprocess.run(
        [sys.executable, "-c", AUTOGRAD, how], capture_output=True, text=True, check=False, timeout=120
    )
    if "create_empty_tensor" in result.stderr or "_setup_privateuseone" in result.stderr:
        pytest.skip("this torch has no devices of Python")
    return result.stdout.splitlines()


@pytest.mark.slow
@pytest.mark.skipif(len(host.ALL) < 2, reason="one core for two threads")
def test_autograd_s_thread_of_a_device_does_not_keep_the_launching_thread_waiting():
    """On one core a training step waits while its own backward pass runs: a third of the time and more."""
    inherited, apart = trained("inherited"), trained("apart")
    launching, mask = inherited[0].split(";")
    assert mask == "{" + launching + "}"
    launching, mask = apart[0].split(";")
    assert mask != "{" + launching + "}"
    assert "," not in mask
    if len(apart) == 1:
        pytest.skip("waiting is measured under real-time priorities, which this user may not set")
    print(f"waiting: inherited {inherited[1]}, apart {apart[1]}")
    assert float(inherited[1]) > 0.25
    assert float(apart[1]) < 0.05


def test_the_address_layout_is_what_the_process_was_started_with():
    program = "from compilewatch.runner.worker.step import host; print(host.address_layout())"
    started = subprocess.run(
        ["setarch", "-R", sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    if started.returncode != 0:
        pytest.skip(f"setarch -R does not work here: {started.stderr.strip()}")
    assert started.stdout.strip() == "fixed"
    assert host.address_layout() in ("random", "fixed")
