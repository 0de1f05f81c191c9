"""What a profile counts, against steps whose operators, operations and bytes are known by hand."""

from __future__ import annotations

import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from compilewatch.runner.worker.device.interface import Session
from compilewatch.runner.worker.device.tracing import Tracer
from compilewatch.runner.worker.step import profiling
from compilewatch.runner.worker.step.profiling import (
    compiled_shares,
    counted,
    events_of,
    is_operator,
    plain_name,
    profile_side,
    union_us,
)
from tests.runner.simulated_device import US, SimulatedDevice, SimulatedStep

CPU = torch.device("cpu")


def test_operators_are_counted_from_outside():
    """Eager linear calls addmm inside; only what Python called counts."""
    model = torch.nn.Linear(64, 64)
    x = torch.randn(32, 64)
    with torch.no_grad():
        found = profile_side(lambda: torch.relu(model(x)) + 1, CPU)
    assert found["operators"] == 3
    names = [entry["name"] for entry in found["top"]]
    assert "aten::addmm" in names
    assert len(names) <= 30
    assert found["step_ns"] > 0
    assert "launches" not in found


@torch.compiler.disable
def left_to_python(y: torch.Tensor) -> torch.Tensor:
    return torch.softmax(y, 0).exp().log()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(("middle", "share"), [(torch.tanh, 1.0), (left_to_python, 0.5)])
def test_the_share_that_runs_compiled_is_that_of_eagers_operators(middle: Any, share: float):
    """Three of six operators are behind a function that is not compiled, and of four none."""

    def step():
        return middle(torch.sin(x) + 1) * 2

    x = torch.ones(4, 4)
    torch.compiler.reset()
    compiled = torch.compile(step)
    compiled()
    own, eager, nothing = (events_of(each, CPU) for each in (compiled, step, lambda: None))
    found = compiled_shares(own, eager, on_cpu=True)
    assert found["compiled_share"] == share
    assert (found["compiled_time_share"] == 1.0) is (share == 1.0)
    assert compiled_shares(own, eager, on_cpu=False) == {"compiled_share": share, "compiled_time_share": None}
    untouched = compiled_shares(eager, eager, on_cpu=True)
    assert untouched == {"compiled_share": 0.0, "compiled_time_share": 0.0}
    assert compiled_shares(nothing, nothing, on_cpu=True)["compiled_share"] is None


def test_time_in_python_is_told_apart_from_time_in_operators():
    x = torch.ones(8)

    def waits():
        time.sleep(0.002)
        return x + 1

    found = profile_side(waits, CPU)
    assert found["python_ns"] > 2_000_000
    assert found["python_ns"] <= found["step_ns"]


def test_one_disturbed_step_changes_no_time():
    """One of the five watched steps waits a hundred times as long; a mean would hold a fifth of that."""
    calls = 0

    def step():
        nonlocal calls
        calls += 1
        with torch.profiler.record_function("waits"):
            time.sleep(0.5 if calls == profiling.WARMUP_STEPS + 3 else 0.005)

    (waits,) = [entry for entry in profile_side(step, CPU)["top"] if entry["name"] == "waits"]
    assert 5_000_000 <= waits["self_ns"] < 100_000_000
    assert waits["calls"] == 1


def test_copies_and_casts_have_their_bytes():
    x = torch.randn(64, 32)
    found = profile_side(lambda: (x.to(torch.bfloat16), x.t().contiguous()), CPU)
    # 2,048 elements: read in 4 bytes and written in 2; then read and written in 4.
    assert found["copied_bytes"] == 2048 * (4 + 2) + 2048 * (4 + 4)
    assert profile_side(lambda: x + x, CPU)["copied_bytes"] == 0


def test_beside_generated_code_the_bytes_of_copies_are_unknown():
    def step():
        with torch.profiler.record_function("## Call CompiledFxGraph abc ##"):
            return torch.ones(8).clone()

    assert profile_side(step, CPU)["copied_bytes"] is None


def test_a_matrix_product_takes_its_share():
    a = torch.randn(400, 400)
    assert profile_side(lambda: a @ a, CPU)["matrix_fraction"] > 0.8
    assert profile_side(lambda: torch.sin(a), CPU)["matrix_fraction"] == 0


def test_operations_and_bytes_of_a_training_step():
    weight = torch.randn(16, 8, requires_grad=True)
    x = torch.randn(4, 16)

    def step():
        (x @ weight).sum().backward()

    # Forward and the weight's gradient, each 2 x 4 x 16 x 8; the input needs none.
    assert counted(step)["flops"] == 2 * 2 * 4 * 16 * 8
    assert counted(step)["bytes"] > 0


def test_bytes_are_inputs_and_outputs_of_what_is_no_view():
    a, b = torch.ones(256, 4), torch.ones(256, 4)
    assert counted(lambda: a + b)["bytes"] == 3 * 4096
    assert counted(lambda: a.t())["bytes"] == 0
    assert counted(lambda: torch.empty(1000))["bytes"] == 0
    # An expanded input is read from its storage, however large it looks.
    assert counted(lambda: torch.ones(1).expand(1000).neg())["bytes"] == 4 + 4 + 4000


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("aten::addmm", True),
        ("mkldnn::_linear_pointwise", True),
        ("autograd::engine::evaluate_function: AddmmBackward0", False),
        ("AddmmBackward0", False),
        ("Torch-Compiled Region: 0/0", False),
        ("## Call CompiledFxGraph fabc ##", False),
    ],
)
def test_what_an_operator_is(name, expected):
    assert is_operator(name) is expected


