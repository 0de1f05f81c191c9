"""Cold starts: a row for each model, cold above warm, in groups of phases."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pandas as pd
import pytest

from compilewatch.dashboard.charts.cold_start import GROUP_OF, GROUPS, MOST_ROWS, PHASES, seconds_text
from compilewatch.dashboard.links.links import Link, Page
from compilewatch.dashboard.pages.cold_start import content as cold_start
from compilewatch.dashboard.parts.parts import Chart, PageContent, Table
from compilewatch.dashboard.read.data import read_choices
from compilewatch.db.engine.session import open_database
from compilewatch.db.interchange.importing import import_paths
from compilewatch.db.queries.case_parts import PHASES as MEASURED
from compilewatch.db.records.trial import CacheState, ColdStart, NumericsStatus, PhasesNs, Trial
from tests.builders import SECOND, make_history, make_imported, make_numerics, make_strategy, make_trial
from tests.dashboard.conftest import DATABASE, Store, opened, texts
from tests.db.interchange.trace_logs import whole_recording

MODELS = tuple(f"model-{number:02d}" for number in range(MOST_ROWS + 2))


def content_here(**link: object) -> PageContent:
    machine = read_choices().newest_machine
    return cold_start.page(Link(page=Page.COLD_START, machine=machine, **link))  # type: ignore[arg-type]


def frames(page: PageContent) -> dict[str, pd.DataFrame]:
    (chart,) = (part for part in page.parts if isinstance(part, Chart))
    return chart.chart.frames


def started(workload: str, seconds: dict[str, float], kernels: float = 0.5, **fields: object) -> list[Trial]:
    """Three trials a strategy, eager among them, of so many seconds to the first result; `kernels` is the
    share of compiling kernels.
    """
    trials = []
    for name, total_s in seconds.items():
        base, _, cache = name.partition("+")
        strategy = make_strategy(base)
        if cache:
            strategy = strategy.model_copy(update={"name": name, "cache": CacheState(cache)})
        total = int(total_s * SECOND)
        known = {"kernel_compile": int(kernels * total), "dynamo": total // 10, "other": total // 20}
        start = ColdStart(
            import_torch_ns=total // 10,
            first_call_ns=sum(known.values()),
            phases_ns=PhasesNs(**known) if base != "eager" else None,
            total_ns=total,
        )
        trials += [
            make_trial(
                workload=workload,
                strategy=strategy,
                run_id="starts",
                trial_id=f"{workload}-{base}-{cache or 0}-{nth}",
                cold_start=start,
                seed=nth,
                **fields,
            )
            for nth in range(3)
        ]
    return trials


def test_a_row_a_model_with_cold_above_warm_the_slowest_first(store: Store) -> None:
    store(
        [
            *started("quick", {"eager": 1, "default": 4, "default+warm": 2}),
            *started("slow", {"eager": 1.5, "default": 9, "default+warm": 3, "max-autotune": 80}),
        ]
    )
    shown = frames(content_here())
    assert list(shown["names"]["row"]) == ["slow · default (eager 1.50 s)", "quick · default (eager 1.00 s)"]
    ends = shown["ends"][["start", "text"]].to_records(index=False).tolist()
    assert ends == [
        ("cold", "9.00 s cold"),
        ("warm", "3.00 s warm"),
        ("cold", "4.00 s cold"),
        ("warm", "2.00 s warm"),
    ]


def test_of_one_model_each_strategy_has_a_row(store: Store) -> None:
    store(started("slow", {"eager": 1.5, "default": 9, "default+warm": 3, "max-autotune": 80}))
    page = content_here(focus="slow")
    assert list(frames(page)["names"]["row"]) == ["max-autotune", "default", "eager"]
    assert frames(page)["ends"]["text"].tolist() == ["80.0 s cold", "9.00 s cold", "3.00 s warm", "1.50 s"]
    (chart,) = (part for part in page.parts if isinstance(part, Chart))
    assert chart.chart.finding == (
        "slow · max-autotune needs 80.0 s cold to its first result; kernel compile is 50.0 % of it"
    )


def test_phases_stand_in_groups_with_the_largest_written_in_its_own(store: Store) -> None:
    store(started("slow", {"default": 10}, kernels=0.6))
    shown = frames(content_here(focus="slow"))["main"]
    # By hand, of 10 s: torch 1, dynamo 1, kernels 6, other .5, and 1.5 that no phase tells.
    assert list(zip(shown["group"], shown["left"], shown["right"], strict=True)) == [
        ("import", 0.0, pytest.approx(1)),
        ("trace", pytest.approx(1), pytest.approx(2)),
        ("kernels", pytest.approx(2), pytest.approx(8)),
        ("first run", pytest.approx(8), pytest.approx(8.5)),
        ("unattributed", pytest.approx(8.5), pytest.approx(10)),
    ]
    assert shown["label"].tolist() == ["", "", "kernel compile 60.0 %", "", ""]
    assert shown["phases_text"].tolist()[2:4] == ["kernel compile 6.00 s", "other 0.500 s"]


def test_every_phase_is_of_one_group() -> None:
    assert set(PHASES) == set(MEASURED)
    assert set(GROUP_OF.values()) == set(GROUPS)


@pytest.fixture(scope="module")
def many_models_url(store_once: Store) -> str:
    return store_once(make_history(workloads=MODELS, builds=("2.13.0",)))


def test_the_slowest_have_rows_and_the_table_has_all(
    many_models_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DATABASE, many_models_url)
    page = opened(Link(page=Page.COLD_START))
    assert f"The {MOST_ROWS} slowest of {len(MODELS)} rows. The table has all" in texts(page)
    (table,) = page.dataframe
    assert len(table.value) == 2 * len(MODELS)
    shown = json.loads(table.proto.columns)
    assert [shown[name]["label"] for name in ("first", "cost")] == ["First result (s)", "Compile cost (s)"]
    drawn = frames(content_here())
    sums = drawn["ends"]["seconds"].tolist()
    assert len(drawn["names"]) == MOST_ROWS
    assert sums == sorted(sums, reverse=True)


def test_a_case_that_tells_no_first_call_has_no_time_to_first_result(store: Store) -> None:
    store([make_imported(cold_start=ColdStart(build_model_ns=15_600_000_000))])
    page = opened(Link(page=Page.COLD_START))
    assert "needs 15.6 s" not in texts(page)
    assert "No time to first result is known: no case tells its first call" in texts(page)
    store([make_trial(workload="measured", compile_ns=2_000_000_000)])
    assert re.search(
        r"measured · default needs \S+ s cold to its first result", texts(opened(Link(page=Page.COLD_START)))
    )


def test_a_wrong_result_has_neither_a_bar_nor_a_number(store: Store) -> None:
    wrong = make_trial(workload="mlp", strategy="max-autotune", numerics=make_numerics(NumericsStatus.FAIL))
    right = make_trial(workload="mlp", trial_id="right", run_id="right")
    store([wrong, right])
    machine = read_choices().newest_machine
    page = cold_start.page(Link(page=Page.COLD_START, machine=machine))
    (chart,) = (part for part in page.parts if isinstance(part, Chart))
    (table,) = (part for part in page.parts if isinstance(part, Table))
    first = dict(zip(table.frame["strategy"], table.frame["first"], strict=True))
    assert pd.isna(first["max-autotune"])
    assert chart.chart.frames["names"]["row"].tolist() == [right.strategy.name]
    assert chart.chart.frames["ends"]["text"].tolist() == [f"{seconds_text(first[right.strategy.name])} cold"]


def test_production_stands_beside_the_benchmark(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "jobs"
    folder.mkdir()
    for rank, begin_s in ((0, 0.0), (1, 0.5), (0, 900.0), (1, 900.5)):
        recording = whole_recording(rank=rank, begin_s=begin_s, compile_s=8 if begin_s < 1 else 6)
        (folder / f"compilewatch_job_{rank}_{begin_s}.jsonl").write_text(recording)
    with open_database(store(make_history(workloads=("bert",), strategies=("eager", "default")))) as database:
        assert import_paths(database, [folder]).new == 4
    page = opened(Link(page=Page.COLD_START))
    benchmark, production, hosts = (table.value for table in page.dataframe)
    assert set(benchmark["workload"]) == {"bert"}
    # The newest of two executions: 16 s to the first step, 6 of them compiling, in two processes.
    (row,) = production.to_dict("records")
    assert (row["workload"], row["machine"], row["processes"]) == ("ranker", "gpu-box-3", 2)
    assert (row["first"], row["cost"]) == (16.0, 6.0)
    (host,) = hosts.to_dict("records")
    assert (host["workload"], host["host"], host["processes"]) == ("ranker", "gpu-box-3", 2)
