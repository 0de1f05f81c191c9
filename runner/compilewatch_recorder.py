"""Records what `torch.compile` costs a job of your own: one file a process, for `compilewatch import`.

    from compilewatch import record

    record.start("ranker-train")

or, without a change of the code, `python -m compilewatch.record --name ranker-train -- train.py ...`. It
needs the standard library alone and can be copied as one file.

It listens to the structured records that torch writes as it compiles (torch/_logging/_internal.py), as
TORCH_TRACE does, and to the end of each optimizer step, or to `record.step()`. Between compilations it
notes a time per step, of the first 1,000 steps, and how long each waited for its batch where the loop goes
through `record.batches(loader)`. `ready()` says that the job is warm: of everything that compiles from there
on the inputs are noted too, and Triton's own compilations by its hooks (triton/runtime/jit.py,
`knobs.runtime`). Of each lookup in a cache of the compiler it notes the key by component. Where the variables
COMPILEWATCH_ADDRESS and COMPILEWATCH_TOKEN name a dashboard, a thread tells it how the job is, and never
keeps it waiting. It changes no setting of torch, and nothing that goes wrong in here reaches the job: it then
stops recording.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import json
import logging
import math
import os
import platform
import random
import re
import runpy
import subprocess
import sys
import threading
import time
import urllib.request
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from datetime import UTC, datetime
from importlib.machinery import ModuleSpec
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import CodeType, FrameType, FunctionType, MethodType
from typing import Any, TypeVar

_Batch = TypeVar("_Batch")

__all__ = ["batches", "main", "ready", "request", "start", "step", "stop"]

SCHEMA = "compilewatch.job/1"
DIRECTORY_VARIABLE = "COMPILEWATCH_JOBS"
ADDRESS_VARIABLE, TOKEN_VARIABLE = "COMPILEWATCH_ADDRESS", "COMPILEWATCH_TOKEN"
STEPS = 1_000
_WRITTEN_AT = frozenset({1, 10, 50, 200, STEPS})
# What makes processes of one launch belong together, where the launcher tells.
_LAUNCH = ("TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "SLURM_JOB_ID", "MASTER_ADDR", "MASTER_PORT")
_RANKS = (("RANK", "WORLD_SIZE"), ("SLURM_PROCID", "SLURM_NTASKS"))
_TRACE_LOG = "torch.__trace"
_METRICS = ("compilation_metrics", "bwd_compilation_metrics", "aot_autograd_backward_compilation_metrics")
_FIGURES = (
    *("compile_id", "co_name", "co_filename", "co_firstlineno", "start_time", "guard_count"),
    *("guard_latency_us", "graph_op_count", "fail_type", "fail_reason", "has_guarded_code"),
    *("recompile_reason", "cudagraph_skip_reason"),
    *("pytorch_version", "triton_version", "cuda_version", "python_version"),
)
_ARTIFACTS = frozenset({"dynamo_graph_break_reason", "recompile_reasons"})
_IDS = ("frame_id", "frame_compile_id", "attempt", "rank")
# What tells the inputs of a compilation, noted of those after `ready`.
_INPUTS = {
    "describe_tensor": ("id", "describer_id", "size", "dtype", "is_parameter", "device"),
    "describe_source": ("id", "describer_id", "source"),
}
_DEVICE = re.compile(r"type='(\w+)'")
# What a cache answered (torch/_inductor/compile_fx.py, torch/_functorch/_aot_autograd/autograd_cache.py), and
# a line of what its key was made of (torch/_inductor/codecache.py, `FxGraphCachePickler.debug_lines`).
_LOOKUP = re.compile(r"(fx_graph|aotautograd)_cache_(hit|miss|bypass)")
_COMPONENT = re.compile(r"\[(\w+)\] (\w+)(\[[^\]]*\])?: (.*)", re.DOTALL)
_OF_SOURCE = frozenset({"gm", "user_defined_triton_source", "triton_kernel_source_codes"})
_OF_INPUTS = "example_inputs"
_TENSOR = re.compile(r"dtype=torch\.(\w+), shape=torch\.Size\(\[([^\]]*)\]\)")
# Options at these values are left out: most of several hundred.
_UNSET = frozenset({"None", "False", "0", "", "[]", "{}", "()"})
_HASHED = frozenset({"torch_version", "aot_config"})
_MOST_LOOKUPS = 1_000
_COMPILE_ID = re.compile(r"!?(?:\d+/)?(\d+/\d+)")
# As in db/interchange/sources/compile_log.py.
_BEHIND_GUARD = re.compile(r"\s{2,}# .*|\n.*", re.DOTALL)
# Of regions that torch times, what is compiling: those in which db/interchange/sources/compile_log.py sees a
# phase.
_COMPILING = re.compile(
    "compile|cudagraph|isa_probe|precompiled_header|autotun|all_configs|coordinate_desc", re.I
)
_MOST_NAMES = 10_000
# A wrapper takes *args and **kwargs (inspect.CO_VARARGS, CO_VARKEYWORDS); of several functions that it holds
# one of these names is what it wraps.
_TAKES_ALL = 0x04 | 0x08
_WRAPPED = ("func", "fn", "function", "f", "method", "wrapped")
_MOST_DECORATORS = 20
_MOST_INPUTS = 100
_LONGEST_TEXT = 1_000
_LARGEST_LOOKED_AT = 1_000_000
_LARGEST_INTEGER = 2**53
_EVENTS = 20
_TEXT = 200
_SECONDS_BETWEEN_REPORTS = 1.0
_HEARTBEAT_S = 5.0
_LONGEST_HEARTBEAT_S = 40.0
_RANKS_AT_A_TIME = 64
_LONGEST_PAUSE_S = 60.0
_TIMEOUT_S = 5.0
_LAST_TIMEOUT_S = 1.0
_MOST_TENSORS = 8
# As in load_caches.py, whose folders these variables are compared with.
_COMPILER_VARIABLES = ("TORCHINDUCTOR_", "TORCHDYNAMO_", "TRITON_")
_WITHOUT_EFFECT = ("TORCHINDUCTOR_CACHE_DIR", "TORCHINDUCTOR_COMPILE_THREADS", "TRITON_CACHE_DIR")
_LIMIT = 20_000


class _Listener(logging.Handler):
    """Hands torch's structured records to the recorder; nothing is formatted, nothing is printed."""

    def __init__(self, received: Callable[[Mapping[str, Any], str], None]) -> None:
        super().__init__(level=logging.DEBUG)
        self._received = received

    def handle(self, record: logging.LogRecord) -> bool:
        """Without the lock of `logging.Handler.handle`: a line is one call of `os.write`."""
        self._received(getattr(record, "metadata", {}), getattr(record, "payload", None) or "")
        return True


