"""Bencher Metric Format (BMF): of each benchmark its measures, each with a value.

Shape: bencher.dev docs/reference/bencher-metric-format. `latency` is in ns and `throughput` in operations a
second, as Bencher's own measures are; any other is kept under its name. The last part of a benchmark's name
after "/" or "::" tells the strategy where it is a mode or backend of torch.compile, eager or the like.

Not taken: the ends `lower_value` and `upper_value`. To name: all of torch, the device and the moment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from compilewatch.db.interchange.files.fields import NS_PER_S, Fields, json_document
from compilewatch.db.interchange.files.foreign_trials import ForeignResult, named_strategy
from compilewatch.db.interchange.files.opening import InputFile
from compilewatch.db.interchange.files.options import ImportOptions
from compilewatch.db.records.trial import Strategy, Summary, Task

BEGINNING = re.compile(
    rb'\{\s*"[^"]*"\s*:\s*\{\s*"[^"]*"\s*:\s*\{\s*"(?:value|lower_value|upper_value)"\s*:\s*-?[0-9]'
)


def read(file: InputFile, options: ImportOptions) -> Iterator[ForeignResult]:
    """One trial per benchmark. Raises RecordError naming file and field."""
    for name, measures in json_document(file).parts():
        figures = {measure: value.number("value") for measure, value in measures.parts()}
        known = {measure: figure for measure, figure in figures.items() if figure is not None}
        workload, strategy = _named(name, measures, options)
        yield ForeignResult(
            place=measures.place,
            workload=measures.storable("name", workload),
            strategy=strategy,
            raw={"name": name, "measures": known},
            assumed={"task": Task.FUNCTION},
            parts={"summary": _summary(measures, known)},
        )


def _named(name: str, measures: Fields, options: ImportOptions) -> tuple[str, Strategy | None]:
    """The workload, and the strategy that the last part of a benchmark's name tells."""
    word = re.split("/|::", name)[-1]
    strategy = None if word == name else named_strategy(word, measures.place, options)
    return (name if strategy is None else name[: -len(word)].rstrip("/:") or name), strategy


def _summary(measures: Fields, figures: dict[str, float]) -> Summary:
    latency, rate = figures.get("latency"), figures.get("throughput")
    latency_ns = None
    if latency is not None and latency > 0:
        latency_ns = measures.whole("latency", latency) or 1
    elif rate is not None and rate > 0:
        latency_ns = measures.whole("throughput", NS_PER_S / rate) or 1
    own = {measure: figure for measure, figure in figures.items() if measure != "latency"}
    return Summary(latency_ns=latency_ns, throughput_per_s=rate, metrics=own)
