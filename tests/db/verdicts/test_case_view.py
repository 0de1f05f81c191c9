"""Rows of cases as their doors show them: a figure is read in one place, and worded in one."""

from __future__ import annotations

from typing import Any

import pytest

from compilewatch.db.columns.case import CASE_COLUMNS
from compilewatch.db.units import MISSING
from compilewatch.db.verdicts.case_rows import with_peers
from compilewatch.db.verdicts.case_view import (
    CELLS,
    DOORS,
    Door,
    case_texts,
    case_view,
    rows_of_door,
)


def _case(strategy: str, speedup: tuple[float, float, float], cost_ns: float) -> dict[str, Any]:
    ends = dict(zip(("speedup", "speedup_low", "speedup_high"), speedup, strict=True))
    blank = dict.fromkeys(CASE_COLUMNS)
    of_trials = {"failed_trials": 0, "suspect_trials": 0, "wild_trials": 0, "first_look": False}
    named = {"strategy": strategy, "strategy_id": strategy, "strategy_kind": "compile", "workload": "mlp"}
    return {**blank, **of_trials, **named, **ends, "compile_cost_ns": cost_ns}


def test_a_strategy_is_set_against_default_with_the_interval_of_both() -> None:
    cases = [_case("default", (1.6, 1.5, 1.7), 10e9), _case("max-autotune", (2.0, 1.8, 2.25), 40e9)]
    rows = with_peers(cases, cases, {"max-autotune": "mode max-autotune"}, lambda _: ())
    row = case_view(rows[1], DOORS[Door.STRATEGIES])
    assert row["changes"] == "mode max-autotune"
    # By hand: ln(2 / 1.8) = .10536 and ln(1.7 / 1.6) = .06062 below, ln(2.25 / 2) = .11778 and
    # ln(1.6 / 1.5) = .06454 above: 1.25 * exp(-.12156) and 1.25 * exp(.13430).
    assert row["speedup_over_default"] == pytest.approx(1.25)
    assert row["speedup_over_default_interval"] == pytest.approx([1.10693, 1.42968], rel=1e-4)
    assert case_view(rows[0], DOORS[Door.STRATEGIES])["speedup_over_default"] is None


def test_names_stay_as_people_wrote_them_and_words_of_ours_lose_their_underscores() -> None:
    named = {"workload": "my_models:build", "strategy": "fast_path", "machine": "gpu_box", "os": "linux_6"}
    ours = {"failure_kind": "out_of_memory", "timing_method": "host", "control": "same_run"}
    case = _case("default", (1.6, 1.5, 1.7), 10e9) | named | ours
    assert case_texts(case, [CELLS[name] for name in named]) == list(named.values())
    assert case_texts(case, [CELLS[name] for name in ours]) == ["out of memory", "host", "same run"]


def test_whole_and_regional_compilation_stand_in_one_row() -> None:
    cases = [_case("default", (1.6, 1.5, 1.7), 40e9), _case("default+regional", (1.5, 1.4, 1.6), 10e9)]
    (row,) = rows_of_door(with_peers(cases, cases, {}, lambda _: ()), Door.REGIONAL)
    values = case_view(row, DOORS[Door.REGIONAL])
    assert (values["whole_compile_cost_ns"], values["compile_cost_ns"]) == (40e9, 10e9)
    assert values["compile_cost_change"] == pytest.approx(-0.75)
    assert (values["whole_speedup"], values["speedup"]) == (1.6, 1.5)


def test_ranks_are_set_against_one_rank_of_the_same_workload() -> None:
    def of(ranks: int, rates: tuple[float, float, float], **more: Any) -> dict[str, Any]:
        ends = ("throughput_per_s", "throughput_low_per_s", "throughput_high_per_s")
        return {
            **_case("default", (1.0, 0.9, 1.1), 10e9),
            **dict(zip(ends, rates, strict=True)),
            **{"workload": f"ddp-r{ranks}", "workload_version": "v1", "ranks": ranks, "batch_size": 8},
            **more,
        }

    cases = [
        of(1, (100.0, 90.0, 111.0), control_throughput_per_s=80.0),
        of(4, (300.0, 280.0, 320.0), control_throughput_per_s=160.0),
        of(2, (150.0, 140.0, 160.0), batch_size=16),
        _case("default", (1.6, 1.5, 1.7), 40e9),
    ]
    one, four, alone = (
        case_view(row, DOORS[Door.SCALING])
        for row in rows_of_door(with_peers(cases, cases, {}, lambda _: ()), Door.SCALING)
    )
    assert (four["ranks"], four["scaling_efficiency"]) == (4, 0.75)
    # By hand: ln(300 / 280) = .06899 and ln(111 / 100) = .10436 below, ln(320 / 300) = .06454 and
    # ln(100 / 90) = .10536 above: .75 * exp(-.12510) and .75 * exp(.12356).
    assert four["scaling_efficiency_interval"] == pytest.approx([0.66181, 0.84863], rel=1e-4)
    assert four["control_scaling_efficiency"] == 0.5
    assert one["scaling_efficiency"] is None
    assert alone["scaling_efficiency"] is None


NOT_KNOWN = {"break_even": "unknown", "break_even_interval": "none"}


@pytest.mark.parametrize(
    ("known", "steps", "words", "interval"),
    [
        ({"break_even": "steps", "break_even_interval": "bounded"}, 46_493, "yes", "41,000 to 52,000"),
        (
            {"break_even": "steps", "break_even_interval": "open"},
            *(None, "at best after 41,000", "from 41,000 to never"),
        ),
        ({"break_even": "never", "break_even_interval": "never"}, None, "never", "never"),
        (NOT_KNOWN | {"first_look": True}, None, "first look", MISSING),
        (NOT_KNOWN | {"strategy_kind": "eager"}, None, "reference", MISSING),
    ],
)
def test_break_even_is_a_number_where_it_is_shown_and_else_a_word(
    known: dict[str, Any], steps: int | None, words: str, interval: str
) -> None:
    ends = {"break_even_steps": 46_493, "break_even_low": 41_000, "break_even_high": 52_000}
    case = _case("default", (1.6, 1.5, 1.7), 40e9) | ends | known | {"noise": None, "workload_label": "mlp"}
    cells = {each.name: each for each in DOORS[Door.PLAN]}
    assert cells["steps"].value(case) == steps
    assert case_texts(case, [cells["pays_off"], cells["interval"]]) == [words, interval]


def test_an_end_that_is_the_value_itself_is_left_out() -> None:
    ends = {"break_even_steps": 41_000, "break_even_low": 41_000, "break_even_high": 52_000}
    known = {"break_even": "steps", "break_even_interval": "bounded", **ends}
    case = _case("default", (1.6, 1.5, 1.7), 40e9) | known
    (interval,) = (each for each in DOORS[Door.PLAN] if each.name == "interval")
    assert interval.value(case) == [None, 52_000]
    assert interval.text(case) == "up to 52,000"