class _ImportTimer:
    """Times the import of torch, and leaves `sys.meta_path` and torch's loader as they were."""

    def __init__(self, imported: Callable[[int], None]) -> None:
        self._imported = imported

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """The spec that the other finders give, which tells when torch has been executed."""
        if name != "torch":
            return None
        for finder in sys.meta_path:
            if finder is not self and (spec := finder.find_spec(name, path, target)) is not None:
                self._time(spec.loader)
                return spec
        return None

    def _time(self, loader: Any) -> None:
        execute = getattr(loader, "exec_module", None)
        if execute is None:
            return

        def timed(module: Any) -> None:
            with contextlib.suppress(AttributeError):
                del loader.exec_module
            with contextlib.suppress(ValueError):
                sys.meta_path.remove(self)
            began_ns = time.perf_counter_ns()
            execute(module)
            self._imported(time.perf_counter_ns() - began_ns)

        with contextlib.suppress(AttributeError):
            loader.exec_module = timed


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirected POST would hand the token to another host."""

    def redirect_request(self, *_: Any) -> None:
        return None


class _Reporter(threading.Thread):
    """Tells a dashboard how the job is: at once where something changed, at most once a second, and every
    five seconds, of more than 64 ranks more seldom: they may share an address, and with it its rate
    (dashboard/http/rate_limit.py). A report holds all so far, so that one that is lost or comes twice changes
    nothing.
    """

    def __init__(
        self, address: str, token: str, report: Callable[[], Mapping[str, Any]], ranks: int = 1
    ) -> None:
        super().__init__(name="compilewatch-reporter", daemon=True)
        self.changed = threading.Event()
        self.sent_events = 0
        self._heartbeat_s = min(_HEARTBEAT_S * max(1.0, ranks / _RANKS_AT_A_TIME), _LONGEST_HEARTBEAT_S)
        self._report = report
        self._url = f"{address.rstrip('/')}/api/v1/jobs"
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._opener = urllib.request.build_opener(_NoRedirects)
        self._ended = threading.Event()
        self._sequence = 0

    def run(self) -> None:
        """Report until the job ends; a dashboard that is away is asked again ever more seldom."""
        pause_s = _SECONDS_BETWEEN_REPORTS
        while not self._ended.wait(pause_s):
            if pause_s == _SECONDS_BETWEEN_REPORTS:
                self.changed.wait(self._heartbeat_s - pause_s)
            self.changed.clear()
            is_sent = self._tell(_TIMEOUT_S)
            # Ranks that were refused together do not come back together.
            pause_s = min(pause_s * random.uniform(1.5, 2.5), _LONGEST_PAUSE_S)  # noqa: S311
            pause_s = _SECONDS_BETWEEN_REPORTS if is_sent else pause_s
        self._tell(_LAST_TIMEOUT_S)

    def end(self) -> None:
        """Have the last report sent; nobody waits for it."""
        self._ended.set()
        self.changed.set()

    def _tell(self, timeout_s: float) -> bool:
        try:
            self._sequence += 1
            said = {**self._report(), "sequence": self._sequence}
            body = json.dumps(said, default=repr).encode()
            request = urllib.request.Request(self._url, body, self._headers, method="POST")  # noqa: S310
            with self._opener.open(request, timeout=timeout_s) as answer:
                answer.read()
        except Exception:  # noqa: BLE001 - a dashboard that is away changes nothing for the job
            return False
        self.sent_events = max((each["number"] for each in said["events"]), default=self.sent_events)
        return True


class _Request(AbstractContextManager[None]):
    """A generator would take three times as long, each request anew. `number` is given to those of which the
    inputs are told and in which something compiles.
    """

    __slots__ = ("_token", "inputs", "label", "number")

    def __init__(self, label: str, inputs: Mapping[str, Any]) -> None:
        self.label = label
        self.inputs = inputs
        self.number: int | None = None

    def __enter__(self) -> None:
        self._token = _REQUEST.set(self)

    def __exit__(self, *_: object) -> None:
        _REQUEST.reset(self._token)
        if self.number is not None and _current is not None:
            _current.answered(self)


_REQUEST: ContextVar[_Request | None] = ContextVar("compilewatch_request", default=None)


class Recorder:
    """One process of a job, and the file that tells of it; see `start`."""

    def __init__(self, name: str, directory: Path, facts: Mapping[str, Any], ready_after: int | None) -> None:
        self._pid = os.getpid()
        self._name, self._id = name, uuid.uuid4().hex
        self._since_ns = time.perf_counter_ns()
        self._began_ns = time.time_ns()
        self._age_ns = _age_ns()
        self._steps: list[int] = []
        self._waits: list[int] = []
        self._waited_ns = 0
        self._asked_ns: int | None = None
        self._written = 0
        self._by_hand = False
        self._ready = False
        self._ready_after = ready_after
        self._count = 0
        self._triton_began: dict[Any, int] = {}
        self._devices: set[str] = set()
        self._open: dict[str | None, list[tuple[str, int]]] = {}
        self._open_since_ns: dict[str | None, int] = {}
        self._late: deque[dict[str, Any]] = deque(maxlen=_EVENTS)
        self._late_count = self._late_ns = self._dropped = 0
        self._called: dict[str, str] = {}
        self._written_code: dict[str, tuple[str, CodeType]] = {}
        self._reasons: dict[str, str] = {}
        self._files: dict[int, str] = {}
        self._answers = {"hit": 0, "miss": 0, "bypass": 0}
        self._stepped_ns: int | None = None
        self._reporter: _Reporter | None = None
        self._lookups = self._requests = 0
        self._settings: dict[str, str] = {}
        self._names: dict[str, frozenset[str]] = {}
        self._listens_to_triton = False
        self._hook: Any = None
        self._file = self._opened(name, directory)
        began = None if self._age_ns is None else self._began_ns - self._age_ns
        moments = {"recording_began_ns": self._began_ns, "process_began_ns": began}
        self._process = _process()
        self._write({"schema": SCHEMA, "job": name, "id": self._id, **self._process, **facts, **moments})
        self._listener = _Listener(self._guarded(self._compiled))
        logging.getLogger(_TRACE_LOG).addHandler(self._listener)
        self._timer = _ImportTimer(self._guarded(self._torch_imported))
        if "torch" in sys.modules:
            self._write({"at_ns": self._began_ns, "import_torch_ns": None, "software": _software()})
            self._count_optimizer_steps()
        else:
            sys.meta_path.insert(0, self._timer)
        atexit.register(self.stop)
        address, token = os.environ.get(ADDRESS_VARIABLE, ""), os.environ.get(TOKEN_VARIABLE)
        if token and address.startswith(("http://", "https://")):
            self._reporter = _Reporter(address, token, self._report, self._process["ranks"] or 1)
            self._reporter.start()

    @staticmethod
    def _opened(name: str, directory: Path) -> int | None:
        directory.mkdir(parents=True, exist_ok=True)
        job = re.sub(r"[^A-Za-z0-9._-]+", "-", name)[:80]
        moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
        path = directory / f"compilewatch_job_{job}_{moment}_{os.getpid()}.jsonl"
        return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o644)

    def _guarded(self, function: Callable[..., None]) -> Callable[..., None]:
        """`function` that ends the recording where it fails, and does nothing in a forked process."""

        def called(*arguments: Any) -> None:
            if self._file is None or os.getpid() != self._pid:
                return
            try:
                function(*arguments)
            except Exception:  # noqa: BLE001 - nothing that goes wrong in here may reach the job
                self._give_up()

        return called

    def _write(self, line: Mapping[str, Any]) -> None:
        data = (json.dumps(line, separators=(",", ":"), default=repr) + "\n").encode("utf-8", "replace")
        if self._file is not None and os.write(self._file, data) != len(data):
            raise OSError("the disk is full")

    def _now_ns(self) -> int:
        return self._began_ns + time.perf_counter_ns() - self._since_ns

    def _torch_imported(self, took_ns: int) -> None:
        self._write({"at_ns": self._now_ns(), "import_torch_ns": took_ns, "software": _software()})
        self._count_optimizer_steps()

    def _count_optimizer_steps(self) -> None:
        optimizer = sys.modules.get("torch.optim.optimizer")
        register = getattr(optimizer, "register_optimizer_step_post_hook", None)
        if register is None:
            return
        is_compiling = sys.modules["torch"].compiler.is_compiling

        def stepped(*_: Any) -> None:
            # What is traced is not executed: a compiled optimizer gets nothing of this into its graph.
            if not is_compiling() and not self._by_hand:
                self.stepped()

        self._hook = register(stepped)

    def waited(self, since_ns: int) -> None:
        """The loop asked for a batch at `since_ns` of the performance counter, and has it now."""
        if self._asked_ns is None:
            self._asked_ns = since_ns
        self._waited_ns += time.perf_counter_ns() - since_ns

    def by_hand(self) -> None:
        """The job says itself when a step ends, and its optimizer's steps no longer count."""
        if not self._by_hand:
            self._by_hand = True
            self._steps.clear()
            self._waits.clear()
            self._written = self._count = 0

    def stepped(self) -> None:
        """A step has ended: a time is noted, of the first ones only."""
        steps = self._steps
        self._count += 1
        if self._reporter is not None:
            self._stepped_ns = time.perf_counter_ns()
        if self._count == self._ready_after:
            self.ready()
        if len(steps) < STEPS:
            steps.append(time.perf_counter_ns())
            self._waits.append(self._waited_ns)
            self._waited_ns = 0
            if len(steps) in _WRITTEN_AT:
                self._guarded(self._write_steps)()

    def _write_steps(self) -> None:
        offset_ns = self._began_ns - self._since_ns
        new = [offset_ns + at_ns for at_ns in self._steps[self._written :]]
        if not new:
            return
        first: dict[str, Any] = {"first_step": _at_first_step()} if self._written == 0 else {}
        if self._asked_ns is not None:
            first |= {"loop_began_ns": offset_ns + self._asked_ns, "waits_ns": self._waits[self._written :]}
        self._written = len(self._steps)
        line = {"at_ns": self._now_ns(), "by_hand": self._by_hand, "steps_ns": new}
        self._write(line | first | _memory())

    def ready(self) -> None:
        """The job is warm; only the first time counts."""
        if not self._ready:
            self._guarded(self._become_ready)()

    def _become_ready(self) -> None:
        self._ready = True
        self._write({"at_ns": self._now_ns(), "ready": True})
        self._listen_to_triton()
        runtime = getattr(getattr(sys.modules.get("triton"), "knobs", None), "runtime", None)
        if runtime is not None:
            runtime.jit_cache_hook = self._after(runtime.jit_cache_hook, self._triton_looked_up)
            runtime.jit_post_compile_hook = self._after(runtime.jit_post_compile_hook, self._triton_compiled)

    def _after(self, hook: Any, noted: Callable[[Mapping[str, Any]], None]) -> Callable[..., Any]:
        """A hook of Triton that asks the one that was there, and answers as that did."""
        guarded = self._guarded(noted)

        def called(*positional: Any, **named: Any) -> Any:
            guarded(named)
            return None if hook is None else hook(*positional, **named)

        return called

    def _triton_looked_up(self, call: Mapping[str, Any]) -> None:
        self._triton_began[call.get("key")] = self._now_ns()

    def _triton_compiled(self, call: Mapping[str, Any]) -> None:
        """A kernel of the job's own was compiled, or read from Triton's folder, for a signature new to it."""
        now_ns = self._now_ns()
        began_ns = self._triton_began.pop(call.get("key"), now_ns)
        kernel = {"name": getattr(call.get("fn"), "name", None), "signature": str(call.get("repr"))[:_LIMIT]}
        self._write({"at_ns": now_ns, "triton": kernel | {"began_ns": began_ns}} | self._request())
        if not self._open:
            self._note_late(str(kernel["name"]), None, began_ns, now_ns)

    def _report(self) -> dict[str, Any]:
        """What the dashboard is told, by the thread that tells it; all numbers are those so far."""
        now_ns = time.perf_counter_ns()
        compiling, since_ns = min(
            self._open_since_ns.copy().items(), key=lambda each: each[1], default=(None, None)
        )
        stepped_ns = self._stepped_ns
        return {
            "process": self._id,
            "job": self._name[:_TEXT],
            "host": str(self._process["host"])[:_TEXT],
            "launch": self._process["launch"][:_TEXT],
            "rank": self._process["rank"],
            "ready": self._ready,
            "ended": self._file is None,
            "steps": self._count,
            "compiling": None if since_ns is None else self._what(compiling),
            "compiling_ns": None if since_ns is None else max(0, self._now_ns() - since_ns),
            "since_step_ns": None if stepped_ns is None else max(0, now_ns - stepped_ns),
            "compiles_after_ready": self._late_count,
            "cost_after_ready_ns": self._late_ns,
            "cache_hits": self._answers["hit"],
            "cache_misses": self._answers["miss"],
            "cache_bypasses": self._answers["bypass"],
            "dropped": self._dropped,
            "events": list(self._late),
        }

    def _what(self, compile_id: str | None) -> str:
        return self._called.get((compile_id or "").partition("/")[0], "a function")[:_TEXT]

    def _follow(self, event: Mapping[str, Any], compile_id: str | None) -> None:
        """Regions in one another are one compilation, as in db/interchange/sources/after_ready.py."""
        if compile_id is None and None not in self._open and self._open:
            return  # work of a thread that helps the compilation which is open
        name, at_ns = event["name"], int(event["ts"] * 1_000)
        if event["ph"] == "B":
            opened = self._open.setdefault(compile_id, [])
            opened.append((name, at_ns))
            if compile_id not in self._open_since_ns and _COMPILING.search(name):
                self._open_since_ns[compile_id] = opened[0][1]
                self._tell()
            return
        opened = self._open.get(compile_id, [])
        if event["ph"] != "E" or name not in (each for each, _ in opened):
            return
        while opened.pop()[0] != name:
            pass
        if not opened:
            del self._open[compile_id]
            since_ns = self._open_since_ns.pop(compile_id, None)
            if since_ns is not None and self._ready:
                reason = self._reasons.get(compile_id or "")
                self._note_late(self._what(compile_id), reason, since_ns, at_ns)
            elif since_ns is not None:
                self._tell()

    def _note_late(self, what: str, reason: str | None, began_ns: int, ended_ns: int) -> None:
        """Something was compiled while a request may have waited; what nobody took in time is counted."""
        self._late_count += 1
        self._late_ns += max(0, ended_ns - began_ns)
        sent = self._reporter.sent_events if self._reporter is not None else self._late_count
        if len(self._late) == _EVENTS and self._late[0]["number"] > sent:
            self._dropped += 1
        waiting = _REQUEST.get()
        self._late.append(
            {
                "number": self._late_count,
                "began_ns": began_ns,
                "cost_ns": max(0, ended_ns - began_ns),
                "what": what[:_TEXT],
                "reason": reason and reason[:_TEXT],
                "request": None if waiting is None else str(waiting.label)[:_TEXT],
            }
        )
        self._tell()

    def _request(self) -> dict[str, Any]:
        """Who waits for what is compiled here, and the number under which the inputs follow, if told."""
        if (waiting := _REQUEST.get()) is None:
            return {}
        if waiting.inputs and waiting.number is None:
            self._requests += 1
            waiting.number = self._requests
        numbered = {} if waiting.number is None else {"answer": waiting.number}
        return {"request": str(waiting.label)[:_LIMIT]} | numbered

    def answered(self, request: _Request) -> None:
        """A request has ended in which something was compiled: what it was called with goes into the file."""
        self._guarded(self._write_inputs)(request)

    def _write_inputs(self, request: _Request) -> None:
        inputs: list[dict[str, Any]] = []
        for name, value in request.inputs.items():
            _describe(value, f"L[{name!r}]", inputs)
        self._write({"at_ns": self._now_ns(), "answer": request.number, "inputs": inputs})

    def _tell(self) -> None:
        if self._reporter is not None:
            self._reporter.changed.set()

    def _listen_to_triton(self) -> None:
        """Hear of each kernel that Triton compiles or finds in its folder, from Triton 3.4 on."""
        compilation = getattr(getattr(sys.modules.get("triton"), "knobs", None), "compilation", None)
        if compilation is not None and not self._listens_to_triton:
            self._listens_to_triton = True
            compilation.listener = self._after(getattr(compilation, "listener", None), self._triton_answered)

    def _triton_answered(self, call: Mapping[str, Any]) -> None:
        """A kernel, and whether Triton's folder had it; those that Inductor's processes compile are not
        heard of.
        """
        told = call["metadata"]
        took_ns = int(call["times"].total) * 1_000
        hit = bool(call["cache_hit"])
        settings = {
            f"Triton's {name}": str(told[name])[:80]
            for name in sorted(told)
            if name not in ("hash", "name", "shared") and str(told[name]) not in _UNSET
        }
        lookup: dict[str, Any] = {"cache": "triton", "answer": "hit" if hit else "miss"}
        lookup |= {"key": str(told.get("hash"))[:200], "what": str(told.get("name"))[:200]}
        if (source := getattr(getattr(call["src"], "fn", None), "cache_key", None)) is not None:
            lookup["source"] = str(source)[:12]
        self._write_lookup(lookup | ({} if hit else {"took_ns": took_ns}), settings)

    def _looked_up(self, cache: str, answer: str, info: Mapping[str, Any], ids: Mapping[str, Any]) -> None:
        """A cache of torch was asked for a graph: what its key was made of goes into the file as hashes."""
        settings: dict[str, str] = {}
        hashes: dict[str, list[str]] = {}
        tensors: list[str] = []
        for line in info.get("components") or ():
            if (found := _COMPONENT.fullmatch(line)) is None:
                continue
            digest, part, key, text = found.groups()
            if part in _OF_SOURCE or part == _OF_INPUTS:
                hashes.setdefault("inputs" if part == _OF_INPUTS else "source", []).append(digest)
                tensor = _TENSOR.search(text) if part == _OF_INPUTS and len(tensors) < _MOST_TENSORS else None
                tensors += [f"{tensor[1]}[{tensor[2]}]"] if tensor is not None else []
            elif text not in _UNSET and key != "[hash]":
                said = "" if part in _HASHED else text[:80]
                settings[part + (key or "")] = f"{digest[:10]} {said}".strip()
        saved_ns = info.get("time_saved_ns") or int(1e6 * (info.get("time_saved_ms") or 0)) or None
        told = {
            "cache": cache,
            "answer": answer,
            "key": info.get("key"),
            "reason": str(info.get("cache_bypass_reason") or "")[:300] or None,
            "saved_ns": saved_ns,
            "took_ns": info.get("time_taken_ns"),
            "frame_id": ids.get("frame_id"),
            "tensors": ", ".join(tensors) or None,
            **{name: _digest(parts) for name, parts in hashes.items()},
        }
        if cache == "fx_graph":
            self._answers[answer] += 1
        self._write_lookup({name: value for name, value in told.items() if value is not None}, settings)

    def _write_lookup(self, lookup: dict[str, Any], settings: Mapping[str, str]) -> None:
        """The settings of a cache's first lookup once; of others what differs, null for what is gone."""
        self._lookups += 1
        if self._lookups > _MOST_LOOKUPS:
            return
        line: dict[str, Any] = {"at_ns": self._now_ns(), "lookup": lookup}
        if self._lookups == 1:
            line["surroundings"] = _surroundings()
        known, cache = self._settings, lookup["cache"]
        differing: dict[str, str | None] = {}
        if cache not in self._names:
            self._names[cache] = frozenset(settings)
            line["settings"] = {name: value for name, value in settings.items() if name not in known}
            known |= line["settings"]
        else:
            differing |= dict.fromkeys(self._names[cache] - set(settings))
        names = self._names[cache]
        differing |= {name: v for name, v in settings.items() if name not in names or known[name] != v}
        self._write(line | {"lookup": lookup | {"settings": differing}})

    def _compiled(self, metadata: Mapping[str, Any], payload: str) -> None:
        """A structured record of torch: of most nothing is needed."""
        ids = {name: metadata[name] for name in _IDS if metadata.get(name) is not None}
        if "chromium_event" in metadata:
            self._timed(json.loads(payload) if payload else metadata["chromium_event"])
        elif "artifact" in metadata:
            self._artifact(metadata["artifact"], ids, payload)
        elif "str" in metadata:
            text, number = metadata["str"]
            self._files[number] = text.rpartition("/")[2]
        elif "dynamo_start" in metadata:
            self._started(metadata["dynamo_start"].get("stack"), ids)
        elif self._ready and (told := next((name for name in _INPUTS if name in metadata), None)):
            figures = {key: metadata[told].get(key) for key in _INPUTS[told]}
            self._write({"trace": {told: figures} | ids})
        elif "describe_tensor" in metadata:
            device = str(metadata["describe_tensor"].get("device"))
            kind = _DEVICE.search(device)
            if kind is not None and kind[1] not in self._devices:
                self._devices.add(kind[1])
                self._write({"trace": {"describe_tensor": {"device": device}}})
        else:
            for name in _METRICS:
                if name in metadata:
                    figures = {key: metadata[name].get(key) for key in _FIGURES}
                    self._write({"trace": {name: figures | self._of_written(ids)} | ids})

    def _timed(self, event: Mapping[str, Any]) -> None:
        if not event or event["name"].startswith("pass."):
            return
        self._listen_to_triton()
        figures = {name: event[name] for name in ("name", "ts", "ph")}
        compile_id = (event.get("args") or {}).get("compile_id")
        if self._ready:
            self._write({"trace": {"chromium_event": figures}, "compile_id": compile_id} | self._request())
        else:
            self._write({"trace": {"chromium_event": figures}})
        found = _COMPILE_ID.match(str(compile_id))
        self._follow(event, found[1] if found else None)

    def _artifact(self, artifact: Mapping[str, Any], ids: dict[str, Any], payload: str) -> None:
        name = artifact["name"]
        if (asked := _LOOKUP.fullmatch(name)) is not None:
            self._looked_up(asked[1], asked[2], json.loads(payload), ids)
        elif name in _ARTIFACTS:
            self._write({"trace": {"artifact": artifact} | ids, "payload": payload[:_LIMIT]})
            if name == "recompile_reasons" and len(self._reasons) < _MOST_NAMES:
                reasons = json.loads(payload) if payload.startswith("[") else payload.splitlines()
                reason = _COMPILE_ID.sub("", str(reasons[0])).lstrip(": ") if reasons else ""
                reason = _BEHIND_GUARD.sub("", reason)
                self._reasons[f"{ids.get('frame_id')}/{ids.get('frame_compile_id')}"] = reason

    def _started(self, stack: Any, ids: Mapping[str, Any]) -> None:
        """Dynamo begins to trace a function, which gets its name from here on."""
        frame_id = str(ids.get("frame_id"))
        if not stack or len(self._called) >= _MOST_NAMES or frame_id in self._called:
            return
        innermost = stack[-1]
        name, place = innermost.get("name"), self._files.get(innermost.get("filename"), "?")
        line = innermost.get("line")
        if (written := _behind_decorators()) is not None:
            self._written_code[frame_id] = written
            name, code = written
            place, line = Path(code.co_filename).name, code.co_firstlineno
        self._called[frame_id] = f"{name} ({place}:{line})"

    def _of_written(self, ids: Mapping[str, Any]) -> dict[str, Any]:
        """What the user wrote, where torch names the wrapper that a decorator put around it."""
        if (written := self._written_code.get(str(ids.get("frame_id")))) is None:
            return {}
        name, code = written
        return {
            "co_name": name[:_TEXT],
            "co_filename": code.co_filename,
            "co_firstlineno": code.co_firstlineno,
        }

    def stop(self) -> None:
        """End the recording; the file is whole from here on."""
        self._guarded(self._end)()
        self._detach()
        if self._hook is not None:
            self._hook.remove()
        if self._reporter is not None and os.getpid() == self._pid:
            self._reporter.join(_LAST_TIMEOUT_S)

    def _end(self) -> None:
        self._write_steps()
        self._write({"at_ns": self._now_ns(), "ended": True, **_memory()})

    def _give_up(self) -> None:
        with contextlib.suppress(Exception):
            self._detach()

    def _detach(self) -> None:
        file, self._file = self._file, None
        logging.getLogger(_TRACE_LOG).removeHandler(self._listener)
        if self._timer in sys.meta_path:
            sys.meta_path.remove(self._timer)
        if file is not None and os.getpid() == self._pid:
            os.close(file)
            if self._reporter is not None:
                self._reporter.end()
        self._steps = [0] * STEPS


