"""The one door to torch's private interfaces. Each has a fallback, since they move between releases 2.6 to
2.15.

A function here returns None (or nothing) where its interface is absent; no caller may take that for zero.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, NamedTuple


def attribute(module: str, name: str) -> Any:
    """`module.name`, or None where either does not exist in this release."""
    try:
        value: Any = importlib.import_module(module)
    except ImportError:
        return None
    for part in name.split("."):
        value = getattr(value, part, None)
    return value


@contextlib.contextmanager
def _replaced(owner: Any, method: str, listener: Callable[..., Any]) -> Iterator[None]:
    original = getattr(owner, method)
    setattr(owner, method, listener)
    try:
        yield
    finally:
        setattr(owner, method, original)


def before(owner: Any, method: str, call: Callable[[str], None]) -> AbstractContextManager[None]:
    """Call `call(event_name)` before a method that takes an event's name first."""
    original = getattr(owner, method)

    def listener(self: Any, event_name: str, *arguments: Any, **options: Any) -> Any:
        call(event_name)
        return original(self, event_name, *arguments, **options)

    return _replaced(owner, method, listener)


def around(
    owner: Any, method: str, name: str, begin: Callable[[str], None], end: Callable[[str], None]
) -> AbstractContextManager[None]:
    """Call `begin(name)` before a method and `end(name)` after it, however it ends."""
    original = getattr(owner, method)

    def listener(*arguments: Any, **options: Any) -> Any:
        begin(name)
        try:
            return original(*arguments, **options)
        finally:
            end(name)

    return _replaced(owner, method, listener)


def after(owner: Any, method: str, note: Callable[[Any, Any], None]) -> AbstractContextManager[None]:
    """Call `note(self, result)` after a method, where its class is there and has it."""
    original = getattr(owner, method, None)
    if not callable(original):
        return contextlib.nullcontext()

    def wrapper(self: Any, *arguments: Any, **options: Any) -> Any:
        result = original(self, *arguments, **options)
        note(self, result)
        return result

    return _replaced(owner, method, wrapper)


def counters() -> dict[str, dict[str, int]]:
    """`torch._dynamo.utils.counters` as plain dictionaries."""
    table = attribute("torch._dynamo.utils", "counters")
    return {} if table is None else {str(group): dict(values) for group, values in table.items()}


_compilations = 0


def _note_compilation(*_: Any) -> None:
    global _compilations  # noqa: PLW0603 - torch's callbacks are the process's, too
    _compilations += 1


def count_compilations() -> Callable[[], int]:
    """A function that tells how often the compiler has run in this process: a number that grows whenever it
    does, for a frame, a backward pass or a CUDA graph. Costs the calls in which it does not run nothing.

    The callbacks of `torch._dynamo.callback` leave out frames that Dynamo looks at and gives up, and releases
    differ in what they call them for; so the counter of frames (2.6 to 2.15) is added.
    """
    register = attribute("torch._dynamo.callback", "callback_handler.register_start_callback")
    if register is not None:
        register(_note_compilation)
    table = attribute("torch._dynamo.utils", "counters")
    frames = {} if table is None else table["frames"]
    return lambda: frames.get("total", 0) + _compilations


def compilation_metrics() -> list[Any] | None:
    """One `CompilationMetrics` per compilation of a frame or a backward; kept up to 64 by torch."""
    function = attribute("torch._dynamo.utils", "get_compilation_metrics")
    return None if function is None else list(function())


def time_spent_ns() -> dict[str, int] | None:
    """`calculate_time_spent()` in nanoseconds. Entries nest, so their sum is no total."""
    function = attribute("torch._dynamo.utils", "calculate_time_spent")
    return None if function is None else {key: int(value * 1e9) for key, value in function().items()}


def wait_time_ns() -> int | None:
    """Wall time spent waiting for kernels compiled by the worker pool; None when nothing waited."""
    recorded = attribute("torch._dynamo.utils", "compilation_time_metrics") or {}
    values = recorded.get("async_compile.wait")
    return None if values is None else int(sum(values) * 1e9)


@contextlib.contextmanager
def listen_to_events(begin: Callable[[str], None], end: Callable[[str], None]) -> Iterator[bool]:
    """Call `begin(name)` and `end(name)` at every region that torch times while it compiles.

    Every `dynamo_timed` passes through the event logger's two methods, whether or not a log is written.
    Yields whether this release has them. Also listens to two steps of the CPU back end that torch does not
    time: "isa_probe" (g++ runs that find the vector instructions) and "precompiled_header".
    """
    with contextlib.ExitStack() as stack:
        logger = attribute("torch._dynamo.utils", "ChromiumEventLogger")
        is_listening = (
            logger is not None
            and callable(getattr(logger, "log_event_start", None))
            and callable(getattr(logger, "log_event_end", None))
        )
        if is_listening:
            stack.enter_context(before(logger, "log_event_start", begin))
            stack.enter_context(before(logger, "log_event_end", end))
        for owner, method, name in (
            (attribute("torch._inductor.cpu_vec_isa", "VecISA"), "check_build", "isa_probe"),
            (attribute("torch._inductor", "codecache"), "_precompile_header", "precompiled_header"),
        ):
            if callable(getattr(owner, method, None)):
                stack.enter_context(around(owner, method, name, begin, end))
        yield is_listening


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


