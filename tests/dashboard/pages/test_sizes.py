"""A sweep as it is drawn: panels on the same axes, labels at the ends, and in words what no size changes."""

from __future__ import annotations

import pytest

from compilewatch.dashboard.document.svg import draw
from compilewatch.dashboard.links.links import Link, Page
from compilewatch.dashboard.pages.sizes import content
from compilewatch.dashboard.parts.parts import Chart, Folded, Group, Lines, Table, flat
from compilewatch.dashboard.parts.sizes import apart
from compilewatch.dashboard.read.data import read_choices
from compilewatch.db.records.trial import Trial
from compilewatch.db.units import MISSING
from tests.builders import MS, SECOND, make_memory, make_trial, make_workload
from tests.dashboard.conftest import Store, opened, texts

GIB = 1 << 30


def sweep(*, memory_of_size: bool = False, slower: tuple[int, int] | None = None) -> list[Trial]:
    """ranker at three batch sizes and two numbers of features; reduce-overhead at half of eager's latency,
    at the place `slower` at twice of it.
    """
    trials = []
    for features, batch in ((features, batch) for features in (64, 256) for batch in (1, 8, 64)):
        held = (batch if memory_of_size else 1) * GIB
        workload = make_workload(
            f"ranker-b{batch}-f{features}",
            batch_size=batch,
            items_per_iteration=float(batch),
            shape={"features": features},
            item="request",
        )
        eager = MS * features / 64
        shares = {"default": 0.8, "reduce-overhead": 2.0 if slower == (features, batch) else 0.5}
        for number, (strategy, share) in enumerate(shares.items()):
            trials += [
                make_trial(
                    workload=workload,
                    strategy=strategy,
                    run_id="sweep",
                    trial_id=f"{batch}-{features}-{strategy}-{nth}",
                    latency_ns=eager * share * (1 + 0.003 * nth),
                    control_latency_ns=eager * (1 + 0.002 * nth),
                    compile_ns=(6 + number) * SECOND,
                    memory=make_memory(peak_bytes=held, control_peak_bytes=held),
                    seed=nth,
                )
                for nth in range(3)
            ]
    return trials


def group() -> Group:
    choices = read_choices()
    link = Link(page=Page.SIZES, machine=choices.newest_machine, build=next(iter(choices.builds)))
    (found,) = (part for part in content.page(link).parts if part.key == "sizes-0")
    assert isinstance(found, Group)
    return found


def charts(found: Group) -> list[Chart]:
    return [part for part in flat((found,)) if isinstance(part, Chart)]


def said(found: Group) -> str:
    return "\n".join(line for part in flat((found,)) if isinstance(part, Lines) for line in part.lines)


def test_a_panel_for_each_value_of_the_second_size_on_the_same_axes(store: Store) -> None:
    store(sweep())
    found = group()
    drawn = charts(found)
    assert [chart.chart.finding for chart in drawn] == ["Throughput, features 64", "Throughput, features 256"]
    scales = [
        {axis: chart.chart.spec["layer"][0]["encoding"][axis]["scale"] for axis in ("x", "y")}
        for chart in drawn
    ]
    assert scales[0] == scales[1]
    assert {scales[0][axis]["type"] for axis in ("x", "y")} == {"log"}
    low, high = scales[0]["y"]["domain"]
    values = [value for chart in drawn for value in chart.chart.frames["main"]["value"]]
    # By hand: 64 requests in .5 ms, and 1 in 4 ms.
    assert (max(values), min(values)) == pytest.approx((128_000, 250), rel=0.01)
    assert low < min(values) <= max(values) < high
    assert "a panel for each value of features, on the same axes" in said(found)


def test_a_line_ends_with_its_value_and_times_eager(store: Store) -> None:
    store(sweep())
    ends = charts(group())[0].chart.frames["ends"].set_index("strategy")["end_text"]
    assert ends.to_dict() == {
        "reduce-overhead": "reduce-overhead 128k · 2.00x",
        "default": "default 79.7k · 1.25x",
        "eager": "eager 63.9k",
    }
    chart = charts(group())[0].chart
    assert chart.spec is not None
    svg = draw(chart.spec, chart.frames)
    assert "reduce-overhead 128k · 2.00x" in svg


def test_what_no_size_changes_is_a_sentence(store: Store) -> None:
    store(sweep())
    same = "The same at every size, within 10 %: peak memory 1.00 GiB; compile cost "
    assert same in said(group())


def test_memory_that_grows_has_panels_of_its_own(store: Store) -> None:
    store(sweep(memory_of_size=True))
    found = group()
    assert [chart.key for chart in charts(found)] == [
        *("sizes-0-throughput_per_s-64", "sizes-0-throughput_per_s-256"),
        *("sizes-0-peak_bytes-64", "sizes-0-peak_bytes-256"),
    ]
    assert "peak memory" not in said(found)


@pytest.mark.parametrize(
    ("slower", "finding"),
    [
        (None, "ranker: reduce-overhead is fastest at every size, at most 2."),
        ((256, 8), "ranker: reduce-overhead is fastest at 5 of 6 sizes, at most 2."),
    ],
)
def test_it_says_which_strategy_is_fastest_at_how_many_sizes(
    store: Store, slower: tuple[int, int] | None, finding: str
) -> None:
    store(sweep(slower=slower))
    assert group().title.startswith(finding)


def test_every_case_stands_in_its_table(store: Store) -> None:
    store(sweep())
    (folded,) = (part for column in group().columns for part in column if isinstance(part, Folded))
    assert folded.title == "All 18 cases of ranker"
    (table,) = folded.parts
    assert isinstance(table, Table)
    sizes = list(zip(table.frame["second"], table.frame["size"], table.frame["strategy"], strict=True))
    assert sizes[:4] == [
        (64, 1, "eager"),
        (64, 1, "default"),
        (64, 1, "reduce-overhead"),
        (64, 8, "eager"),
    ]
    assert len(sizes) == 18


def test_the_page_draws_it(store: Store) -> None:
    store(sweep())
    page = opened(Link(page=Page.SIZES))
    assert "ranker: reduce-overhead is fastest at every size" in texts(page)


def test_labels_keep_apart_and_on_the_panel() -> None:
    assert apart([10, 12, 100], 15) == [10, 25, 100]
    assert apart([214, 213, 50], 15) == [215, 200, 50]
    assert apart([], 15) == []


def test_over_ranks_the_table_has_the_scaling_efficiency(store: Store) -> None:
    store(
        [
            make_trial(
                workload=make_workload(
                    f"ddp-r{ranks}", version="1", batch_size=4, ranks=ranks, items_per_iteration=4.0 * ranks
                ),
                trial_id=f"{ranks}-{nth}",
                latency_ns=MS * (1.25 if ranks == 2 else 1) * (1 + 0.001 * nth),
                control_latency_ns=2 * MS * ranks,
                seed=nth,
            )
            for ranks in (1, 2)
            for nth in range(3)
        ]
    )
    (folded,) = (part for column in group().columns for part in column if isinstance(part, Folded))
    (table,) = folded.parts
    assert isinstance(table, Table)
    rows = {(row["size"], row["strategy"]): row["efficiency"] for row in table.frame.to_dict("records")}
    assert rows[2, "default"].startswith("80.0 % [")
    assert rows[2, "eager"] == "50.0 %"
    assert rows[1, "default"] == MISSING