_current: Recorder | None = None


def start(
    name: str,
    *,
    directory: str | Path | None = None,
    task: str | None = None,
    dtype: str | None = None,
    ready_after: int | None = None,
) -> None:
    """Record this process as one of the job `name`, from here to its end, or to `stop`.

    `directory` defaults to the variable COMPILEWATCH_JOBS, else to `compilewatch-jobs` below the working
    directory. `task` (`inference`, `training`, `function`) and `dtype` go into the record as they are. After
    `ready_after` steps the job is `ready` by itself. The variables COMPILEWATCH_ADDRESS and
    COMPILEWATCH_TOKEN name the dashboard that is told of it while it runs. Raises nothing: where the file
    cannot be written nothing is recorded, and a warning of `logging` says so.
    """
    global _current  # noqa: PLW0603 - one recording a process
    if _current is not None:
        return
    folder = Path(directory or os.environ.get(DIRECTORY_VARIABLE) or "compilewatch-jobs")
    try:
        _current = Recorder(str(name), folder, {"task": task, "dtype": dtype}, ready_after)
    except Exception as error:  # noqa: BLE001 - a job that cannot be recorded runs all the same
        logging.getLogger("compilewatch.recorder").warning("The job is not recorded: %s", error)


def step() -> None:
    """A step of the job has ended. Needed only where no optimizer says so, as in inference."""
    if _current is not None:
        _current.by_hand()
        _current.stepped()


