"""`pytest --compilewatch`: tests of your own that hold what `torch.compile` does to a budget.

    def test_encoder_compiles_once(compile_budget):
        with compile_budget(graph_breaks=0, recompiles=0, compile_s=60):
            torch.compile(model)(inputs)

Without `--compilewatch` the fixture is there and checks nothing, so that the same tests run anywhere. It
listens to the structured records that torch writes as it compiles (torch/_logging/_internal.py).
"""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

import pytest

_TRACE_LOG = "torch.__trace"
_FLAG = "--compilewatch"
_BREAK_AT = re.compile(r"[Gg]raph break.*? in user code at (\S+:\d+)")
_REASON = re.compile(
    r"Reason: *(?:(?:Encountered graph break|Failed to handle graph break gracefully)[^\n]*\n+)?([^\n]+)"
)
_COMPILE_ID = re.compile(r"^\d+/\d+: *")
# Regions that stand for the whole of a compilation, forward and backward.
_COMPILATIONS = frozenset({"entire_frame_compile", "entire_backward_compile"})
# Graphs as they go to the code generator: there attention is one operator or several.
_GRAPHS = frozenset({"inductor_post_grad_graph", "after_post_grad_graph"})
_GRAPH_RECORDS = ("aot_forward_graph", "aot_inference_graph")
_FUSED = re.compile(r"scaled_dot_product|flex_attention|flash_attn")
_UNFUSED = re.compile(r"softmax")


@dataclass(slots=True)
class Compilations:
    """What was compiled inside of one budget: events as (place, reason)."""

    graph_breaks: list[tuple[str, str]] = field(default_factory=list)
    recompiles: list[tuple[str, str]] = field(default_factory=list)
    compile_s: float = 0.0
    fused_graphs: int = 0
    unfused: list[str] = field(default_factory=list)
    _open: dict[str, float] = field(default_factory=dict)
    _pending: dict[tuple[Any, Any], str] = field(default_factory=dict)

    def add(self, record: Mapping[str, Any], payload: str) -> None:
        """One structured record of torch."""
        ids = (record.get("frame_id"), record.get("frame_compile_id"))
        if "chromium_event" in record:
            self._timed(json.loads(payload) if payload else record["chromium_event"])
        elif "artifact" in record:
            self._artifact(record["artifact"]["name"], ids, payload)
        elif "compilation_metrics" in record:
            metrics = record["compilation_metrics"]
            reason = self._pending.pop(ids, None)
            if reason is not None:
                self.recompiles.append((_place(metrics), reason))
        elif any(name in record for name in _GRAPH_RECORDS):
            self._graph(payload)

    def _timed(self, event: Mapping[str, Any]) -> None:
        name = event.get("name")
        if name not in _COMPILATIONS:
            return
        if event["ph"] == "B":
            self._open[name] = event["ts"]
        elif name in self._open:
            self.compile_s += (event["ts"] - self._open.pop(name)) / 1e6

    def _artifact(self, name: str, ids: tuple[Any, Any], payload: str) -> None:
        if name == "dynamo_graph_break_reason":
            at, reason = _BREAK_AT.search(payload), _REASON.search(payload)
            place = _short(at.group(1)) if at else "unknown place"
            self.graph_breaks.append((place, reason.group(1).strip() if reason else "no reason given"))
        elif name == "recompile_reasons":
            text = payload.strip()
            first = str(json.loads(text)[0]) if text.startswith("[") else text
            # Behind it comes the user's whole stack.
            self._pending[ids] = _COMPILE_ID.sub("", first.strip().partition("\n")[0])
        elif name in _GRAPHS:
            self._graph(payload)

    def _graph(self, text: str) -> None:
        if _FUSED.search(text):
            self.fused_graphs += 1
        elif unfused := _UNFUSED.search(text):
            self.unfused.append(unfused.group())

    def complaints(
        self,
        graph_breaks: int | None,
        recompiles: int | None,
        fused_attention: bool | None,
        compile_s: float | None,
    ) -> list[str]:
        """A sentence for each limit that was passed, with places and reasons."""
        # A recompilation that never finished has no place of its own.
        again = [*self.recompiles, *(("unknown place", reason) for reason in self._pending.values())]
        complaints = [
            *_over("graph break", self.graph_breaks, graph_breaks),
            *_over("recompilation", again, recompiles),
        ]
        if compile_s is not None and self.compile_s > compile_s:
            complaints.append(f"compiling took {self.compile_s:.1f} s, {compile_s:g} s are allowed")
        if fused_attention and not self.fused_graphs:
            why = f", a graph has {self.unfused[0]} of its own" if self.unfused else ""
            complaints.append(f"no compiled graph has fused attention{why}")
        return complaints


class _Listener(logging.Handler):
    def __init__(self, compilations: Compilations) -> None:
        super().__init__(level=logging.DEBUG)
        self._compilations = compilations

    def emit(self, record: logging.LogRecord) -> None:
        self._compilations.add(getattr(record, "metadata", {}), getattr(record, "payload", None) or "")


def _over(what: str, events: list[tuple[str, str]], limit: int | None) -> list[str]:
    if limit is None or len(events) <= limit:
        return []
    shown = "".join(f"\n    {place}: {reason}" for place, reason in events)
    plural = what if len(events) == 1 else f"{what}s"
    return [f"{len(events)} {plural}, {limit} allowed:{shown}"]


def _place(metrics: Mapping[str, Any]) -> str:
    return _short(f"{metrics.get('co_filename')}:{metrics.get('co_firstlineno')}")


def _short(location: str) -> str:
    file, _, line = location.rpartition(":")
    return f"{PurePath(file).name}:{line}"


Budget = Callable[..., AbstractContextManager[Compilations | None]]


@contextmanager
def within_budget(
    *,
    graph_breaks: int | None = None,
    recompiles: int | None = None,
    fused_attention: bool | None = None,
    compile_s: float | None = None,
) -> Iterator[Compilations]:
    """Fail the test where what is compiled inside passes a limit; None is no limit.

    `graph_breaks` and `recompiles` count at most, `compile_s` is seconds in which torch compiled, forward and
    backward. `fused_attention=True` wants an operator of fused attention in a compiled graph.
    """
    compilations = Compilations()
    listener, log = _Listener(compilations), logging.getLogger(_TRACE_LOG)
    # Torch's own handlers stay. Pytest's would print an empty line for each record, above what failed. Ours
    # stands at the front: torch's takes itself away at its first record, and the next one is skipped.
    attached = log.handlers
    log.handlers = [listener, *(each for each in attached if type(each).__module__.startswith("torch."))]
    propagated, log.propagate = log.propagate, False
    try:
        yield compilations
    finally:
        log.handlers = attached
        log.propagate = propagated
    complaints = compilations.complaints(graph_breaks, recompiles, fused_attention, compile_s)
    if complaints:
        pytest.fail("torch.compile is over its budget.\n  " + "\n  ".join(complaints), pytrace=False)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the one option."""
    group = parser.getgroup("compilewatch")
    group.addoption(_FLAG, action="store_true", help="Hold torch.compile to the budgets of `compile_budget`.")


@pytest.fixture
def compile_budget(request: pytest.FixtureRequest) -> Budget:
    """A context manager that fails the test where `torch.compile` passes a limit; see `within_budget`."""
    if not request.config.getoption(_FLAG):
        return lambda **_: nullcontext()
    if "torch" in sys.modules:
        # What an earlier test compiled of the same function would make this test's a recompilation.
        sys.modules["torch"].compiler.reset()
    return within_budget
