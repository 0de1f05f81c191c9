"""Which core feeds a GPU, and what is recorded of the host."""

from __future__ import annotations

import subprocess
import sys

import pytest

from runner.worker import affinity

INTERRUPTS = """\
            CPU0       CPU1       CPU2       CPU3
   0:         40          0          0          0   IO-APIC    2-edge      timer
  24:    1000000        200        300         10   PCI-MSI 1-edge      nvme0q0
 LOC:          5          5          5          5   Local timer interrupts
 ERR:          0
"""


def test_interrupts_are_summed_by_cpu():
    assert affinity.interrupts_by_cpu(INTERRUPTS) == {0: 1000045, 1: 205, 2: 305, 3: 15}
    assert affinity.interrupts_by_cpu("") == {}


@pytest.fixture
def hyperthreads(monkeypatch, tmp_path):
    """Four CPUs of two cores: 0 and 2, 1 and 3."""
    for cpu, siblings in enumerate(("0,2", "1,3", "0,2", "1,3")):
        place = tmp_path / f"cpu{cpu}/topology"
        place.mkdir(parents=True)
        (place / "thread_siblings_list").write_text(siblings + "\n")
    monkeypatch.setattr(affinity, "_CPUS", tmp_path)


@pytest.mark.usefixtures("hyperthreads")
def test_a_gpu_is_fed_from_the_core_with_the_fewest_interrupts_away_from_core_0():
    counts = affinity.interrupts_by_cpu(INTERRUPTS)
    assert affinity.siblings_of(2) == {0, 2}
    assert affinity.launching_core(frozenset(range(4)), counts) == 3
    # CPU 2 has next to no interrupts of its own here, and shares its core with CPU 0.
    assert affinity.launching_core(frozenset({0, 1, 2}), counts | {2: 0}) == 1
    assert affinity.launching_core(frozenset({0, 2}), counts) == 2
    assert affinity.launching_core(frozenset(), counts) is None


def test_without_the_kernel_s_word_a_cpu_is_a_core_of_its_own(monkeypatch, tmp_path):
    monkeypatch.setattr(affinity, "_CPUS", tmp_path)
    assert affinity.siblings_of(5) == {5}
    assert affinity.launching_core(frozenset({0, 1, 2}), {}) == 2


def test_only_the_launching_thread_is_bound():
    program = """
import os, threading
from runner.worker import affinity
ready, done = threading.Event(), threading.Event()
other = threading.Thread(target=lambda: (ready.set(), done.wait()))
other.start(); ready.wait()
before = os.sched_getaffinity(0)
cpu = affinity.pin_launching_thread()
assert cpu in before and os.sched_getaffinity(0) == {cpu}, cpu
assert os.sched_getaffinity(other.native_id) == before
done.set()
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_address_layout_is_what_the_process_was_started_with():
    program = "from runner.worker import affinity; print(affinity.address_layout())"
    started = subprocess.run(
        ["setarch", "-R", sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    if started.returncode != 0:
        pytest.skip(f"setarch -R does not work here: {started.stderr.strip()}")
    assert started.stdout.strip() == "fixed"
    assert affinity.address_layout() in ("random", "fixed")
