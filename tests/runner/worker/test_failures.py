"""Exceptions to failure kinds, by the names torch gives its classes."""

from __future__ import annotations

import pytest
import torch

from compilewatch.db.records.strategies import EAGER
from compilewatch.runner.worker.failures import describe, is_ours, kind_of, recompiled_on
from compilewatch.runner.worker.step.loading import UnsupportedCaseError, WorkloadError, import_builder
from compilewatch.runner.worker.step.messages import Workload, read
from compilewatch.runner.worker.step.steps import make_variant
from compilewatch.runner.workloads.built import Built
from tests.runner import workload_fixtures
from tests.runner.measuring import FEW, compiled, measure


def named(name, *bases, **attributes):
    kind = type(name, bases or (Exception,), {})
    error = kind("what happened\n\nand a long explanation")
    for key, value in attributes.items():
        setattr(error, key, value)
    return error


TORCH_DYNAMO = type("TorchDynamoException", (RuntimeError,), {})


@pytest.mark.parametrize(
    ("error", "phase", "kind"),
    [
        (named("OutOfMemoryError", RuntimeError), "first_call", "out_of_memory"),
        (RuntimeError("CUDA out of memory. Tried to allocate"), "sampling", "out_of_memory"),
        (
            RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"),
            "warmup",
            "out_of_memory",
        ),
        (MemoryError(), "build_model", "out_of_memory"),
        (OSError(28, "No space left on device"), "first_call", "disk_full"),
        (
            named("BackendCompilerFailed", inner_exception=named("InvalidCxxCompiler")),
            "first_call",
            "missing_compiler",
        ),
        (named("BackendCompilerFailed", inner_exception=ValueError("x")), "first_call", "compile_error"),
        (named("InductorError", TORCH_DYNAMO), "first_call", "compile_error"),
        (named("TorchRuntimeError", TORCH_DYNAMO), "first_call", "compile_error"),
        (named("Unsupported", TORCH_DYNAMO), "first_call", "unsupported"),
        (named("AcceleratorError", RuntimeError), "sampling", "device_lost"),
        (RuntimeError("CUDA error: an illegal memory access was encountered"), "sampling", "device_lost"),
        (RuntimeError("Found no NVIDIA driver on your system"), "build_model", "device_lost"),
        (ModuleNotFoundError("No module named 'torch'"), "import_torch", "import_error"),
        (ModuleNotFoundError("No module named 'transformers'"), "build_model", "import_error"),
        (SyntaxError("invalid syntax"), "import_libraries", "import_error"),
        (ValueError("my own mistake"), "build_model", "workload_error"),
        (ValueError("my own mistake"), "eager_first", "workload_error"),
        (ValueError("who knows"), "sampling", "crash"),
        (WorkloadError("no floating-point output to take a loss of"), "first_call", "workload_error"),
        (UnsupportedCaseError("no submodule"), "first_call", "unsupported"),
    ],
)
def test_kinds(error, phase, kind):
    assert kind_of(error, phase) == kind


def test_what_torch_itself_raises():
    with pytest.raises(RuntimeError, match="can't allocate memory") as caught:
        torch.empty(1 << 50, dtype=torch.uint8)
    assert kind_of(caught.value, "build_model") == "out_of_memory"
    with pytest.raises(Exception, match="no_such_backend") as unknown:
        torch.compile(torch.relu, backend="no_such_backend")
    assert kind_of(unknown.value, "first_call") == "compile_error"
    with pytest.raises(ModuleNotFoundError) as missing:
        import_builder("no_such_module:build", [])
    assert kind_of(missing.value, "import_libraries") == "import_error"


@pytest.fixture
def compile_with(monkeypatch, tmp_path, fresh_dynamo):
    """A function that lets Inductor build with a compiler, and returns the exception that the user sees."""
    import torch._inductor.config

    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "caches"))
    monkeypatch.setenv("TORCHINDUCTOR_VEC_ISA_OK", "1")

    def failing(compiler):
        built = workload_fixtures.relu_function()
        torch._dynamo.reset()
        options = {"cpp.cxx": (str(compiler),), "cpp_cache_precompile_headers": False}
        with torch._inductor.config.patch(options), pytest.raises(Exception) as caught:  # noqa: PT011
            torch.compile(built.model_or_fn)(*built.inputs)
        return caught.value

    return failing


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:Reliance on distutils:UserWarning")
def test_a_missing_compiler_and_one_that_fails_are_told_apart(compile_with, tmp_path, monkeypatch):
    # Inductor imports setuptools, which refuses its own distutils where a test before has Python's.
    monkeypatch.setenv("SETUPTOOLS_USE_DISTUTILS", "stdlib")
    assert kind_of(compile_with("/nonexistent/g++"), "first_call") == "missing_compiler"
    compiler = tmp_path / "g++"
    compiler.write_text(
        "#!/bin/sh\n"
        'case "$1" in *version) exec g++ "$@" ;; esac\n'
        "echo 'In file included from here:' >&2\n"
        "echo '/tmp/some/cache/abc.main.cpp:2:10: fatal error: Python.h: No such file or directory' >&2\n"
        "echo 'compilation terminated.' >&2\n"
        "exit 1\n"
    )
    compiler.chmod(0o755)
    error = compile_with(compiler)
    assert kind_of(error, "first_call") == "compile_error"
    assert describe(error).startswith("CppCompileError: C++ compile error")


