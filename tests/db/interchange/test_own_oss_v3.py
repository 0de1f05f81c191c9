"""Our own OSS v3 export comes back equal in what the format holds, and adds nothing to what is stored."""

from pathlib import Path

import pytest

from compilewatch.db.engine.session import Database, open_database
from compilewatch.db.interchange.read.importing import import_paths
from compilewatch.db.interchange.write.exporting import export
from compilewatch.db.queries.filters import Filters
from compilewatch.db.queries.trials import trial_records
from compilewatch.db.records.trial import Trial
from compilewatch.db.store.trials import save_trials
from tests.builders import MS, make_build, make_imported, make_trial, make_workload


def trials() -> list[Trial]:
    return [
        make_trial(latency_ns=8 * MS, build=make_build(driver="570.1", triton="3.4", python="3.12.1")),
        make_trial(latency_ns=8 * MS, build=make_build(driver="580.2", triton="3.4", python="3.12.1")),
        make_trial(strategy="eager", suite=None, label=None),
        make_trial(failure="out_of_memory"),
        make_trial(workload=make_workload(version="0ther")),
        make_trial(workload=make_workload("w", shape={"sequence_length": 512})),
        make_trial(workload=make_workload("w", shape={"sequence_length": 0, "time": -3})),
        make_imported(),
    ]


def written(database: Database, path: Path) -> Path:
    export(database, Filters(), format="oss-v3", output=path)
    return path


def by_id(database: Database) -> dict[str, Trial]:
    return {trial.trial_id: trial for trial in trial_records(database)}


def test_it_comes_back_equal_and_adds_nothing_twice(database: Database, tmp_path: Path) -> None:
    save_trials(database, trials())
    path = written(database, tmp_path / "first.json")
    before = by_id(database)
    with open_database(f"sqlite:///{tmp_path}/copy.db", migrate=True) as copy:
        assert import_paths(copy, [path]).new == len(before)
        back = by_id(copy)
        again = import_paths(copy, [path, written(copy, tmp_path / "second.json")])
        assert (again.new, again.known, again.errors) == (0, 2 * len(before), ())
        assert by_id(copy) == back
    for trial_id, trial in before.items():
        other = back[trial_id]
        for name in ("run_id", "started_at", "suite", "label", "strategy", "machine", "build", "status"):
            assert getattr(other, name) == getattr(trial, name), name
        assert other.workload == trial.workload.model_copy(update={"version": other.workload.version})
        assert trial.workload.version in other.workload.version
        if trial.failure is not None and other.failure is not None:
            assert (other.failure.kind, other.failure.message) == (trial.failure.kind, trial.failure.message)
        if trial.memory is not None and trial.failure is None and other.memory is not None:
            peaks = ("peak_bytes", "control_peak_bytes")
            assert all(getattr(other.memory, name) == getattr(trial.memory, name) for name in peaks)
            assert other.memory.peak_with_compile_bytes is None
    here = import_paths(database, [path])
    assert (here.new, here.known, here.errors) == (0, len(before), ())
    assert by_id(database) == before


@pytest.mark.parametrize(
    "damage", [("570.1", "\\u0000"), ('\\"workload\\"', '\\"other\\"'), ("inference", "none")]
)
def test_a_setting_that_is_none_is_refused(
    sqlite_database: Database, tmp_path: Path, damage: tuple[str, str]
) -> None:
    save_trials(sqlite_database, trials()[:1])
    path = written(sqlite_database, tmp_path / "damaged.json")
    path.write_text(path.read_text().replace(*damage))
    with open_database(f"sqlite:///{tmp_path}/copy.db", migrate=True) as copy:
        report = import_paths(copy, [path])
    assert report.new == 0
    assert report.errors[0].message.startswith(str(path))
