"""Is there a torch behind this interpreter, and which? Asked of a child process, never by importing torch
here."""

from __future__ import annotations

import functools
import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

from compilewatch.db.errors import CompilewatchError
from compilewatch.runner.plan.cancellation import run_child
from compilewatch.runner.plan.environment import probing_environment

MIN_PYTHON = (3, 10)
MIN_TORCH = (2, 6)
_TIMEOUT_S = 120.0

_PROBE = """
import json, platform, sys
facts = {"python": platform.python_version(), "executable": sys.executable, "torch": None, "error": None}
try:
    import torch
    cuda = torch.cuda.is_available()
    facts |= {"torch": torch.__version__, "cuda": torch.version.cuda, "hip": torch.version.hip,
              "cuda_available": cuda, "device_count": torch.cuda.device_count() if cuda else 0}
except Exception as error:
    facts["error"] = f"{type(error).__name__}: {error}"
sys.stdout.write("\\n" + json.dumps(facts) + "\\n")
"""


class InterpreterError(CompilewatchError):
    """The interpreter is missing, too old, or has no torch that can be measured."""


@dataclass(frozen=True)
class InterpreterFacts:
    """What a Python interpreter can measure."""

    path: str
    python: str
    torch: str
    """With the local suffix, as `torch.__version__` says it."""
    cuda: str | None
    hip: str | None
    device_count: int
    """GPUs it can use; 0 where there is none or no driver."""


def answer_of(python: str, program: str, *arguments: str, timeout_s: float) -> Any:
    """The JSON that `program` prints under this interpreter.

    Raises OSError, subprocess.SubprocessError or ValueError where it does not answer.
    """
    command = [python, "-I", "-c", program, *arguments]
    finished = run_child(command, env=probing_environment(), timeout_s=timeout_s)
    finished.check_returncode()
    return json.loads(finished.stdout)


def _version(text: str) -> tuple[int, ...]:
    numbers = text.partition("+")[0].split(".")[:2]
    return tuple(int(part) for part in numbers if part.isdigit())


def _probe(path: str) -> dict[str, Any]:
    try:
        finished = run_child([path, "-I", "-c", _PROBE], env=probing_environment(), timeout_s=_TIMEOUT_S)
    except FileNotFoundError:
        raise InterpreterError(
            f"There is no interpreter at {path}.", "Give the path of a python with torch installed."
        ) from None
    except OSError as error:
        raise InterpreterError(
            f"The interpreter {path} cannot be started: {error.strerror}.",
            "Give the path of a python with torch installed.",
        ) from error
    except subprocess.TimeoutExpired as error:
        raise InterpreterError(
            f"The interpreter {path} did not answer within {_TIMEOUT_S:g} s.", "Check that it imports torch."
        ) from error
    try:
        facts = json.loads(finished.stdout.strip().splitlines()[-1])
    except (IndexError, ValueError):
        facts = None
    if not isinstance(facts, dict) or "torch" not in facts:
        raise InterpreterError(
            f"{path} is not a Python interpreter that works (exit code {finished.returncode}).",
            "Give the path of a python with torch installed.",
        )
    return facts


@functools.cache
def check_interpreter(path: str = sys.executable) -> InterpreterFacts:
    """Facts of the interpreter at `path`. Imports its torch once, in a child process.

    Raises InterpreterError: not there, not Python, no torch, or one too old to be measured.
    """
    facts = _probe(shutil.which(path) or path)
    if _version(facts["python"]) < MIN_PYTHON:
        raise InterpreterError(
            f"The interpreter {path} is Python {facts['python']}, and the worker needs 3.10.",
            "Install torch into a newer Python.",
        )
    if facts["torch"] is None:
        missing = "No module named 'torch'" in (facts["error"] or "")
        reason = "has no torch" if missing else f"cannot import torch ({facts['error']})"
        raise InterpreterError(
            f"The interpreter {path} {reason}.",
            f"Install it with `{path} -m pip install torch`, or give another interpreter.",
        )
    if _version(facts["torch"]) < MIN_TORCH:
        raise InterpreterError(
            f"The interpreter {path} has torch {facts['torch']}, and the oldest that is measured is 2.6.",
            f"Upgrade it with `{path} -m pip install --upgrade torch`.",
        )
    known = ("python", "torch", "cuda", "hip", "device_count")
    return InterpreterFacts(path=path, **{name: facts[name] for name in known})
