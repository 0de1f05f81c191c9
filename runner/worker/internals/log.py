"""What the compiler's log says of a compilation."""

from __future__ import annotations

import contextlib
import logging
import re
import warnings
from collections.abc import Iterator
from typing import Any

from compilewatch.runner.worker.internals.lookup import attribute


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