def batches(loader: Iterable[_Batch]) -> Iterator[_Batch]:
    """`loader`, batch by batch, whether this is recorded or not; the loop's wait for each is noted."""
    asked_ns = time.perf_counter_ns()
    for batch in loader:
        if _current is not None:
            _current.waited(asked_ns)
        yield batch
        asked_ns = time.perf_counter_ns()


def ready() -> None:
    """The job is warm: whatever compiles from here on keeps somebody waiting. Only the first call counts, so
    that the handler of a server's health check may call it.
    """
    if _current is not None:
        _current.ready()


def request(label: str, **inputs: Any) -> AbstractContextManager[None]:
    """What compiles inside, in this thread or task, is noted as that of the request `label`.

    `inputs` are arguments of what answers it. Where something compiles, sizes and types of tensors are noted,
    numbers and texts as they are, and the written warm-up calls with these instead of those that the compiled
    functions got: as where a function makes a cache of its own and hands it down.
    """
    return _Request(label, inputs)


def stop() -> None:
    """End the recording before the process ends; `start` begins another one."""
    global _current  # noqa: PLW0603
    if _current is not None:
        _current.stop()
        atexit.unregister(_current.stop)
    _current = None


def _describe(value: Any, source: str, into: list[dict[str, Any]]) -> None:
    """An argument of a request: what a tensor is like, each entry of a list or a dict, else what it is."""
    tensor = getattr(sys.modules.get("torch"), "Tensor", None)
    told: dict[str, Any] = {"source": source[:_TEXT]}
    if len(into) >= _MOST_INPUTS:
        into[_MOST_INPUTS:] = [told | {"made_of": f"more than {_MOST_INPUTS} values"}]
    elif tensor is not None and isinstance(value, tensor):
        dtype = str(value.dtype).removeprefix("torch.")
        into.append(told | {"size": list(value.shape), "dtype": dtype, "filled_with": _filled_with(value)})
    elif isinstance(value, list | tuple) and value:
        for number, each in enumerate(value[: _MOST_INPUTS + 1]):
            _describe(each, f"{source}[{number}]", into)
    elif isinstance(value, dict) and value and all(isinstance(key, str) for key in value):
        for key, each in value.items():
            _describe(each, f"{source}[{key!r}]", into)
    elif _is_literal(value):
        into.append(told | {"literal": json.dumps(value)})
    else:
        into.append(told | {"made_of": type(value).__name__[:_TEXT]})


