"""What `compilewatch_recorder.py` writes beside a job: one JSON object a line, appended as things happen.

The first line says which process of which launch it is. Then come torch's structured records
(`{"trace": ..., "payload": ...}`), the import of torch, times of steps, and the end. A job that was killed
leaves out the end, and perhaps half of a line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from db.errors import RecordError
from db.interchange.files.fields import Fields, Place, as_fields, load_json
from db.interchange.files.opening import InputFile
from db.interchange.files.options import ImportOptions
from db.interchange.read.compile_log import CompileLog
from db.interchange.read.job_trials import JobProcess
from db.interchange.read.torch_trace import DAMAGE
from db.records.evidence import Memory
from db.records.identity import Task

SCHEMA = "compilewatch.job/1"
STEADY_FACTOR = 2
"""A first step that takes more than this many steady ones is no steady one, as in a trial's cold start."""
_FEWEST_STEPS = 8
_NEXT = "Copy it again from the job's host, or import the other files alone."
_MEMORY = ("peak_rss_bytes", "peak_bytes", "peak_reserved_bytes")


@dataclass(slots=True)
class _Recording:
    """The lines of one file, folded. `steps_ns` are the moments at which steps ended, since 1970."""

    log: CompileLog = field(default_factory=CompileLog)
    steps_ns: list[int] = field(default_factory=list)
    by_hand: bool = False
    import_torch_ns: int | None = None
    software: Mapping[str, Any] = field(default_factory=dict)
    first_step: Mapping[str, Any] = field(default_factory=dict)
    phases_at_first_step_ns: dict[str, int] | None = None
    memory: dict[str, int] = field(default_factory=dict)

    def add(self, line: Mapping[str, Any]) -> None:
        """One line. Raises what `DAMAGE` lists where the recorder did not write it."""
        if "trace" in line:
            self.log.add(line["trace"], line.get("payload") or "")
        elif "import_torch_ns" in line:
            if line["import_torch_ns"] is not None:
                self.import_torch_ns = _whole(line["import_torch_ns"])
            self.software = as_fields(Place(""), line["software"]).data
        elif "steps_ns" in line:
            self._stepped(line)
        elif "ended" not in line:
            raise ValueError("is no line of a recording")
        if "memory" in line:
            self.memory |= {name: _whole(line["memory"][name]) for name in _MEMORY if name in line["memory"]}

    def _stepped(self, line: Mapping[str, Any]) -> None:
        if line.get("by_hand") and not self.by_hand:
            # The optimizer's steps until then were none of the job's.
            self.by_hand, self.phases_at_first_step_ns = True, None
            self.steps_ns.clear()
        self.steps_ns += [_whole(moment) for moment in line["steps_ns"]]
        if self.phases_at_first_step_ns is None:
            self.phases_at_first_step_ns = dict(self.log.phases.spent_ns)
            self.first_step = as_fields(Place(""), line.get("first_step", {})).data

    @property
    def intervals_ns(self) -> list[int]:
        """From the end of each step to that of the next."""
        return [after - before for before, after in zip(self.steps_ns, self.steps_ns[1:], strict=False)]


def read_process(file: InputFile, options: ImportOptions) -> JobProcess:
    """What one recording tells; of one that ends inside a line, everything before it.

    Raises RecordError where a line before the last one is damaged.
    """
    lines = file.lines()
    number, first = next(lines, (1, b""))
    place = Place(file.shown, number)
    header = as_fields(place, load_json(first, place))
    if header.text("schema") != SCHEMA:
        header.fail("schema", f"must be {SCHEMA}")
    recording, damaged = _Recording(), 0
    for number, line in lines:
        if damaged:
            raise RecordError(f"{file.shown}, line {damaged}: is no line of a recording.", _NEXT)
        try:
            recording.add(as_fields(place, load_json(line, place)).data)
        except (*DAMAGE, RecordError):
            damaged = number
    return _process(header, recording, options, cut_off=bool(damaged))


