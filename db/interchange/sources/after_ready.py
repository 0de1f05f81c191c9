"""What a job compiled after it said that it was ready, folded from the lines of its recording.

A region that torch times (torch/_dynamo/utils.py, `ChromiumEventLogger`) and no other surrounds is one
compilation; its inputs are the tensors that torch describes as it traces (torch/_subclasses/meta_utils.py).
Triton's kernels are those of the job's own: Inductor's lie inside a region.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from compilewatch.db.interchange.files.fields import Fields
from compilewatch.db.interchange.sources.compile_log import METRICS, CompileLog, frame_ids, phase_of
from compilewatch.db.records.evidence import (
    AfterReady,
    CompileAfterReady,
    CompiledInput,
    CompileKind,
    RequestInput,
)

_NS_PER_US = 1_000
_MOST_COMPILES = 1_000
_MOST_INPUTS = 100
_TEXT_LIMIT = 2_000
_LARGEST_INTEGER = 2**53
_COMPILE_ID = re.compile(r"!?(?:\d+/)?(\d+)/(\d+)")
_ARGUMENT = re.compile(r"L\['\w+'\](?:\['[^']*'\]|\[\d+\])*")
"""An argument of the compiled function, or an entry of one; not a parameter or an attribute of a module."""
_OBJECT = re.compile(
    r"L\['(?!self')(\w+)'\]((?:\['[^']*'\]|\[\d+\])*)\.(?!.*_(?:modules|parameters|buffers)\[).*"
)
"""A tensor that an argument of another kind holds."""
_KINDS = {
    "backward": CompileKind.BACKWARD,
    "autotune": CompileKind.AUTOTUNING,
    "cudagraph_capture": CompileKind.CUDA_GRAPH,
}
_Ids = tuple[int, int]


@dataclass(slots=True)
class _Region:
    """Regions that lie in one another; `phase` is that of the first that opens one."""

    ids: _Ids | None
    began_ns: int
    request: str | None
    answer: int | None
    phase: str | None = None
    names: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Tensor:
    source: str | None = None
    size: list[int] = field(default_factory=list)
    dtype: str = ""


class AfterReadyLog:
    """The lines from the one that says `ready` on. Times are ns since 1970."""

    def __init__(self, log: CompileLog, ready_ns: int) -> None:
        self._log, self._ready_ns = log, ready_ns
        self._open: dict[_Ids | None, _Region] = {}
        self._compiles: list[tuple[_Region, int]] = []
        self._kernels: list[tuple[CompileAfterReady, int | None]] = []
        self._tensors: dict[_Ids, dict[tuple[int | None, int | None], _Tensor]] = defaultdict(dict)
        self._names: dict[int, str] = {}
        self._answers: dict[int | None, list[RequestInput]] = {}

    def add(self, line: Fields) -> None:
        """One line. Raises RecordError naming the field that the recorder did not write so."""
        if "triton" in line.data:
            self._kernel(line)
            return
        if "inputs" in line.data:
            self._answers[line.count("answer")] = [_request_input(each) for each in line.objects("inputs")]
            return
        record = line.part("trace")
        if "chromium_event" in record.data:
            self._timed(line, record.part("chromium_event"))
        for name in ("describe_tensor", "describe_source"):
            if name in record.data:
                self._described(frame_ids(record), record.part(name))
        for name in METRICS:
            if name in record.data and (called := record.part(name).text("co_name", _TEXT_LIMIT)):
                self._names[frame_ids(record)[0]] = called

    def _timed(self, line: Fields, event: Fields) -> None:
        name, at_ns = event.required_text("name", _TEXT_LIMIT), event.scaled("ts", _NS_PER_US)
        if at_ns is None:
            event.fail("ts", "is missing")
        match = _COMPILE_ID.fullmatch(line.text("compile_id") or "")
        ids = (int(match[1]), int(match[2])) if match else None
        if ids is None and None not in self._open and self._open:
            return  # work of a thread that helps the compilation which is open
        kind = event.required_text("ph")
        if kind == "B":
            request, answer = line.text("request", _TEXT_LIMIT), line.count("answer")
            region = self._open.setdefault(ids, _Region(ids, at_ns, request, answer))
            region.names.append(name)
            region.phase = region.phase or phase_of(name)
        elif kind == "E" and (opened := self._open.get(ids)) is not None and name in opened.names:
            while opened.names.pop() != name:
                pass
            if not opened.names:
                del self._open[ids]
                if opened.phase is not None:
                    self._compiles.append((opened, at_ns))

    def _described(self, ids: _Ids, tensor: Fields) -> None:
        tensors = self._tensors[ids]
        known = tensors.setdefault((tensor.count("describer_id"), tensor.count("id")), _Tensor())
        if "source" in tensor.data:
            known.source = tensor.text("source", _TEXT_LIMIT)
        else:
            known.size = tensor.counts("size")
            known.dtype = (tensor.text("dtype") or "").removeprefix("torch.")

    def _kernel(self, line: Fields) -> None:
        if self._open:
            return
        kernel, ended_ns = line.part("triton"), line.count("at_ns") or 0
        began_ns = kernel.count("began_ns") or ended_ns
        compiled = CompileAfterReady(
            after_ns=max(began_ns - self._ready_ns, 0),
            cost_ns=max(ended_ns - began_ns, 0),
            kind=CompileKind.TRITON,
            function=kernel.text("name"),
            reason=kernel.text("signature", 20_000),
            request=line.text("request", _TEXT_LIMIT),
        )
        self._kernels.append((compiled, line.count("answer")))

    def facts(self, ended_ns: int | None) -> AfterReady:
        """What compiled, in order of time; `ended_ns` is when the job ended, None where nobody knows."""
        compiles = [self._compile(region, end_ns) for region, end_ns in self._compiles]
        # What a request was called with follows once it has ended.
        kernels = [
            each.model_copy(update={"request_inputs": self._answers.get(answer)})
            for each, answer in self._kernels
        ]
        compiles = sorted([*compiles, *kernels], key=lambda each: each.after_ns)
        return AfterReady(
            watched_ns=None if ended_ns is None else max(ended_ns - self._ready_ns, 0),
            count=len(compiles),
            cost_ns=sum(each.cost_ns for each in compiles),
            compiles=compiles[:_MOST_COMPILES],
        )

    def _compile(self, region: _Region, ended_ns: int) -> CompileAfterReady:
        ids = region.ids
        facts: dict[str, Any] = {}
        again = ids is not None and ids[1] > 0
        kind = _KINDS.get(region.phase or "") or (
            CompileKind.RECOMPILATION if again else CompileKind.COMPILATION
        )
        if ids is not None:
            place, name = self._log.place(ids[0]), self._names.get(ids[0])
            facts["function"] = f"{name or 'a function'} ({place})"[:200] if place else name
            if kind in (CompileKind.COMPILATION, CompileKind.RECOMPILATION):
                facts["reason"] = self._log.recompile_reason(ids)
                facts["inputs"] = self._inputs(ids)
                facts["objects"] = self._objects(ids)
        return CompileAfterReady(
            after_ns=max(region.began_ns - self._ready_ns, 0),
            cost_ns=max(ended_ns - region.began_ns, 0),
            kind=kind,
            request=region.request,
            request_inputs=self._answers.get(region.answer),
            **facts,
        )

    def _inputs(self, ids: _Ids) -> list[CompiledInput]:
        """The arguments, each once: a compilation that begins anew describes them again."""
        named = {
            each.source: CompiledInput(source=each.source, size=each.size, dtype=each.dtype)
            for each in self._tensors[ids].values()
            if each.source is not None and _ARGUMENT.fullmatch(each.source)
        }
        return list(named.values())[:_MOST_INPUTS]

    def _objects(self, ids: _Ids) -> list[str] | None:
        """The arguments that hold tensors and are no tensor, list or dict."""
        found = (_OBJECT.fullmatch(each.source or "") for each in self._tensors[ids].values())
        names = dict.fromkeys(f"L['{match[1]}']{match[2]}"[:200] for match in found if match)
        return list(names)[:_MOST_INPUTS] or None


def _request_input(told: Fields) -> RequestInput:
    filled = told.number("filled_with")
    return RequestInput(
        source=told.required_text("source"),
        size=told.counts("size") if told.data.get("size") is not None else None,
        dtype=told.text("dtype"),
        filled_with=int(filled) if filled is not None and abs(filled) <= _LARGEST_INTEGER else None,
        literal=told.text("literal", 20_000),
        made_of=told.text("made_of"),
    )