def test_names_are_the_same_in_every_process():
    assert plain_name("## Call CompiledFxGraph f2tw3q ##") == "generated code"
    assert plain_name("Torch-Compiled Region: 1/0") == "Torch-Compiled Region"
    assert plain_name("aten::mm") == "aten::mm"


@pytest.mark.parametrize(
    ("pattern", "fits", "others"),
    [
        (
            profiling._MATRIX_OPERATOR,
            [
                *("aten::mm", "aten::bmm", "aten::_addmm_activation", "aten::convolution_backward"),
                *("mkldnn::_linear_pointwise", "aten::_scaled_dot_product_flash_attention_for_cpu"),
            ],
            ["aten::add", "aten::native_layer_norm", "aten::sum", "aten::upsample_bilinear2d"],
        ),
        (
            profiling._MATRIX_KERNEL,
            [
                "nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NNT",
                "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64",
                "triton_tem_fused_mm_0",
                "void cudnn::cnn::conv2d_grouped_direct_kernel<false>",
            ],
            [
                "triton_poi_fused_add_convert_element_type_3",
                "void at::native::vectorized_elementwise_kernel<4>",
            ],
        ),
        (
            profiling.LAUNCH,
            [
                *("cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernelEx", "cudaGraphLaunch"),
                "hipExtModuleLaunchKernel",
            ],
            ["cudaMemcpyAsync", "cudaDeviceSynchronize"],
        ),
    ],
    ids=["matrix operators", "matrix kernels", "launches"],
)
def test_names_say_what_something_is(pattern, fits, others):
    assert [name for name in fits if not pattern.search(name)] == []
    assert [name for name in others if pattern.search(name)] == []


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(0, 60)), max_size=12))
def test_a_union_is_what_counting_microseconds_gives(spans):
    intervals = [(start, start + length) for start, length in spans]
    covered = {us for start, stop in intervals for us in range(start, stop)}
    assert union_us(intervals) == len(covered)


def test_the_device_is_busy_by_what_its_work_covers_from_its_first_to_its_last():
    """An H100 under the profiler was 0.86 ms busy of 1.65 ms with what the profiler itself needed."""
    kernels = [(1000.0 + 172 * n, 1000.0 + 172 * n + 171) for n in range(5)]
    assert profiling.busy_fraction(kernels) == pytest.approx(5 * 171 / (5 * 172 - 1))
    assert profiling.busy_fraction([(0.0, 10.0), (5.0, 20.0), (30.0, 40.0)]) == pytest.approx(0.75)
    assert profiling.busy_fraction([(3.0, 3.0)]) == 1.0
    assert profiling.busy_fraction([]) is None


class Noting(SimulatedDevice):
    """Keeps what a session noted: `host` launches, and the kernels that it did not lose."""

    def trace(self, step: Any) -> Session | None:
        session = super().trace(step)
        assert session is not None
        lost = session.launches - session.kernels
        events = []
        for number in range(session.launches):
            span = SimpleNamespace(start=10.0 * number, end=10.0 * number + 5)
            for place in ("CPU", *([] if number < lost else ["CUDA"])):
                name = "cudaLaunchKernel" if place == "CPU" else "triton_poi_fused_add_0"
                device = SimpleNamespace(name=place)
                events.append(
                    SimpleNamespace(name=name, device_type=device, time_range=span, is_user_annotation=False)
                )
        return replace(session, events=events)


def watched(device: SimulatedDevice) -> dict[str, Any]:
    return profile_side(SimulatedStep(device, 40, 5 * US, 20 * US), CPU, Tracer(device).events)


def test_kernels_that_a_session_lost_are_counted_by_those_that_lost_none():
    """The first session of a process is thrown away, and so are two of three others."""
    found = watched(Noting(loses=lambda session: 7 if session == 1 or session % 3 else 0))
    assert (found["kernels"], found["launches"]) == (40, 40)
    assert found["device_busy_fraction"] == pytest.approx(0.5, abs=0.01)
    assert found["top"][0]["calls"] == 40


def test_of_a_device_whose_sessions_all_differ_nothing_is_said():
    found = watched(Noting(loses=lambda session: session))
    assert found["launches"] == 40
    assert (found["kernels"], found["device_busy_fraction"], found["top"]) == (None, None, [])


def test_a_device_without_tracing_fails_the_pass_with_its_reason():
    class Refusing(SimulatedDevice):
        def trace(self, step: Any) -> Session | None:
            raise RuntimeError("CUPTI_ERROR_NOT_INITIALIZED")

    with pytest.raises(RuntimeError, match="CUPTI_ERROR_NOT_INITIALIZED"):
        watched(Refusing())