class _Collector(logging.Handler):
    """Keeps what the compiler's log artifacts say; printing is left to torch's own handler."""

    def __init__(self, messages: list[tuple[str, str]]) -> None:
        super().__init__(level=logging.DEBUG)
        self.messages = messages

    def emit(self, record: logging.LogRecord) -> None:
        # An artifact's logger is named "<module>.__<artifact>".
        _, marker, artifact = record.name.rpartition(".__")
        if marker or record.levelno >= logging.WARNING:
            self.messages.append((artifact if marker else "warning", record.getMessage()))


# Why a graph is not cached is said at a level that nobody sees (2.6 to 2.15).
_CACHES = ("torch._inductor.codecache", "torch._functorch._aot_autograd.autograd_cache")
_COMPILER_FILE = re.compile(r"[/\\]torch[/\\]_(dynamo|inductor|functorch)[/\\]")


class _Refused(logging.Filter):
    """Keeps why a cache refused a graph, and lets nothing through that was not shown before."""

    def __init__(self, messages: list[tuple[str, str]]) -> None:
        super().__init__()
        self.messages = messages

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno >= logging.WARNING:
            return True
        if record.msg.startswith("Bypassing"):
            self.messages.append(("cache_bypass", record.getMessage()))
        return False


@contextlib.contextmanager
def collect_log() -> Iterator[list[tuple[str, str]]]:
    """(artifact, message) of graph breaks, recompiles, CUDA graphs and warnings while compiling.

    The log is the only complete source of graph breaks: `counters["graph_break"]` misses data-dependent
    branches and frames that are skipped whole.
    """
    messages: list[tuple[str, str]] = []
    handler = _Collector(messages)
    names = ("torch._dynamo", "torch._inductor")
    bypasses = [logging.getLogger(name) for name in _CACHES]
    levels = [logger.level for logger in bypasses]
    refused = _Refused(messages)
    show_warning = warnings.showwarning

    def note_warning(message: Warning | str, *where: Any, **more: Any) -> None:
        if _COMPILER_FILE.search(str(where[1])):
            messages.append(("warning", str(message)))
        show_warning(message, *where, **more)

    warnings.showwarning = note_warning
    set_logs = attribute("torch._logging", "set_logs")
    if set_logs is not None:
        # Up to 2.9 the reasons for which CUDA graphs are skipped are among the performance hints.
        set_logs(graph_breaks=True, recompiles=True, cudagraphs=True, perf_hints=True)
    for name in names:
        logging.getLogger(name).addHandler(handler)
    for logger in bypasses:
        logger.setLevel(logging.INFO)
        logger.addFilter(refused)
    try:
        yield messages
    finally:
        warnings.showwarning = show_warning
        for logger, level in zip(bypasses, levels, strict=True):
            logger.removeFilter(refused)
            logger.setLevel(level)
        for name in names:
            logging.getLogger(name).removeHandler(handler)


class Tuning(NamedTuple):
    """An operation for which Inductor timed candidates: its name, its inputs' sizes and dtypes, and the
    milliseconds of each candidate by name and configuration. `kernel` is the Triton kernel whose launch
    configurations were timed; it has the chosen one.
    """

    operation: str
    inputs: str | None
    timed_ms: dict[tuple[str, str], float]
    kernel: Any = None


@contextlib.contextmanager
def collect_autotuning() -> Iterator[list[Tuning] | None]:
    """What is autotuned from now on; None where this release does not tell.

    torch/_inductor/select_algorithm.py hands the timings of an operation's candidates to every function of
    `add_feedback_saver` (2.6 to 2.15). `CachingAutotuner.benchmark_all_configs` of
    torch/_inductor/runtime/triton_heuristics.py returns those of a Triton kernel's configurations.
    """
    add = attribute("torch._inductor.select_algorithm", "add_feedback_saver")
    if add is None:
        yield None
        return
    tunings: list[Tuning] = []
    is_open = True

    def note_operation(timings: Any, name: str, input_nodes: Any, *_rest: Any) -> None:
        # Nothing that is only watched may end a compilation.
        with contextlib.suppress(Exception):
            if is_open:
                timed = {(_candidate(each), str(each.description or "")): ms for each, ms in timings.items()}
                tunings.append(Tuning(str(name), ", ".join(map(_input, input_nodes)), timed))

    def note_kernel(kernel: Any, timings: Any) -> None:
        with contextlib.suppress(Exception):
            name = str(kernel.inductor_meta.get("kernel_name") or kernel.fn.__name__)
            timed = {(name, str(launcher.config)): ms for launcher, ms in timings.items()}
            tunings.append(Tuning(name, None, timed, kernel))

    add(note_operation)
    tuner = attribute("torch._inductor.runtime.triton_heuristics", "CachingAutotuner")
    try:
        with after(tuner, "benchmark_all_configs", note_kernel):
            yield tunings
    finally:
        is_open = False


