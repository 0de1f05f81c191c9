"""Jobs on the command line: import of a folder, and a history that finds what production has lost."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from compilewatch.runner.cli.app import app
from compilewatch.runner.cli.front import exit_code_of
from tests.db.interchange.trace_logs import whole_log, whole_recording

NIGHTS = 24
DAY_S = 86_400
PLANTED = 1.10


def nightly(folder: Path, *, slower_from: int | None) -> Path:
    """A job of every night whose compilation scatters by 2 %, and takes 10 % longer from one night on."""
    folder.mkdir()
    generator = random.Random(7)
    for night in range(NIGHTS):
        factor = PLANTED if slower_from is not None and night >= slower_from else 1.0
        recording = whole_recording(
            compile_s=8.0 * factor * generator.gauss(1, 0.02), begin_s=night * DAY_S, job="ranker-train"
        )
        (folder / f"compilewatch_job_ranker_{night:02}.jsonl").write_text(recording)
    return folder


def history(database: str, metric: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, object]]:
    case = ["--workload", "ranker-train", "--strategy", "compiled+cold", "--metric", metric]
    code = exit_code_of(app, ["history", *case, "--json", "--db", database])
    return code, json.loads(capsys.readouterr().out)


def test_time_to_first_result_and_cpu_time_have_histories(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database = f"sqlite:///{tmp_path}/history.db"
    exit_code_of(app, ["import", str(nightly(tmp_path / "jobs", slower_from=14)), "--db", database])
    capsys.readouterr()
    # Of 18 s until the first result 8 s are the compilation, which takes a tenth longer.
    code, _ = history(database, "time_to_first_result", capsys)
    assert code == 1
    code, steady = history(database, "cold_start_cpu", capsys)
    assert (code, steady["events"]) == (0, [])


@pytest.mark.parametrize("slower_from", [None, 14])
def test_a_planted_tenth_in_a_production_cold_start_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], slower_from: int | None
) -> None:
    database = f"sqlite:///{tmp_path}/history.db"
    folder = nightly(tmp_path / "jobs", slower_from=slower_from)
    assert exit_code_of(app, ["import", str(folder), "--db", database]) == 0
    assert f"brought {NIGHTS} trials" in capsys.readouterr().out
    code, told = history(database, "compile_cost", capsys)
    assert code == (0 if slower_from is None else 1), told
    changes = [event["change"] for event in told["events"]]  # type: ignore[index,attr-defined]
    if slower_from is None:
        assert changes == []
    else:
        (change,) = changes
        assert change == pytest.approx(PLANTED - 1, abs=0.03)


def test_a_folder_of_logs_and_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "2026-11-20"
    folder.mkdir()
    (folder / "dedicated_log_torch_trace_a.log").write_text(whole_log())
    database = f"sqlite:///{tmp_path}/history.db"
    assert exit_code_of(app, ["import", str(folder), "--job", "ranker", "--db", database]) == 0
    assert "(torch-trace) brought 1 trial." in capsys.readouterr().out
    assert exit_code_of(app, ["list", "runs", "--json", "--db", database]) == 0
    (run,) = json.loads(capsys.readouterr().out)["rows"]
    assert run["source"] == "job"


def test_what_was_left_out_of_a_log_is_told_on_standard_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "dedicated_log_torch_trace_a.log"
    path.write_text(whole_log()[:-20])
    database = f"sqlite:///{tmp_path}/history.db"
    assert exit_code_of(app, ["import", str(path), "--db", database]) == 0
    assert "ends inside a record, which was left out." in capsys.readouterr().err
