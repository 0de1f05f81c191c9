"""Mode choice over the cases of a frame."""

from __future__ import annotations

import pandas as pd
import pytest
from pandas import DataFrame

from compilewatch.db.errors import UnitError
from compilewatch.db.metrics.case_modes import (
    CHOICE_COLUMNS,
    TOTALS_COLUMNS,
    choose_modes,
    mode_options,
    totals_frame,
)
from compilewatch.db.metrics.cases import summarize_cases
from compilewatch.db.metrics.eligibility import nanoseconds
from compilewatch.db.metrics.mode_choice import ModeOption, lower_envelope
from tests.db.metrics.frames import trial, trials_frame


def compiled(
    strategy: str, latency: float, control: float, cost: float, **fields: object
) -> dict[str, object]:
    return trial(
        strategy=strategy,
        latency_ns=latency,
        control_latency_ns=control,
        trial_compile_cost_ns=cost,
        graphs=1,
        **fields,
    )


def bert() -> list[dict[str, object]]:
    # each process drifts, but default is always 2x and max-autotune always 4x of its own control
    return [
        trial(strategy="eager", latency_ns=100.0),
        compiled("default", 60.0, 120.0, 1000.0),
        compiled("max-autotune", 20.0, 80.0, 5000.0),
    ]


def cases(rows: list[dict[str, object]]) -> DataFrame:
    """Of three trials a case: a single one is a first look, which ranks nothing."""
    return summarize_cases(trials_frame([row for row in rows for _ in range(3)]))


def test_every_option_has_its_compile_cost_and_a_step_of_the_one_eager_over_its_speedup() -> None:
    options, left_out = mode_options(cases(bert()))
    measured = [(o.strategy, float(o.compile_cost_ns), float(o.latency_ns)) for o in options]
    eager = (100 * 120 * 80) ** (1 / 3)
    wanted = [("eager", 0, eager), ("default", 1000, eager / 2), ("max-autotune", 5000, eager / 4)]
    assert [each[0] for each in measured] == [each[0] for each in wanted]
    assert [each[1:] for each in measured] == [pytest.approx(each[1:]) for each in wanted]
    assert left_out == []
    # default pays off after 1000 / (98.6 - 49.3) = 20.3 steps; from (5000 - 1000) / (49.3 - 24.7) = 162.2 on
    # max-autotune takes no longer
    assert [(s.strategy, s.first_steps) for s in lower_envelope(options)] == [
        ("eager", 1),
        ("default", 21),
        ("max-autotune", 163),
    ]


def test_a_dearer_compilation_is_never_drawn_below_a_cheaper_one() -> None:
    """Eager takes 26.6 and 35.6 ms in the two processes: totals at 0 steps are the compile costs as told."""
    rows = [compiled("default", 20e6, 26.6e6, 82.8e9), compiled("reduce-overhead", 21e6, 35.6e6, 80.4e9)]
    options, _ = mode_options(cases(rows))
    costs = {option.strategy: float(option.total_ns(1) - option.latency_ns) for option in options}
    assert costs == {"eager": 0, "default": 82.8e9, "reduce-overhead": 80.4e9}


def test_eager_is_chosen_where_nothing_beats_the_eager_beside_it() -> None:
    """vit-b16 in short: the process of `default` ran fast, its own eager faster still."""
    rows = [trial(strategy="eager", latency_ns=30.0), compiled("default", 26.0, 15.0, 10.0)]
    chosen = choose_modes(cases(rows), steps=1000)
    assert chosen[["strategy", "saved_ns"]].values.tolist() == [["eager", 0]]


def test_a_crossing_with_eager_is_the_break_even_of_the_case() -> None:
    rows = [trial(strategy="eager", latency_ns=97.0), compiled("default", 61.0, 113.0, 4567.0)]
    frame = cases(rows)
    options, _ = mode_options(frame)
    (case,) = frame.loc[frame["strategy"] == "default", "break_even_steps"]
    assert [s.first_steps for s in lower_envelope(options)] == [1, case]


def test_what_cannot_be_chosen_is_named() -> None:
    rows = [
        *bert(),
        trial(strategy="broken", status="failed", failure_kind="out_of_memory"),
        compiled("empty", 50.0, 100.0, 10.0) | {"graphs": 0},
        trial(strategy="costless", latency_ns=10.0, control_latency_ns=100.0, graphs=1),
        trial(strategy="lone", run_id="R2", latency_ns=10.0, trial_compile_cost_ns=1.0, graphs=1),
    ]
    options, left_out = mode_options(cases(rows))
    assert [option.strategy for option in options] == ["eager", "default", "max-autotune"]
    assert {(each.strategy, each.reason) for each in left_out} == {
        ("broken", "failed: out of memory"),
        ("empty", "nothing was compiled"),
        ("costless", "no compile cost"),
        ("lone", "no eager latency to compare with"),
    }
    assert mode_options(cases(rows[3:4])) == ([], [left_out[0]])


