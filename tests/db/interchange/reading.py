"""Reading files in these tests: what the user tells, where the public samples lie, short cuts."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from compilewatch.db.interchange.files.opening import input_files
from compilewatch.db.interchange.files.options import ImportOptions
from compilewatch.db.interchange.formats import recognised_files
from compilewatch.db.interchange.reading import all_trials
from compilewatch.db.records.trial import Trial

SHARED = Path(__file__).resolve().parents[4] / "shared" / "data"
SAMPLES = SHARED / "samples"
TIMM = SHARED / "published" / "timm_raw"
INVENTED = Path(__file__).parent / "samples"
"""Small files of invented values in the shapes of the tools; the public ones beside are a second check."""

MEASURED_AT = datetime(2026, 11, 20, 18, 0, tzinfo=UTC)
TOLD: dict[str, Any] = {
    "torch": "2.13.0",
    "device": "cuda",
    "device_name": "NVIDIA H200",
    "measured_at": MEASURED_AT,
    "dtype": "float16",
    "task": "inference",
    "strategy": "eager",
}
ON_CPU: dict[str, Any] = {"device": "cpu", "device_name": "AMD EPYC 9654"}


def of_each(invented: Any, public: Any, folder: Path = SAMPLES) -> list[Any]:
    """Parameters of a test: the invented samples with what they say, and the public ones where they are."""
    found = [pytest.param(folder, public, id="public")] if folder.is_dir() else []
    return [pytest.param(INVENTED, invented, id="invented"), *found]


def read(path: Path, *, format: str = "auto", **told: Any) -> list[Trial]:
    """Every trial of `path`, with exactly the facts told."""
    options = ImportOptions(**told)
    files = recognised_files(partial(input_files, path), format, options.notes)
    return list(all_trials(files, options))


def read_told(path: Path, *, format: str = "auto", **told: Any) -> list[Trial]:
    """Every trial of `path`, with everything told that a format may fail to say."""
    return read(path, format=format, **(TOLD | told))


def by_name(trials: list[Trial]) -> dict[tuple[str, str], Trial]:
    """Trials by workload and strategy, each of which must be there once."""
    named = {(trial.workload.name, trial.strategy.name): trial for trial in trials}
    assert len(named) == len(trials)
    return named
