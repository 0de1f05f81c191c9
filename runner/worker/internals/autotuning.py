"""What Inductor timed to choose from."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from compilewatch.runner.worker.internals.lookup import after, attribute


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