@pytest.mark.usefixtures("fresh_dynamo")
@pytest.mark.parametrize("fixture", ["unfakeable", "breaks_graph"])
def test_what_fullgraph_cannot_trace_is_unsupported(fixture):
    built = getattr(workload_fixtures, fixture)()
    with pytest.raises(Exception) as caught:  # noqa: PT011 - which one is torch's affair
        torch.compile(built.model_or_fn, backend="eager", fullgraph=True)(*built.inputs)
    assert kind_of(caught.value, "first_call") == "unsupported"


def test_causes_and_wrapped_exceptions_are_looked_at():
    outer = RuntimeError("while compiling")
    outer.__cause__ = MemoryError()
    assert kind_of(outer, "first_call") == "out_of_memory"


def test_a_description_is_one_line_of_the_innermost_exception():
    error = named("BackendCompilerFailed", inner_exception=ValueError("bad\n  shape"))
    assert describe(error) == "ValueError: bad shape"
    assert describe(named("Unsupported")) == "Unsupported: what happened"


def test_a_failed_import_names_its_cause():
    """As transformers does it where a package beside it is of another torch."""
    error = ModuleNotFoundError("Could not import module 'BertModel'.")
    error.__cause__ = RuntimeError("operator torchvision::nms does not exist")
    assert describe(error) == (
        "ModuleNotFoundError: Could not import module 'BertModel'. "
        "Caused by RuntimeError: operator torchvision::nms does not exist"
    )
    assert describe(ModuleNotFoundError("No module named 'x'")) == "ModuleNotFoundError: No module named 'x'"


@pytest.mark.parametrize(
    ("guard", "subject"),
    [
        ("L['self'].calls == 3", "`self.calls`"),
        ("self.calls == 3", "`self.calls`"),
        ("len(seen) == 1", "len(seen) == 1"),
        ("0/7: ___dict_contains('a', L['options']['modes'])", "`options['modes']`"),
        ("tensor 'x' size mismatch at index 0. expected 4, actual 5", "tensor 'x' size mismatch at index 0"),
        ("L['x'].size()[0] == 4  # forward", "`x`"),
        ("unknown", "unknown"),
    ],
)
def test_a_failed_guard_names_what_it_is_about(guard, subject):
    assert recompiled_on(guard).startswith(subject)


def test_an_error_is_ours_unless_the_workload_or_the_compiler_was_at_work():
    def error_of(call):
        with pytest.raises(Exception) as caught:  # noqa: PT011
            call()
        return caught.value

    def broken(*_):
        raise RuntimeError("the model's own")

    step = make_variant(Built(broken, (1,), "function")).step
    assert not is_ours(error_of(step))
    assert is_ours(error_of(lambda: read(Workload, {})))
    assert kind_of(error_of(step), "warmup", ours=is_ours(error_of(step))) == "crash"
    assert kind_of(RuntimeError("tensor has no storage"), "memory", ours=True) == "harness"
    assert kind_of(MemoryError(), "memory", ours=True) == "out_of_memory"


@pytest.mark.parametrize("strategy", [EAGER, compiled("eager")])
def test_what_eager_cannot_do_either_is_no_failure_of_the_compiler(strategy):
    trial = measure("fills_up", strategy, sampling=FEW | {"warmup_calls": 100})
    assert trial.failure.kind == "workload_error"
    too = "" if strategy is EAGER else " too"
    assert trial.failure.message == (
        f"WorkloadError: Eager fails{too} at call 65: IndexError: no room is left"
    )


def test_what_is_raised_while_torch_compiles_is_its_error(monkeypatch):
    """Of a class of Python itself, as from a pass of torch.fx."""

    def broken(*_arguments, **_options):
        raise IndexError("list index out of range")

    torch._dynamo.reset()
    monkeypatch.setattr(torch._dynamo.output_graph.OutputGraph, "compile_and_call_fx_graph", broken)
    with pytest.raises(Exception) as caught:  # noqa: PT011
        torch.compile(lambda x: x * 3, backend="eager")(torch.ones(2))
    raw = IndexError("list index out of range").with_traceback(caught.value.__traceback__)
    assert kind_of(raw, "first_call") == "compile_error"
    assert kind_of(IndexError("list index out of range"), "first_call") == "crash"
