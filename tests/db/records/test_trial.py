"""Records: what one may hold, its bytes, and its place in the tables."""

import io
import json
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from compilewatch.db.engine.session import Database
from compilewatch.db.engine.tables import TRIAL
from compilewatch.db.errors import ConflictError, RecordError
from compilewatch.db.interchange.exporting import export
from compilewatch.db.interchange.importing import import_paths
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import trial_record, trials_frame
from compilewatch.db.records.trial import (
    CONTROL_TIMES,
    DEVICE_TIMES,
    Code,
    Trial,
    compile_threads_of,
    parse_trial,
)
from compilewatch.db.service.integrity import find_damage
from compilewatch.db.store.removal import compact_samples
from compilewatch.db.store.trial_rows import trial_rows
from compilewatch.db.store.trials import save_trial, save_trials
from tests.builders import START, make_imported, make_timed, make_timing, make_trial

H100 = Path(__file__).parents[3] / "docs" / "measured" / "h100"


def cpu_trial(**overrides: Any) -> Trial:
    """Samples, and how they were timed."""
    fields = {"timing": make_timing("host", headline="samples"), "machine": "cpu-box"}
    return make_trial(**(fields | overrides))


def lines(database: Database) -> list[bytes]:
    output = io.BytesIO()
    export(database, Filters(), format="jsonl", output=output)
    return output.getvalue().splitlines()


def test_the_times_of_a_gpu_come_back_as_they_were(database: Database) -> None:
    trials = [make_timed(), make_timed(control_device_ns=None, headline="wall_pipelined"), cpu_trial()]
    save_trials(database, trials)
    for trial in trials:
        assert trial_record(database, trial.trial_id) == trial
        assert save_trial(database, Trial.model_validate_json(trial.to_json())) is False
    assert [parse_trial(line) for line in lines(database)] == trials
    assert find_damage(database) == []


def test_a_record_holds_the_code(sqlite_database: Database) -> None:
    code = {"commit": "0123456789abcdef" * 2 + "01234567", "dirty": True, "source_hash": "0" * 16}
    trials = [make_timed(code=code), cpu_trial(code={}), make_timed()]
    save_trials(sqlite_database, trials)
    assert [parse_trial(line) for line in lines(sqlite_database)] == trials
    frame = trials_frame(sqlite_database).set_index("trial_id")
    row, without = frame.loc[trials[0].trial_id], frame.loc[trials[1].trial_id]
    assert (row["code"], row["code_commit"], row["code_hash"]) == (
        "0123456-dirty+0000000",
        code["commit"],
        "0" * 16,
    )
    assert without[["code", "code_commit", "code_dirty", "code_hash"]].isna().all()
    other = trials[0].model_copy(update={"code": Code(**code | {"source_hash": "1" * 16})})
    with pytest.raises(ConflictError, match="different content in code"):
        save_trial(sqlite_database, other)


@pytest.mark.parametrize(
    "file", ["smoke-5-trials.jsonl", "standard-part.jsonl", "upgrade-2.11-2.13.jsonl", "profiles.jsonl"]
)
def test_a_measured_record_stays_as_it_was(sqlite_database: Database, file: str) -> None:
    """Byte by byte, through the database and back; and it is known when it comes again."""
    written = (H100 / file).read_bytes().splitlines()
    first = import_paths(sqlite_database, [H100 / file])
    assert first.new == len(written)
    assert sorted(lines(sqlite_database)) == sorted(written)
    again = import_paths(sqlite_database, [H100 / file])
    assert (again.new, sum(found.known for found in again.files)) == (0, len(written))


def test_the_content_is_the_one_that_earlier_releases_stored() -> None:
    """As the release before the four times of a GPU computed it."""
    trial = make_trial(trial_id="one", run_id="run")
    assert trial_rows(trial).row["content_hash"] == CONTENT


CONTENT = "7f774b90bfacbca20caa2a6cd9d298c3"


