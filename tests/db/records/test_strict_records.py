"""Our own format is read as strictly as any other: a number is a number, and nothing takes no time."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import RecordError
from compilewatch.db.interchange.files.options import ImportOptions
from compilewatch.db.interchange.importing import import_paths
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import trial_records
from compilewatch.db.records.trial import parse_trial
from tests.builders import make_machine, make_trial

WHOLE: dict[str, Any] = json.loads(
    make_trial(machine=make_machine(threads=4, device_count=1, cpu_count=8)).to_json()
)
NO_INTEGERS = ("12", True, 12.0, 1e3, [12], {"ns": 12}, None, "", " 12", "0x1f", -1)


def _with(path: str, value: object) -> bytes:
    record = copy.deepcopy(WHOLE)
    *parents, last = path.split(".")
    place = record
    for name in parents:
        place = place[name]
    place[last] = value
    return json.dumps(record).encode()


def test_the_record_that_is_bent_is_one() -> None:
    assert parse_trial(json.dumps(WHOLE))
    assert parse_trial(_with("samples_ns", [1]))
    assert parse_trial(_with("workload.items_per_iteration", 2))


@pytest.mark.parametrize("value", [*([value] for value in NO_INTEGERS), [0], [5, 0], [5, "5"], [True]])
@pytest.mark.parametrize(
    "field", ["samples_ns", "control_samples_ns", "warmup_ns", "host_samples_ns", "control_host_samples_ns"]
)
def test_samples_are_whole_nanoseconds_above_zero(field: str, value: object) -> None:
    with pytest.raises(RecordError, match=field):
        parse_trial(_with(field, value))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("workload.batch_size", value) for value in ("3", True, 3.0, 0)),
        *(("machine.threads", value) for value in ("3", True, 3.0, 0)),
        *(("machine.device_count", value) for value in ("3", True, 3.0, -1)),
        *(("workload.items_per_iteration", value) for value in ("3", True, 0, -1)),
        *(("strategy.fullgraph", value) for value in ("yes", "true", 1, 0)),
        *(("strategy.dynamic", value) for value in ("yes", 1)),
        *(("started_at", value) for value in (5, 5.5, "5", "1700000000", "2026", True)),
    ],
)
def test_other_numbers_flags_and_moments_are_what_they_are(field: str, value: object) -> None:
    with pytest.raises(RecordError, match=field):
        parse_trial(_with(field, value))


def test_a_file_is_refused_by_the_quick_reader_too(tmp_path: Path, sqlite_database: Database) -> None:
    """Whichever of the two readers a line meets, it is refused with its number, and nothing comes in."""
    for value in (["12"], [True], [12.0], [0], [3, 0, 5]):
        file = tmp_path / "foreign.jsonl"
        file.write_bytes(json.dumps(WHOLE).encode() + b"\n" + _with("samples_ns", value) + b"\n")
        report = import_paths(sqlite_database, [file], options=ImportOptions())
        (error,) = report.errors
        assert "line 2: samples_ns" in error.message
        assert list(trial_records(sqlite_database, Filters())) == []
