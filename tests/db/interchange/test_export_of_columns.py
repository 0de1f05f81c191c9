"""Exports read columns: what they write of peculiar trials, in all formats and however many at once."""

from __future__ import annotations

import csv
import io
import json
from datetime import datetime
from typing import Any

import pyarrow.parquet as pq
import pytest

from compilewatch.db.cells import harmless
from compilewatch.db.engine.session import Database
from compilewatch.db.interchange import flat
from compilewatch.db.interchange.exporting import export
from compilewatch.db.interchange.flat import KINDS
from compilewatch.db.queries import records
from compilewatch.db.queries.selection import Filters
from compilewatch.db.records.trial import CompilerEvent, CompilerFacts, Machine, Memory, Summary, Trial
from compilewatch.db.store.trials import save_trials
from tests.approving import approve
from tests.builders import (
    MS,
    make_build,
    make_history,
    make_imported,
    make_machine,
    make_strategy,
    make_timed,
    make_timing,
    make_trial,
    make_workload,
)

HOSTILE = '=cmd|"\\ä\'<b>`x`\r\n, \\u0000" & {}'


def exported(database: Database, format: str) -> bytes:
    output = io.BytesIO()
    export(database, Filters(), format=format, output=output)
    return output.getvalue()


def peculiar() -> list[Trial]:
    """Failures, nulls, summaries, hostile texts, and numbers that no float holds."""
    made = [
        make_trial(spread=0),
        make_trial(strategy="eager"),
        make_trial(failure="out_of_memory"),
        make_trial(failure="timeout", suite=None, ended_at=None, numerics=None),
        make_trial(
            workload=make_workload(HOSTILE, shape={HOSTILE: -3, "version": 2}, item=None, dtype=HOSTILE),
            strategy=make_strategy(name=HOSTILE, mode=HOSTILE, backend=None),
            machine=make_machine(HOSTILE, device="cpu", device_name=HOSTILE),
            build=make_build(HOSTILE, label=HOSTILE, settings={HOSTILE: [1e23, None, HOSTILE]}),
            suite=HOSTILE,
            label=HOSTILE,
        ),
        make_trial(failure="crash", samples_ns=[3, 1, 2]),
        make_trial(machine=Machine(name="m", device="cpu", device_name="d"), memory=Memory()),
        make_trial(compiler=CompilerFacts(graph_breaks=[CompilerEvent(reason="r", count=2**63 - 1)] * 2)),
        make_trial(samples_ns=[1, 1], control_samples_ns=[2**63 - 1, 2**62]),
        make_imported(summary=Summary(metrics={"b": 1e23, "a": -0.0, HOSTILE: 1, "abs_latency": 3})),
        make_imported(summary=Summary(latency_ns=2**60 + 1, control_latency_ns=2**61 + 3, n=0)),
        make_imported(summary=Summary(latency_ns=5, throughput_per_s=7.5), samples_ns=[9, 8]),
        make_timed(),
        make_timed(headline="wall_pipelined", method="cupti", control_device_ns=None),
        make_trial(timing=make_timing("host", headline="samples"), machine="cpu-box"),
        make_imported(workload=make_workload(batch_size=None, items_per_iteration=None, shape={})),
    ]
    return [trial.model_copy(update={"trial_id": f"trial-{nth:02d}"}) for nth, trial in enumerate(made)]


def test_peculiar_trials_are_written_to_the_byte_as_approved(database: Database) -> None:
    save_trials(database, peculiar())
    texts = [repr(exported(database, format).decode()) for format in ("csv", "markdown")]
    approve("exports", "\n".join(text.replace("\\n", "\\n\n") for text in texts))


def test_parquet_holds_the_cells_of_csv(database: Database) -> None:
    save_trials(database, peculiar())
    rows = csv.DictReader(io.StringIO(exported(database, "csv").decode(), newline=""))
    table = pq.read_table(io.BytesIO(exported(database, "parquet"))).select(list(KINDS)).to_pylist()
    for cells, row in zip(rows, table, strict=True):
        for name, value in row.items():
            if KINDS[name] == "float" and value is not None:
                assert float(cells[name]) == value, name
            else:
                assert cells[name] == ("" if value is None else cell(name, value)), name


def cell(name: str, value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return harmless(value) if KINDS[name] == "text" else str(value)


@pytest.mark.parametrize("format", ["csv", "parquet", "markdown"])
def test_more_trials_than_are_read_together(
    sqlite_database: Database, monkeypatch: pytest.MonkeyPatch, format: str
) -> None:
    save_trials(sqlite_database, [*peculiar(), *make_history(latency_ns=lambda *_: 8 * MS)])
    whole = exported(sqlite_database, format)
    monkeypatch.setattr(records, "_BATCH", 7)
    monkeypatch.setattr(flat, "ROWS_PER_GROUP", 10)
    parts = exported(sqlite_database, format)
    if format == "parquet":
        assert pq.read_table(io.BytesIO(parts)).equals(pq.read_table(io.BytesIO(whole)))
    else:
        assert parts == whole


@pytest.mark.parametrize(
    ("known", "told"),
    [
        ({}, {"cpu_count": 16, "avail_mem_in_gb": 137, "gpu_count": 1, "avail_gpu_mem_in_gb": 151}),
        (
            {"device": "cpu"},
            {"cpu_count": 16, "avail_mem_in_gb": 137, "gpu_count": 0, "avail_gpu_mem_in_gb": 0},
        ),
        ({"cpu_count": None, "ram_bytes": None, "device_count": None, "device_memory_bytes": None}, {}),
    ],
)
def test_oss_v3_has_no_zeros_for_what_is_unknown_of_a_machine(
    sqlite_database: Database, known: dict[str, Any], told: dict[str, int]
) -> None:
    save_trials(sqlite_database, [make_trial(machine=make_machine(**known))])
    out = io.BytesIO()
    export(sqlite_database, Filters(), format="oss-v3", output=out)
    for line in out.getvalue().splitlines():
        (runner,) = json.loads(line)["runners"]
        assert {name: value for name, value in runner.items() if isinstance(value, int)} == told