def _is_literal(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= _LONGEST_TEXT
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, int) or (isinstance(value, list | tuple | dict) and not value)


def _filled_with(tensor: Any) -> int | None:
    """The value that all of a tensor of whole numbers has, as a mask of ones; None where it has several."""
    try:
        if tensor.is_floating_point() or tensor.is_complex() or not 0 < tensor.numel() <= _LARGEST_LOOKED_AT:
            return None
        first = tensor.flatten()[0]
        value = int(first)
        return value if abs(value) <= _LARGEST_INTEGER and bool((tensor == first).all()) else None
    except Exception:  # noqa: BLE001 - a tensor of a kind of its own is told by its size
        return None


def _process() -> dict[str, Any]:
    """Which process of which launch this is."""
    rank = next(((os.environ[a], os.environ.get(b)) for a, b in _RANKS if a in os.environ), (None, None))
    return {
        "pid": os.getpid(),
        "host": platform.node(),
        "python": platform.python_version(),
        "os": f"{platform.system()} {platform.release()}",
        "cpu_count": os.cpu_count(),
        "cpu_name": _cpu_name(),
        "launch": ":".join(os.environ.get(name, "") for name in _LAUNCH).strip(":"),
        "rank": int(rank[0]) if rank[0] is not None and rank[0].isdecimal() else None,
        "ranks": int(rank[1]) if rank[1] is not None and rank[1].isdecimal() else None,
    }


