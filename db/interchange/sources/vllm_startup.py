"""What `vllm bench startup --output-json` writes: cold and warm starts of an engine, times in seconds.

Shape: vllm, vllm/benchmarks/startup.py: per phase (`cold`, `warm`) and figure (`startup`, `compilation`,
`encoder_compilation`) a list `PHASE_FIGURE_times` with an entry per start, in the order in which they ran,
beside averages and percentiles, which follow from it. It names neither model, device nor release. Of `vllm
bench sweep startup` each combination has a folder, which is then the job's name.

A trial per start. Not taken: latency, memory, phases; a start without a time. To name: torch, device and
moment; `--job`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from compilewatch.db.errors import RecordError
from compilewatch.db.interchange.files.fields import NS_PER_S, Fields, Place, json_documents
from compilewatch.db.interchange.files.foreign_trials import UNKNOWN, ForeignResult, to_trial
from compilewatch.db.interchange.files.opening import InputFile
from compilewatch.db.interchange.files.options import ImportOptions
from compilewatch.db.interchange.sources.job_trials import job_strategy
from compilewatch.db.records.evidence import ColdStart, Summary
from compilewatch.db.records.identity import JOB_SOURCE, CacheState, Task
from compilewatch.db.records.trial import Trial
from compilewatch.db.units import plural

_OF_A_SWEEP = re.compile(r"run=\d+|summary")
_PHASES = {"cold": CacheState.COLD, "warm": CacheState.WARM}


def read(file: InputFile, options: ImportOptions) -> Iterator[Trial]:
    """A trial per start, of the job that `options` or the name of the file names.

    What stands at one place in the lists of a phase is of one start; one without a time is left out, and
    said. Raises RecordError where nothing was compiled, or where lists of one phase differ in length.
    """
    for document in json_documents(file):
        compiled = {phase: _compile_ns(document, phase) for phase in _PHASES}
        if not any(map(any, compiled.values())):
            raise RecordError(f"{file.shown}: holds no compilation.", "Start vLLM without --enforce-eager.")
        stem = PurePath(file.name).stem
        called = file.folder if _OF_A_SWEEP.fullmatch(stem) and file.folder else stem
        job = document.storable("job", options.job or called)
        for phase, cache in _PHASES.items():
            key = f"{phase}_startup_times"
            totals_ns = _nanoseconds(document, key)
            if 0 in totals_ns:
                document.fail(key, "must be more than 0")
            if len(totals_ns) != len(compiled[phase]):
                document.fail(key, f"must have as many entries as {phase}_compilation_times")
            if untimed := totals_ns.count(None):
                options.note(f"{file.shown}: {plural(untimed, f'{phase} start')} without a time left out.")
            for total_ns, compile_ns in zip(totals_ns, compiled[phase], strict=True):
                if total_ns is not None:
                    result = _result(document.place, job, cache, total_ns, compile_ns)
                    yield to_trial(result, JOB_SOURCE, options)


def _result(
    place: Place, job: str, cache: CacheState, total_ns: int, compile_ns: int | None
) -> ForeignResult:
    cost: dict[str, Any] = {"until_steady_ns": compile_ns, "calls_until_steady": 0} if compile_ns else {}
    compilation = {} if compile_ns is None else {"compilation_s": compile_ns / NS_PER_S}
    return ForeignResult(
        place=place,
        workload=job,
        strategy=job_strategy(cache),
        raw={"phase": cache.value, "startup_ns": total_ns, "compilation_ns": compile_ns},
        assumed={"device_name": UNKNOWN, "dtype": UNKNOWN, "task": Task.INFERENCE},
        parts={
            "cold_start": ColdStart(total_ns=total_ns, **cost),
            "summary": Summary(metrics={"startup_s": total_ns / NS_PER_S, **compilation}),
        },
    )


def _compile_ns(document: Fields, phase: str) -> list[int | None]:
    """What each start spent compiling, that of the encoder included, which vLLM counts apart."""
    key, encoder_key = f"{phase}_compilation_times", f"{phase}_encoder_compilation_times"
    model, encoder = _nanoseconds(document, key), _nanoseconds(document, encoder_key)
    if encoder and len(encoder) != len(model):
        document.fail(encoder_key, f"must have as many entries as {key}")
    both = zip(model, encoder or [0] * len(model), strict=True)
    return [None if one is None or other is None else one + other for one, other in both]


def _nanoseconds(document: Fields, key: str) -> list[int | None]:
    values = document.numbers_in_place(key)
    return [None if seconds is None else document.whole(key, seconds * NS_PER_S) for seconds in values]
