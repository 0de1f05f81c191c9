"""`data.js` of benchmark-action/github-action-benchmark: a history of a suite, commit by commit.

Shape: benchmark-action/github-action-benchmark src/write.ts, a script that assigns one JSON object. A bench
is a rate or a time by its unit; other units are left out. In the brackets of a pytest's name a mode or
backend of torch.compile, or yes or no, tells the strategy.

A trial per bench and commit. To name: torch, GPU and dtype; the strategy unless a pytest's brackets tell it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from compilewatch.db.interchange.files.fields import Fields, Place, as_fields, load_json, moment
from compilewatch.db.interchange.files.foreign_trials import ForeignResult, known_strategy, names_strategy
from compilewatch.db.interchange.files.opening import InputFile
from compilewatch.db.interchange.files.options import ImportOptions
from compilewatch.db.records.trial import Summary, Task
from compilewatch.db.units import plural

FIRST_WORD = b"window.BENCHMARK_DATA"

_RATES = frozenset({"iter/sec", "ops/sec", "ops/s", "iter/s"})
_NS_OF_UNITS = {
    "ns": 1, "us": 1e3, "usec": 1e3, "\u00b5s": 1e3, "\u03bcs": 1e3, "ms": 1e6, "msec": 1e6,
    "s": 1e9, "sec": 1e9, "seconds": 1e9,
}  # fmt: skip
_PER = re.compile(r"/(?:iter|op|ops|iteration)\Z")


def read(file: InputFile, options: ImportOptions) -> Iterator[ForeignResult]:
    """One trial per bench of every commit. Raises RecordError naming file and field."""
    place = Place(file.shown)
    text = file.document().partition(b"=")[2].strip().rstrip(b";")
    left_out = 0
    for suite, runs in as_fields(place, load_json(text, place)).part("entries").data.items():
        for number, run in enumerate(runs if isinstance(runs, list) else []):
            entry = as_fields(place, run, f"entries.{suite[:60]}.{number}")
            facts = {
                "suite": entry.storable("suite", suite),
                "measured_at": moment(entry, "date"),
                "packages": _commit(entry),
            }
            for bench in entry.objects("benches"):
                result = _result(bench, facts)
                if result is None:
                    left_out += 1
                else:
                    yield result
    if left_out:
        options.note(f"{file.shown}: {plural(left_out, 'bench')} of something else than time left out.")


def _commit(entry: Fields) -> dict[str, str] | None:
    commit = entry.part("commit").text("id")
    return {"commit": commit} if commit else None


def _result(fields: Fields, facts: dict[str, Any]) -> ForeignResult | None:
    """None where its unit is of neither a time nor a rate."""
    unit, value = (fields.text("unit") or "").lower(), fields.number("value")
    if value is None:
        fields.fail("value", "is missing")
    if unit in _RATES:
        if value <= 0:
            fields.fail("value", "must be more than 0")
        latency_ns = fields.whole("value", 1e9 / value)
    else:
        scale = _NS_OF_UNITS.get(_PER.sub("", unit))
        if scale is None:
            return None
        latency_ns = fields.whole("value", value * scale)
    name, mode = _without_mode(fields.text("name", 1_000) or fields.required_text("name"))
    return ForeignResult(
        place=fields.place,
        workload=fields.storable("name", name),
        strategy=None if mode is None else known_strategy(mode),
        raw={key: fields.data.get(key) for key in ("name", "value", "unit")},
        stated=facts,
        assumed={"task": Task.FUNCTION},
        parts={"summary": Summary(latency_ns=latency_ns or 1)},
    )


def _without_mode(name: str) -> tuple[str, str | None]:
    """A pytest's name without the parameter that tells the strategy, and that."""
    test, bracket, inside = name.partition("[")
    if not bracket or not inside.endswith("]"):
        return name, None
    if names_strategy(inside[:-1]):
        return test, inside[:-1]
    words = inside[:-1].split("-")
    mode = next((word for word in words if names_strategy(word)), None)
    others = [word for word in words if word is not mode]
    return (f"{test}[{'-'.join(others)}]" if others else test), mode
