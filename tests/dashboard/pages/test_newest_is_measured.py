"""What pages show unless asked otherwise: what was measured last, whatever was imported since."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import cache
from typing import Any

import pytest

from compilewatch.dashboard.links.links import Link, Page
from compilewatch.db.records.trial import Source, SourceKind, Trial
from tests.builders import START, make_history, make_imported, make_machine, make_workload
from tests.dashboard.conftest import DATABASE, Store, build_ids, opened, selector

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
    machine, build = (selector(page, key) for key in ("machine", "build"))
    return machine.options[0], build.options[0]


@pytest.mark.parametrize(("machine", "imports"), [("gpu-box-3", 1), (ANOTHER, 60)])
def test_an_import_of_a_later_day_is_not_the_newest(machine: str, imports: int, store: Store) -> None:
    """On the machine that measures, and, many times, on another."""
    measured = make_history(workloads=("mlp",))
    later = [trial for number in range(imports) for trial in imported(machine, run_id=f"later-{number}")]
    assert chosen(store, [*measured, *later]) == ("gpu-box-3", "Newest: torch 2.13.0")
    captions = [caption.value.replace("\\", "") for caption in opened(Link()).caption]
    whole = measured[0].machine
    assert any(f"{whole.name} ({whole.device_name}): newest" in caption for caption in captions)


MEASURED = ("2.11.0", "2.12.0", "2.13.0")


@pytest.fixture(scope="module")
def imported_beside(store_once: Store) -> Callable[[int], str]:
    """The URL of a database of so many measured builds and two imported ones."""

    @cache
    def url(measured: int) -> str:
        earlier = START + timedelta(days=364)
        history = make_history(workloads=("bert-base",), builds=MEASURED[:measured]) if measured else []
        before = imported("gpu-box-3", build="2.98.0", run_id="earlier", started_at=earlier)
        return store_once([*history, *before, *imported("gpu-box-3")])

    return url


@pytest.mark.parametrize(
    ("measured", "asked", "shown"),
    [
        (3, {}, ("2.12.0", "2.13.0")),
        (3, {"task": ("inference",)}, ("2.12.0", "2.13.0")),
        (3, {"head": "2.12.0"}, ("2.11.0", "2.12.0")),
        (3, {"base": "2.13.0"}, ("2.13.0", "2.12.0")),
        (3, {"head": "2.99.0"}, ("2.13.0", "2.99.0")),
        (3, {"base": "2.99.0"}, ("2.99.0", "2.13.0")),
        (1, {}, ("2.98.0", "2.99.0")),
        (0, {}, ("2.98.0", "2.99.0")),
    ],
)
def test_an_upgrade_is_between_measured_builds_unless_imported_ones_are_chosen(
    imported_beside: Callable[[int], str],
    measured: int,
    asked: dict[str, Any],
    shown: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It offers all builds, the newest first."""
    url = imported_beside(measured)
    monkeypatch.setenv(DATABASE, url)
    stored = build_ids(url)
    page = opened(Link(page=Page.UPGRADE, **{key: stored.get(name, name) for key, name in asked.items()}))
    sides = [selector(page, key) for key in ("base", "head")]
    offered = [f"torch {torch}" for torch in sorted(stored, reverse=True)]
    assert [side.options for side in sides] == [offered, offered]
    assert [side.format_func(side.value) for side in sides] == [f"torch {torch}" for torch in shown]


def test_the_oldest_measured_build_has_no_base_of_its_own(
    imported_beside: Callable[[int], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    url = imported_beside(3)
    monkeypatch.setenv(DATABASE, url)
    base = selector(opened(Link(page=Page.UPGRADE, head=build_ids(url)["2.11.0"])), "base")
    assert base.format_func(base.value) == "No older build"


def test_without_records_the_newest_measured_run_is_judged(store: Store) -> None:
    """Of an imported one alone it would say that no run came before it."""
    store([*make_history(workloads=("mlp",)), *imported("gpu-box-3")])
    page = opened(Link(page=Page.REGRESSIONS))
    said = " ".join(element.value for element in (*page.markdown, *page.info, *page.caption))
    assert "No regression is recorded" in said
    assert "not comparable" not in said
    assert "Compared 2 of 2 cases" in said
