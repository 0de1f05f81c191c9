"""The profile of a GPU's steps: launches, kernels and how busy the device is."""

from __future__ import annotations

import pytest

from compilewatch.db.cause.sentences import why
from compilewatch.db.cause.trial_words import StepTimes
from compilewatch.runner.plan.trial_spec import Diagnostics
from tests.gpu.measuring import measure_on_gpu
from tests.gpu.test_trials import mode

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("device"), pytest.mark.timeout(900)]


def test_fusion_leaves_one_kernel_of_many(device):
    profile = measure_on_gpu("chain", mode("default"), diagnostics=Diagnostics(profile=True)).profile
    # Six rounds of sin, times and plus.
    assert profile.control.kernels == profile.control.launches == 18
    assert profile.own.kernels == 1
    assert 0 < profile.own.device_busy_fraction <= 1
    assert profile.own.top[0].name.startswith("triton")
    assert "18 launches per step became 1" in why(profile, StepTimes(None, None))


def test_a_cuda_graph_is_one_launch(device):
    profile = measure_on_gpu("chain", mode("reduce-overhead"), diagnostics=Diagnostics(profile=True)).profile
    assert profile.own.launches < profile.control.launches
    assert profile.own.kernels >= 1


def test_a_matrix_product_is_bound_by_itself_and_counted_exactly(device):
    profile = measure_on_gpu("matmul", mode("default"), diagnostics=Diagnostics(profile=True)).profile
    assert profile.flops == 2 * 4096**3
    assert profile.bytes == 3 * 4096 * 4096 * 2
    assert profile.control.matrix_fraction > 0.9
    assert profile.own.device_busy_fraction > 0.8
    assert "Bound by matrix products" in why(profile, StepTimes(None, None))
