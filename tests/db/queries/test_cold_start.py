"""The newest start of each job, on both databases."""

from __future__ import annotations

from pathlib import Path

from db.engine.session import Database
from db.interchange.read.importing import import_paths
from db.queries.cases.cold_start import cold_starts, newest_job_trials
from db.store.trials import save_trials
from tests.builders import make_history
from tests.db.interchange.trace_logs import whole_recording


def test_the_newest_run_of_each_job_and_nothing_of_the_benchmark(database: Database, tmp_path: Path) -> None:
    save_trials(database, make_history(workloads=("bert",), strategies=("eager", "default")))
    assert newest_job_trials(database, 10).empty
    starts = [("ranker", 0.0), ("ranker", 900.0), ("reranker", 300.0)]
    for number, (job, begin_s) in enumerate(starts):
        (tmp_path / f"compilewatch_job_{number}.jsonl").write_text(whole_recording(job=job, begin_s=begin_s))
    assert import_paths(database, [tmp_path]).errors == ()
    newest = newest_job_trials(database, 10)
    assert sorted(newest["workload"]) == ["ranker", "reranker"]
    assert newest.set_index("workload")["started_at"].diff().dt.total_seconds().abs().max() == 600
    assert list(newest_job_trials(database, 1)["workload"]) == ["ranker"]
    phases = cold_starts(database, newest["trial_id"].tolist())
    # By hand: 18 s to the first step, of which 0.5, 2 and 8 have a name.
    assert {sum(each) for each in phases.values()} == {18_000_000_000}
