"""Which part of the compiler makes a result wrong or a compilation fail: PyTorch's own bisection.

`CompilerBisector` (torch/_inductor/compiler_bisector.py, from 2.6) leaves out backends, passes,
decompositions and lowerings one after the other, until what is left out decides between right and wrong.
"""

from __future__ import annotations

import re
import time
import traceback
from pathlib import Path
from typing import Any

import torch

from compilewatch.runner.worker import numerics
from compilewatch.runner.worker.compiler import compiling
from compilewatch.runner.worker.failures import describe
from compilewatch.runner.worker.step.internals import compiler_bisector, reset_compiler
from compilewatch.runner.worker.step.loading import UnsupportedCaseError
from compilewatch.runner.worker.step.messages import Specification
from compilewatch.runner.worker.step.steps import Variant, apart, make_variant
from compilewatch.runner.worker.timing.sampling import Deadline

# Of one attempt, as a share of the longest so far: compilations differ.
_MARGIN = 1.5
_OVERLOAD = re.compile(r"<OpOverload\(op='([\w.]+)', overload='(\w+)'\)>")


class _OutOfTimeError(Exception):
    """The budget leaves no time for another attempt."""


class Attempts:
    """Compiles a workload anew each time and tells whether it came out right."""

    def __init__(self, spec: Specification, control: Variant, deadline: Deadline) -> None:
        self._spec = spec
        self._control = control
        self._deadline = deadline
        self._longest_ns = 0
        self.count = 0
        self.failure: str | None = None
        """What went wrong at the first attempt that failed."""

    def is_right(self) -> bool:
        """One attempt. Raises _OutOfTimeError."""
        if not self._deadline.leaves(_MARGIN * self._longest_ns):
            raise _OutOfTimeError
        self.count += 1
        began = time.monotonic_ns()
        reset_compiler()
        try:
            wrong = self._wrong()
        except Exception as error:  # noqa: BLE001 - that it fails is what is asked
            traceback.print_exc()
            wrong = describe(error)
        self.failure = self.failure or wrong
        self._longest_ns = max(self._longest_ns, time.monotonic_ns() - began)
        return wrong is None

    def _wrong(self) -> str | None:
        strategy, seed = self._spec.strategy, self._spec.seed
        # Of its own each time: some scopes compile in place, and steps write in place.
        target = apart(self._control.built)
        call = compiling.apply(target, strategy, Path(self._spec.artifacts))
        compiled = make_variant(target, call, compiling.optimizer_compiler(strategy))
        draws_as_eager = bool(strategy.options.get("fallback_random"))
        return numerics.check(self._control, compiled, None, seed, draws_as_eager=draws_as_eager)[1]

    def host_compiles(self) -> bool:
        """Whether Inductor compiles anything here: where the C++ compiler or Triton is broken, the first
        operator with code of its own would be named.
        """
        self.count += 1
        began = time.monotonic_ns()
        reset_compiler()
        try:
            torch.compile(lambda x: x + 1.0)(torch.ones(16, device=self._spec.device))
        except Exception:  # noqa: BLE001 - that it fails is what is asked
            traceback.print_exc()
            return False
        self._longest_ns = time.monotonic_ns() - began
        return True


def bisect(attempts: Attempts) -> dict[str, Any]:
    """`Bisection` of the record. Raises UnsupportedCaseError where this release of torch has no bisection."""
    bisector = compiler_bisector()
    if bisector is None:
        raise UnsupportedCaseError("This release of torch has no CompilerBisector.")
    began = time.monotonic_ns()
    found: dict[str, Any] = {"outcome": "passed"}
    try:
        # First, since a search of fifty compilations that all fail the same way tells no more.
        if not attempts.host_compiles():
            found = {"outcome": "host"}
        elif (result := bisector.do_bisect(attempts.is_right)) is not None:
            found = {
                "outcome": "named",
                "backend": result.backend,
                "subsystem": result.subsystem,
                "number": result.bisect_number,
                "operator": _operator(result.debug_info),
            }
    except _OutOfTimeError:
        found = {"outcome": "out_of_time"}
    except RuntimeError as error:
        # What fails by chance: it is right with everything switched on again.
        if "find_max_bounds" not in str(error):
            raise
        found = {"outcome": "unstable"}
    return found | {"attempts": attempts.count, "spent_ns": time.monotonic_ns() - began}


def _operator(debug_info: str | None) -> str | None:
    """The operator or pass as people write it: "aten.gelu.default" of an overload's `repr`."""
    overload = _OVERLOAD.fullmatch(debug_info or "")
    return debug_info if overload is None else f"{overload[1]}.{overload[2]}"
