"""Machines: two side by side in their newest builds, with what a million items cost, and no verdict."""

from __future__ import annotations

from datetime import timedelta

import pytest

from compilewatch.dashboard.links.links import Link, Page
from tests.builders import MS, START, make_build, make_failure, make_machine, make_trial, make_workload
from tests.dashboard.conftest import OpenPage, Store, machine_ids, opened, texts


@pytest.fixture
def two(store: Store) -> dict[str, str]:
    """One machine takes 16 ms for a batch of 8, the other half of that; by name their ids."""
    trials = [
        make_trial(
            machine=make_machine(name, device_name=name),
            build=make_build(driver=driver),
            workload=make_workload("bert-base", batch_size=8, items_per_iteration=8.0),
            latency_ns=factor * (8 + n / 100) * MS,
            control_latency_ns=factor * 12 * MS,
            started_at=START + timedelta(minutes=n),
        )
        for name, driver, factor in (("slow", "560.1", 2), ("quick", "570.2", 1))
        for n in range(3)
    ]
    return machine_ids(
        store([*trials, make_trial(workload="mlp", machine=make_machine("slow", device_name="slow"))])
    )


def test_another_machine_stands_beside_the_one_that_is_shown(two: dict[str, str]) -> None:
    test = opened(Link(page=Page.MACHINES, machine=two["slow"], price=1.0, against_price=3.5))
    assert "quick is 2.00x as fast as slow over 1 case" in texts(test)
    assert "no regression" in texts(test)
    (row,) = test.dataframe[0].value.to_dict("records")
    assert (row["workload"], row["base_latency_ns"], row["latency_ns"]) == ("bert-base", "16.0 ms", "8.01 ms")
    # 125,000 steps of 8: 2,003 s on the one at $1 an hour, half of it on the other at $3.50.
    assert row["base_million_items_price"].startswith("$0.556")
    assert row["million_items_price"].startswith("$0.974")
    assert "only on one: 1 of slow" in texts(test).lower()


@pytest.mark.usefixtures("two")
def test_the_other_one_is_chosen_in_the_address_by_its_name() -> None:
    test = opened(Link(page=Page.MACHINES, machine="quick", against="slow"))
    assert "slow is 0.500x as fast as quick" in texts(test)
    assert not test.warning


def test_of_each_case_the_build_counts_that_passed_last(store: Store) -> None:
    """Also where the newest run of the machine measured another case, or this one failed."""
    trials = [
        make_trial(
            machine=make_machine(name, device_name=name),
            build=make_build(torch),
            workload=workload,
            latency_ns=milliseconds * MS,
            failure=make_failure() if failed else None,
            started_at=START + timedelta(days=day),
            run_id=f"{name}-{day}",
        )
        for name, torch, workload, milliseconds, day, failed in (
            ("slow", "2.11.0", "bert", 40, 0, False),
            ("slow", "2.11.0", "mlp", 8, 0, False),
            ("slow", "2.12.0", "bert", 20, 1, False),
            ("slow", "2.13.0", "bert", 20, 2, True),
            ("quick", "2.11.0", "bert", 10, 0, False),
            ("quick", "2.11.0", "mlp", 4, 0, False),
        )
    ]
    by_name = machine_ids(store(trials))
    test = opened(Link(page=Page.MACHINES, machine=by_name["quick"], against=by_name["slow"]))
    rows = test.dataframe[0].value.set_index("workload")
    assert rows["base_latency_ns"].to_dict() == {"bert": "10.0 ms", "mlp": "4.00 ms"}
    assert rows["latency_ns"].to_dict() == {"bert": "20.0 ms", "mlp": "8.00 ms"}


def test_without_a_common_case_it_says_why(filled: OpenPage) -> None:
    apart = filled(Link(page=Page.MACHINES, focus="elementwise"))
    assert "No case was measured on both machines." in texts(apart)


def test_alone_it_says_why(store: Store) -> None:
    store([make_trial()])
    assert "Only one machine has measured anything." in texts(opened(Link(page=Page.MACHINES)))