def damaged() -> Iterator[tuple[dict[str, Any], str]]:
    """Changes to a record, and what is wrong with it then."""
    gpu, first, cpu = (json.loads(each.to_json()) for each in (make_timed(), make_trial(), cpu_trial()))
    timing = gpu["timing"]
    yield first | {"device_ns": [1]}, "device_ns needs a timing"
    yield first | {"timing": timing}, "samples_ns must be empty"
    yield gpu | {"host_samples_ns": [1]}, "host_samples_ns must be empty"
    yield cpu | {"control_host_samples_ns": [1]}, "host_samples_ns must be empty"
    yield gpu | {"samples_ns": [1]}, "samples_ns must be empty"
    yield gpu | {"wall_sync_ns": []}, "needs wall_sync_ns or summary"
    yield gpu | {"timing": None, "samples_ns": [1]}, "device_ns needs a timing"
    yield cpu | {"issue_ns": [1]}, "issue_ns needs a timing"
    yield gpu | {"schema": "compilewatch.trial/2"}, "schema must be 'compilewatch.trial/1', not"
    code = {"commit": "a" * 40, "dirty": False, "source_hash": "b" * 16}
    yield gpu | {"code": code | {"commit": "HEAD"}}, "commit"
    yield gpu | {"code": code | {"source_hash": "b" * 15}}, "source_hash"
    yield gpu | {"device_ns": [1.5]}, "device_ns"
    yield gpu | {"control_issue_ns": [-1]}, "control_issue_ns"
    yield gpu | {"timing": timing | {"headline": "device"}}, "headline"
    yield gpu | {"timing": timing | {"mood": 1}}, "mood"
    side = timing["side"]
    yield gpu | {"timing": timing | {"side": side | {"method": "guessed"}}}, "method"
    yield gpu | {"timing": timing | {"side": side | {"sm_clock_mhz": [1, 2]}}}, "sm_clock_mhz"
    gate = side["gate"] | {"kind": "sleep"}
    yield gpu | {"timing": timing | {"side": side | {"gate": gate}}}, "kind"


@pytest.mark.parametrize(("record", "problem"), [*damaged()])
def test_what_is_no_record_is_refused(record: dict[str, Any], problem: str) -> None:
    line = json.dumps(record).encode()
    with pytest.raises(RecordError, match=problem):
        parse_trial(line)


def test_the_row_holds_the_medians_and_the_headline_is_the_latency(database: Database) -> None:
    sync, pipelined = make_timed(seed=1), make_timed(seed=2, headline="wall_pipelined", method="cupti")
    first, host, published = make_trial(), cpu_trial(), make_imported()
    save_trials(database, [sync, pipelined, first, host, published])
    frame = trials_frame(database).set_index("trial_id")
    for trial, headline, method in (
        (sync, "wall_sync_ns", "gated"),
        (pipelined, "wall_pipelined_ns", "cupti"),
    ):
        row = frame.loc[trial.trial_id]
        assert (row["record_version"], row["timing_method"]) == (1, method)
        assert row["control_timing_method"] == method
        for name in (*DEVICE_TIMES, *CONTROL_TIMES):
            assert row[name] == statistics.median(getattr(trial, name))
        assert row["latency_ns"] == row[headline]
        assert row["control_latency_ns"] == row[f"control_{headline}"]
        assert row["samples"] == 12
    methods = frame["timing_method"].to_dict()
    assert methods[first.trial_id] == "ungated"
    assert methods[host.trial_id] == "host"
    assert frame["timing_method"].isna()[published.trial_id]
    assert frame.loc[first.trial_id, [*DEVICE_TIMES, *CONTROL_TIMES]].isna().all()


def test_a_cpu_was_timed_by_the_host_before_it_was_recorded(sqlite_database: Database) -> None:
    machine = make_trial().machine.model_copy(update={"device": "cpu"})
    save_trials(sqlite_database, [make_trial(machine=machine), make_trial(failure="timeout")])
    assert sorted(trials_frame(sqlite_database)["timing_method"].fillna("none")) == ["host", "none"]


def test_forgotten_samples_leave_the_medians(database: Database) -> None:
    save_trial(database, make_timed())
    before = trials_frame(database)
    assert compact_samples(database, START.replace(year=2100)) == 1
    assert trials_frame(database).equals(before)
    assert find_damage(database) == []
    (line,) = lines(database)
    compacted = parse_trial(line)
    assert compacted.device_ns == []
    assert compacted.timing is not None
    with database.read() as connection:
        stored = connection.scalar(select(TRIAL.c.latency_ns))
    assert compacted.summary.latency_ns == round(stored or 0)


def test_what_was_compiled_before_the_number_was_recorded_was_compiled_with_one_thread() -> None:
    old = make_trial()
    assert compile_threads_of(old) == 1
    facts = old.compiler.model_copy(update={"compile_threads": 16, "compile_pool_size": 17})
    new = make_trial(compiler=facts)
    assert compile_threads_of(new) == 16
    untold = facts.model_copy(update={"compile_threads": None})
    assert compile_threads_of(new.model_copy(update={"compiler": untold})) is None
    assert compile_threads_of(make_trial(strategy="eager")) is None
    assert compile_threads_of(make_imported()) is None
