"""What `compilewatch_recorder.py` writes beside a job: one JSON object a line, appended as things happen.

The first line says which process of which launch it is. Then come torch's structured records
(`{"trace": ..., "payload": ...}`), the import of torch, times of steps, what caches were asked, the moment at
which the job was ready, with Triton's compilations after it, and the end. A job that was killed leaves out
the end, and perhaps half of a line.

Time to first step, steps as samples and memory are taken; numerics, control and driver are not there, nor
steps no later than the one before.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median
from typing import Any

from compilewatch.db.errors import RecordError
from compilewatch.db.interchange.files.fields import NS_PER_S, Fields, Place, as_fields, load_json
from compilewatch.db.interchange.files.opening import MAX_LINE_BYTES, InputFile
from compilewatch.db.interchange.files.options import ImportOptions
from compilewatch.db.interchange.sources.after_ready import AfterReadyLog
from compilewatch.db.interchange.sources.compile_log import CompileLog
from compilewatch.db.interchange.sources.job_trials import JobProcess
from compilewatch.db.records.evidence import CacheKeys, CacheLookup, Memory
from compilewatch.db.records.identity import Task
from compilewatch.db.units import plural

SCHEMA = "compilewatch.job/1"
STEADY_FACTOR = 2
"""A first step that takes more than this many steady ones is no steady one, as in a trial's cold start."""
_FEWEST_STEPS = 8
_MOST_LOOKUPS = 1_000
_TEXT_LIMIT = 2_000
_MEMORY = ("peak_rss_bytes", "peak_bytes", "peak_reserved_bytes")


@dataclass(slots=True)
class _Recording:
    """The lines of one file, folded. `steps_ns` are the moments at which steps ended, since 1970."""

    log: CompileLog = field(default_factory=CompileLog)
    steps_ns: list[int] = field(default_factory=list)
    waits_ns: list[int] = field(default_factory=list)
    """How long each of them waited for its batch; empty where the job notes none."""
    loop_began_ns: int | None = None
    """When the first batch was asked for."""
    by_hand: bool = False
    import_torch_ns: int | None = None
    software: Fields | None = None
    first_step: Fields | None = None
    phases_at_first_step_ns: dict[str, int] | None = None
    backward: int = 0
    """Steps that ended no later than the one before them, which says nothing of either."""
    memory: dict[str, int] = field(default_factory=dict)
    after_ready: AfterReadyLog | None = None
    surroundings: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    lookups: list[Fields] = field(default_factory=list)
    ended_ns: int | None = None

    def add(self, line: Fields) -> None:
        """One line. Raises RecordError naming the field that the recorder did not write so."""
        if "trace" in line.data:
            self.log.add(line.part("trace"), line.text("payload", MAX_LINE_BYTES) or "")
            if self.after_ready is not None:
                self.after_ready.add(line)
        elif self.after_ready is not None and ("triton" in line.data or "inputs" in line.data):
            self.after_ready.add(line)
        elif "lookup" in line.data:
            self.lookups.append(line.part("lookup"))
            self.surroundings |= _stated_texts(line.part("surroundings"))
            self.settings |= _stated_texts(line.part("settings"))
        elif "ready" in line.data:
            self.after_ready = AfterReadyLog(self.log, line.count("at_ns") or 0)
        elif "import_torch_ns" in line.data:
            self.import_torch_ns = line.count("import_torch_ns")
            self.software = line.part("software")
        elif "steps_ns" in line.data:
            self._stepped(line)
        elif "ended" in line.data:
            self.ended_ns = line.count("at_ns")
        else:
            line.fail("the line", "is none of a recording")
        sizes = {name: line.part("memory").count(name) for name in _MEMORY}
        self.memory |= {name: size for name, size in sizes.items() if size is not None}

    def _stepped(self, line: Fields) -> None:
        if line.data.get("by_hand") and not self.by_hand:
            # The optimizer's steps until then were none of the job's.
            self.by_hand, self.first_step = True, None
            self.steps_ns.clear()
            self.waits_ns.clear()
        moments_ns = line.counts("steps_ns")
        self.loop_began_ns = line.count("loop_began_ns") or self.loop_began_ns
        waits_ns = line.counts("waits_ns") if "waits_ns" in line.data else [0] * len(moments_ns)
        if len(waits_ns) != len(moments_ns):
            line.fail("waits_ns", "has not one wait for each of steps_ns")
        for moment_ns, wait_ns in zip(moments_ns, waits_ns, strict=True):
            if self.steps_ns and moment_ns <= self.steps_ns[-1]:
                self.backward += 1
            else:
                self.steps_ns.append(moment_ns)
                self.waits_ns.append(wait_ns)
        if self.first_step is None:
            self.phases_at_first_step_ns = dict(self.log.phases.spent_ns)
            self.first_step = line.part("first_step")

    @property
    def cache_keys(self) -> CacheKeys | None:
        """Each lookup with its function; None where no cache was asked."""
        lookups = [_lookup(each, self.log) for each in self.lookups[:_MOST_LOOKUPS]]
        if not lookups:
            return None
        return CacheKeys(surroundings=self.surroundings, settings=self.settings, lookups=lookups)

    @property
    def intervals_ns(self) -> list[int]:
        """From the end of each step to that of the next."""
        return [after - before for before, after in zip(self.steps_ns, self.steps_ns[1:], strict=False)]