def test_the_best_per_workload_for_a_number_of_steps() -> None:
    resnet = [compiled("default", 100.0, 100.0, 50.0, workload="resnet")]
    frame = cases(bert() + resnet + [trial("lost", "default", status="failed", failure_kind="crash")])
    found = choose_modes(frame, steps=50, restarts=1).set_index("workload")
    assert list(found.index) == ["bert", "resnet"]
    # two processes of 1000 + 50 x 49.3 against two of 50 x 98.6
    assert found.loc["bert", "strategy"] == "default"
    assert found.loc["bert", ["total_ns", "eager_total_ns", "saved_ns"]].tolist() == pytest.approx(
        [6_932.4, 9_864.8, 2_932.4], rel=1e-4
    )
    assert found.loc["resnet", ["strategy", "saved_ns", "options"]].tolist() == ["eager", 0, 2]


def test_the_lines_of_the_chart_have_bands_where_intervals_are_known() -> None:
    rows = [*bert()[:2], compiled("default", 59.0, 120.0, 1010.0), compiled("default", 61.0, 120.0, 990.0)]
    options, _ = mode_options(cases(rows))
    lines = totals_frame(options, [1, 10, 1000])
    assert dict(lines.dtypes.astype(str)) == {**TOTALS_COLUMNS}
    eager, default = (lines[lines["strategy"] == name] for name in ("eager", "default"))
    # all intervals are against it
    assert eager["total_low_ns"].isna().all()
    assert (default["total_low_ns"] < default["total_ns"]).all()
    assert (default["total_ns"] < default["total_high_ns"]).all()
    assert eager["best"].tolist() == [True, True, False]
    assert default["best"].tolist() == [False, False, True]


def test_empty_frames_have_their_columns() -> None:
    empty = summarize_cases(trials_frame([]))
    assert mode_options(empty) == ([], [])
    chosen = choose_modes(empty, steps=1)
    assert dict(chosen.dtypes.astype(str)) == CHOICE_COLUMNS
    assert dict(totals_frame([], []).dtypes.astype(str)) == TOTALS_COLUMNS


@pytest.mark.parametrize("field", ["machine", "torch", "workload"])
def test_options_of_two_machines_builds_or_workloads_are_refused(field: str) -> None:
    other = compiled("default", 60.0, 120.0, 1000.0, **{field: "other"})
    with pytest.raises(UnitError, match="cannot mix"):
        mode_options(cases([*bert(), other]))


def test_no_restarts_or_steps_that_cannot_be() -> None:
    frame = cases(bert())
    with pytest.raises(UnitError):
        choose_modes(frame, steps=0)
    assert pd.notna(choose_modes(frame, steps=10**15)["total_ns"]).all()


def test_the_ends_of_a_strategys_times_are_those_of_its_case() -> None:
    """Of the case: latency 60 within 55 and 66 by its speedup of 2, cost 1000 within 900 and 1200."""
    rows = [trial(strategy="eager", latency_ns=120.0), compiled("default", 60.0, 120.0, 1000.0)]
    known = cases(rows).assign(
        speedup_low=[120 / 66, 1.0],
        speedup_high=[120 / 55, 1.0],
        compile_cost_low_ns=[900.0, pd.NA],
        compile_cost_high_ns=[1200.0, pd.NA],
    )
    (_, default), _ = mode_options(known)
    assert (float(default.latency_ns), float(default.compile_cost_ns)) == (60, 1000)
    assert default.compile_cost_interval_ns is not None
    assert [float(end) for end in default.compile_cost_interval_ns] == [900, 1200]
    assert [float(end) for end in default.latency_interval_ns] == pytest.approx([55, 66])
    for missing in ("speedup_low", "speedup_high"):
        (_, half), _ = mode_options(known.assign(**{missing: pd.NA}))
        assert half.latency_interval_ns is None
        assert half.compile_cost_interval_ns is not None
    for missing in ("compile_cost_low_ns", "compile_cost_high_ns"):
        (_, half), _ = mode_options(known.assign(**{missing: pd.NA}))
        assert half.compile_cost_interval_ns is None
        assert totals_frame([half], [1])["total_low_ns"].isna().all()


def test_a_band_takes_both_low_ends_together_and_pays_restarts_again() -> None:
    option = ModeOption(
        "default",
        nanoseconds(100),
        nanoseconds(10),
        compile_cost_interval_ns=(nanoseconds(80), nanoseconds(150)),
        latency_interval_ns=(nanoseconds(9), nanoseconds(12)),
    )
    lines = totals_frame([option], [5], restarts=2)
    assert lines.to_dict("records") == [
        {
            "strategy": "default",
            "steps": 5,
            "total_ns": 3 * (100 + 50),
            "total_low_ns": 3 * (80 + 45),
            "total_high_ns": 3 * (150 + 60),
            "best": True,
        }
    ]


def test_choices_are_in_the_order_of_their_keys_and_name_their_group() -> None:
    rows = [
        compiled("default", 100.0, 100.0, 50.0, machine=machine, torch=torch, workload=workload)
        for machine in ("b", "a")
        for torch in ("2", "1")
        for workload in ("y", "x")
    ]
    frame = cases(rows).iloc[::-1]
    found = choose_modes(frame, steps=1)
    keys = [(f"m-{m}", f"b-{t}", f"w-{w}", w) for m in "ab" for t in "12" for w in "xy"]
    named = found[["machine_id", "build_id", "workload_id", "workload"]].itertuples(index=False, name=None)
    assert list(named) == keys
