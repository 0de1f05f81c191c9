"""A file of several batches: counted, stored and refused as a whole."""

from pathlib import Path

import pytest

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import ConflictError
from compilewatch.db.interchange.formats import Format
from compilewatch.db.interchange.importing import FIRST_ROWS, import_paths
from compilewatch.db.queries.data_version import data_version
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import trial_records
from compilewatch.db.records.trial import Trial
from compilewatch.db.store.trials import save_trials
from tests.builders import make_history, make_imported, make_trial

SIZE = 3


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compilewatch.db.store.trials.TrialWriter.save_all.__defaults__", (SIZE,))


def write(path: Path, some: list[Trial]) -> Path:
    path.write_text("".join(f"{trial.to_json()}\n" for trial in some), encoding="utf-8")
    return path


def some_of_everything() -> list[Trial]:
    history = make_history(
        workloads=("mlp",), builds=("2.12.0", "2.13.0"), failures=[("mlp", "default", 1)], samples=4
    )
    bare = make_trial(samples_ns=[], control_samples_ns=[], warmup_ns=[], failure="cancelled")
    return [*history, make_imported(), make_imported(ended_at=None), bare, make_trial(label="zwei\nµ")]


def stored(database: Database) -> dict[str, Trial]:
    return {trial.trial_id: trial for trial in trial_records(database, Filters())}


def test_trials_known_among_new_ones_are_counted_and_the_second_import_adds_nothing(
    database: Database, tmp_path: Path
) -> None:
    some = some_of_everything()
    known = {trial.trial_id: trial for trial in [*some[1::3], *some[6:9]]}
    path = write(tmp_path / "t.jsonl", [*some, *some[:4], some[-1], some[-1]])
    save_trials(database, known.values())
    report = import_paths(database, [path])
    assert (report.new, report.known) == (len(some) - len(known), len(known) + 6)
    assert (report.files[0].formats, report.files[0].first) == ((Format.TRIAL,), tuple(some[:FIRST_ROWS]))
    assert stored(database) == {trial.trial_id: trial for trial in some}
    version = data_version(database)
    again = import_paths(database, [path])
    assert (again.new, again.known, data_version(database)) == (0, len(some) + 6, version)
    assert stored(database) == {trial.trial_id: trial for trial in some}


@pytest.mark.parametrize("place", [1, SIZE, 2 * SIZE + 1])
@pytest.mark.parametrize("before", [True, False])
def test_another_content_for_a_known_id_is_a_conflict(
    database: Database, tmp_path: Path, place: int, before: bool
) -> None:
    """Known from the database, or from an earlier line of the same file or batch."""
    some = [make_trial(trial_id=f"t{n}") for n in range(3 * SIZE)]
    other = some[place].model_copy(update={"label": "other"})
    lines = [*some[:place], other, *some[place + 1 :]] if before else [*some[: place + 1], other, *some]
    save_trials(database, some[place : place + 1] * before)
    path = write(tmp_path / "t.jsonl", lines)
    (error,) = import_paths(database, [path]).errors
    assert isinstance(error, ConflictError)
    assert error.message.startswith(f"{path}: Trial t{place} of run ")
    assert "different content in label" in error.message
    assert len(stored(database)) == before


def test_the_same_content_under_another_hash_is_known(database: Database, tmp_path: Path) -> None:
    some = [make_trial(trial_id=f"t{n}") for n in range(5)]
    save_trials(database, some[4:])
    with database.write() as connection:
        connection.exec_driver_sql("UPDATE trial SET content_hash = 'of an earlier release'")
    report = import_paths(database, [write(tmp_path / "t.jsonl", some)])
    assert (report.new, report.known, report.errors) == (4, 1, ())
