"""Break-even and mode choice as rows, by hand."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from pandas import DataFrame

from compilewatch.db.metrics.break_even import FIRST_LOOK, repaid_words
from compilewatch.db.metrics.cases import summarize_cases
from compilewatch.db.metrics.groups import row_dicts
from compilewatch.db.units import at_best
from compilewatch.db.verdicts.case_rows import break_even_rows as planned
from tests.db.metrics.frames import START, trial, trials_frame

SECOND = 10**9


def break_even_rows(*arguments: Any) -> list[dict[str, Any]]:
    return [row.to_json() for row in planned(*arguments)]


NOTHING = {
    "break_even_steps": None,
    "break_even_time_ns": None,
    "break_even_price": None,
    "break_even_interval": None,
    "break_even_low_steps": None,
    "break_even_high_steps": None,
    "reason": None,
}


def compiled(strategy: str, latency: int, cost: int, **fields: Any) -> dict[str, Any]:
    return trial(
        strategy=strategy,
        latency_ns=latency * SECOND,
        control_latency_ns=10 * SECOND,
        trial_compile_cost_ns=cost * SECOND,
        graphs=1,
        **fields,
    )


def rates(own: float | None, eager: float | None) -> dict[str, Any]:
    """Of batches of 8 sequences."""
    known = {"throughput_per_s": own, "control_throughput_per_s": eager}
    return {name: None if each is None else pytest.approx(each) for name, each in known.items()} | {
        "item": "sequence"
    }


ROWS = [
    trial(strategy="eager", latency_ns=10 * SECOND),
    compiled("default", 6, 60),
    compiled("slower", 12, 5),
    trial(strategy="broken", status="failed", failure_kind="crash"),
]


def cases(rows: list[dict[str, Any]]) -> DataFrame:
    """Of three trials a case: a single one is a first look, which ranks nothing."""
    return summarize_cases(trials_frame([row for row in rows for _ in range(3)]))


def test_every_strategy_has_a_row_with_its_repayment_in_steps_time_and_money() -> None:
    named = {
        "workload": "bert",
        "workload_id": "w-bert",
        "machine": "box",
        "machine_id": "m-box",
        "torch": "2.13.0",
        "build_id": "b-2.13.0",
        "source_kind": "measured",
        "source_name": "compilewatch",
        "timing_method": None,
        "task": "inference",
        "batch_size": 8,
        "shape": {"sequence_length": 128},
        "dtype": "bfloat16",
    }

    def row(strategy: str, own: Any, eager: Any, total: Any, chosen: bool, first: Any, **told: Any):
        summed = {"total_ns": total and total * SECOND, "chosen": chosen, "fastest_from_steps": first}
        return named | NOTHING | {"strategy": strategy, **rates(own, eager)} | summed | told

    # default: 60 / (10 - 6) = 15 steps, after 60 + 15 x 6 = 150 s, at 36 an hour 1.50
    repaid = {"break_even_steps": 15, "break_even_time_ns": 150.0 * SECOND, "break_even_price": 1.5}
    repaid |= {"break_even_interval": "bounded", "break_even_low_steps": 15, "break_even_high_steps": 15}
    slower = {"break_even_steps": "never", "reason": "it is not faster than eager (0.833x)"}
    slower["break_even_interval"] = "never"
    assert break_even_rows(cases(ROWS), 20, 0, Decimal(36)) == [
        row("eager", 0.8, None, 200.0, False, 1),
        row("default", 8 / 6, 0.8, 180.0, True, 15, **repaid),
        row("slower", 8 / 12, 0.8, 245.0, False, None, **slower),
        row("broken", None, None, None, False, None, reason="failed: crash"),
    ]


def test_what_is_not_shown_to_pay_off_is_fastest_from_no_step() -> None:
    unsure = [
        trial(strategy="eager", latency_ns=10 * SECOND),
        *(compiled("default", latency, 60) for latency in (8, 9, 12)),
    ]
    (case,) = row_dicts(summarize_cases(trials_frame(unsure * 3)).query("strategy == 'default'"))
    assert (case["break_even"], case["break_even_interval"]) == ("steps", "open")
    assert repaid_words(case) == at_best(case["break_even_low"])
    eager, default = break_even_rows(cases(unsure), 10_000, 0, None)
    assert (eager["fastest_from_steps"], default["fastest_from_steps"]) == (1, None)
    assert default["break_even_low_steps"] is not None
    assert default["break_even_high_steps"] is None


def test_without_a_price_there_is_no_price_and_restarts_pay_again() -> None:
    eager, default, *_ = break_even_rows(cases(ROWS), 15, 3, None)
    assert default["break_even_time_ns"] == 150.0 * SECOND
    assert default["break_even_price"] is None
    # four processes of 60 + 15 x 6 against four of 15 x 10: the same total, so none is shown to be best
    assert (eager["total_ns"], default["total_ns"]) == (600.0 * SECOND, 600.0 * SECOND)
    assert [eager["chosen"], default["chosen"]] == [False, False]


def test_all_strategies_are_told_on_the_clock_of_one_eager() -> None:
    # its process ran four times as fast as that of eager, so both together twice: 20 s, and 10 s at 2x
    own = compiled("default", 5, 100) | {"control_latency_ns": 10.0 * SECOND}
    alone = trial(strategy="eager", latency_ns=40 * SECOND)
    eager, default = break_even_rows(cases([alone, own]), 20, 0, None)
    assert eager["total_ns"] == pytest.approx(20 * 20 * SECOND)
    assert default["total_ns"] == pytest.approx(100 * SECOND + 20 * 10 * SECOND)
    # of 100 s at 10 s a step
    assert default["break_even_steps"] in (10, 11)
    assert default["break_even_time_ns"] == pytest.approx(200 * SECOND, rel=0.06)


def test_a_first_look_has_no_rank_and_no_break_even() -> None:
    rows = break_even_rows(summarize_cases(trials_frame(ROWS[:2])), 1_000, 0, None)
    for name, value in (("chosen", False), ("fastest_from_steps", None), ("break_even_steps", None)):
        assert [row[name] for row in rows] == [value, value]
    assert rows[1]["reason"] == FIRST_LOOK


def test_nothing_is_chosen_where_intervals_meet() -> None:
    rows = [compiled("default", 6, cost) for cost in (40, 60, 80)]
    near = [compiled("near", 6, cost) for cost in (42, 62, 82)]
    three = [*([ROWS[0]] * 3), *rows, *near]
    chosen = [
        row["strategy"]
        for row in break_even_rows(summarize_cases(trials_frame(three)), 10**6, 0, None)
        if row["chosen"]
    ]
    assert chosen == []


def test_two_strategies_of_one_name_have_each_its_own_break_even() -> None:
    other = compiled("default", 6, 120) | {"strategy_id": "s-default-2", "series_id": "another"}
    found = break_even_rows(cases([ROWS[0], ROWS[1], other]), 20, 0, None)
    assert [row["break_even_steps"] for row in found] == [None, 15, 30]


def test_each_machine_workload_and_build_stands_alone() -> None:
    newest = START.replace(year=2027)
    rows = [
        *ROWS[:2],
        compiled("default", 5, 60, torch="2.12.0", started_at=newest),
        compiled("default", 4, 60, machine="other"),
        compiled("default", 3, 60, workload="resnet"),
        trial("lone", status="failed", failure_kind="crash"),
    ]
    found = break_even_rows(cases(rows), 1, 0, None)
    assert [(row["machine"], row["workload"], row["torch"], row["strategy"]) for row in found] == [
        ("box", "bert", "2.12.0", "eager"),
        ("box", "bert", "2.12.0", "default"),
        ("box", "bert", "2.13.0", "eager"),
        ("box", "bert", "2.13.0", "default"),
        ("box", "lone", "2.13.0", "default"),
        ("box", "resnet", "2.13.0", "eager"),
        ("box", "resnet", "2.13.0", "default"),
        ("other", "bert", "2.13.0", "eager"),
        ("other", "bert", "2.13.0", "default"),
    ]
    # What only failed is told as that, not left out.
    assert [row["reason"] for row in found if row["workload"] == "lone"] == ["failed: crash"]


def test_workloads_stand_in_the_order_of_the_cases() -> None:
    table = cases([compiled("default", 6, 60, workload=name) for name in ("a", "b", "c")])
    found = break_even_rows(table.iloc[::-1], 1, 0, None)
    assert [row["workload"] for row in found] == ["c", "c", "b", "b", "a", "a"]


def uncosted(latency: int) -> dict[str, Any]:
    """A compiled case whose compile cost nobody told, as in an imported table of speedups."""
    return compiled("uncosted", latency, 0) | {"trial_compile_cost_ns": None}


@pytest.mark.parametrize(
    ("latency", "steps", "chosen", "firsts"),
    [
        # default takes 60 + 6 a step, from step 15 on less than eager's 10 a step
        (4, 20, [], {}),
        (8, 14, [], {}),
        (8, 29, [], {}),
        (8, 31, ["default"], {}),
        (10, 14, ["eager"], {"eager": 1, "default": 15}),
        (12, 20, ["default"], {"eager": 1, "default": 15}),
    ],
)
def test_nothing_is_chosen_that_a_strategy_of_unknown_cost_may_beat(
    latency: int, steps: int, chosen: list[str], firsts: dict[str, int]
) -> None:
    rows = break_even_rows(cases([*ROWS[:2], uncosted(latency)]), steps, 0, None)
    assert [row["strategy"] for row in rows if row["chosen"]] == chosen
    assert {row["strategy"]: row["fastest_from_steps"] for row in rows if row["fastest_from_steps"]} == firsts
    assert {row["strategy"]: row["reason"] for row in rows}["uncosted"] == "no compile cost"


def test_beside_a_faster_strategy_of_unknown_cost_eager_is_no_choice() -> None:
    (eager, _) = break_even_rows(cases([ROWS[0], uncosted(6)]), 20, 0, None)
    assert (eager["strategy"], eager["chosen"], eager["fastest_from_steps"]) == ("eager", False, None)
    (eager, _) = break_even_rows(cases([ROWS[0], uncosted(12)]), 20, 0, None)
    assert (eager["strategy"], eager["chosen"], eager["fastest_from_steps"]) == ("eager", True, 1)
