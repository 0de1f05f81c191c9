"""The compiler: its modes and switches, its graphs and code, its end."""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from compilewatch.runner.worker.internals.lookup import after, attribute

COMPILE_STACK = ("torch._dynamo", "torch._inductor.compile_fx")


def import_compile_stack() -> None:
    """Import what `torch.compile` would import at its first use, so that it is a phase of its own."""
    for module in COMPILE_STACK:
        with contextlib.suppress(ImportError):
            importlib.import_module(module)


def mode_options(mode: str) -> dict[str, Any]:
    """What a mode of `torch.compile` stands for, e.g. {"triton.cudagraphs": True}. Raises ValueError."""
    listed = attribute("torch._inductor", "list_mode_options")
    options = {} if listed is None else listed()
    if mode not in options:
        raise ValueError(f"torch.compile has no mode {mode!r}; it has {', '.join(sorted(options))}.")
    return dict(options[mode])


def simple_settings(module: str) -> dict[str, bool | int | float]:
    """The switches and numbers of a configuration module of torch, with their values now."""
    copy = attribute(module, "get_config_copy")
    values = {} if copy is None else copy()
    plain = {name: value for name, value in values.items() if isinstance(value, bool | int | float)}
    return {name: value for name, value in plain.items() if name.islower() and not name.startswith("_")}


def mark_step() -> None:
    """Tell CUDA graphs that a new step begins, so that the last one's outputs may be overwritten."""
    import torch

    mark = getattr(torch.compiler, "cudagraph_mark_step_begin", None)
    if mark is not None:
        mark()


def reset_compiler() -> None:
    """Forget everything that was compiled in this process."""
    reset = attribute("torch._dynamo", "reset")
    if reset is not None:
        reset()


def end_compile_pool() -> None:
    """Have Inductor end the processes of its pool, which starts again when it is needed."""
    if "torch._inductor.async_compile" in sys.modules:
        end = attribute("torch._inductor.async_compile", "shutdown_compile_workers")
        if end is not None:
            end()


def compile_threads_in_force() -> int | None:
    """With how many threads Inductor compiles; None where it is not imported, or does not tell."""
    if "torch._inductor.config" not in sys.modules:
        return None
    threads = attribute("torch._inductor.config", "compile_threads")
    return threads if isinstance(threads, int) else None


def register_capturing_backend(name: str, look: Callable[[Any, Any], Callable[..., Any]]) -> None:
    """Register a backend of `torch.compile` that hands each forward and backward graph, decomposed as for
    Inductor, to `look` and runs what that returns.
    """
    backend = importlib.import_module("torch._dynamo.backends.common")
    functional = importlib.import_module("torch._functorch.aot_autograd")
    decompositions = importlib.import_module("torch._inductor.decomposition").select_decomp_table()

    def compiler(module: Any, inputs: Any) -> Any:
        return functional.make_boxed_func(look(module, inputs))

    capture = backend.aot_autograd(fw_compiler=compiler, bw_compiler=compiler, decompositions=decompositions)
    importlib.import_module("torch._dynamo").register_backend(capture, name=name)


def falls_back(operation: Any) -> bool:
    """Whether Inductor leaves an ATen operation to ATen instead of writing or choosing a kernel for it
    (`fallbacks` of torch/_inductor/lowering.py).
    """
    lowering = importlib.import_module("torch._inductor.lowering")
    left = {operation, operation.overloadpacket} & set(lowering.fallbacks)
    return bool(left) or operation not in lowering.lowerings


def watch_partitions(note: Callable[[Any, Any], None]) -> AbstractContextManager[None]:
    """Call `note` with the joint graph, and the forward and backward graphs that Inductor parts it into (2.6
    to 2.15).
    """

    def look(joint: Any, parts: Any) -> None:
        # Nothing that is only watched may end a compilation.
        with contextlib.suppress(Exception):
            note(joint, parts)

    return after(attribute("torch._inductor", "compile_fx"), "min_cut_rematerialization_partition", look)


def generated_modules() -> list[str]:
    """Paths of the Python that Inductor wrote and loaded in this process, each once, in that order."""
    modules = attribute("torch._inductor.codecache", "PyCodeCache.modules") or ()
    paths = (getattr(module, "__file__", None) for module in modules)
    return list(dict.fromkeys(path for path in paths if path))


def compiler_bisector() -> Any:
    """`CompilerBisector`, which leaves out parts of the compiler to find one that fails; None up to 2.5."""
    return attribute("torch._inductor.compiler_bisector", "CompilerBisector")
