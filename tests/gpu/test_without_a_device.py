"""Where there is no GPU, the tests for one are still collected, and each says why it did not run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.gpu.conftest import NO_DEVICE

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a device: make test-gpu runs them")
def test_every_gpu_test_is_collected_and_skips_with_its_reason():
    command = [sys.executable, "-m", "pytest", "-m", "gpu", "tests/gpu", "-q", "-p", "no:cacheprovider"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout
    pattern = r"^SKIPPED \[(\d+)\].*" + re.escape(NO_DEVICE)
    told = sum(int(number) for number in re.findall(pattern, result.stdout, re.MULTILINE))
    (skipped,) = re.findall(r"(\d+) skipped", result.stdout.splitlines()[-1])
    assert told == int(skipped) >= 15
    assert "passed" not in result.stdout.splitlines()[-1]
