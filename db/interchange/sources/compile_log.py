"""What one process's compiler did, folded from the structured records that torch writes as it compiles.

Shape: pytorch, torch/_logging/_internal.py (`trace_structured`) and torch/_dynamo/utils.py
(`ChromiumEventLogger`, `CompilationMetrics`), releases 2.6 to 2.15. A record's metadata holds one name and
its content, beside the ids of the frame; long content is a payload.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from compilewatch.db.interchange.files.fields import NS_PER_S, Fields, Place, as_fields, load_json
from compilewatch.db.records.evidence import (
    CacheCounters,
    CompilerEvent,
    CompilerFacts,
    RankCompile,
    RankFacts,
)
from compilewatch.db.records.identity import CacheState

WITH_PAYLOAD = frozenset({"chromium_event", "artifact"})
"""Records whose payload is read; that of all others may be passed over."""
ARTIFACTS = frozenset({"torch_version", "dynamo_graph_break_reason", "recompile_reasons"})
_COUNTS = ("guard_count", "guard_latency_us", "graph_op_count", "co_firstlineno")
_TEXTS = (
    *("co_name", "co_filename", "fail_type", "fail_reason", "recompile_reason", "cudagraph_skip_reason"),
    *("pytorch_version", "triton_version", "cuda_version", "python_version"),
)
METRICS = ("compilation_metrics", "bwd_compilation_metrics", "aot_autograd_backward_compilation_metrics")

_NS_PER_US = 1_000
_TEXT_LIMIT = 2_000
_LIST_LIMIT = 100
_MOST_COMPILES = 200
_PAYLOAD_LIMIT = 65_536
"""Characters of a reason that are looked at: it begins with what it says."""
_NO_REASON = "The log does not say why."

# Names of regions that torch times, and the phase that each opens; tests hold them to those of the measured
# process (`runner/worker/cold_start.py`), which may import nothing from here.
_PHASE_OF = {
    "entire_frame_compile": "dynamo",
    "_compile.compile_inner": "dynamo",
    "backend_compile": "aot_autograd",
    "inductor_compile": "inductor",
    "compile_fx_inner": "inductor",
    "async_compile.wait": "kernel_compile",
    "async_compile.precompile": "kernel_compile",
    "compile_file": "kernel_compile",
    "precompiled_header": "kernel_compile",
    "isa_probe": "isa_probe",
    "cudagraphify": "cudagraph_capture",
    "CUDAGraphNode.record": "cudagraph_capture",
}
_AUTOTUNE_MARKS = ("benchmark_all_configs", "autotun", "AlgorithmSelectorCache", "coordinate_descent")
_BACKWARD = "entire_backward_compile"

_BREAK_AT = " in user code at "
_PLACE = re.compile(r"\S{1,4096}?:\d{1,9}(?!\d)")
_BREAK_REASON = re.compile(
    r"Reason: *(?:(?:Encountered graph break|Failed to handle graph break gracefully)[^\n]*\n+)?([^\n]+)"
)
_EXPLANATION = re.compile(r"^ *Explanation: *(.+)$", re.MULTILINE)
_COMPILE_ID = re.compile(r"^\d+/\d+: *")
# A guard is followed by the line of code that made it, then by the user's whole stack.
_BEHIND_GUARD = re.compile(r"\s{2,}# .*|\n.*", re.DOTALL)
_CACHES = {"fx_graph_cache": "fx_graph", "autograd_cache": "aot_autograd"}
_ANSWERS = {"hit": "hits", "miss": "misses", "bypass": "bypasses"}


def phase_of(event: str) -> str | None:
    """The phase that a timed region opens; None where it belongs to what surrounds it."""
    if event == _BACKWARD:
        return "backward"
    if any(mark in event for mark in _AUTOTUNE_MARKS):
        return "autotune"
    if "cudagraph" in event.lower():
        return "cudagraph_capture"
    return _PHASE_OF.get(event)


class PhaseTimes:
    """Splits the time in which regions are open among the phases, each instant to the innermost one."""

    def __init__(self) -> None:
        self.spent_ns: dict[str, int] = {}
        self.spans_ns: list[tuple[int, int]] = []
        self._began_ns = 0
        self._open: list[tuple[str, str]] = []
        self._names: Counter[str] = Counter()
        self._since_ns = 0

    def begin(self, event: str, at_ns: int) -> None:
        """A region opens. A backward compilation is one phase, whatever opens inside it."""
        self.settle(at_ns)
        around = self._open[-1][1] if self._open else "other"
        phase = around if around == "backward" else phase_of(event) or around
        if not self._open:
            self._began_ns = self._since_ns
        self._open.append((event, phase))
        self._names[event] += 1

    def end(self, event: str, at_ns: int) -> None:
        """The innermost open region of this name closes, and with it what was left open inside."""
        self.settle(at_ns)
        # Each region that is looked at is closed: an end without its beginning costs nothing.
        while self._names[event]:
            closed, _ = self._open.pop()
            self._names[closed] -= 1
            if closed == event:
                break
        if not self._open and self._since_ns > self._began_ns:
            self.spans_ns.append((self._began_ns, self._since_ns))
            self._began_ns = self._since_ns

    @property
    def unfinished(self) -> bool:
        """Whether a region is open."""
        return bool(self._open)

    def until_ns(self, moment_ns: int) -> int:
        """How much of the time until then something was compiled in, of what is closed."""
        return sum(min(end, moment_ns) - begin for begin, end in self.spans_ns if begin < moment_ns)

    def settle(self, now_ns: int) -> None:
        """Count up to now; threads may tell their times late, and no time counts backwards."""
        if self._open and now_ns > self._since_ns:
            phase = self._open[-1][1]
            self.spent_ns[phase] = self.spent_ns.get(phase, 0) + now_ns - self._since_ns
        self._since_ns = max(self._since_ns, now_ns)


class CompileLog:
    """The records of one process in the order in which they were written. Times are ns since 1970."""

    def __init__(self) -> None:
        self.phases = PhaseTimes()
        self.began_ns: int | None = None
        self.torch: str | None = None
        self.rank: int | None = None
        self.compiles: list[Mapping[str, Any]] = []
        self._began: list[tuple[int | None, str, tuple[int, int]]] = []
        self._devices: set[str] = set()
        self._answers: list[str] = []
        self._cache: Counter[str] = Counter()
        self._breaks: Counter[tuple[str, str | None]] = Counter()
        self._recompiles: dict[tuple[int, int], str] = {}
        self._places: dict[int, str] = {}
        self._strings: dict[int, str] = {}

    def add(self, record: Fields, payload: str) -> None:
        """One record. Raises RecordError naming the field that is not what torch writes."""
        if "rank" in record.data:
            self.rank = record.count("rank")
        if "chromium_event" in record.data:
            self._timed(_of_payload(record, payload) if payload else record.part("chromium_event"))
        elif "artifact" in record.data:
            self._artifact(record, record.part("artifact").text("name", _TEXT_LIMIT) or "", payload)
        elif "str" in record.data:
            self._named(record)
        elif "dynamo_start" in record.data:
            self._started(record)
        elif "describe_tensor" in record.data:
            self._devices.add(record.part("describe_tensor").text("device", _TEXT_LIMIT) or "")
        elif "describe_source" not in record.data:
            self._measured(record)

    def _timed(self, event: Fields) -> None:
        if not event.data:
            return
        name, at_ns = event.required_text("name", _TEXT_LIMIT), event.scaled("ts", _NS_PER_US)
        if at_ns is None:
            event.fail("ts", "is missing")
        if self.began_ns is None:
            self.began_ns = at_ns
        kind = event.required_text("ph")
        if kind == "B":
            self.phases.begin(name, at_ns)
        elif kind == "E":
            self.phases.end(name, at_ns)
        else:
            self._answered(name)

    def _answered(self, name: str) -> None:
        """Whether an instant event is the answer of a cache, such as `fx_graph_cache_hit`."""
        cache, _, answer = name.rpartition("_")
        if cache in _CACHES and answer in _ANSWERS:
            self._cache[f"{_CACHES[cache]}_{_ANSWERS[answer]}"] += 1
            self._answers.append(answer)

    def _artifact(self, record: Fields, name: str, payload: str) -> None:
        if name == "torch_version":
            self.torch = _of_payload(record, payload).required_text("pytorch_version")
        elif name == "dynamo_graph_break_reason":
            payload = payload[:_PAYLOAD_LIMIT]
            self._breaks[(_break_reason(payload), _break_place(payload))] += 1
        elif name == "recompile_reasons":
            self._recompiles[frame_ids(record)] = _recompile_reason(record.place, payload)

    def _named(self, record: Fields) -> None:
        """A text that later records name by its number."""
        match record.data["str"]:
            case [str(text), int(number)]:
                self._strings[number] = text
            case _:
                record.fail("str", "must be a text and its number")

    def _started(self, record: Fields) -> None:
        stack = record.part("dynamo_start").data.get("stack") or []
        frame = record.count("frame_id")
        if not isinstance(stack, list):
            record.fail("dynamo_start.stack", "must be a list")
        if stack and frame is not None:
            innermost = as_fields(record.place, stack[-1], "dynamo_start.stack")
            number, line = innermost.count("filename"), innermost.count("line")
            if number in self._strings and line is not None:
                self._places.setdefault(frame, _short(f"{self._strings[number]}:{line}"))

    def _measured(self, record: Fields) -> None:
        for name in METRICS:
            if name not in record.data:
                continue
            fields = record.part(name)
            metrics = {**fields.data, **{count: fields.count(count) for count in _COUNTS}}
            for text in _TEXTS:
                if not isinstance(metrics.get(text) or "", str):
                    fields.fail(text, "must be text")
            self.torch = metrics.get("pytorch_version") or self.torch
            self.compiles.append(metrics)
            frame, again = frame_ids(record)
            if metrics.get("co_filename") and frame >= 0:
                self._places[frame] = _place(metrics)
            if again > 0 and name == METRICS[0]:
                stated = metrics.get("recompile_reason")
                self._recompiles.setdefault((frame, again), _guard_alone(stated) if stated else _NO_REASON)
            began_ns = fields.scaled("start_time", NS_PER_S)
            self._began.append((began_ns, "forward" if name == METRICS[0] else "backward", (frame, again)))
            self.began_ns = self.began_ns or began_ns

    @property
    def compiled(self) -> bool:
        """Whether any compilation came to its end."""
        return bool(self.compiles)

    @property
    def device(self) -> str | None:
        """`cpu`, or the accelerator that any described tensor was on; None where none was described."""
        kinds = {match[1] for device in self._devices if (match := re.search(r"type='(\w+)'", device))}
        accelerators = sorted(kinds - {"cpu", "meta"})
        return accelerators[0] if accelerators else "cpu" if "cpu" in kinds else None

    @property
    def cache(self) -> CacheState:
        """What the process found on disk before its first call: the answer to its first graph."""
        first = next((answer for answer in self._answers if answer != "bypass"), None)
        return {"hit": CacheState.WARM, "miss": CacheState.COLD}.get(first or "", CacheState.UNKNOWN)

    def place(self, frame: int) -> str | None:
        """File and line of the function that Dynamo gave that number."""
        return self._places.get(frame)

    def recompile_reason(self, ids: tuple[int, int]) -> str | None:
        """The guard that failed before this compilation; None for the first of a function."""
        return self._recompiles.get(ids)

    def newest(self, key: str) -> Any:
        """A fact of the newest compilation that tells it."""
        return next((each[key] for each in reversed(self.compiles) if each.get(key)), None)

    def figures(self) -> dict[str, float]:
        """What has no field in the record: guards and what checking them costs, by torch's own estimate."""
        frames = [each for each in self.compiles if each.get("guard_count") is not None]
        guards = {
            "compilations": float(len(self.compiles)),
            "guards": float(sum(_all(frames, "guard_count"))),
        }
        latencies = _all(frames, "guard_latency_us")
        return guards | ({"guard_latency_us": float(sum(latencies))} if latencies else {})

    def facts(self) -> CompilerFacts:
        graphs = [each for each in self.compiles if each.get("graph_op_count")]
        recompiles = Counter(
            (reason, self._places.get(frame)) for (frame, _), reason in self._recompiles.items()
        )
        skips = [each["cudagraph_skip_reason"] for each in self.compiles if each.get("cudagraph_skip_reason")]
        return CompilerFacts(
            graphs=len(graphs),
            ops_captured=sum(_all(graphs, "graph_op_count")),
            graph_breaks=_events(self._breaks),
            recompiles=_events(recompiles),
            skipped_frames=self._skipped(),
            recompile_limit_hit=any(
                "RecompileLimitExceeded" in str(each.get("fail_type"))
                or "recompile limit" in str(each.get("fail_reason")).lower()
                for each in self.compiles
            ),
            cudagraph_skips=[str(skip)[:_TEXT_LIMIT] for skip in dict.fromkeys(skips)][:_LIST_LIMIT] or None,
            cache=self._counters(),
        )

    def of_rank(self, rank: int, steps_ns: Sequence[int]) -> RankFacts:
        """What this process compiled, at which of the steps that ended at `steps_ns`."""
        compiles = [
            RankCompile(
                step=None if began_ns is None or not steps_ns else 1 + bisect_left(steps_ns, began_ns),
                part=part,
                reason=self._recompiles.get(ids, "")[:_TEXT_LIMIT] or None,
            )
            for began_ns, part, ids in self._began
        ]
        spent_ns = sum(self.phases.spent_ns.values())
        return RankFacts(
            rank=rank,
            steps=len(steps_ns) or None,
            compile_ns=spent_ns or None,
            compiles=compiles[:_MOST_COMPILES],
        )

    def _skipped(self) -> list[str]:
        reasons = [
            f"{each.get('co_name')} ({_place(each)}) {each.get('fail_reason') or ''}".strip()[:_TEXT_LIMIT]
            for each in self.compiles
            if each.get("has_guarded_code") is False and each.get("co_filename")
        ]
        return list(dict.fromkeys(reasons))[:_LIST_LIMIT]

    def _counters(self) -> CacheCounters:
        caches = {name.partition("_" + name.rsplit("_", 1)[-1])[0] for name in self._cache}
        names = [f"{cache}_{answer}" for cache in caches for answer in _ANSWERS.values()]
        return CacheCounters(**{name: self._cache[name] for name in names})


