"""Logs of TORCH_TRACE as torch writes them, with what a test wants to be in them."""

from __future__ import annotations

import hashlib
import json
from typing import Any

MISMATCH = "tensor 'x' size mismatch at index 0. expected 8, actual 16"
# As torch writes behind a guard: the line of code that made it, and the user's stack.
STACK = """       # x = x + 1  # model.py:14 in forward
User stack trace:
  File "model.py", line 14, in forward
    x = x + 1"""
START_US = 1_795_000_000_000_000.0
BREAK = """Graph break in user code at /srv/app/model.py:31
Graph Break Reason: Encountered graph break when attempting to trace CALL: a function call, e.g. f(x, y):

Failed to trace builtin operator
  Explanation: Dynamo does not know how to trace `print`
  Hint: Avoid calling builtin `print`.
"""


def record(metadata: dict[str, Any], payload: str | None = None) -> str:
    """One record: pytorch, torch/_logging/_internal.py, TorchLogsFormatter and trace_structured."""
    if payload is not None:
        digest = hashlib.md5(payload.encode(), usedforsecurity=False).hexdigest()
        metadata = metadata | {"has_payload": digest}
    text = f"V1123 07:29:10.002000 32109 torch/_dynamo/utils.py:2350] {json.dumps(metadata)}\n"
    return text + "".join(f"\t{line}\n" for line in payload.split("\n")) if payload is not None else text


def event(name: str, kind: str, at_s: float, **ids: Any) -> str:
    """A chromium event: `kind` B begins, E ends, i is an instant; `at_s` since the log's start."""
    content = {"name": name, "ts": START_US + at_s * 1e6, "args": {}, "ph": kind, "tid": 0, "pid": 0}
    return record({"chromium_event": {}} | ids, json.dumps(content, indent=0))


def spans(*found: tuple[str, float, float], **ids: Any) -> str:
    """Regions by name, begin and end in seconds, in the order in which torch writes their ends."""
    edges = [(begin, "B", name) for name, begin, _ in found] + [(end, "E", name) for name, _, end in found]
    return "".join(event(name, kind, at_s, **ids) for at_s, kind, name in sorted(edges))


def metrics(**content: Any) -> str:
    """What torch sums up at the end of a compilation (torch/_dynamo/utils.py, CompilationMetrics)."""
    ids = {"frame_id": content.pop("frame", 0), "frame_compile_id": content.pop("again", 0), "attempt": 0}
    told = {"co_name": "step", "co_filename": "/srv/app/model.py", "co_firstlineno": 12, "guard_count": 20}
    return record(
        {"compilation_metrics": told | {"graph_op_count": 5, "has_guarded_code": True} | content} | ids
    )


def artifact(name: str, payload: str, **ids: Any) -> str:
    return record({"artifact": {"name": name, "encoding": "string"}} | ids, payload)


def whole_log(*, begin_s: float = 0.0, slower: float = 1.0, rank: int | None = None) -> str:
    """A job that compiled one frame in 10 s, met a break, asked both caches and compiled it again in 2 s.

    Of the first 10 s: dynamo 1 + 1, AOTAutograd 2, Inductor 1, waiting for kernels 5.
    """
    of_rank = {} if rank is None else {"rank": rank}

    def at(second: float) -> float:
        return begin_s + second * slower

    first = {"frame_id": 0, "frame_compile_id": 0, "attempt": 0} | of_rank
    again = {"frame_id": 0, "frame_compile_id": 1, "attempt": 0} | of_rank
    parts = [
        event("entire_frame_compile", "B", at(0), **first),
        artifact("torch_version", json.dumps({"pytorch_version": "2.13.0+cu130"})),
        record({"describe_tensor": {"id": 0, "device": "device(type='cuda', index=0)"}} | first),
        artifact("dynamo_graph_break_reason", BREAK, **first),
        event("backend_compile", "B", at(1), **first),
        event("autograd_cache_miss", "i", at(1), **first),
        event("inductor_compile", "B", at(3), **first),
        event("fx_graph_cache_miss", "i", at(3), **first),
        event("async_compile.wait", "B", at(4), **first),
        event("async_compile.wait", "E", at(9), **first),
        event("inductor_compile", "E", at(9), **first),
        event("backend_compile", "E", at(9), **first),
        record({"inductor_output_code": {"filename": "/tmp/x.py"}} | first, "import torch\n\nx = 1"),
        event("entire_frame_compile", "E", at(10), **first),
        metrics(guard_latency_us=70, triton_version="3.6.0", python_version="3.11.7 (main) [GCC 12]"),
        artifact("recompile_reasons", json.dumps([f"0/0: {MISMATCH}{STACK}", "0/0: another"]), **again),
        spans(("entire_frame_compile", at(20), at(22)), **again),
        metrics(again=1, guard_latency_us=90),
    ]
    return "".join(parts)


