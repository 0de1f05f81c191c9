"""CUDA graphs: mark each step for them. That they ran is seen in the device's own tracing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runner.worker.internals import mark_step


def marked(call: Callable[..., Any]) -> Callable[..., Any]:
    """`call` preceded by the mark that lets a CUDA graph reuse the memory of the call before."""

    def marked_call(*arguments: Any) -> Any:
        mark_step()
        return call(*arguments)

    return marked_call
