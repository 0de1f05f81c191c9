"""Imported results beside measured ones of the same names: never in one series, never judged together."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from compilewatch.db.engine.session import Database, open_database
from compilewatch.db.interchange.files.options import ImportOptions
from compilewatch.db.interchange.formats import JOB_READERS, Format
from compilewatch.db.interchange.importing import import_paths
from compilewatch.db.judge.compare.upgrade import compare_builds
from compilewatch.db.metrics.cases import summarize_cases
from compilewatch.db.metrics.trend import series_points
from compilewatch.db.queries.facets import runs
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import trial_records, trials_frame
from compilewatch.db.records.trial import Strategy, Workload
from compilewatch.db.records.vocabulary import Verdict
from compilewatch.db.store.trials import save_trials
from compilewatch.db.verdicts.sides import resolve_side
from tests.builders import START, make_trial
from tests.db.interchange.reading import TOLD, read
from tests.db.interchange.tiny_files import TINY

FOREIGN = [format for format in Format if format is not Format.TRIAL]


def source_of(format: Format) -> str:
    """The name under which a format's results are known: that of the format, and one name for all jobs."""
    return "job" if format in {*JOB_READERS, Format.VLLM_STARTUP} else str(format)


@pytest.fixture(params=FOREIGN, scope="module")
def format(request: pytest.FixtureRequest) -> Format:
    found: Format = request.param
    return found


@pytest.fixture(scope="module")
def mixed(
    _sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory, format: Format
) -> Iterator[Database]:
    """One format's file, and a measured trial of every case in it: same names, machine and build. To read."""
    folder = tmp_path_factory.mktemp(str(format))
    for name, text in TINY[format].items():
        (folder / name).write_text(text)
    path = folder / next(iter(TINY[format]))
    shutil.copyfile(_sqlite_template, folder / "mixed.db")
    with open_database(f"sqlite:///{folder / 'mixed.db'}") as database:
        save_trials(database, read(path, **TOLD))
        measured = [
            make_trial(
                workload=Workload(**(trial.workload.model_dump() | {"version": "b41c9e"})),
                strategy=Strategy(**(trial.strategy.model_dump() | {"cache": "cold"})),
                machine=trial.machine,
                build=trial.build,
                run_id="measured-run",
                trial_id=f"measured-{number}",
                started_at=START,
            )
            for number, trial in enumerate(trial_records(database, Filters()))
        ]
        save_trials(database, measured)
        yield database


def test_no_series_holds_both(mixed: Database) -> None:
    frame = trials_frame(mixed)
    assert set(frame["source_kind"]) == {"imported", "measured"}
    assert set(frame.groupby("series_id")["source_kind"].nunique()) == {1}
    for summed in (summarize_cases(frame), series_points(frame)):
        assert set(summed.groupby(["workload_id", "strategy_id"])["source_kind"].nunique()) == {1}
        assert set(summed["source_kind"]) == {"imported", "measured"}


def test_both_are_told_by_source_in_frames_and_runs(mixed: Database, format: Format) -> None:
    cases = summarize_cases(trials_frame(mixed))
    assert set(cases.loc[cases["source_kind"] == "imported", "source_name"]) == {source_of(format)}
    found = runs(mixed).set_index("run_id")["source"]
    assert found["measured-run"] == "measured"
    assert set(found.drop("measured-run")) == {source_of(format)}


def test_a_comparison_matches_no_imported_case_with_a_measured_one(mixed: Database) -> None:
    frame = trials_frame(mixed)
    imported = next(run for run in frame["run_id"] if run != "measured-run")
    base, head = (resolve_side(run, mixed) for run in (imported, "measured-run"))
    verdict = compare_builds(frame, base, head)
    assert verdict.matched == 0
    assert {case.verdict for case in verdict.left_out} <= {Verdict.NOT_COMPARABLE, Verdict.MISSING}


def _one_case(folder: Path, name: str) -> list[Path]:
    """One case as a dynamo CSV and as OSS v3 JSON, with equal fields."""
    folder.mkdir()
    table = folder / name
    table.write_text("dev,name,batch_size,speedup,abs_latency\ncpu,m,8,1.5,2.25\n")
    record = {
        "timestamp": 1_770_000_000,
        "runners": [{"name": "vm", "cpu_info": "Xeon"}],
        "benchmark": {
            "name": "TorchInductor",
            "mode": "inference",
            "dtype": "float32",
            "extra_info": {"device": "cpu", "batch_size": 8},
        },
        "model": {"name": "m", "type": "OSS model", "backend": "inductor", "origins": ["huggingface"]},
        "dependencies": {"pytorch": {"version": "2.13.0"}},
        "metric": {"name": "abs_latency", "benchmark_values": [2.25]},
    }
    other = folder / "records.json"
    other.write_text(json.dumps(record) + "\n")
    return [table, other]


def test_two_formats_are_never_one_series_and_files_of_one_are(
    sqlite_database: Database, tmp_path: Path
) -> None:
    name = "inductor_huggingface_float32_inference_cpu_performance.csv"
    told = ImportOptions(torch="2.13.0", device_name="Xeon", machine="vm")
    for day in (20, 21):
        options = replace(told, measured_at=datetime(2026, 11, day, tzinfo=UTC))
        paths = _one_case(tmp_path / str(day), name)
        assert import_paths(sqlite_database, paths, options=options).errors == ()
    frame = trials_frame(sqlite_database)
    assert set(frame.groupby("workload_id")["source_name"].nunique()) == {1}
    of_format = frame.groupby("source_name")
    assert of_format.size().to_dict() == {"dynamo-csv": 2, "oss-v3": 1}
    assert of_format["workload_id"].nunique().to_dict() == {"dynamo-csv": 1, "oss-v3": 1}
    assert of_format["series_id"].nunique()["dynamo-csv"] == 1
