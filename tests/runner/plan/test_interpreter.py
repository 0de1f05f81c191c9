"""An interpreter that cannot measure is one sentence and the next step."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from compilewatch.runner.plan.interpreter import InterpreterError, check_interpreter

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def stand_in(tmp_path):
    """Makes an executable that prints what a probe would."""

    def make(output: str, code: int = 0) -> str:
        path = tmp_path / "python"
        path.write_text(f"#!/bin/sh\nprintf '%s\\n' '{output}'\nexit {code}\n")
        path.chmod(0o755)
        return str(path)

    return make


def refused(path: str) -> InterpreterError:
    with pytest.raises(InterpreterError) as caught:
        check_interpreter(path)
    error = caught.value
    assert error.exit_code == 2
    assert error.next_step
    assert "Traceback" not in str(error)
    return error


def test_this_interpreter_has_torch():
    facts = check_interpreter(sys.executable)
    assert facts.torch == torch.__version__
    assert facts.device_count == torch.cuda.device_count()


def test_no_torch(tmp_path):
    import venv

    venv.create(tmp_path / "bare", with_pip=False)
    assert "has no torch" in refused(str(tmp_path / "bare" / "bin" / "python")).message


def test_nothing_there_and_no_python(stand_in, tmp_path):
    assert "There is no interpreter" in refused(str(tmp_path / "missing")).message
    assert "is not a Python interpreter" in refused("/bin/false").message
    assert "cannot be started" in refused(str(tmp_path)).message


def test_too_old(stand_in):
    old = '{"python": "3.9.1", "torch": "2.8.0", "error": null}'
    assert "3.9.1" in refused(stand_in(old)).message


def test_a_torch_too_old(stand_in):
    old = '{"python": "3.11.1", "torch": "2.5.1+cpu", "error": null}'
    assert "2.5.1" in refused(stand_in(old)).message


def test_a_broken_torch(stand_in):
    broken = '{"python": "3.11.1", "torch": null, "error": "OSError: libcudart.so.13: no such file"}'
    assert "libcudart" in refused(stand_in(broken)).message


def test_the_parent_never_imports_torch(stand_in):
    facts = {
        "python": "3.11.2",
        "torch": "2.13.0",
        "error": None,
        "device_count": 0,
        "cuda": None,
        "hip": None,
    }
    python = stand_in(json.dumps(facts))
    program = (
        "import sys; import compilewatch.runner.process.supervise; "
        "from compilewatch.runner.plan.interpreter import check_interpreter; "
        "check_interpreter(sys.argv[1]); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program, python], cwd=ROOT, check=False).returncode == 0
