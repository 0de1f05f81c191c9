"""Imported results on the pages: told by their label, never drawn as measured ones."""

from __future__ import annotations

from datetime import timedelta

import pytest
from starlette.applications import Starlette

from compilewatch.dashboard.api.routes import routes
from compilewatch.dashboard.document.sections import sections
from compilewatch.dashboard.links.links import Link, Page
from compilewatch.dashboard.pages.upgrade.content import Beside, content_of
from compilewatch.dashboard.parts import verdict_words
from compilewatch.dashboard.parts.parts import flat, named
from compilewatch.dashboard.read.shaping import with_labels
from compilewatch.dashboard.verdicts import tables as upgrade_rows
from compilewatch.db.engine.session import open_database
from compilewatch.db.judge.compare.upgrade import compare_builds
from compilewatch.db.queries.trials import trials_frame
from compilewatch.db.records.trial import Source, SourceKind, Summary, Task, Trial
from compilewatch.db.verdicts.sides import resolve_side
from tests.builders import START, make_history, make_imported, make_workload
from tests.dashboard.asking import ask
from tests.dashboard.conftest import Store, opened, texts


@pytest.fixture(scope="module")
def mixed() -> list[Trial]:
    """mlp measured on two builds, and imported for the same machine and builds."""
    foreign = make_workload("mlp", version="imported-timm-csv")
    source = Source(kind=SourceKind.IMPORTED, name="timm-csv")
    imported = [
        make_imported(
            workload=foreign,
            strategy=strategy,
            build=build,
            source=source,
            run_id=f"imp-{build}",
            trial_id=f"imp-{build}-{strategy}",
            started_at=START,
        )
        for build in ("2.12.0", "2.13.0")
        for strategy in ("eager", "default")
    ]
    measured = make_history(workloads=("mlp",), builds=("2.12.0", "2.13.0"), trials_per_case=5)
    return [*measured, *imported]


def _imported_unet(format: str, **fields: object) -> list[Trial]:
    source = Source(kind=SourceKind.IMPORTED, name=format)
    workload = make_workload("unet", version=f"imported-{format}", **fields)
    return [
        make_imported(
            workload=workload,
            strategy=strategy,
            source=source,
            run_id=f"imp-{format}-{build}",
            build=build,
            started_at=START,
        )
        for build in ("2.12.0", "2.13.0")
        for strategy in ("eager", "default")
    ]


def _labels(store: Store, *trials: Trial) -> list[str]:
    with open_database(store(trials), read_only=True) as database:
        return sorted(set(with_labels(trials_frame(database))["workload_label"]))


def test_trends_draws_each_of_two_sources_of_one_workload(store: Store) -> None:
    labels = _labels(store, *_imported_unet("dynamo-csv"), *_imported_unet("oss-v3"))
    assert labels == ["unet (imported, dynamo-csv)", "unet (imported, oss-v3)"]
    for label in labels:
        page = opened(Link(page=Page.WORKLOAD, focus=label))
        assert f"No latency of {label} is known" not in texts(page)
        assert label in texts(page)


def test_what_is_not_known_of_a_size_is_left_out_and_the_task_told_where_only_it_differs(
    store: Store,
) -> None:
    untold = _imported_unet("dynamo-csv", batch_size=None)[:1]
    sized = _imported_unet("oss-v3", batch_size=8)[:1]
    training = _imported_unet("timm-csv", batch_size=8, task=Task.TRAINING)[:1]
    assert _labels(store, *untold, *sized, *training) == [
        "unet b8 inference (imported, oss-v3)",
        "unet b8 training (imported, timm-csv)",
        "unet inference (imported, dynamo-csv)",
    ]


def test_a_case_that_was_not_compared_is_marked_as_imported(mixed: list[Trial], store: Store) -> None:
    with open_database(store([*mixed, *_imported_unet("oss-v3")[:2]])) as database:
        base, head = (resolve_side(f"torch={torch}", database) for torch in ("2.12.0", "2.13.0"))
        comparison = compare_builds(trials_frame(database), base, head)
    asked = {("unet (imported, oss-v3)", strategy) for strategy in ("eager", "default")}
    frame = upgrade_rows.left_out_table(comparison.left_out)
    assert asked <= set(zip(frame["workload"], frame["strategy"], strict=True))
    (line,) = verdict_words.left_out_lines(comparison.left_out)
    assert "unet (imported, oss-v3) with default" in line
    page = content_of(comparison, {}, Link(page=Page.UPGRADE), Beside())
    (section,) = sections(named(flat(page.parts), "left-out"))
    assert "unet (imported, oss-v3)" in section.model_dump_json()
    found = ask(Starlette(routes=routes()), "/api/v1/compare?base=torch=2.12.0&head=torch=2.13.0").json
    assert {(case["source_kind"], case["source_name"]) for case in found["left_out"]} == {
        ("imported", "oss-v3")
    }


def test_the_figures_of_a_server_stand_on_the_page(store: Store) -> None:
    """Time to first token doubles, time per output token stands."""
    trials = [
        make_imported(
            workload=make_workload("llama serve, rate 4/s", version="imported-vllm-bench"),
            source=Source(kind=SourceKind.IMPORTED, name="vllm-bench"),
            build=build,
            run_id=f"imp-{build}",
            started_at=START + timedelta(minutes=number),
            summary=Summary(
                latency_ns=round(9_500_000 * scatter),
                metrics={"median_ttft_ms": ttft * scatter, "request_rate": 4.0, "output_throughput": 500.0},
            ),
        )
        for build, ttft in (("2.12.0", 55.0), ("2.13.0", 110.0))
        for number, scatter in enumerate((1.0, 1.003, 0.998, 1.002))
    ]
    store(trials)
    page = opened(Link(page=Page.UPGRADE, base="torch=2.12.0", head="torch=2.13.0"))
    assert not page.exception
    assert "TTFT 1 worse" in texts(page)
