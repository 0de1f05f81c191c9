"""How often the compiler runs, and what it takes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from compilewatch.runner.worker.internals.lookup import around, attribute, before


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