def _texts(part: Fields) -> dict[str, str | None]:
    """An object of texts, empty where there is none."""
    return {part.storable(name, name): part.text(name, _TEXT_LIMIT) for name in part.data if name}


def _stated_texts(part: Fields) -> dict[str, str]:
    return {name: text for name, text in _texts(part).items() if text is not None}


def _lookup(line: Fields, log: CompileLog) -> CacheLookup:
    frame = line.count("frame_id")
    place = None if frame is None else log.place(frame)
    return CacheLookup(
        cache=line.required_text("cache"),
        answer=line.required_text("answer"),
        what=line.text("what") or (place or "")[-200:] or None,
        saved_ns=line.count("saved_ns"),
        took_ns=line.count("took_ns"),
        reason=line.text("reason", _TEXT_LIMIT),
        tensors=line.text("tensors", _TEXT_LIMIT),
        settings=_texts(line.part("settings")),
        **line.words(("key", "source", "inputs")),
    )


def read_process(file: InputFile, options: ImportOptions) -> JobProcess:
    """What one recording tells; of one that ends inside a line, everything before it.

    Raises RecordError where a line before the last one is damaged, or any is not what the recorder writes.
    """
    lines = file.lines()
    number, first = next(lines, (1, b""))
    place = Place(file.shown, number)
    header = as_fields(place, load_json(first, place))
    if header.text("schema") != SCHEMA:
        header.fail("schema", f"must be {SCHEMA}")
    recording = _Recording()
    damaged: RecordError | None = None
    for number, line in lines:
        if damaged is not None:
            raise damaged
        at = Place(file.shown, number)
        try:
            fields = as_fields(at, load_json(line, at))
        except RecordError as error:
            damaged = error
        else:
            recording.add(fields)
    if recording.backward:
        options.note(
            f"{file.shown}: {plural(recording.backward, 'step')} left out, no later than the one before."
        )
    return _process(header, recording, options, cut_off=damaged is not None)


def _process(header: Fields, recording: _Recording, options: ImportOptions, *, cut_off: bool) -> JobProcess:
    log, intervals = recording.log, recording.intervals_ns
    until_steady = _steps_until_steady(intervals)
    steady = intervals[until_steady - 1 :] if until_steady else []
    figures = {"steps_recorded": float(len(recording.steps_ns))} if recording.steps_ns else {}
    if until_steady:
        figures["steps_until_steady"] = float(until_steady)
    figures |= _of_loop(recording, until_steady)
    after_ready = None
    if recording.after_ready is not None:
        after_ready = recording.after_ready.facts(recording.ended_ns)
        figures["compiles_after_ready"] = float(after_ready.count)
        figures["compile_after_ready_s"] = after_ready.cost_ns / NS_PER_S
    phases_ns = recording.phases_at_first_step_ns
    called = header.required_text("job")
    job = options.job or called
    if job != called:
        options.renamed(header.place.file, called, f"--job {job}")
    return JobProcess(
        place=header.place,
        name=job,
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
        steps_ns=recording.steps_ns,
        memory=Memory.model_validate(recording.memory) if recording.memory else None,
        figures=figures,
        after_ready=after_ready,
        cache_keys=recording.cache_keys,
        cut_off=cut_off,
    )


def _of_loop(recording: _Recording, until_steady: int | None) -> dict[str, float]:
    """Where the time went from the first batch that was asked for to the last step: data, compiling, steps;
    and of steady steps the share that waits for data. Nothing of a job that notes no batches.
    """
    began_ns, ends_ns = recording.loop_began_ns, recording.steps_ns
    if began_ns is None or not ends_ns or ends_ns[-1] <= began_ns:
        return {}
    phases = recording.log.phases
    compiling_ns = (phases.until_ns(ends_ns[-1]) or 0) - (phases.until_ns(began_ns) or 0)
    figures = {
        "loop_s": (ends_ns[-1] - began_ns) / NS_PER_S,
        "loop_data_s": sum(recording.waits_ns) / NS_PER_S,
        "loop_compile_s": compiling_ns / NS_PER_S,
    }
    if until_steady and until_steady < len(ends_ns):
        steady_ns = ends_ns[-1] - ends_ns[until_steady - 1]
        figures["steady_data_share"] = min(1.0, sum(recording.waits_ns[until_steady:]) / steady_ns)
    return figures


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
        first = recording.first_step
        figures["process_tree_cpu_ns"] = first.count("process_tree_cpu_ns") if first else None
        figures["total_ns"] = None if began is None else recording.steps_ns[0] - began
    if until_steady and recording.log.compiled:
        # Time in which anything was compiled: net of calls, as of a job that is only traced.
        steady_at_ns = recording.steps_ns[until_steady - 1]
        figures |= {"until_steady_ns": recording.log.phases.until_ns(steady_at_ns), "calls_until_steady": 0}
    known = {name: value for name, value in figures.items() if value is not None}
    if (wrong := next((name for name, value in known.items() if value < 0), None)) is not None:
        header.fail("process_began_ns", f"is later than what follows it, so that {wrong} is negative")
    return known


def _stated(header: Fields, recording: _Recording) -> dict[str, Any]:
    first = recording.first_step or Fields(header.place, {}, "first_step")
    task = header.text("task")
    trained = bool(recording.steps_ns) and not recording.by_hand
    software = recording.software or Fields(header.place, {}, "software")
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