def _candidate(choice: Any) -> str:
    """Its name without the number that it has in this process."""
    return re.sub(r"_\d+$", "", str(choice.name))


def _input(node: Any) -> str:
    return f"{'x'.join(map(str, node.get_size()))} {str(node.get_dtype()).removeprefix('torch.')}"


def chosen_configuration(kernel: Any) -> str | None:
    """With which a Triton kernel is launched from now on; None where that is open."""
    launchers: list[Any] = getattr(kernel, "launchers", None) or []
    return str(launchers[0].config) if len(launchers) == 1 else None


def profiled_allocations(step: Callable[[], Any]) -> list[int] | None:
    """Sizes of the CPU allocations (positive) and releases (negative) of one step, in order of time."""
    profile = attribute("torch.autograd.profiler", "profile")
    if profile is None:
        return None
    with profile(use_kineto=True, profile_memory=True) as profiler:
        step()
    results = getattr(profiler, "kineto_results", None)
    if results is None:
        return None
    events = [event for event in results.events() if event.name() == "[memory]"]
    return [event.nbytes() for event in sorted(events, key=lambda event: event.start_ns())]


def allocator_events(step: Callable[[], Any], device: int, most: int) -> list[Any] | None:
    """What the caching allocator of a GPU does in one step, in order of time, the last `most`; None where
    torch does not tell (torch/cuda/memory.py, 2.6 to 2.15).
    """
    record, snapshot = (
        attribute("torch.cuda.memory", name) for name in ("_record_memory_history", "_snapshot")
    )
    if record is None or snapshot is None:
        return None
    record(enabled="all", context="alloc", stacks="python", max_entries=most)
    try:
        step()
        traces = snapshot().get("device_traces") or []
    finally:
        record(enabled=None)
    return list(traces[device]) if device < len(traces) else None


def watch_operators(step: Callable[[], Any], note: Callable[[Any, Any], None]) -> bool:
    """Run `step` and call `note(arguments, result)` for each operator in it that reads or writes memory.

    Left out are views, whose results share what they were made of, and allocations. Returns whether this
    release lets operators be watched; the step ran in either case.
    """
    mode = attribute("torch.utils._python_dispatch", "TorchDispatchMode")
    if mode is None:
        step()
        return False

    class Watch(mode):  # type: ignore[misc,valid-type]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            if not _only_names(func):
                note((args, kwargs or {}), result)
            return result

    with Watch():
        step()
    return True


def _only_names(operator: Any) -> bool:
    """Whether an operator's result is a view of an input, or memory that nothing was written to."""
    aliases = [returned.alias_info for returned in operator._schema.returns]
    is_view = any(alias is not None and not alias.is_write for alias in aliases)
    return is_view or "empty" in operator._schema.name


def clear_cublas_workspaces() -> bool:
    """Free the workspaces of cuBLAS that torch keeps for each stream; False where it does not offer that."""
    clear = attribute("torch._C", "_cuda_clearCublasWorkspaces")
    if clear is None:
        return False
    clear()
    return True


def force_eager() -> AbstractContextManager[Any]:
    """Whatever is compiled runs as it was written inside (`torch.compiler.set_stance`, from 2.6). Before
    anything imported Dynamo nothing can be compiled, and eager's process does without it.
    """
    stance = attribute("torch.compiler", "set_stance") if "torch._dynamo" in sys.modules else None
    return contextlib.nullcontext() if stance is None else stance("force_eager")


def without_telling_guards() -> AbstractContextManager[Any]:
    """Guards that tell no compiled code from another are skipped inside (`torch.compiler.set_stance`, from
    2.6), as in a server whose inputs were all seen.
    """
    stance = attribute("torch.compiler", "set_stance")
    return contextlib.nullcontext() if stance is None else stance(skip_guard_eval_unsafe=True)


def is_compiled(function: Any) -> bool:
    """Whether `torch.compile` returned it, or changed it in place as `nn.Module.compile` does."""
    if getattr(function, "_torchdynamo_disable", False):
        return False
    attributes = getattr(function, "__dict__", {})
    in_place = attributes.get("_compiled_call_impl") is not None
    code, variables = getattr(function, "__code__", None), getattr(function, "__globals__", {})
    if code is not None and "compile" in code.co_names:
        # It compiles something whenever it is called; what torch's own do is theirs.
        torch = sys.modules.get("torch")
        is_torchs = variables.get("__name__", "").partition(".")[0] == "torch"
        return not is_torchs and any(variables.get(name) is torch for name in code.co_names)
    return (
        in_place
        or "_torchdynamo_orig_callable" in attributes
        or "_orig_mod" in attributes.get("_modules", {})
    )


def as_written(function: Any) -> Any:
    """What `torch.compile` was given where it returned `function`; `function` itself where it did not."""
    while is_compiled(function):
        attributes = vars(function)
        inner = attributes.get("_modules", {}).get("_orig_mod") or attributes.get(
            "_torchdynamo_orig_callable"
        )
        if inner is None:
            break
        function = inner
    return function
