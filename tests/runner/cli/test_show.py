"""`compilewatch show` explains a trial: sampling, memory, profile, and where its trace lies."""

from __future__ import annotations

from pathlib import Path

import pytest

from compilewatch.db.engine.session import open_database
from compilewatch.db.records.trial import ColdStart, Summary, parse_trial
from compilewatch.db.store.trials import save_trial
from compilewatch.runner.cli.stored.show import facts_of, trace_texts
from tests.builders import MS, make_imported, make_machine, make_trial
from tests.explained_parts import make_profile, make_sampling, make_trace
from tests.runner.terminal import in_this_process

H100 = Path(__file__).parents[3] / "docs" / "measured" / "h100"
TRIAL = make_trial(
    trial_id="T1",
    profile=make_profile(),
    trace=make_trace(),
    sampling=make_sampling(),
    host_samples_ns=[9 * MS] * 10,
    control_host_samples_ns=[14 * MS] * 10,
)


def test_a_trace_is_a_path_only_where_it_lies(tmp_path: Path) -> None:
    (elsewhere,) = trace_texts(TRIAL, tmp_path)
    assert elsewhere == ("trace", "traces/T1 below the data directory of gpu-box-3, 2.00 MiB")
    (tmp_path / "traces" / "T1").mkdir(parents=True)
    here, report = trace_texts(TRIAL, tmp_path)
    assert here == ("trace", f"{tmp_path}/traces/T1, 2.00 MiB")
    assert report == ("  report", f"file://{tmp_path}/traces/T1/report/index.html")
    without = TRIAL.model_copy(update={"trace": make_trace(report=None)})
    assert "compilewatch[trace]" in trace_texts(without, tmp_path)[1][1]


@pytest.mark.parametrize("place", ["/etc", "../..", "traces/../..", "."])
def test_a_path_that_a_record_claims_is_text(tmp_path: Path, place: str) -> None:
    """A link to the report of a trace leads to that of this trial, and never to another file."""
    claimed = make_trace(directory=place, report="/etc/passwd")
    trial = TRIAL.model_copy(update={"trace": claimed})
    assert trace_texts(trial, tmp_path) == [
        ("trace", f"{place} below the data directory of gpu-box-3, 2.00 MiB")
    ]
    (tmp_path / "traces" / "T1").mkdir(parents=True)
    assert "/etc" not in str(trace_texts(trial, tmp_path))


@pytest.mark.parametrize("device", ["cuda", "cpu"])
def test_the_command_prints_all_of_it(tmp_path: Path, device: str) -> None:
    trial = TRIAL.model_copy(update={"machine": make_machine("box", device=device)})
    with open_database(f"sqlite:///{tmp_path / 'compilewatch.db'}", migrate=True) as database:
        save_trial(database, trial)
    shown = in_this_process("show", "T1", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    for part in ("412 launches per step became 61", "below the data directory of box", "median known to"):
        assert part in " ".join(shown.stdout.split())


@pytest.mark.parametrize("file", sorted(H100.glob("*.jsonl")), ids=lambda file: file.name)
def test_what_was_measured_on_an_h100_says_that_one_thread_compiled_it(file: Path) -> None:
    for line in file.read_text(encoding="utf-8").splitlines():
        trial = parse_trial(line)
        said = dict(facts_of(trial, Path())).get("compiled with")
        assert said == (None if trial.compiler is None else "1 thread")


def test_the_threads_and_processes_that_compiled_are_shown() -> None:
    facts = TRIAL.compiler
    assert facts is not None
    many = facts.model_copy(update={"compile_threads": 16, "compile_pool_size": 17})
    shown = facts_of(TRIAL.model_copy(update={"compiler": many}), Path())
    assert ("compiled with", "16 threads, 17 pool processes") in shown


def test_an_imported_summary_is_printed_with_its_n_and_the_figures_of_its_source(tmp_path: Path) -> None:
    stated = Summary(
        latency_ns=8 * MS, control_latency_ns=12 * MS, n=30, metrics={"compression_ratio": 0.912345678}
    )
    uncounted = Summary(latency_ns=8 * MS)
    with open_database(f"sqlite:///{tmp_path / 'compilewatch.db'}", migrate=True) as database:
        cost = ColdStart(until_steady_ns=37_662_211_000, calls_until_steady=0)
        save_trial(database, make_imported(trial_id="I1", summary=stated, cold_start=cost))
        save_trial(database, make_imported(trial_id="I2", summary=uncounted))
    shown = in_this_process("show", "I1", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    told = [" ".join(line.split()) for line in shown.stdout.splitlines()]
    for line in (
        *("latency 8.00 ms as stated, n = 30", "eager control 12.0 ms", "speedup 1.50x"),
        *("figures of the source in its own units", "compression_ratio 0.912345678"),
        "compile cost 37.7 s as stated",
    ):
        assert line in told, shown.stdout
    without = in_this_process("show", "I2", cwd=tmp_path).stdout
    assert "8.00 ms as stated, n unknown" in without
    assert "figures of the source" not in without
