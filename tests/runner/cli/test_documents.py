"""The shapes that other programs rely on: keys of `run --json`, and the table a person reads."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

import pytest
from rich.console import Console

from compilewatch.db.columns.column import SummaryKind
from compilewatch.db.columns.trial import TRIAL
from compilewatch.db.engine.session import Database
from compilewatch.db.metrics.break_even import FIRST_LOOK
from compilewatch.db.metrics.cases import summarize_cases
from compilewatch.db.queries.case_parts import notes_of_cases
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import trials_frame
from compilewatch.db.records.trial import FailureKind, Trial
from compilewatch.db.store.trials import save_trials
from compilewatch.runner.output.documents import print_document, run_document
from compilewatch.runner.output.tables import answer_lines, result_parts, result_table
from compilewatch.runner.plan.plan import NotApplicable
from tests.builders import MS, make_history

ROW_KEYS = """
first_look workload strategy build_id status reason failure latency_ns control_latency_ns
throughput_per_s control_throughput_per_s item timing_method bound device_ns issue_ns wall_sync_ns
wall_pipelined_ns control_device_ns control_issue_ns control_wall_sync_ns control_wall_pipelined_ns
device_speedup issue_speedup wall_sync_speedup wall_pipelined_speedup speedup speedup_interval
compile_cost_ns break_even_steps break_even_interval peak_memory_bytes graph_breaks recompiles
nothing_compiled numerics trials failed_trials verdict notes
"""
UNUSED = NotApplicable(workload="bert-base", strategy="reduce-overhead", reason="no CUDA graphs here")


def _document(database: Database, trials: Sequence[Trial], **verdicts: str) -> dict[str, Any]:
    save_trials(database, trials)
    cases = summarize_cases(trials_frame(database, Filters()))
    judged = {("bert-base", strategy): verdict for strategy, verdict in verdicts.items()}
    failures = {
        (str(row["build_id"]), str(row["workload"]), str(row["strategy"])): {
            "kind": "out_of_memory",
            "message": "m",
        }
        for row in cases.to_dict("records")
        if row["failed_trials"]
    }
    notes = notes_of_cases(database, Filters())
    return run_document(["R1"], {"id": "m"}, [{"id": "b"}], cases, [UNUSED], failures, judged, notes)


def test_every_row_has_every_key(sqlite_database: Database, capsys: pytest.CaptureFixture[str]) -> None:
    history = make_history(workloads=("bert-base",), builds=("2.13.0",))
    print_document(_document(sqlite_database, history, default="improved"))
    document = json.loads(capsys.readouterr().out)
    assert set(document) == {"schema", "trials_of", "run_id", "runs", "machine", "build", "builds", "rows"}
    averaged = {each.column for each in TRIAL if each.summary is SummaryKind.MEAN}
    assert all(set(row) == set(ROW_KEYS.split()) | averaged for row in document["rows"])
    rows = {row["strategy"]: row for row in document["rows"]}
    assert rows["default"]["verdict"] == "improved"
    assert rows["default"]["trials"] == 3
    assert any("recompile" in note for note in rows["default"]["notes"])
    assert rows["reduce-overhead"]["status"] == "not_applicable"
    assert rows["reduce-overhead"]["reason"] == "no CUDA graphs here"


def test_slower_is_never_and_not_a_number(sqlite_database: Database) -> None:
    slower = make_history(
        workloads=("bert-base",),
        builds=("2.13.0",),
        between_trials=0.001,
        latency_ns=lambda _workload, strategy, _run: (12 if strategy == "eager" else 15) * MS,
    )
    rows = {row["strategy"]: row for row in _document(sqlite_database, slower)["rows"]}
    assert rows["default"]["break_even_steps"] == "never"
    assert rows["default"]["break_even_interval"] == ["never", "never"]


def test_a_failed_case_has_null_figures_and_its_reason(sqlite_database: Database) -> None:
    failing = make_history(
        workloads=("bert-base",), builds=("2.13.0",), failures=[("bert-base", "default", 0)]
    )
    row = {row["strategy"]: row for row in _document(sqlite_database, failing)["rows"]}["default"]
    assert row["status"] == "failed"
    assert row["failure"] == {"kind": FailureKind.OUT_OF_MEMORY.value, "message": "m"}
    assert (row["latency_ns"], row["speedup"], row["break_even_steps"]) == (None, None, None)
    assert (row["trials"], row["failed_trials"]) == (3, 3)


def _eager_at(milliseconds: float, spread: float = 0.01) -> list[dict[str, Any]]:
    """An eager case on its own, and a compiled one whose own eager took 2 ms."""
    shared = {
        "build_id": "b",
        "strategy_id": "s",
        "workload_id": "w",
        "workload": "mlp",
        "torch": "2.13.0",
        "counted_trials": 5,
    }
    shared |= {"trials": 5, "failed_trials": 0, "suspect_trials": 0, "wild_trials": 0}
    shared |= {"failure_kind": None, "first_look": False}
    shared |= {"nothing_compiled": False, "peak_bytes": None, "graph_breaks": 0, "compile_cost_ns": 1e9}
    shared |= {"break_even": "never", "break_even_interval": "never", "interval_method": "none"}
    shared |= {"items_per_iteration": 8.0, "batch_size": 8, "item": "row"}
    own = milliseconds * 1e6
    eager = {"strategy": "eager", "strategy_kind": "eager", "latency_ns": own, "speedup": 1.0}
    eager |= {"latency_low_ns": own * (1 - spread), "latency_high_ns": own * (1 + spread)}
    eager |= {"control_latency_ns": None, "control": "none"}
    eager |= {"throughput_per_s": 8e9 / own, "control_throughput_per_s": None}
    compiled = {"strategy": "default", "strategy_kind": "compiled", "latency_ns": 1.6e6, "speedup": 1.25}
    compiled |= {"latency_low_ns": None, "latency_high_ns": None}
    compiled |= {"control_latency_ns": 2e6, "control": "in_process"}
    compiled |= {"throughput_per_s": 5000.0, "control_throughput_per_s": 4000.0}
    return [shared | eager, shared | compiled]


@pytest.mark.parametrize(
    ("cold", "warm", "told"),
    [
        (
            {"break_even": "steps", "break_even_interval": "bounded", "break_even_steps": 46493},
            {"break_even": "steps", "break_even_interval": "open", "break_even_low": 6348},
            "mlp, this run, cold: default pays off from step 46,493 on; "
            "warm: not shown to pay off, default+warm at best after 6,300 steps.",
        ),
        (
            {"break_even": "steps", "break_even_interval": "none", "break_even_steps": 2507694},
            None,
            "mlp, this run, cold: not shown to pay off, default perhaps from step 2,507,694 on: "
            "too few trials for an interval.",
        ),
        (
            {"break_even": "never", "break_even_interval": "never"},
            None,
            "mlp, this run, cold: default never pays off.",
        ),
        (
            {"break_even": "unknown", "break_even_interval": "none", "break_even_reason": FIRST_LOOK},
            None,
            f"mlp, this run, cold: unknown whether it pays off, {FIRST_LOOK}.",
        ),
    ],
)
def test_a_run_ends_with_whether_compiling_pays(
    cold: dict[str, Any], warm: dict[str, Any] | None, told: str
) -> None:
    eager, default = _eager_at(2)
    rows = [eager, default | {"cache": "cold"} | cold]
    rows += [default | {"strategy": "default+warm", "cache": "warm"} | warm] if warm else []
    assert answer_lines(rows) == [told]


def test_the_table_fits_a_narrow_terminal_and_cuts_nothing() -> None:
    """As the suite of a laptop has it: names, figures and intervals of the usual length."""
    eager, default = _eager_at(2.4)
    figures = {
        "latency_ns": 392e3,
        "control_latency_ns": 559e3,
        "speedup": 1.35,
        "strategy": "default+dynamic",
    }
    figures |= {"speedup_low": 1.31, "speedup_high": 1.39, "interval_method": "t", "suspect_trials": 1}
    figures |= {"break_even": "steps", "break_even_interval": "bounded", "break_even_steps": 46_493}
    rows = [each | {"workload": "elementwise"} for each in (eager, default | figures)]
    verdicts = {("elementwise", "default+dynamic"): "improved"}
    told = {}
    for columns in (100, 190):
        out = io.StringIO()
        table, below = result_parts(rows, [], verdicts, builds={}, notes={}, columns=columns)
        Console(file=out, width=columns, color_system=None).print(table)
        told[columns] = out.getvalue().splitlines() + below
        assert max(map(len, out.getvalue().splitlines())) <= columns
        assert "…" not in out.getvalue()
    (row,) = (line for line in told[100] if line.split()[:2] == ["elementwise", "default+dynamic"])
    for cell in ("392 µs", "559 µs", "1.35x [1.31x to 1.39x]", "1.00 s", "46,493 steps"):
        assert cell in row
    said = " ".join(told[100])
    assert "improved against base" in said
    assert "1 suspect" in said
    assert "5 trials a case" in said
    assert any("row/s" in line or "rows/s" in line for line in told[190])


def _lines(rows: list[dict[str, Any]]) -> tuple[str, str]:
    out = io.StringIO()
    Console(file=out, width=230, color_system=None).print(result_table(rows, [], {}, builds={}, notes={}))
    eager, compiled = (line for line in out.getvalue().splitlines() if " mlp " in line)
    return eager, compiled


@pytest.mark.parametrize(
    ("milliseconds", "spread", "told"),
    [
        (2.4, 0.01, "eager on its own is 20% above eager here"),
        (1.8, 0.01, "eager on its own is 10% below eager here"),
        (2.4, 0.2, None),  # within the noise of eager processes
        (2.02, 0.01, None),
    ],
)
def test_eager_processes_that_disagree_by_more_than_the_noise_are_said(
    milliseconds: float, spread: float, told: str | None
) -> None:
    eager, compiled = _lines(_eager_at(milliseconds, spread))
    assert ("on its own" in compiled) is (told is not None)
    assert told is None or told in compiled
    assert "on its own" not in eager


def test_one_eager_process_has_no_noise_to_disagree_by() -> None:
    eager, compiled = _eager_at(2.4)
    bare = eager | {"latency_low_ns": None, "latency_high_ns": None}
    assert "on its own" not in "".join(_lines([bare, compiled]))