def _cpu_name() -> str | None:
    try:
        match = re.search(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        return None
    return match[1] if match else None


def _stat(pid: int | str) -> list[str]:
    """The fields of /proc/PID/stat from the third on (proc(5))."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _age_ns() -> int | None:
    """How long this process has existed, to 10 ms; None where the system does not tell."""
    try:
        ticks = int(_stat("self")[19])
        born_ns = ticks * 1_000_000_000 // os.sysconf("SC_CLK_TCK")
        return max(0, time.clock_gettime_ns(time.CLOCK_BOOTTIME) - born_ns)
    except (OSError, ValueError, IndexError, AttributeError):
        return None


def _tree_cpu_ns(pid: int) -> int:
    """CPU time of a process, of its children that have ended, and of those that live."""
    user, system, child_user, child_system = _stat(pid)[11:15]
    ticks = int(user) + int(system) + int(child_user) + int(child_system)
    total = ticks * 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    for thread in Path(f"/proc/{pid}/task").iterdir():
        for child in (thread / "children").read_text().split():
            with contextlib.suppress(OSError, ValueError):
                total += _tree_cpu_ns(int(child))
    return total


def _at_first_step() -> dict[str, Any]:
    """CPU time so far, and the device of the job."""
    facts: dict[str, Any] = {}
    with contextlib.suppress(OSError, ValueError):
        facts["process_tree_cpu_ns"] = _tree_cpu_ns(os.getpid())
    torch = sys.modules.get("torch")
    if torch is not None and _on_cuda(torch):
        properties = torch.cuda.get_device_properties(torch.cuda.current_device())
        facts |= {"device": "hip" if torch.version.hip else "cuda", "device_name": properties.name}
        facts["device_memory_bytes"] = properties.total_memory
    return facts


def _behind_decorators() -> tuple[str, CodeType] | None:
    """Of the function that Dynamo is compiling, called by it: name and code behind wrappers, of decorators
    and of torch, which take whatever they get and hand it to a function or module that they hold; None where
    there is no wrapper.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__") != "torch._dynamo.convert_frame":
        frame = frame.f_back
    while frame is not None and frame.f_code.co_name != "_compile":
        frame = frame.f_back
    if frame is None:
        return None
    code, closure = frame.f_locals.get("code"), frame.f_locals.get("closure")
    found = None
    for _ in range(_MOST_DECORATORS):
        if not isinstance(code, CodeType) or code.co_flags & _TAKES_ALL != _TAKES_ALL or not closure:
            break
        held = {name: _held(cell) for name, cell in zip(code.co_freevars, closure, strict=False)}
        functions = {name: each for name, each in held.items() if each is not None}
        if len(functions) != 1 and not (functions := {n: functions[n] for n in _WRAPPED if n in functions}):
            break
        name, function = next(iter(functions.values()))
        code, closure = function.__code__, function.__closure__
        found = name.rpartition("<locals>.")[2], code
    return found


def _held(cell: Any) -> tuple[str, FunctionType] | None:
    """The function that a wrapper holds, with its name; of a module its `forward`."""
    try:
        value = cell.cell_contents
    except ValueError:
        return None
    if isinstance(value, sys.modules["torch"].nn.Module):
        function = getattr(type(value), "forward", None)
        name = f"{type(value).__name__}.forward"
        return (name, function) if isinstance(function, FunctionType) else None
    function = value.__func__ if isinstance(value, MethodType) else value
    return (function.__qualname__, function) if isinstance(function, FunctionType) else None


def _digest(parts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def _surroundings() -> dict[str, str]:
    """What compiled code depends on beside its key: that of load_caches.py, and torch's commit."""
    torch: Any = sys.modules["torch"]
    facts: dict[str, Any] = {
        "torch": f"{torch.__version__} ({str(torch.version.git_version)[:8]})",
        "CUDA": torch.version.cuda,
        "ROCm": torch.version.hip,
        "Triton": _installed("triton") or _installed("pytorch-triton"),
        "Python": ".".join(platform.python_version_tuple()[:2]),
        "architecture": platform.machine(),
        "matmul precision": torch.get_float32_matmul_precision(),
    }
    if _on_cuda(torch):
        properties = torch.cuda.get_device_properties(torch.cuda.current_device())
        facts |= {"device": properties.name, "compute capability": f"{properties.major}.{properties.minor}"}
    else:
        capability = getattr(torch.backends.cpu, "get_cpu_capability", None)
        facts |= {"device": "cpu", "threads": torch.get_num_threads(), "compiler": _compiler()}
        facts["CPU capability"] = None if capability is None else capability()
    facts |= {
        name: value[:200]
        for name, value in os.environ.items()
        if name.startswith(_COMPILER_VARIABLES) and name not in _WITHOUT_EFFECT
    }
    return {name: str(value) for name, value in facts.items() if value is not None}


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _compiler() -> str | None:
    """The C++ compiler that Inductor calls, with its version; None where it finds none."""
    builder = sys.modules.get("torch._inductor.cpp_builder")
    try:
        command = [str(builder.get_cpp_compiler()), "--version"]  # type: ignore[union-attr]
        said = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
        return said.stdout.partition("\n")[0][:200] or None
    except Exception:  # noqa: BLE001 - torch raises one of its own where there is no compiler
        return None


def _software() -> dict[str, Any]:
    torch: Any = sys.modules["torch"]
    return {"torch": str(torch.__version__), "cuda": torch.version.cuda, "threads": torch.get_num_threads()}


def _memory() -> dict[str, Any]:
    """The most memory that host process and device have needed so far, in bytes."""
    memory: dict[str, Any] = {}
    with contextlib.suppress(OSError):
        peak = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
        if peak is not None:
            memory["peak_rss_bytes"] = int(peak[1]) * 1024
    torch = sys.modules.get("torch")
    if torch is not None and _on_cuda(torch):
        memory["peak_bytes"] = torch.cuda.max_memory_allocated()
        memory["peak_reserved_bytes"] = torch.cuda.max_memory_reserved()
    return {"memory": memory}


def _on_cuda(torch: Any) -> bool:
    return bool(torch.cuda.is_available() and torch.cuda.is_initialized())


_USAGE = (
    "usage: python -m compilewatch.record [--name JOB] [--directory FOLDER] [--ready-after STEPS] "
    "-- PROGRAM.py | -m MODULE [...]"
)


def main(arguments: list[str] | None = None) -> None:
    """Run a program as `python PROGRAM.py ARGUMENT ...` would, recorded."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    options: dict[str, str] = {}
    while words and words[0] in ("--name", "--directory", "--ready-after") and len(words) > 1:
        option, value, *words = words
        options[option[2:]] = value
    if words[:1] == ["--"]:
        words.pop(0)
    as_module = words[:1] == ["-m"]
    program = words[as_module:]
    if not program or program[0].startswith("-"):
        raise SystemExit(_USAGE)
    if not as_module and not Path(program[0]).exists():
        raise SystemExit(f"There is no program {program[0]}.\n{_USAGE}")
    ready_after = options.get("ready-after", "0")
    if not ready_after.isdecimal():
        raise SystemExit(f"--ready-after {ready_after}: is no number of steps.\n{_USAGE}")
    start(
        options.get("name") or Path(program[0]).stem,
        directory=options.get("directory"),
        ready_after=int(ready_after) or None,
    )
    sys.argv = program
    if as_module:
        sys.path[0] = str(Path.cwd())
        runpy.run_module(program[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = str(Path(program[0]).resolve().parent)
        runpy.run_path(program[0], run_name="__main__")


if __name__ == "__main__":
    main()
