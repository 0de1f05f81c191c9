"""hyperfine `--export-json`: a result per command, times in seconds of the whole process.

Shape: sharkdp/hyperfine src/export/json.rs. A parameter (`-L mode eager,default`) whose value is a mode or
backend of torch.compile, or yes or no, tells the strategy; without one it is to be told.

Not taken: times of user and system. To name: all of torch.
"""

from __future__ import annotations

from collections.abc import Iterator

from compilewatch.db.interchange.files.fields import NS_PER_S, Fields, json_document
from compilewatch.db.interchange.files.foreign_trials import (
    ForeignResult,
    failed,
    known_strategy,
    names_strategy,
)
from compilewatch.db.interchange.files.opening import InputFile
from compilewatch.db.interchange.files.options import ImportOptions
from compilewatch.db.records.trial import Summary, Task


def read(file: InputFile, _: ImportOptions) -> Iterator[ForeignResult]:
    """One trial per command. Raises RecordError naming file and field."""
    yield from map(_result, json_document(file).objects("results"))


def _result(fields: Fields) -> ForeignResult:
    command = fields.text("command", 10_000) or ""
    parameters = {key: str(value) for key, value in fields.part("parameters").data.items()}
    pair = next((key for key, value in parameters.items() if names_strategy(value)), None)
    if pair is not None and parameters[pair]:
        command = command.replace(parameters[pair], f"{{{pair}}}")
    latency_ns = fields.duration_ns("median", NS_PER_S) or fields.duration_ns("mean", NS_PER_S)
    if latency_ns is None:
        fields.fail("median", "is missing")
    samples = [fields.whole("times", seconds * NS_PER_S) for seconds in fields.numbers("times")]
    codes = [code for code in fields.numbers("exit_codes") if code != 0]
    return ForeignResult(
        place=fields.place,
        workload=fields.storable("command", command.strip()[:200] or "(no command)"),
        strategy=None if pair is None else known_strategy(parameters[pair]),
        raw={key: fields.data.get(key) for key in ("command", "median", "mean", "times")},
        assumed={"task": Task.FUNCTION},
        failure=failed("The command ended with an error in some of its runs.") if codes else None,
        parts={}
        if codes
        else {
            "summary": Summary(latency_ns=latency_ns, n=len(samples) or None),
            "samples_ns": samples if all(samples) else [],
        },
    )
