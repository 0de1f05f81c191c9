"""The figures that a source states under names of its own: which way is good, and their unit, by the name.

A name that tells no direction (`infer_gmacs`) is kept and never judged. Of a server those are judged that it
owes: medians and 99th percentiles of the time to first token (TTFT), per output token (TPOT) and of a whole
request (end to end), goodput, and how many requests were completed or failed; throughput where the rate of
requests is not fixed. What a compiler counts (graph breaks, skipped CUDA graphs) is compared exactly.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from typing import Any

from compilewatch.db import units
from compilewatch.db.columns.column import Column, Kind, Threshold
from compilewatch.db.records.vocabulary import SOURCE_METRIC, Metric

_PREFIXES = {"": 1e9, "m": 1e6, "milli": 1e6, **dict.fromkeys(("u", "\u00b5", "\u03bc", "micro"), 1e3)}
_PREFIXES |= {"n": 1.0, "nano": 1.0}
NS_OF_UNITS = {
    f"{prefix}{second}": ns
    for prefix, ns in _PREFIXES.items()
    for second in ("s", "sec", "secs", "second", "seconds")
}
BYTES_OF_UNITS = {
    "bytes": 1.0,
    **{f"{prefix}b": 1e3**power for power, prefix in enumerate("kmgt", start=1)},
    **{f"{prefix}ib": 2.0 ** (10 * power) for power, prefix in enumerate("kmgt", start=1)},
}
# Of a server's times; whatever else is stated of them says the same once more.
_OF_REQUESTS = re.compile(r"(?:mean|median|std|min|max|p\d+)_(?:ttft|tpot|itl|e2el|e2e_latency)_ms")
_NAMES = {"ttft": "TTFT", "tpot": "TPOT", "e2el": "End-to-end latency", "e2e_latency": "End-to-end latency"}
_UNDER_LOAD = {
    "output_throughput": ("Output throughput", "token"),
    "request_throughput": ("Request throughput", "request"),
}
# Beside output throughput they say the same once more.
_OTHER_THROUGHPUTS = {"input_throughput", "total_throughput", "total_token_throughput"}
_OFFERED = re.compile(r"throughput(?!.*per_user)")
# A spread or a bound tells no better or worse of its own, nor does a sum of what is none of the counts below.
_SPREADS = {"std", "stdev", "stddev", "stderr", "standard", "margin", "min", "max"}
_NO_FIGURES = _SPREADS | {"total", "num", "number", "count"}
_EXACT = {"skips", "breaks", "recompiles", "recompilations"}
_BAD = {"error", "errors", "failed", "failure", "failures", "timeouts", "rejected", "aborted", "preemptions"}
_GOOD = {"completed", "successful", "succeeded"}
_INSTRUCTIONS = re.compile(r"(?:^|[^a-z])instructions?(?:[ _]count)?$", re.IGNORECASE)
_UNIT = re.compile(
    r"(?:[(\[]\s*(?P<bracketed>[^()\[\]]*?)\s*[)\]]|(?:^|[ _.])(?P<last>[a-z\u00b5\u03bc]+))$", re.IGNORECASE
)
# Behind a time of one of them: "ms/token", "sec_per_iter".
_OF_ONE = re.compile(
    rf"(?:^|(?<=[ _.(\[]))(?P<unit>{'|'.join(NS_OF_UNITS)})(?: ?/ ?|[ _]per[ _])[a-z]+(?=[)\]]?$)",
    re.IGNORECASE,
)
_RATE = re.compile(
    r"(?:per[ _]|/ ?)(?:s|sec|second)(?![a-z])"
    r"|(?:^|[^a-z])(?:tok|req|(?:token|request|sample|image|item|iteration|iter|step|quer|frame)(?:ie)?s)_s$",
    re.IGNORECASE,
)
_RATE_IN_WORDS = re.compile(r"throughput|goodput|(?:^|[^a-z])(?:tps|qps|fps)(?![a-z])", re.IGNORECASE)
_OF_OTHER_TIMES = re.compile(
    r"(?:per[ _]|/ ?)(?:[num\u00b5\u03bc]s|min|minute|h|hour)(?![a-z])", re.IGNORECASE
)
_TIME = re.compile(r"latency|(?:^|[^a-z])time(?![a-z])", re.IGNORECASE)


def source_metric(name: str) -> Column | None:
    """The column of a figure by its source's name; None where the name tells no direction."""
    return _column(name, f"{SOURCE_METRIC}{name}")


