"""The formats that can be read, by the names that `import --format` takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import StrEnum

from db.interchange import (
    dynamo_csv,
    generic_csv,
    optimum,
    oss_v3,
    pytest_benchmark,
    timm_csv,
    torchbench,
    transformers_ci,
    trial_jsonl,
)
from db.interchange.files import InputFile
from db.interchange.options import ImportOptions
from db.interchange.repeats import told_apart
from db.records import Trial

Reader = Callable[[InputFile, ImportOptions], Iterator[Trial]]


class Format(StrEnum):
    """Every value but `trial` is also the `source.name` of what it brings in."""

    TRIAL = "trial"
    DYNAMO_CSV = "dynamo-csv"
    OSS_V3 = "oss-v3"
    TORCHBENCH = "torchbench"
    PYTEST_BENCHMARK = "pytest-benchmark"
    OPTIMUM = "optimum"
    TIMM_CSV = "timm-csv"
    TRANSFORMERS_CI = "transformers-ci"
    CSV = "csv"


def _with_repeats(read: Reader) -> Reader:
    """`read` for a format whose ids follow from content."""

    def reader(file: InputFile, options: ImportOptions) -> Iterator[Trial]:
        return told_apart(read(file, options))

    return reader


READERS: dict[Format, Reader] = {
    Format.TRIAL: trial_jsonl.read,
    Format.DYNAMO_CSV: _with_repeats(dynamo_csv.read),
    Format.OSS_V3: _with_repeats(oss_v3.read),
    Format.TORCHBENCH: _with_repeats(torchbench.read),
    Format.PYTEST_BENCHMARK: _with_repeats(pytest_benchmark.read),
    Format.OPTIMUM: _with_repeats(optimum.read),
    Format.TIMM_CSV: _with_repeats(timm_csv.read),
    Format.TRANSFORMERS_CI: _with_repeats(transformers_ci.read),
    Format.CSV: _with_repeats(generic_csv.read),
}
