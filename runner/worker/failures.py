"""What an exception means for the trial: its kind, by the names of the classes torch raises.

By name, not by class: the classes move between releases, and the ones of the compiler are private.
"""

from __future__ import annotations

import os
import re
import shutil
import traceback
from collections.abc import Iterator
from pathlib import Path

_MESSAGE_LIMIT = 4_000
# Inductor writes tens of megabytes per kernel file with its header; below this a compilation cannot succeed.
_DISK_FULL_BELOW_BYTES = 8 * 1024 * 1024
_SCRATCH_VARIABLES = ("TORCHINDUCTOR_CACHE_DIR", "TMPDIR")

_OUT_OF_MEMORY_TEXT = ("DefaultCPUAllocator: can't allocate", "out of memory", "not enough memory")
_NO_COMPILER_TEXT = ("No working C++ compiler found", "Failed to find C compiler")
_DEVICE_TEXT = ("CUDA error", "HIP error", "Found no NVIDIA driver", "No CUDA GPUs", "not compiled with CUDA")
_UNSUPPORTED = {"Unsupported", "FailOnRecompileLimitHit", "UnsupportedCaseError"}
# Until the first eager result nothing but the workload's own code has run.
_WORKLOAD_PHASES = ("build_model", "eager_first")
# What of ours calls the workload's own code and the compiler: what is raised inside is not the harness's.
_HERE = f"{Path(__file__).parent}/"
_OF_THE_WORKLOAD = {
    "step/steps.py": (
        "forward",
        "forward_batch",
        "train",
        "output_of",
        "loss_of",
        "make_variant",
        "own_copy",
        "apart",
    ),
    "step/loading.py": ("import_builder", "build_workload"),
    "compiler/compiling.py": ("apply",),
}
# A guard that failed names what it is about as the user wrote it, self.calls == 3, or as Python reaches it:
# L['self'].calls, L['x'].size()[0].
_REACHED = re.compile(r"L\['(\w+)'\]((?:\.\w+\b(?!\()|\['\w+'\]|\[\d+\])*)")
_WRITTEN = re.compile(r"([a-zA-Z_][\w.]*(?:\[[^\]]*\])*) (?:==|!=|<=|>=|<|>|is|in) ")
# Where torch compiles: in its eval frame hook, and where autograd compiles a backward pass at its first use.
# What runs compiled code has no frame in these, or one of another name.
_COMPILES = {"torch/_dynamo/convert_frame.py": "", "torch/_inductor/compile_fx.py": "compile"}
_NO_META_TEXT = ("no fake impl", "FakeTensor kernel", "DynamicOutputShapeException")
_REFUSED_TEXT = ("torch.compile does not support",)


def chain(error: BaseException) -> Iterator[BaseException]:
    """`error`, what it wraps (`inner_exception`) and what caused it, each once."""
    visited: set[int] = set()
    queue: list[BaseException | None] = [error]
    while queue:
        error_now = queue.pop(0)
        if error_now is None or id(error_now) in visited:
            continue
        visited.add(id(error_now))
        yield error_now
        queue += [getattr(error_now, "inner_exception", None), error_now.__cause__, error_now.__context__]


def disk_is_full() -> bool:
    """Whether a cache directory of this process has no room left.

    The compiler's message does not say so: g++ fails and the text ends before "No space left on device".
    """
    for variable in _SCRATCH_VARIABLES:
        path = os.environ.get(variable)
        if path and Path(path).is_dir() and shutil.disk_usage(path).free < _DISK_FULL_BELOW_BYTES:
            return True
    return False


def _mentions(errors: list[BaseException], texts: tuple[str, ...]) -> bool:
    return any(text in str(error) for error in errors for text in texts)


def is_ours(error: BaseException) -> bool:
    """Whether an exception came out of the harness alone: no step and no builder of the workload was under
    way, nor what compiles it.
    """
    frames = (frame.f_code for each in chain(error) for frame, _ in traceback.walk_tb(each.__traceback__))
    return not any(
        each.co_name in _OF_THE_WORKLOAD.get(each.co_filename.removeprefix(_HERE), ()) for each in frames
    )


def is_compiling(error: BaseException) -> bool:
    """Whether an exception was raised while torch compiled, whatever its class."""
    frames = (frame.f_code for each in chain(error) for frame, _ in traceback.walk_tb(each.__traceback__))
    return any(
        each.co_filename.endswith(file) and part in each.co_name
        for each in frames
        for file, part in _COMPILES.items()
    )


def recompiled_on(guard: str) -> str:
    """What a guard that failed is about: "`self.calls`" of "L['self'].calls == 3"."""
    if (found := _REACHED.search(guard)) is not None:
        return f"`{found[1]}{found[2]}`"
    written = _WRITTEN.match(guard)
    return guard if written is None else f"`{written[1]}`"


def kind_of(error: BaseException, phase: str, *, ours: bool = False) -> str:
    """The record's failure kind for an exception that ended `phase`; `ours` as `is_ours` says."""
    errors = list(chain(error))
    names = {base.__name__ for each in errors for base in type(each).__mro__}
    by_evidence = (
        ("out_of_memory", "OutOfMemoryError" in names or "MemoryError" in names),
        ("out_of_memory", _mentions(errors, _OUT_OF_MEMORY_TEXT)),
        ("disk_full", any(isinstance(each, OSError) and each.errno == 28 for each in errors)),
        ("missing_compiler", "InvalidCxxCompiler" in names or _mentions(errors, _NO_COMPILER_TEXT)),
        ("device_lost", "AcceleratorError" in names or _mentions(errors, _DEVICE_TEXT)),
        ("disk_full", phase in ("first_call", "warmup") and disk_is_full()),
        ("unsupported", bool(names & _UNSUPPORTED) or _mentions(errors, _NO_META_TEXT + _REFUSED_TEXT)),
        ("compile_error", bool(names & {"TorchDynamoException", "BackendCompilerFailed", "InductorError"})),
        ("compile_error", is_compiling(error)),
        ("import_error", "ImportError" in names and phase in ("import_torch", "build_model")),
        ("import_error", phase == "import_libraries"),
        ("workload_error", "WorkloadError" in names),
        ("harness", ours),
        ("workload_error", phase in _WORKLOAD_PHASES),
    )
    for kind, holds in by_evidence:
        if holds:
            return kind
    return "crash"


def describe(error: BaseException) -> str:
    """One paragraph for a person: the innermost exception that says something, named by its class.

    An import that failed is followed by what caused it: transformers names the class alone.
    """
    errors = list(chain(error))
    inner = next((each for each in errors if getattr(each, "inner_exception", None) is None), errors[0])
    cause = inner
    while isinstance(inner, ImportError) and cause.__cause__ is not None:
        cause = cause.__cause__
    text = _one_line(inner) if cause is inner else f"{_one_line(inner)} Caused by {_one_line(cause)}"
    return text[:_MESSAGE_LIMIT]


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split("\n\n")[0].split()) or "no message"
    return f"{type(error).__name__}: {text}"


class WrongResultError(Exception):
    """The compiled result is not the eager one; the message says where and by how much."""