def recorded_event(name: str, kind: str, at_s: float) -> dict[str, Any]:
    """A timed region as `compilewatch_recorder.py` writes it."""
    return {"trace": {"chromium_event": {"name": name, "ts": START_US + at_s * 1e6, "ph": kind}}}


AGAIN = "0/0: tensor 'args[0]' size mismatch at index 0. expected 8, actual 12"


def whole_recording(
    *,
    job: str = "ranker",
    rank: int | None = None,
    compile_s: float = 8.0,
    begin_s: float = 0.0,
    again_s: float | None = None,
) -> str:
    """A job that was born at 0 s, imported torch for 2 s, compiled from 10 s on and made 21 steps of 0.1 s.

    The first step ends when the compilation does; the second takes a second. At `again_s` it compiles for
    another size.
    """

    def at_ns(second: float) -> int:
        return round((START_US * 1e-6 + begin_s + second) * 1e9)

    first = 10 + compile_s
    ends = [first, first + 1, *(first + 1 + 0.1 * number for number in range(1, 20))]
    header = {
        **{"schema": "compilewatch.job/1", "job": job, "id": f"{job}-{rank}-{begin_s}", "pid": 7},
        **{"host": "gpu-box-3", "python": "3.11.7", "os": "Linux 6.18", "cpu_count": 16, "rank": rank},
        **{"cpu_name": "AMD EPYC", "launch": "42", "recording_began_ns": at_ns(0.5)},
        "process_began_ns": at_ns(0),
    }
    device = {"device": "cuda", "device_name": "H200", "process_tree_cpu_ns": 9_000_000_000}
    figures = {"guard_count": 9, "graph_op_count": 5, "co_filename": "/srv/app/train.py", "co_firstlineno": 4}
    again = (
        []
        if again_s is None
        else [
            {
                "trace": {
                    "compilation_metrics": figures
                    | {"start_time": at_ns(again_s) / 1e9, "recompile_reason": AGAIN},
                    **{"frame_id": 0, "frame_compile_id": 1},
                }
            }
        ]
    )
    lines = [
        header,
        {"at_ns": at_ns(3), "import_torch_ns": 2_000_000_000, "software": {"torch": "2.13.0"}},
        recorded_event("entire_frame_compile", "B", begin_s + 10),
        recorded_event("fx_graph_cache_miss", "i", begin_s + 10),
        recorded_event("entire_frame_compile", "E", begin_s + first),
        {"trace": {"compilation_metrics": figures, "frame_id": 0, "frame_compile_id": 0}},
        {
            "at_ns": at_ns(first),
            "by_hand": False,
            "steps_ns": [at_ns(first)],
            "first_step": device,
        },
        *again,
        {"at_ns": at_ns(99), "by_hand": False, "steps_ns": [at_ns(end) for end in ends[1:]]},
        {"at_ns": at_ns(99), "ended": True, "memory": {"peak_rss_bytes": 4096}},
    ]
    return "".join(json.dumps(line) + "\n" for line in lines)
