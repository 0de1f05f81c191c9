"""Peaks: of tensors exactly, of the process honestly."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from compilewatch.runner.worker.step import host, memory
from compilewatch.runner.worker.step.state import State
from compilewatch.runner.worker.step.steps import make_variant
from compilewatch.runner.workloads.built import Built

MIB = 1 << 20
CPU = torch.device("cpu")


def peak_of(function, *inputs):
    return memory.step_peak(make_variant(Built(function, inputs, "function")), CPU, [])["bytes"]


def test_the_peak_is_inputs_and_what_lives_at_once():
    x = torch.ones(MIB // 4)

    def chain(a):
        b = a.relu()
        c = b.abs()
        del b
        return c.neg()

    # The input, and at the widest moment two intermediates.
    assert peak_of(chain, x) == 3 * MIB


def test_an_in_place_step_needs_nothing_more():
    x = torch.ones(MIB // 4)
    assert peak_of(lambda a: a.relu_(), x) == MIB


def test_training_counts_weights_gradients_and_optimizer_state():
    model = torch.nn.Linear(256, 1024, bias=False)
    built = Built(
        model,
        (torch.ones(1, 256),),
        "training",
        optimizer=lambda parameters: torch.optim.Adam(parameters, lr=1e-3),
    )
    variant = make_variant(built)
    variant.step()
    # The weight, its gradient and Adam's two moments, 1 MiB each; beside them input and step count.
    held = memory.resident_bytes(variant)
    assert 4 * MIB <= held <= 4 * MIB + 2048
    assert memory.step_peak(variant, CPU, [])["bytes"] >= held


def test_the_pools_of_cuda_graphs_are_held_as_a_whole(monkeypatch):
    """A replayed graph allocates nothing, so the peak of the allocator does not have its memory."""
    names = ("device", "segment_pool_id", "address", "total_size", "allocated_size")
    segments = [
        (0, (0, 0), 0, 64 * MIB, 24 * MIB),
        (0, (0, 1), 64 * MIB, 20 * MIB, 4 * MIB),
        (0, (0, 1), 90 * MIB, 2 * MIB, 0),
        (1, (0, 2), 0, 8 * MIB, 0),
    ]
    snapshot = [dict(zip(names, each, strict=True)) for each in segments]
    monkeypatch.setattr(torch.cuda, "memory_snapshot", lambda: snapshot)
    pools = memory.graph_pools(torch.device("cuda:0"))
    assert (pools.total_bytes, pools.allocated_bytes) == (22 * MIB, 4 * MIB)
    held = [pools.hold(address) for address in (0, 64 * MIB - 1, 64 * MIB, 84 * MIB, 91 * MIB)]
    assert held == [False, False, True, False, True]


def test_what_of_a_peak_are_pools_of_graphs_is_told_beside_it(monkeypatch):
    """Tensors have 30 MiB at the peak, 4 of them in the pools of 22 MiB, which eager does not own."""
    names = ("device", "segment_pool_id", "address", "total_size", "allocated_size")
    segments = [(0, (0, 0), 0, 64 * MIB, 26 * MIB), (0, (0, 1), 64 * MIB, 22 * MIB, 4 * MIB)]
    snapshot = [dict(zip(names, each, strict=True)) for each in segments]
    simulated = {
        "memory_snapshot": lambda: snapshot,
        "max_memory_allocated": lambda _: 30 * MIB,
        "max_memory_reserved": lambda _: 86 * MIB,
        "memory_allocated": lambda _: 26 * MIB,
    }
    ignored = dict.fromkeys(("synchronize", "empty_cache", "reset_peak_memory_stats"), lambda *_: None)
    for name, value in (simulated | ignored).items():
        monkeypatch.setattr(torch.cuda, name, value)
    monkeypatch.setattr(memory, "clear_cublas_workspaces", lambda: True)
    variant = make_variant(Built(lambda x: x + 1, (torch.ones(8),), "function"))
    device = torch.device("cuda:0")
    found = [memory.step_peak(variant, device, [], owns_graphs=owns) for owns in (True, False)]
    assert found == [
        {"bytes": 48 * MIB, "reserved": 86 * MIB, "pools": 22 * MIB},
        {"bytes": 26 * MIB, "reserved": 86 * MIB, "pools": None},
    ]


def test_shared_storage_counts_once():
    x = torch.ones(MIB // 4)
    variant = make_variant(Built(lambda a, b: a, (x, x.view(2, -1)), "function"))
    assert memory.resident_bytes(variant) == MIB


def test_growth_is_the_highest_of_the_running_sum():
    assert memory.peak_growth([5, -5, 3, 4, -7]) == 7
    assert memory.peak_growth([-10, 4]) == 0
    assert memory.peak_growth([]) == 0


def test_a_reset_forgets_an_old_peak():
    held = bytearray(128 * MIB)
    held[::4096] = b"x" * len(held[::4096])
    before = memory.peak_rss_bytes()
    del held
    if not memory.reset_peak_rss():
        return
    assert memory.peak_rss_bytes() < before - 100 * MIB


def test_the_peak_of_a_process_is_its_own_and_not_that_of_the_one_that_started_it():
    held = b"x" * (1 << 30)
    code = "from compilewatch.runner.worker.step import memory; print(memory.peak_rss_bytes())"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(child.stdout) < len(held)


def test_what_grows_with_each_call_has_its_slope_and_what_only_settles_has_none():
    grows = [(100 * n, 500_000_000 + 100 * n * 16_384) for n in range(12)]
    assert memory.growth_per_call(grows) == pytest.approx(16_384)
    settles = [(100 * n, 500_000_000 + min(n, 3) * 4_000_000) for n in range(12)]
    pages = [(100 * n, 500_000_000 + n * 4096) for n in range(12)]
    once = [(100 * n, 500_000_000 + (50_000_000 if n > 8 else 0)) for n in range(12)]
    for calm in (settles, pages, once, grows[:5], []):
        assert memory.growth_per_call(calm) is None


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize("version", [1, 2])
def test_the_tightest_group_around_a_process_says_what_is_left(version, tmp_path, monkeypatch):
    """A job of 3 GiB of which 2.5 are used, half a GiB of that for files; the step in it has no limit."""
    root = tmp_path / "memory" if version == 1 else tmp_path
    limit, used, cached = {
        1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
        2: ("memory.max", "memory.current", "inactive_file"),
    }[version]
    for place, limited in (("job", str(3 << 30)), ("job/step", str(1 << 62) if version == 1 else "max")):
        write(root / place / limit, limited)
        write(root / place / used, str(5 << 29))
        write(root / place / "memory.stat", f"anon 5\n{cached} {1 << 29}\n")
    write(tmp_path / "own", "4:memory:/job/step\n2:cpu,cpuacct:/\n" if version == 1 else "0::/job/step\n")
    write(tmp_path / "meminfo", f"MemTotal: {64 << 20} kB\nMemAvailable: {32 << 20} kB\n")
    monkeypatch.setattr(host, "_CGROUPS", tmp_path)
    monkeypatch.setattr(host, "_OWN_CGROUPS", tmp_path / "own")
    monkeypatch.setattr(host, "_MEMINFO", tmp_path / "meminfo")
    assert (host.memory_limit_bytes(), host.available_memory_bytes()) == (3 << 30, 1 << 30)
    assert host.has_room_for(255 << 20)
    assert not host.has_room_for(257 << 20)
    write(tmp_path / "own", "0::/elsewhere\n")
    assert (host.memory_limit_bytes(), host.available_memory_bytes()) == (64 << 30, 32 << 30)


def test_what_was_freed_goes_back_to_the_system():
    """The last block lies above the others, so that the allocator keeps them."""
    blocks = [b"x" * 100_000 for _ in range(1000)]
    last = blocks.pop()
    del blocks
    held = memory.rss_bytes()
    host.give_back_memory()
    assert held - memory.rss_bytes() > 50_000_000
    assert len(last) == 100_000


def test_large_tensors_are_kept_together_or_not_at_all(monkeypatch):
    """Each of 4 MiB has its room of 16 MiB; both together would leave nothing."""
    large, small = [torch.zeros(MIB), torch.zeros(MIB)], torch.zeros(8)

    def step(a, b):
        a[0].add_(1)
        a[1].add_(1)
        b.add_(1)

    monkeypatch.setattr(host, "available_memory_bytes", lambda: 20 * MIB)
    state = State(Built(step, (large, small), "function"))
    step(large, small)
    assert state.changed_names() == ["input 1"]
    assert not state.is_complete
    state.restore()
    assert (float(large[0][0]), float(large[1][0]), float(small[0])) == (1.0, 1.0, 0.0)
    monkeypatch.setattr(host, "available_memory_bytes", lambda: 40 * MIB)
    assert State(Built(step, (large, small), "function")).is_complete