def _process(header: Fields, recording: _Recording, options: ImportOptions, *, cut_off: bool) -> JobProcess:
    log, intervals = recording.log, recording.intervals_ns
    until_steady = _steps_until_steady(intervals)
    steady = intervals[until_steady - 1 :] if until_steady else []
    figures = {"steps_recorded": float(len(recording.steps_ns))} if recording.steps_ns else {}
    if until_steady:
        figures["steps_until_steady"] = float(until_steady)
    phases_ns = recording.phases_at_first_step_ns
    return JobProcess(
        place=header.place,
        name=options.job or header.required_text("job"),
        key=header.text("launch", 1_000) or "",
        raw={"recording": header.required_text("id")},
        log=log,
        phases_ns=dict(log.phases.spent_ns) if phases_ns is None else phases_ns,
        began_ns=header.count("process_began_ns") or header.count("recording_began_ns"),
        stated=_stated(header, recording),
        rank=header.count("rank"),
        cold_start=_cold_start(header, recording, until_steady),
        latency_ns=round(median(steady)) if steady else None,
        samples_ns=[interval for interval in steady if interval > 0],
        steps=len(steady) or None,
        memory=Memory(**recording.memory) if recording.memory else None,
        figures=figures,
        cut_off=cut_off,
    )


def _steps_until_steady(intervals_ns: list[int]) -> int | None:
    """How many first steps were not steady, the first one always counted; None for too few steps to tell."""
    if len(intervals_ns) < _FEWEST_STEPS:
        return None
    limit = STEADY_FACTOR * median(intervals_ns[len(intervals_ns) // 2 :])
    slow = (number for number, interval in enumerate(intervals_ns) if interval <= limit)
    return 1 + next(slow, 0)


def _cold_start(header: Fields, recording: _Recording, until_steady: int | None) -> dict[str, int]:
    began, started = header.count("process_began_ns"), header.count("recording_began_ns")
    figures: dict[str, int | None] = {"import_torch_ns": recording.import_torch_ns}
    if began is not None and started is not None:
        figures["interpreter_ns"] = started - began
    if recording.steps_ns:
        cpu_ns = recording.first_step.get("process_tree_cpu_ns")
        figures["process_tree_cpu_ns"] = None if cpu_ns is None else _whole(cpu_ns)
        figures["total_ns"] = None if began is None else recording.steps_ns[0] - began
    if until_steady and recording.log.compiled:
        # Time in which anything was compiled: net of calls, as of a job that is only traced.
        steady_at_ns = recording.steps_ns[until_steady - 1]
        figures |= {"until_steady_ns": recording.log.phases.until_ns(steady_at_ns), "calls_until_steady": 0}
    return {name: value for name, value in figures.items() if value is not None}


def _stated(header: Fields, recording: _Recording) -> dict[str, Any]:
    first = Fields(header.place, recording.first_step, "first_step")
    task = header.text("task")
    trained = bool(recording.steps_ns) and not recording.by_hand
    software = Fields(header.place, recording.software, "software")
    device, cpu_name = first.text("device") or recording.log.device or "cpu", header.text("cpu_name")
    facts = {
        "python": header.text("python"),
        "os": header.text("os"),
        "cpu_count": header.count("cpu_count"),
        "cpu_name": cpu_name,
        "machine": header.text("host"),
        "dtype": header.text("dtype"),
        # An optimizer's steps are those of training.
        "task": Task(task) if task in set(Task) else Task.TRAINING if trained else None,
        "device": device,
        "device_name": cpu_name if device == "cpu" else first.text("device_name"),
        "device_memory_bytes": first.count("device_memory_bytes"),
        "threads": software.count("threads") or None,
        "cuda": software.text("cuda"),
    }
    recording.log.torch = recording.log.torch or software.text("torch")
    return {name: value for name, value in facts.items() if value is not None}


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError("is no count of nanoseconds or bytes")
    return value
