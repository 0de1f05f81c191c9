"""The numeric check on a GPU: seeded defects fail, ResNet-50 passes."""

from __future__ import annotations

import pytest
import torch

from compilewatch.db.records.trial import Status, Task
from compilewatch.runner.worker.numerics import check
from compilewatch.runner.worker.step.steps import make_variant
from tests.gpu.measuring import measure_on_gpu
from tests.gpu.test_trials import mode
from tests.runner.seeded_defects import DEFECTS, build

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(900)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("defect", DEFECTS)
def test_a_seeded_defect_fails(device, defect, dtype):
    built = build(device, dtype)
    wrong = make_variant(built, DEFECTS[defect](built.model_or_fn))
    found, message = check(make_variant(built), wrong, None, 0)
    print(defect, dtype, found)
    assert found["status"] == "fail", message


def test_resnet50_in_bfloat16_is_right(device):
    """Once a false alarm: with uncalibrated statistics its outputs are of the order of 100."""
    pytest.importorskip("transformers", reason="needs transformers: pip install 'compilewatch[models]'")
    trial = measure_on_gpu("resnet50", mode("default"), task=Task.INFERENCE)
    assert trial.status is Status.OK, trial.failure
    assert 0.1 < trial.numerics.rms_exact < 10
    print(trial.numerics)
