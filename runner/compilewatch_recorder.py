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
`knobs.runtime`). It changes no setting of torch, and nothing that goes wrong in here
reaches the job: it then stops recording.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import logging
import os
import platform
import re
import runpy
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from datetime import UTC, datetime
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any, TypeVar

_Batch = TypeVar("_Batch")

__all__ = ["batches", "main", "ready", "request", "start", "step", "stop"]

SCHEMA = "compilewatch.job/1"
DIRECTORY_VARIABLE = "COMPILEWATCH_JOBS"
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
_LIMIT = 20_000
_REQUEST: ContextVar[str | None] = ContextVar("compilewatch_request", default=None)


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


class _Request(AbstractContextManager[None]):
    """A generator would take three times as long, each request anew."""

    __slots__ = ("_label", "_token")

    def __init__(self, label: str) -> None:
        self._label = label

    def __enter__(self) -> None:
        self._token = _REQUEST.set(self._label)

    def __exit__(self, *_: object) -> None:
        _REQUEST.reset(self._token)


class Recorder:
    """One process of a job, and the file that tells of it; see `start`."""

    def __init__(self, name: str, directory: Path, facts: Mapping[str, Any], ready_after: int | None) -> None:
        self._pid = os.getpid()
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
        self._hook: Any = None
        self._file = self._opened(name, directory)
        began = None if self._age_ns is None else self._began_ns - self._age_ns
        moments = {"recording_began_ns": self._began_ns, "process_began_ns": began}
        self._write({"schema": SCHEMA, "job": name, "id": uuid.uuid4().hex, **_process(), **facts, **moments})
        self._listener = _Listener(self._guarded(self._compiled))
        logging.getLogger(_TRACE_LOG).addHandler(self._listener)
        self._timer = _ImportTimer(self._guarded(self._torch_imported))
        if "torch" in sys.modules:
            self._write({"at_ns": self._began_ns, "import_torch_ns": None, "software": _software()})
            self._count_optimizer_steps()
        else:
            sys.meta_path.insert(0, self._timer)
        atexit.register(self.stop)

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
        knobs = getattr(sys.modules.get("triton"), "knobs", None)
        if knobs is not None:
            runtime = knobs.runtime
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
        self._write({"at_ns": now_ns, "triton": kernel | {"began_ns": began_ns}} | _request())

    def _compiled(self, metadata: Mapping[str, Any], payload: str) -> None:
        """A structured record of torch: of most nothing is needed."""
        ids = {name: metadata[name] for name in _IDS if metadata.get(name) is not None}
        if "chromium_event" in metadata:
            event = json.loads(payload) if payload else metadata["chromium_event"]
            if event and not event["name"].startswith("pass."):
                figures = {name: event[name] for name in ("name", "ts", "ph")}
                if not self._ready:
                    self._write({"trace": {"chromium_event": figures}})
                    return
                compile_id = (event.get("args") or {}).get("compile_id")
                self._write({"trace": {"chromium_event": figures}, "compile_id": compile_id} | _request())
        elif "artifact" in metadata and metadata["artifact"]["name"] in _ARTIFACTS:
            self._write({"trace": {"artifact": metadata["artifact"]} | ids, "payload": payload[:_LIMIT]})
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
                    self._write({"trace": {name: figures} | ids})

    def stop(self) -> None:
        """End the recording; the file is whole from here on."""
        self._guarded(self._end)()
        self._detach()
        if self._hook is not None:
            self._hook.remove()

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
    `ready_after` steps the job is `ready` by itself. Raises nothing: where the file cannot be written nothing
    is recorded, and a warning of `logging` says so.
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


def request(label: str) -> AbstractContextManager[None]:
    """What compiles inside, in this thread or task, is noted as that of the request `label`."""
    return _Request(label)


def stop() -> None:
    """End the recording before the process ends; `start` begins another one."""
    global _current  # noqa: PLW0603
    if _current is not None:
        _current.stop()
        atexit.unregister(_current.stop)
    _current = None


def _request() -> dict[str, Any]:
    label = _REQUEST.get()
    return {} if label is None else {"request": str(label)[:_LIMIT]}


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
