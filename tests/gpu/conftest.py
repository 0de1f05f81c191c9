"""A CUDA device for every test here, or a skip that says what is missing."""

from __future__ import annotations

import pytest
import torch

NO_DEVICE = "needs a CUDA device that torch can use; on one: make test-gpu"


@pytest.fixture
def device() -> torch.device:
    if not torch.cuda.is_available():
        pytest.skip(NO_DEVICE)
    return torch.device("cuda:0")
