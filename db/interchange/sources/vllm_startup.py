"""What `vllm bench startup --output-json` writes: cold and warm starts of an engine, times in seconds.

Shape: vllm, vllm/benchmarks/startup.py: per phase (`cold`, `warm`) and figure (`startup`, `compilation`,
`encoder_compilation`) a list `PHASE_FIGURE_times` with an entry per start, in the order in which they ran,
beside averages and percentiles, which follow from it. It names neither model, device nor release.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from db.errors import RecordError
from db.interchange.files.fields import NS_PER_S, Fields, json_document
from db.interchange.files.foreign_trials import UNKNOWN, Result, to_trial
from db.interchange.files.opening import InputFile
from db.interchange.files.options import ImportOptions
from db.interchange.traces.job_trials import job_strategy
from db.records.evidence import ColdStart, Summary
from db.records.identity import JOB_SOURCE, CacheState, Task
from db.records.trial import Trial

_PHASES = {"cold": CacheState.COLD, "warm": CacheState.WARM}


def read(file: InputFile, options: ImportOptions) -> Iterator[Trial]:
    """A trial per start, of the job that `options` or the name of the file names.

    Raises RecordError where nothing was compiled, or where lists of one phase differ in length.
    """
    document = json_document(file)
    compiled = {phase: _compile_ns(document, phase) for phase in _PHASES}
    if not any(map(any, compiled.values())):
        raise RecordError(f"{file.shown}: holds no compilation.", "Start vLLM without --enforce-eager.")
    for phase, cache in _PHASES.items():
        key = f"{phase}_startup_times"
        totals_ns = [document.whole(key, seconds * NS_PER_S) for seconds in document.numbers(key)]
        if not all(totals_ns):
            document.fail(key, "must be more than 0")
        if len(totals_ns) != len(compiled[phase]):
            document.fail(key, f"must have as many entries as {phase}_compilation_times")
        for total_ns, compile_ns in zip(totals_ns, compiled[phase], strict=True):
            cost: dict[str, Any] = (
                {"until_steady_ns": compile_ns, "calls_until_steady": 0} if compile_ns else {}
            )
            result = Result(
                place=document.place,
                workload=options.job or PurePath(file.name).stem,
                strategy=job_strategy(cache),
                raw={"phase": phase, "startup_ns": total_ns, "compilation_ns": compile_ns},
                assumed={"device_name": UNKNOWN, "dtype": UNKNOWN, "task": Task.INFERENCE},
                parts={
                    "cold_start": ColdStart(total_ns=total_ns, **cost),
                    "summary": Summary(
                        metrics={"startup_s": total_ns / NS_PER_S, "compilation_s": compile_ns / NS_PER_S}
                    ),
                },
            )
            yield to_trial(result, JOB_SOURCE, options)


def _compile_ns(document: Fields, phase: str) -> list[int]:
    """What each start spent compiling, that of the encoder included, which vLLM counts apart."""
    key, encoder_key = f"{phase}_compilation_times", f"{phase}_encoder_compilation_times"
    seconds = document.numbers(key)
    of_encoder = document.numbers(encoder_key) or [0.0] * len(seconds)
    if len(of_encoder) != len(seconds):
        document.fail(encoder_key, f"must have as many entries as {key}")
    return [document.whole(key, sum(both) * NS_PER_S) for both in zip(seconds, of_encoder, strict=True)]