def judged_metrics(figures: Mapping[str, float]) -> dict[str, float]:
    """Of the figures of one result those that are judged, by column: the load that is offered is none."""
    offered = figures.get("request_rate") or figures.get("ramp_up_end_rps")
    is_offered = _OFFERED.search if offered else lambda _: None
    return {
        f"{SOURCE_METRIC}{name}": value
        for name, value in figures.items()
        if not is_offered(name) and source_metric(name) is not None
    }


def metrics_among(columns: Iterable[str]) -> tuple[Metric, ...]:
    """The metrics of sources among the columns of a frame of trials."""
    return tuple(Metric(column) for column in columns if column.startswith(SOURCE_METRIC))


@cache
def _column(name: str, key: str) -> Column | None:
    facts = _SERVED.get(name) or _facts(name)
    if facts is None:
        return None
    fixed: dict[str, Any] = {"kind": Kind.FLOAT, "threshold": Threshold.COARSE, "judged": True}
    return Column(column=key, key=key, **fixed | {"name": name} | facts)


def _facts(name: str) -> dict[str, Any] | None:
    """What a name says that no table has."""
    words, unit = set(re.findall("[a-z]+", name.lower())), unit_of(name)
    facts: dict[str, Any] | None = None
    is_amount = unit in NS_OF_UNITS or unit in BYTES_OF_UNITS
    if words & (_EXACT | _BAD | _GOOD) and not (words & _SPREADS or is_amount):
        facts = {"unit": "count", "write": _count, "higher_is_better": bool(words & _GOOD)}
        if words & _EXACT:
            facts |= {"threshold": Threshold.EXACT, "judged": False}
    elif _INSTRUCTIONS.search(name) and not words & _SPREADS:
        facts = {"unit": "count", "write": _count}
    elif words & _NO_FIGURES or name in _OTHER_THROUGHPUTS or _OF_REQUESTS.fullmatch(name):
        pass
    elif is_rate(name):
        facts = _rates("")
    elif "speedup" in words:
        facts = {"unit": "x", "write": units.ratio, "higher_is_better": True}
    elif unit in NS_OF_UNITS:
        facts = {"unit": unit, "write": _times(NS_OF_UNITS[unit])}
    elif unit in BYTES_OF_UNITS:
        facts = {"unit": unit, "write": _sizes(BYTES_OF_UNITS[unit])}
    elif _TIME.search(name):
        facts = {"write": units.significant}
    return facts


def may_be_zero(metric: Metric) -> bool:
    """Whether 0 is a value of the metric: no request was served, nothing failed. A time or a size of 0 was
    not measured.
    """
    column = source_metric(metric.removeprefix(SOURCE_METRIC))
    return column is not None and column.unit in ("1/s", "x", "count")


def unit_of(name: str) -> str:
    """The unit at the end of a name, "(ms)", "[ms]", "_ms" or "ms/token", in small letters; else empty."""
    match = _UNIT.search(_OF_ONE.sub(r"\g<unit>", name))
    return "" if match is None else (match["bracketed"] or match["last"] or "").lower()


def is_rate(name: str) -> bool:
    """Whether a name says that it counts per second: "throughput (ms/token)" is a time."""
    if _RATE.search(name):
        return True
    is_time = unit_of(name) in NS_OF_UNITS and not name.endswith("_s")
    return bool(_RATE_IN_WORDS.search(name)) and not (is_time or _OF_OTHER_TIMES.search(name))


def _times(ns: float) -> Callable[..., str]:
    return lambda value: units.duration(float(value) * ns)


def _sizes(bytes_: float) -> Callable[..., str]:
    return lambda value: units.size(float(value) * bytes_)


def _count(value: float) -> str:
    """Exact where it is whole; a mean of several is not."""
    return units.count(value) if float(value).is_integer() else units.significant(value)


def _rates(item: str) -> dict[str, Any]:
    return {"unit": "1/s", "write": partial(units.rate, item=item), "higher_is_better": True}


_SERVED: dict[str, dict[str, Any]] = {
    **{
        f"{of}_{what}_ms": {"name": f"{title}{tail}", "unit": "ms", "write": _times(1e6)}
        for what, title in _NAMES.items()
        for of, tail in (("median", ""), ("p99", " p99"))
    },
    **{name: {"name": title} | _rates(item) for name, (title, item) in _UNDER_LOAD.items()},
    **{name: {"name": "Goodput"} | _rates("request") for name in ("request_goodput", "goodput")},
}
