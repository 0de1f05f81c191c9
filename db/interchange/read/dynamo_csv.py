"""PyTorch `benchmarks/dynamo` CSV: performance and accuracy files, by header.

Shapes follow `speedup_experiment`, `_write_accuracy_row`, `write_csv_when_exception` and `output_csv` in
pytorch/pytorch benchmarks/dynamo/common.py. Columns come and go between versions, so they are looked up
by name. `speedup` 0 is how the tool writes a failure.

A performance file is joined with the accuracy file beside it by device, model and tag, as PyTorch's
dashboard does, and by batch size where a model has rows of several: a model that fails its accuracy run
failed. Either file of a pair stands for both. The strategy stands in the file's name alone; " (1)" before the
suffix is a browser's, for a copy.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from typing import Any

from db.errors import RecordError
from db.interchange.files.fields import Fields, Place, csv_header, csv_rows
from db.interchange.files.opening import InputFile
from db.interchange.files.options import ImportOptions
from db.interchange.read.dynamo_metrics import outcome, peak_unit_bytes
from db.interchange.read.foreign_trials import Result, compiled, to_trial
from db.records.trial import Strategy, Task, Trial

# Which row of a `benchmarks/dynamo` accuracy file speaks of which row of the performance file beside it.

_Key = tuple[Hashable, ...]
# A failed row is written without a tag: in a file with tags its speedup stands in their column.
_SHIFTED_SPEEDUP = "0.000000"


class Verdicts:
    """The rows of an accuracy file by what tells them apart in both files.

    That is device, model and tag, as far as both files have the column, and the batch size of models of which
    a file has several: PyTorch checks accuracy with a batch of its own, so one of each belong together.
    """

    def __init__(self, performance: InputFile | None, accuracy: InputFile) -> None:
        """Raises RecordError for a row that cannot be read."""
        shared = {*csv_header(accuracy)} & {*csv_header(performance)} if performance else set()
        self._columns = [name for name in ("dev", "name") if name in shared]
        self._tagged = "tag" in shared
        self._rows = [*csv_rows(accuracy)]
        self._several: set[_Key] = set()
        if performance and "batch_size" in shared:
            known = {*map(self._model, self._rows)}
            theirs = (row for row in csv_rows(performance) if self._model(row) in known)
            self._several = self._of_several(self._rows) | self._of_several(theirs)
        self._first: dict[_Key, Fields] = {}
        self._contrary: dict[_Key, Fields] = {}
        for row in self._rows:
            first = self._first.setdefault(self._key(row), row)
            if row.text("accuracy") != first.text("accuracy"):
                self._contrary.setdefault(self._key(row), row)
        self._covered: set[_Key] = set()

    def of(self, row: Fields) -> Fields | None:
        """The row about this row of the performance file, and about every repeat of it.

        Raises RecordError where two do and differ.
        """
        key = self._key(row)
        first, contrary = self._first.get(key), self._contrary.get(key)
        if first is not None and contrary is not None:
            contrary.fail(
                "accuracy",
                f"is {contrary.text('accuracy')} here and {first.text('accuracy')} "
                f"on line {first.place.line}, of one row",
            )
        self._covered.add(key)
        return first

    def unmatched(self) -> Iterator[Fields]:
        """Rows that matched no row of the performance file, in the order of the file."""
        return (row for row in self._rows if self._key(row) not in self._covered)

    def _of_several(self, rows: Iterable[Fields]) -> set[_Key]:
        """Models with rows of more than one batch size."""
        sizes: dict[_Key, set[int]] = defaultdict(set)
        for row in rows:
            size = _batch_size(row)
            if size is not None:
                sizes[self._model(row)].add(size)
        return {model for model, of_model in sizes.items() if len(of_model) > 1}

    def _model(self, row: Fields) -> _Key:
        return (*map(row.text, self._columns), tag_of(row) if self._tagged else None)

    def _key(self, row: Fields) -> _Key:
        model = self._model(row)
        return (*model, _batch_size(row)) if model in self._several else model


def tag_of(row: Fields) -> str | None:
    """What the user called the run of this row, if the file says it."""
    tag = row.text("tag")
    return None if tag == _SHIFTED_SPEEDUP else tag


def _batch_size(row: Fields) -> int | None:
    """An empty batch size and the 0 of a failed row both mean that the file does not say it."""
    return row.count("batch_size") or None


SOURCE = "dynamo-csv"

# <compiler>_<suite>_<dtype>_<mode>_<device>_<accuracy|performance>.csv, as in .ci/pytorch/test.sh.
_NAME = re.compile(
    r"(?P<compiler>.+?)_(?P<suite>torchbench|huggingface|timm_models|timm)_(?P<dtype>[a-z0-9]+(?:_bf16|_fp16)?)"
    r"_(?P<task>inference|training)_(?P<device>[a-z]+)_(?:accuracy|performance)\.csv"
)
# <compiler>_<suite>[_<mode>].csv, the accuracy that CI expects, in benchmarks/dynamo/ci_expected_accuracy.
_EXPECTED_NAME = re.compile(
    r"(?P<compiler>(?:[a-z]+_)*(?:inductor|aot_eager)(?:_[a-z]+)*_(?:torchbench|huggingface|timm_models|timm)"
    r"(?:_inference|_training)?)\.csv"
)
_COPY = re.compile(r" ?\(\d+\)(?=\.csv\Z)")


def read(file: InputFile, options: ImportOptions) -> Iterator[Trial]:
    """Trials of a performance file, of an accuracy file, or of the pair when both lie side by side.

    Raises RecordError naming file, line and field.
    """
    if _original(file.name).endswith("_compilation_metrics.csv"):
        raise RecordError(
            f"{file.shown}: the names of its columns do not hold for every row.",
            "Import the performance and accuracy files beside it instead.",
        )
    header = csv_header(file)
    if "speedup" in header:
        yield from _read_pair(file, _partner(file, "_performance.csv", "_accuracy.csv"), options)
    elif "accuracy" in header:
        yield from _read_pair(_partner(file, "_accuracy.csv", "_performance.csv"), file, options)
    else:
        raise Place(file.shown, 1).error("the header", "has neither a speedup nor an accuracy column")


def _partner(file: InputFile, ending: str, other: str) -> InputFile | None:
    original = _original(file.name)
    if not original.endswith(ending):
        return None
    partner = original.removesuffix(ending) + other
    copy = _COPY.search(file.name)
    beside = file.sibling(f"{partner.removesuffix('.csv')}{copy[0]}.csv") if copy else None
    return beside or file.sibling(partner)


def _original(name: str) -> str:
    return _COPY.sub("", name)


def _read_pair(
    performance: InputFile | None, accuracy: InputFile | None, options: ImportOptions
) -> Iterator[Trial]:
    verdicts = Verdicts(performance, accuracy) if accuracy else None
    if performance:
        for row in csv_rows(performance):
            verdict = verdicts.of(row) if verdicts else None
            yield to_trial(_result(row, performance, verdict), SOURCE, options)
    if accuracy and verdicts:
        for row in verdicts.unmatched():
            yield to_trial(_result(row, accuracy, row), SOURCE, options)


def _result(row: Fields, file: InputFile, verdict: Fields | None) -> Result:
    named = file_name_facts(file.name)
    device = str(row.text("dev") or named.get("device"))
    accuracy = verdict.required_text("accuracy") if verdict else None
    parts, failure = outcome(row, accuracy, device=device, peak_unit=peak_unit_bytes(device))
    return Result(
        place=row.place,
        workload=row.required_text("name"),
        strategy=_strategy(file.name, named.pop("compiler", None)),
        raw=dict(row.data),
        stated={"device": row.text("dev"), "batch_size": _batch_size(row)},
        named=named,
        failure=failure,
        parts=parts,
        label=tag_of(row),
    )


def file_name_facts(name: str) -> dict[str, Any]:
    """Compiler, suite, dtype, task and device as the tool writes them into the file's name, if it is one."""
    match = _NAME.fullmatch(_original(name))
    if match is None:
        return {}
    return {**match.groupdict(), "task": Task(match["task"])}


def _strategy(name: str, compiler: str | None) -> Strategy | None:
    """None where the file's name is not the tool's."""
    if compiler is None:
        expected = _EXPECTED_NAME.fullmatch(_original(name))
        compiler = expected["compiler"] if expected else None
    return strategy_of(compiler) if compiler else None


def strategy_of(compiler: str) -> Strategy:
    """The compiler label of the file name: which mode and caches it stands for, the name does not say."""
    words = compiler.split("_")
    return compiled(
        compiler[:200],
        backend="inductor" if words[0] == "inductor" else None,
        dynamic=True if "dynamic" in words else None,
    )
