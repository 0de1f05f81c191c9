"""What pages show unless asked otherwise: what was measured last, whatever was imported since."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from dashboard.links.links import Link, Page
from db.engine.session import open_database
from db.metrics.groups import row_dicts
from db.queries.facets import builds
from db.records.trial import Source, SourceKind, Trial
from tests.builders import START, make_history, make_imported, make_machine, make_workload
from tests.dashboard.conftest import Store, opened

ANOTHER = "gpu-box-9"
SOURCE = Source(kind=SourceKind.IMPORTED, name="csv")


def imported(
    machine: str,
    *,
    build: str = "2.99.0",
    run_id: str = "later",
    started_at: datetime = START + timedelta(days=365),
) -> list[Trial]:
    """Results of another tool, of a newer build, a year after anything that was measured."""
    return [
        make_imported(
            workload=make_workload("cnn", version="imported"),
            strategy=strategy,
            machine=make_machine(machine, device_name="NVIDIA L4" if machine == ANOTHER else "NVIDIA H200"),
            build=build,
            source=SOURCE,
            run_id=run_id,
            trial_id=f"{run_id}-{strategy}",
            started_at=started_at,
        )
        for strategy in ("eager", "default")
    ]


def chosen(store: Store, trials: list[Trial]) -> tuple[str, str]:
    """The machine and the build that the Overview shows."""
    store(trials)
    page = opened(Link(page=Page.OVERVIEW))
    assert not page.exception
    machine, build = (page.sidebar.selectbox(f"select-{key}") for key in ("machine", "build"))
    return machine.options[0], build.options[0]


@pytest.mark.parametrize("machine", ["gpu-box-3", ANOTHER])
def test_an_import_of_a_later_day_is_not_the_newest(machine: str, store: Store) -> None:
    """On the machine that measures, and on another."""
    measured = make_history(workloads=("mlp",))
    shown = chosen(store, [*measured, *imported(machine)])
    assert shown[0] == "Newest: gpu-box-3"
    assert shown[1] == "Newest: torch 2.13.0"


def test_the_whole_name_of_the_machine_stands_below_its_box(store: Store) -> None:
    trials = make_history(workloads=("mlp",))
    store(trials)
    sidebar = opened(Link(page=Page.OVERVIEW)).sidebar
    captions = [caption.value.replace("\\", "") for caption in sidebar.caption]
    machine = trials[0].machine
    assert f"{machine.name} ({machine.device_name})" in captions


def test_many_later_imports_are_not_the_newest(store: Store) -> None:
    later = [trial for number in range(60) for trial in imported(ANOTHER, run_id=f"later-{number}")]
    shown = chosen(store, [*make_history(workloads=("mlp",)), *later])
    assert shown[0] == "Newest: gpu-box-3"


def test_where_nothing_was_measured_imports_are_the_newest(store: Store) -> None:
    shown = chosen(store, imported(ANOTHER))
    assert shown[0] == "Newest: gpu-box-9"
    assert shown[1] == "Newest: torch 2.99.0"


def sides(store: Store, trials: list[Trial], **asked: Any) -> tuple[str, str]:
    """Base and head that Upgrade shows; it offers all builds, the newest first."""
    with open_database(store(trials), read_only=True) as database:
        stored = {row["torch"]: row["build_id"] for row in row_dicts(builds(database))}
    asked = {key: stored.get(value, value) for key, value in asked.items()}
    page = opened(Link(page=Page.UPGRADE, **asked))
    assert not page.exception
    base, head = (page.selectbox(f"select-{key}") for key in ("base", "head"))
    assert base.options == head.options == [f"torch {torch}" for torch in sorted(stored, reverse=True)]
    return base.format_func(base.value), head.format_func(head.value)


MEASURED = ("2.11.0", "2.12.0", "2.13.0")


@pytest.mark.parametrize(
    ("measured", "asked", "shown"),
    [
        (MEASURED, {}, ("torch 2.12.0", "torch 2.13.0")),
        (MEASURED, {"task": ("inference",)}, ("torch 2.12.0", "torch 2.13.0")),
        (MEASURED, {"head": "2.12.0"}, ("torch 2.11.0", "torch 2.12.0")),
        (MEASURED, {"head": "2.11.0"}, ("torch 2.13.0", "torch 2.11.0")),
        (MEASURED, {"base": "2.13.0"}, ("torch 2.13.0", "torch 2.12.0")),
        (MEASURED, {"head": "2.99.0"}, ("torch 2.13.0", "torch 2.99.0")),
        (MEASURED, {"base": "2.99.0"}, ("torch 2.99.0", "torch 2.13.0")),
        (MEASURED[:1], {}, ("torch 2.98.0", "torch 2.99.0")),
        ((), {}, ("torch 2.98.0", "torch 2.99.0")),
    ],
)
def test_an_upgrade_is_between_measured_builds_unless_imported_ones_are_chosen(
    measured: tuple[str, ...],
    asked: dict[str, Any],
    shown: tuple[str, str],
    store: Store,
) -> None:
    earlier = START + timedelta(days=364)
    trials = [
        *(make_history(workloads=("bert-base",), builds=measured) if measured else []),
        *imported("gpu-box-3", build="2.98.0", run_id="earlier", started_at=earlier),
        *imported("gpu-box-3"),
    ]
    assert sides(store, trials, **asked) == shown


def test_without_records_the_newest_measured_run_is_judged(store: Store) -> None:
    """Of an imported one alone it would say that no run came before it."""
    store([*make_history(workloads=("mlp",)), *imported("gpu-box-3")])
    page = opened(Link(page=Page.REGRESSIONS))
    assert not page.exception
    said = " ".join(element.value for element in (*page.markdown, *page.info, *page.caption))
    assert "No regression is recorded" in said
    assert "not comparable" not in said
    assert "Compared 2 of 2 cases" in said
