"""Exports read columns; to the byte they say what whole records say."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from db.engine.session import Database
from db.interchange.write import parquet
from db.interchange.write.exporting import export
from db.queries import trial_export
from db.queries.filters import Filters
from db.queries.trials import trial_records
from db.records.trial import CompilerEvent, CompilerFacts, Machine, Memory, Summary, Trial
from db.store.trials import save_trials
from db.tables.trials import METADATA
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
from tests.db.interchange.whole_records import as_csv, as_markdown, as_parquet
from tests.record_strategies import trials as random_trials

HOSTILE = '=cmd|"\\ä\'<b>`x`\r\n, \\u0000" & {}'
MARKDOWN_HEAD_LINES = 2
EXPECTED: dict[str, Callable[[Sequence[Trial]], bytes]] = {
    "csv": as_csv,
    "parquet": as_parquet,
    "markdown": as_markdown,
}


def exported(database: Database, format: str) -> bytes:
    output = io.BytesIO()
    export(database, Filters(), format=format, output=output)
    data = output.getvalue()
    return data if format != "markdown" else b"".join(data.splitlines(keepends=True)[MARKDOWN_HEAD_LINES:])


def check(database: Database) -> None:
    stored = list(trial_records(database))
    for format, expected in EXPECTED.items():
        assert exported(database, format) == expected(stored), format


def peculiar() -> list[Trial]:
    """Failures, nulls, summaries, hostile texts, and numbers that no float holds."""
    return [
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
        make_trial(
            schema="compilewatch.trial/2", timing=make_timing("host", headline="samples"), machine="cpu-box"
        ),
        make_imported(workload=make_workload(batch_size=None, items_per_iteration=None, shape={})),
    ]


def test_peculiar_trials(database: Database) -> None:
    save_trials(database, peculiar())
    check(database)


def test_more_trials_than_are_read_together(
    sqlite_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial_export, "_BATCH", 7)
    monkeypatch.setattr(parquet, "ROWS_PER_GROUP", 10)
    monkeypatch.setattr("tests.db.interchange.whole_records.ROWS_PER_GROUP", 10)
    save_trials(sqlite_database, [*peculiar(), *make_history(latency_ns=lambda *_: 8 * MS)])
    check(sqlite_database)


@settings(
    max_examples=20,
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),  # shrinking four records takes minutes
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(st.lists(random_trials(), min_size=1, max_size=4, unique_by=lambda trial: trial.trial_id))
def test_any_trials(sqlite_database: Database, trials: list[Trial]) -> None:
    with sqlite_database.write() as connection:
        for table in reversed(METADATA.sorted_tables):
            if table.name != "data_version":
                connection.execute(table.delete())
    save_trials(sqlite_database, [without_negative_zero(trial) for trial in trials])
    check(sqlite_database)


def without_negative_zero(trial: Trial) -> Trial:
    """SQLite keeps none in a column, so that what comes back is another case by its identity."""
    return Trial.model_validate_json(re.sub(r"(?<=[:\[,])-0\.0(?=[,}\]])", "0.0", trial.to_json()))


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
