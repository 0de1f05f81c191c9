"""Jobs that people already run: what each process of one recorded, as trials of the source `job`.

A process is a trial. The processes of one execution, its ranks, are one run. A job has no eager control and
no workload of ours: its trials are compared with those of the same job alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import ValidationError

from compilewatch.db.interchange.files.fields import Place
from compilewatch.db.interchange.files.foreign_trials import UNKNOWN, ForeignResult, to_trial, torch_facts
from compilewatch.db.interchange.files.options import ImportOptions
from compilewatch.db.interchange.sources.compile_log import CompileLog
from compilewatch.db.records.evidence import AfterReady, CacheKeys, ColdStart, Memory, PhasesNs, Summary
from compilewatch.db.records.fields import problem
from compilewatch.db.records.identity import JOB_SOURCE, CacheState, Strategy, StrategyKind, Task
from compilewatch.db.records.strategies import EAGER
from compilewatch.db.records.trial import Trial

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class JobProcess:
    """One process of a job. `key` is equal for processes of one launch, as far as they can tell.

    `stated` holds facts as `Result.stated`, `cold_start` what was timed beside the compiler's own phases. The
    trial's id follows from `raw`. Times are ns.
    """

    place: Place
    name: str
    key: str
    raw: Any
    log: CompileLog
    phases_ns: dict[str, int]
    began_ns: int | None
    stated: dict[str, Any] = field(default_factory=dict)
    rank: int | None = None
    cold_start: dict[str, int] = field(default_factory=dict)
    latency_ns: int | None = None
    samples_ns: list[int] = field(default_factory=list)
    steps: int | None = None
    steps_ns: Sequence[int] = ()
    """The moments at which its steps ended, since 1970; empty where the source does not say."""
    memory: Memory | None = None
    figures: dict[str, float] = field(default_factory=dict)
    after_ready: AfterReady | None = None
    cache_keys: CacheKeys | None = None
    cut_off: bool = False
    """Whether its file ends inside a record, which was left out."""


def job_trials(processes: Sequence[JobProcess], options: ImportOptions) -> Iterator[Trial]:
    """The trials of all processes; the ranks of one execution share a run, which began when the first did.

    Raises MissingFactError naming every option that is still needed.
    """
    for execution in _executions(processes):
        known = [each.began_ns for each in execution if each.began_ns is not None]
        began = _EPOCH + timedelta(microseconds=min(known) // 1_000) if known else None
        for process in execution:
            try:
                result = _result(process, began, len(execution))
            except ValidationError as error:
                # Of figures that are right one by one, and beyond every bound together.
                first = error.errors(include_url=False)[0]
                raise process.place.error(".".join(map(str, first["loc"])), problem(first)) from error
            yield to_trial(result, JOB_SOURCE, options)


def _executions(processes: Sequence[JobProcess]) -> Iterator[list[JobProcess]]:
    """The processes that ran together: of each launch and rank the first ones, then the second ones."""
    executions: dict[tuple[str, str, int], list[JobProcess]] = defaultdict(list)
    times: dict[tuple[str, str, int | None], int] = defaultdict(int)
    for number, process in enumerate(sorted(processes, key=lambda each: each.began_ns or 0)):
        rank = (process.name, process.key, process.rank)
        # Without a rank nothing tells that two processes belong together.
        turn = times[rank] if process.rank is not None else -1 - number
        times[rank] += 1
        executions[(process.name, process.key, turn)].append(process)
    for execution in executions.values():
        yield sorted(execution, key=lambda each: each.rank or 0)


def _result(process: JobProcess, began: datetime | None, ranks: int) -> ForeignResult:
    log = process.log
    figures = log.figures() | process.figures
    facts = log.facts() if log.compiled else None
    if process.rank is not None:
        figures |= {"rank": float(process.rank), "ranks": float(ranks)}
        if facts is not None and ranks > 1:
            facts = facts.model_copy(update={"ranks": [log.of_rank(process.rank, process.steps_ns)]})
    told = {"after_ready": process.after_ready, "cache_keys": process.cache_keys}
    if known := {name: part for name, part in told.items() if part is not None}:
        facts = (facts or log.facts()).model_copy(update=known)
    return ForeignResult(
        place=process.place,
        workload=process.name,
        strategy=job_strategy(log.cache) if log.compiled else EAGER,
        raw=process.raw,
        stated=_facts(process) | {"measured_at": began},
        assumed={"device_name": UNKNOWN, "dtype": UNKNOWN, "task": Task.FUNCTION},
        parts={
            "cold_start": _cold_start(process),
            "summary": Summary(latency_ns=process.latency_ns, n=process.steps, metrics=figures),
            "samples_ns": process.samples_ns,
            "compiler": facts,
            "memory": process.memory,
        },
    )


def job_strategy(cache: CacheState) -> Strategy:
    """How a job was compiled: nothing is known but the state of its caches."""
    name = "compiled" if cache is CacheState.UNKNOWN else f"compiled+{cache.value}"
    return Strategy(name=name, kind=StrategyKind.COMPILE, cache=cache)


def _cold_start(process: JobProcess) -> ColdStart | None:
    compiled_ns = sum(process.phases_ns.values())
    known = dict(process.cold_start)
    if compiled_ns and "until_steady_ns" not in known and not process.log.phases.unfinished:
        # Without steps of the job the compiler's own time is what compiling cost, net of any call; where it
        # ends while it compiles, nobody knows.
        known |= {"until_steady_ns": compiled_ns, "calls_until_steady": 0}
    if not known and not compiled_ns:
        return None
    return ColdStart(
        **known,
        phase_source="dynamo_timed_events" if compiled_ns else None,
        phases_ns=PhasesNs(**process.phases_ns) if compiled_ns else None,
    )


def _facts(process: JobProcess) -> dict[str, Any]:
    log = process.log
    facts: dict[str, Any] = {"device": log.device, "triton": log.newest("triton_version")}
    if log.torch:
        facts |= torch_facts(log.torch)
    if cuda := log.newest("cuda_version"):
        facts["cuda"] = str(cuda)
    if python := log.newest("python_version"):
        facts["python"] = str(python).split()[0]
    return {name: value for name, value in (facts | process.stated).items() if value is not None}
