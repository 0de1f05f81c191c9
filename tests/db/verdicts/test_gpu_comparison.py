"""Stored trials of a GPU, from the record to the verdict: cycles, methods of timing, and the past."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compilewatch.dashboard.verdicts.tables import row_cells
from compilewatch.db import units
from compilewatch.db.engine.session import Database, open_database
from compilewatch.db.judge.compare.sides import Selection
from compilewatch.db.judge.results import Comparison, Row
from compilewatch.db.queries.trials import trials_frame
from compilewatch.db.records.trial import Trial, parse_trial
from compilewatch.db.records.vocabulary import CauseClass, Metric, Verdict
from compilewatch.db.store.trials import save_trials
from compilewatch.db.units import MISSING
from compilewatch.db.verdicts.gateway import compare
from compilewatch.runner.cli.app import app
from compilewatch.runner.cli.front import exit_code_of
from compilewatch.runner.output.comparison_text import markdown
from tests.builders import MS, START, make_timed, make_timing

UPGRADE = Path(__file__).parents[3] / "docs" / "measured" / "h100" / "upgrade-2.11-2.13.jsonl"
WORKLOADS = ("bert", *(f"calm-{number}" for number in range(6)))


def timed(workload: str, build: str, trial: int, *, run: str = "upgrade", **fields: Any) -> Trial:
    """A trial of an H100 that scatters by 0.3 % between processes; the builds take turns."""
    seed = [WORKLOADS.index(workload), trial, int(build.replace(".", "")), len(run)]
    generator = np.random.default_rng(seed)
    device, control = 5 * MS * np.exp(0.003 * generator.standard_normal(2))
    slower = fields.pop("slower", 1.0)
    return make_timed(
        device * slower,
        control_device_ns=control,
        workload=workload,
        build=build,
        run_id=run,
        trial_id=f"{run}-{workload}-{build}-{trial}",
        started_at=fields.pop("started_at", START) + timedelta(minutes=2 * trial + (build == "2.13.0")),
        seed=sum(seed),
        spread=0.001,
        **fields,
    )


def side(torch: str, database: Database, **runs: Any) -> Selection:
    frame = trials_frame(database)
    ids = sorted(set(frame.loc[frame["torch"] == torch, "build_id"]))
    return Selection(name=torch, build_ids=tuple(ids), **runs)


def judged(database: Database, trials: Iterator[Trial] | list[Trial]) -> Comparison:
    save_trials(database, list(trials))
    return compare(database, side("2.12.0", database), side("2.13.0", database))


def row_of(comparison: Comparison, metric: Metric) -> Row:
    (found,) = [row for row in comparison.rows if row.workload == "bert" and row.metric is metric]
    return found


def with_clock(mhz: float, *, control: float = 1980.0) -> Any:
    """Timing of both sides, compiled at this median SM clock, eager at another."""
    timing = make_timing()
    own = timing.side.model_copy(update={"sm_clock_mhz": [mhz - 30.0, mhz, mhz + 15.0]})
    beside = timing.control.model_copy(update={"sm_clock_mhz": [control] * 3})
    return timing.model_copy(update={"side": own, "control": beside})


def upgrade(slower: float, head_mhz: float, **head: Any) -> Iterator[Trial]:
    """Four trials a side; the head of bert is `slower` on the device, at an SM clock of `head_mhz`."""
    for workload in WORKLOADS:
        for trial in range(4):
            yield timed(workload, "2.12.0", trial, timing=with_clock(1980.0))
            moved = workload == "bert"
            fields: dict[str, Any] = {"timing": with_clock(head_mhz if moved else 1980.0)}
            yield timed(workload, "2.13.0", trial, **(fields | head), slower=slower if moved else 1.0)


def test_a_stored_record_says_what_device_time_is_in_cycles(sqlite_database: Database) -> None:
    row = row_of(judged(sqlite_database, upgrade(1.06, 1980.0 / 1.06)), Metric.DEVICE_TIME)
    assert (row.verdict, row.cause) == (Verdict.INCONCLUSIVE, CauseClass.MACHINE), "set aside"
    assert row.cycles_change == pytest.approx(0.0, abs=0.01)
    assert f"the SM clock changed by {units.MINUS}5." in row.reason


def test_at_a_steady_clock_cycles_are_not_told(sqlite_database: Database) -> None:
    row = row_of(judged(sqlite_database, upgrade(1.06, 1980.0)), Metric.DEVICE_TIME)
    assert (row.verdict, row.cause, row.cycles_change) == (Verdict.REGRESSED, CauseClass.COMPILER, None)


def test_device_times_of_two_methods_make_no_device_speedup(sqlite_database: Database) -> None:
    timing = make_timing()
    mixed = timing.model_copy(update={"control": make_timing("cupti").side})
    comparison = judged(sqlite_database, upgrade(1.06, 1980.0, timing=mixed))
    row = row_of(comparison, Metric.DEVICE_SPEEDUP)
    assert (row.verdict, row.cause, row.change) == (Verdict.NOT_COMPARABLE, CauseClass.METHOD, None)
    assert row.base is not None
    assert row.head is None
    assert row.reason == "Device time was taken by two methods (gated compiled, cupti eager)."
    assert row_of(comparison, Metric.DEVICE_TIME).verdict is Verdict.REGRESSED
    assert row_of(comparison, Metric.LATENCY).verdict is not Verdict.NOT_COMPARABLE
    assert "not comparable" in markdown(comparison)
    shown = {cell["metric"]: cell["verdict"] for cell in map(row_cells, comparison.rows)}
    assert shown["Device speedup"] == f"{MISSING} not comparable"


def nights(method: str, wobble: float) -> Iterator[Trial]:
    for night in range(20):
        for workload in WORKLOADS:
            yield timed(
                workload,
                "2.12.0",
                0,
                run=f"night-{night:02d}",
                started_at=START - timedelta(days=30 - night),
                timing=make_timing(method),
                slower=1.0 + wobble * (night % 2),
            )


@pytest.mark.parametrize(
    ("method", "verdict"), [("gated", Verdict.INCONCLUSIVE), ("cupti", Verdict.REGRESSED)]
)
def test_the_past_lends_its_noise_only_where_it_was_timed_alike(
    sqlite_database: Database, method: str, verdict: Verdict
) -> None:
    save_trials(sqlite_database, list(nights(method, 0.4)))
    save_trials(sqlite_database, list(upgrade(1.06, 1980.0)))
    base = side("2.12.0", sqlite_database, run_ids=("upgrade",))
    found = compare(sqlite_database, base, side("2.13.0", sqlite_database))
    assert row_of(found, Metric.DEVICE_TIME).verdict is verdict


@pytest.fixture
def h100(sqlite_url: str) -> str:
    """The ungated trials of torch 2.11 and 2.13 on an H100, and gated ones of the same cases with 2.14."""
    with open_database(sqlite_url) as database:
        ungated = [parse_trial(line) for line in UPGRADE.read_bytes().splitlines()]
        save_trials(database, ungated)
        newer = [trial for trial in ungated if trial.build.torch == "2.13.0"]
        gated = (gated_like(trial, number) for number, trial in enumerate(newer))
        save_trials(database, list(gated))
    return sqlite_url


def gated_like(trial: Trial, number: int) -> Trial:
    compiled = trial.strategy.kind != "eager"
    return make_timed(
        control_device_ns=6 * MS if compiled else None,
        **{name: getattr(trial, name) for name in ("workload", "strategy", "machine", "suite")},
        build=trial.build.model_copy(update={"torch": "2.14.0"}),
        run_id="gated",
        trial_id=f"gated-{number:02d}",
        started_at=trial.started_at + timedelta(days=30),
        seed=number,
    )


def compared(url: str, *arguments: str) -> int:
    return exit_code_of(app, ["compare", *arguments, "--db", url])


def test_two_ungated_builds_of_an_h100_are_compared_and_called_ungated(
    h100: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compared(h100, "torch=2.11.0", "torch=2.13.0", "--json") == 2
    found = json.loads(capsys.readouterr().out)
    assert found["timing"] == ["ungated"]
    assert found["matched"] == 5
    assert found["left_out"] == []
    assert "Ungated: these times hold what the GPU waited for the host." in found["sentences"]


@pytest.mark.parametrize(
    ("base", "head", "methods"),
    [("2.13.0", "2.14.0", "ungated against gated"), ("2.14.0", "2.11.0", "gated against ungated")],
)
def test_ungated_times_of_an_h100_are_not_compared_with_gated_ones(
    h100: str, capsys: pytest.CaptureFixture[str], base: str, head: str, methods: str
) -> None:
    assert compared(h100, f"torch={base}", f"torch={head}", "--json") == 2
    found = json.loads(capsys.readouterr().out)
    assert (found["verdict"], found["rows"], found["matched"]) == ("not comparable", [], 0)
    assert {case["reason"] for case in found["left_out"]} == {f"differs in timing method ({methods})"}
    assert {case["workload"] for case in found["left_out"]} >= {"gpt2", "vit-b16", "encoder-512"}
    assert compared(h100, f"torch={base}", f"torch={head}") == 2
    said = capsys.readouterr().out
    assert "nothing can be compared." in said
    assert f"differs in timing method ({methods})" in " ".join(said.split())