def _of_payload(record: Fields, payload: str) -> Fields:
    """The object that a payload is. Raises RecordError where it is none."""
    return as_fields(record.place, load_json(payload.encode(), record.place), "the payload")


def frame_ids(record: Fields) -> tuple[int, int]:
    """The function that a record is about, and how often it was compiled before; -1 for no function."""
    frame, again = record.count("frame_id"), record.count("frame_compile_id")
    return (-1 if frame is None else frame, 0 if again is None else again)


def _all(compiles: list[Mapping[str, Any]], key: str) -> list[int]:
    return [each[key] for each in compiles if each.get(key) is not None]


def _short(location: str) -> str:
    """File name and line: enough to find it, without telling the paths of the job's host."""
    file, _, line = location.rpartition(":")
    return f"{PurePath(file).name}:{line}"


def _place(metrics: Mapping[str, Any]) -> str:
    return _short(f"{metrics['co_filename']}:{metrics.get('co_firstlineno')}")


def _break_place(text: str) -> str | None:
    """File and line of the user's code that a reason names first."""
    for line in text.splitlines():
        head, found, rest = line.partition(_BREAK_AT)
        if found and "raph break" in head and (at := _PLACE.match(rest)):
            return _short(at[0])
    return None


def _break_reason(text: str) -> str:
    stated, explained = _BREAK_REASON.search(text), _EXPLANATION.search(text)
    reason = stated.group(1).strip() if stated else text.strip().partition("\n")[0] or _NO_REASON
    return f"{reason}: {explained.group(1).strip()}" if explained else reason


def _guard_alone(reason: str) -> str:
    return _BEHIND_GUARD.sub("", _COMPILE_ID.sub("", reason.strip())) or _NO_REASON


def _recompile_reason(place: Place, payload: str) -> str:
    """The first guard that failed: from a list of them, or one per line."""
    text = payload.strip()
    if text.startswith("["):
        reasons = load_json(text.encode(), place)
        return _guard_alone(str(reasons[0])) if isinstance(reasons, list) and reasons else _NO_REASON
    return _guard_alone(text)


def _events(counts: Mapping[tuple[str, str | None], int]) -> list[CompilerEvent]:
    return [
        CompilerEvent(reason=reason[:_TEXT_LIMIT], location=location, count=count)
        for (reason, location), count in list(counts.items())[:_LIST_LIMIT]
    ]
