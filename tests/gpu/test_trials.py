"""Whole trials on a GPU: facts of the device, CUDA graphs, memory, and the ways in which a GPU breaks."""

from __future__ import annotations

import statistics

import pytest

from compilewatch.db.records.strategies import BUILTIN
from compilewatch.db.records.trial import CacheState, FailureKind, Status, Strategy, StrategyKind, Task
from compilewatch.runner.device.state import device_facts
from tests.gpu.measuring import measure_on_gpu

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("device"), pytest.mark.timeout(900)]


def mode(name):
    return Strategy(
        name=name, kind=StrategyKind.COMPILE, backend="inductor", mode=name, cache=CacheState.COLD
    )


def test_nvml_facts_are_filled(device):
    trial = measure_on_gpu("matmul")
    assert trial.status is Status.OK, trial.failure
    facts = device_facts("cuda:0")
    assert trial.machine.device == "cuda"
    assert trial.machine.device_uuid == facts.uuid
    assert trial.machine.device_name == facts.name
    assert trial.machine.power_limit_w == facts.power_limit_w
    assert trial.build.driver == facts.driver
    state = trial.device_state
    for name in ("sm_clock_mhz", "memory_clock_mhz", "temperature_c", "power_w", "utilization_percent"):
        assert getattr(state, name) is not None, name
    assert state.throttle_reasons is not None
    assert state.energy_mj is not None
    assert state.energy_mj > 0
    low, middle, high = state.sm_clock_mhz
    assert 0 < low <= middle <= high
    assert trial.build.settings["flush_l2"] is True
    assert trial.sampling.flush_l2 is True


def test_all_four_times_are_kept_for_both_sides(device):
    trial = measure_on_gpu("chain", mode("default"))
    assert trial.status is Status.OK, trial.failure
    assert trial.samples_ns == trial.control_samples_ns == []
    for side in (trial.timing.side, trial.timing.control):
        assert side.method == "gated"
        assert side.gate.verified >= 0.9 * side.gate.samples
        assert side.synchronises is False
        assert side.launches >= 1
        assert side.sm_clock_mhz[0] > 0
    for name in ("device_ns", "issue_ns", "wall_sync_ns", "wall_pipelined_ns"):
        for values in (getattr(trial, name), getattr(trial, f"control_{name}")):
            assert len(values) >= 5, name
    # Waiting for the device takes longer than the device does.
    assert statistics.median(trial.wall_sync_ns) > statistics.median(trial.device_ns)
    phases = trial.cold_start.phases_ns.model_dump()
    assert sum(value or 0 for value in phases.values()) == trial.cold_start.first_call_ns
    assert phases["kernel_compile"] is not None


def test_the_backward_pass_does_not_disturb_a_training_trial(device):
    trial = measure_on_gpu("mlp_loss", mode("default"), task=Task.TRAINING)
    assert trial.status is Status.OK, trial.failure
    assert trial.host_state.backward_cpu not in (None, trial.host_state.launching_cpu)
    assert trial.host_state.cpu_stall_fraction is None or trial.host_state.cpu_stall_fraction < 0.05
    assert trial.sampling.ended_by != "disturbed"


def test_onnx_runtime_is_timed_in_the_order_of_torchs_stream(device):
    onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime-gpu is not installed")
    if "CUDAExecutionProvider" not in onnxruntime.get_available_providers():
        pytest.skip("this onnxruntime has no CUDA provider")
    trial = measure_on_gpu("mlp", BUILTIN["onnxruntime"], task=Task.INFERENCE)
    assert trial.status is Status.OK, trial.failure
    assert trial.timing.side.method == "gated"
    assert trial.timing.side.synchronises is False
    # Beside torch's stream it would take no time at all.
    assert statistics.median(trial.device_ns) > statistics.median(trial.control_device_ns) / 5


def test_cuda_graphs_count_only_when_they_are_launched(device):
    used = measure_on_gpu("chain", mode("reduce-overhead"))
    assert used.status is Status.OK, used.failure
    assert used.compiler.cudagraph_launches >= 1
    assert used.compiler.cudagraph_skips == []
    plain = measure_on_gpu("chain", mode("default"))
    assert plain.compiler.cudagraph_launches == 0
    assert plain.compiler.cudagraph_skips is None


def test_a_skipped_cuda_graph_says_why(device):
    """The whole graph is skipped, or (with partitions, from 2.9) only the part around the CPU."""
    trial = measure_on_gpu("visits_the_cpu", mode("reduce-overhead"))
    assert trial.status is Status.OK, trial.failure
    assert trial.compiler.cudagraph_skips or trial.compiler.cudagraph_launches >= 1
    for reason in trial.compiler.cudagraph_skips:
        assert "not told" not in reason


def test_memory_counts_weights_with_and_without_compilation(device):
    trial = measure_on_gpu("mlp", mode("default"), task=Task.INFERENCE)
    assert trial.status is Status.OK, trial.failure
    weights = 2 * (1024 * 1024 + 1024) * 4
    memory = trial.memory
    assert memory.peak_bytes >= weights
    assert memory.control_peak_bytes >= weights
    assert memory.peak_reserved_bytes >= memory.peak_bytes
    assert memory.peak_with_compile_bytes >= weights
    # The buffer that flushes the L2 cache, tens of megabytes, is no part of it, nor is the workspace of
    # cuBLAS, 32 MiB on Hopper.
    assert memory.peak_bytes < weights + (8 << 20)


def test_memory_counts_what_cuda_graphs_hold(device):
    graphs, plain = (measure_on_gpu("chain", mode(name)).memory for name in ("reduce-overhead", "default"))
    assert graphs.peak_bytes >= plain.peak_bytes
    assert graphs.control_peak_bytes == pytest.approx(plain.control_peak_bytes, abs=1 << 16)


def test_the_largest_blocks_at_the_peak_come_with_the_line_that_made_them(device):
    trial = measure_on_gpu("mlp_loss", task=Task.TRAINING)
    assert trial.status is Status.OK, trial.failure
    weights = 1024 * 1024 * 4
    # The gradient of each weight is the largest that a step makes.
    assert trial.memory.peak_blocks[0].size_bytes >= weights
    # Without the workspace of cuBLAS, as the peak.
    assert sum(each.size_bytes for each in trial.memory.peak_blocks) < trial.memory.peak_bytes
    assert any(each.place and ".py:" in each.place for each in trial.memory.peak_blocks)
    assert trial.memory.saved.count > 0


def test_more_than_the_device_has_is_out_of_memory(device):
    trial = measure_on_gpu("takes_all_memory")
    assert trial.failure.kind is FailureKind.OUT_OF_MEMORY
    assert trial.failure.phase == "eager_first"


@pytest.mark.parametrize("broken", ["writes_far_away", "indexes_past_the_end"])
def test_an_illegal_access_loses_the_device_for_this_trial_alone(device, broken):
    trial = measure_on_gpu(broken)
    assert trial.failure.kind is FailureKind.DEVICE_LOST, trial.failure
    after = measure_on_gpu("chain", sampling={"samples": 10})
    assert after.status is Status.OK, after.failure
