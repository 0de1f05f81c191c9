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


READERS: dict[Format, Reader] = {
    Format.TRIAL: trial_jsonl.read,
    Format.DYNAMO_CSV: dynamo_csv.read,
    Format.OSS_V3: oss_v3.read,
    Format.TORCHBENCH: torchbench.read,
    Format.PYTEST_BENCHMARK: pytest_benchmark.read,
    Format.OPTIMUM: optimum.read,
    Format.TIMM_CSV: timm_csv.read,
    Format.TRANSFORMERS_CI: transformers_ci.read,
    Format.CSV: generic_csv.read,
}
