"""Bencher Metric Format (BMF): of each benchmark its measures, each with a value.

Shape: bencher.dev docs/reference/bencher-metric-format. `latency` is in ns and `throughput` in operations a
second, as Bencher's own measures are; any other is kept under its name. The last part of a benchmark's name
after "/" or "::", or what stands in brackets there, tells the strategy where it is a mode or backend of
torch.compile, eager or the like.

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

# Of a benchmark's name they may tell anything.
_YES_OR_NO = frozenset(["true", "false", "yes", "no", "on", "off", "enabled", "disabled", "none", "0", "1"])
_MOST_SPANS = 100
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
    last = re.split("/|::", name)[-1]
    test, _, params = last.removesuffix("]").partition("[") if last.endswith("]") else ("", "", last)
    # Of parameters, as pytest writes them, those that are a word for a strategy in the longest way.
    words = params.split("-")
    spans = [(at, at + many) for many in range(len(words), 0, -1) for at in range(len(words) - many + 1)]
    for begin, end in spans[:_MOST_SPANS] if last != name or test else ():
        word = "-".join(words[begin:end])
        strategy = None if word.lower() in _YES_OR_NO else named_strategy(word, measures.place, options)
        if strategy is not None and (test or end - begin == len(words)):
            rest = "-".join((*words[:begin], *words[end:]))
            head = name[: -len(last)] + test
            return (f"{head}[{rest}]" if rest else head.rstrip("/:") or name), strategy
    return name, None


def _summary(measures: Fields, figures: dict[str, float]) -> Summary:
    latency, rate = figures.get("latency"), figures.get("throughput")
    latency_ns = None
    if latency is not None and latency > 0:
        latency_ns = measures.whole("latency", latency) or 1
    elif rate is not None and rate > 0:
        latency_ns = measures.whole("throughput", NS_PER_S / rate) or 1
    own = {measure: figure for measure, figure in figures.items() if measure != "latency"}
    return Summary(latency_ns=latency_ns, throughput_per_s=rate, metrics=own)
