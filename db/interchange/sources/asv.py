"""asv (airspeed velocity) result files, `results/MACHINE/COMMIT-ENVIRONMENT.json`.

Shape: airspeed-velocity/asv asv/results.py, versions 1 and 2 of the file. `time_` benchmarks are seconds; of
memory, peak memory and tracked values nothing is an execution's time, so they are left out. A parameter whose
value is a mode or backend of torch.compile, or yes or no, tells the strategy.

To name: torch, GPU and dtype; the strategy unless a parameter tells it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from compilewatch.db.interchange.files.fields import NS_PER_S, Fields, json_document, moment
from compilewatch.db.interchange.files.foreign_trials import (
    ForeignResult,
    known_strategy,
    names_strategy,
    torch_facts,
)
from compilewatch.db.interchange.files.opening import InputFile
from compilewatch.db.interchange.files.options import ImportOptions
from compilewatch.db.records.trial import Summary, Task
from compilewatch.db.units import plural

_TORCH_KEYS = ("torch", "pytorch")
_MOST_COMBINATIONS = 100_000


def read(file: InputFile, options: ImportOptions) -> Iterator[ForeignResult]:
    """One trial per timed benchmark and combination of its parameters. Raises RecordError."""
    document = json_document(file)
    results, facts = document.part("results"), _facts(document)
    columns = document.data.get("result_columns")
    left_out = 0
    for name in results.data:
        if not name.rpartition(".")[2].startswith("time_"):
            left_out += 1
            continue
        entry = _entry(results, name, columns)
        for values, seconds in _timed(entry):
            yield _result(entry, name, values, seconds, facts)
    if left_out:
        options.note(f"{file.shown}: {plural(left_out, 'benchmark')} of something else than time left out.")


def _entry(results: Fields, name: str, columns: Any) -> Fields:
    """One benchmark's columns by name; in version 1 a bare figure, or an object of results and parameters."""
    value = results.data[name]
    if isinstance(value, list) and isinstance(columns, list):
        value = dict(zip(map(str, columns), value, strict=False))
    elif not isinstance(value, dict):
        value = {"result": [value]}
    return Fields(results.place, value, results.name_of(results.storable(name[:200], name)))


def _timed(entry: Fields) -> Iterator[tuple[list[str], float]]:
    """Each combination of parameters with a figure: their values, and that."""
    given = entry.data.get("params") or []
    if not isinstance(given, list) or not all(isinstance(each, list) for each in given):
        entry.fail("params", "must be a list of lists")
    numbers = entry.numbers_in_place("result")
    for place, values in enumerate(product(*given)):
        if place >= min(len(numbers), _MOST_COMBINATIONS):
            return
        if (seconds := numbers[place]) is not None:
            yield [str(value).strip("'\"") for value in values], seconds


def _result(
    entry: Fields, name: str, values: list[str], seconds: float, facts: dict[str, Any]
) -> ForeignResult:
    mode = next((value for value in values if names_strategy(value)), None)
    others = [value for value in values if value is not mode]
    latency_ns = entry.whole("result", seconds * NS_PER_S)
    described = f"{name}({', '.join(others)})" if others else name
    return ForeignResult(
        place=entry.place,
        workload=entry.storable("params", described),
        strategy=None if mode is None else known_strategy(mode),
        raw={"name": name, "params": values, "result": seconds},
        stated=facts | {"measured_at": moment(entry, "started_at")},
        assumed={"task": Task.FUNCTION},
        parts={"summary": Summary(latency_ns=latency_ns or 1)},
    )


def _facts(document: Fields) -> dict[str, Any]:
    machine, needed = document.part("params"), document.part("requirements")
    torch = next((text for key in _TORCH_KEYS if (text := needed.text(key))), None)
    commit = document.text("commit_hash")
    ram = str(machine.data.get("ram") or "")
    return {
        **(torch_facts(torch) if torch else {}),
        "machine": machine.text("machine"),
        "cpu_name": machine.text("cpu"),
        "os": machine.text("os"),
        "python": document.text("python"),
        "ram_bytes": machine.scaled("ram", 1) if ram.replace(".", "", 1).isdigit() else None,
        "packages": {"commit": commit} if commit else None,
    }
