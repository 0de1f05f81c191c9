"""What pages show unless asked otherwise: what was measured last, whatever was imported since."""

from __future__ import annotations

from datetime import timedelta

import pytest

from dashboard.links import Link, Page
from db.records import Source, SourceKind, Trial
from db.session import open_database
from db.store import save_trials
from tests.builders import START, make_history, make_imported, make_machine, make_workload
from tests.dashboard.conftest import DATABASE, opened

ANOTHER = "gpu-box-9"
SOURCE = Source(kind=SourceKind.IMPORTED, name="csv")


def imported(machine: str, *, run_id: str = "later") -> list[Trial]:
    """Results of another tool, of a newer build, a year after anything that was measured."""
    return [
        make_imported(
            workload=make_workload("cnn", version="imported"),
            strategy=strategy,
            machine=make_machine(machine, device_name="NVIDIA L4" if machine == ANOTHER else "NVIDIA H200"),
            build="2.99.0",
            source=SOURCE,
            run_id=run_id,
            trial_id=f"{run_id}-{strategy}",
            started_at=START + timedelta(days=365),
        )
        for strategy in ("eager", "default")
    ]


def chosen(url: str, trials: list[Trial], monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """The machine and the build that the Overview shows."""
    with open_database(url) as database:
        save_trials(database, trials)
    monkeypatch.setenv(DATABASE, url)
    page = opened(Link(page=Page.OVERVIEW))
    assert not page.exception
    machine, build = (page.sidebar.selectbox(f"select-{key}") for key in ("machine", "build"))
    return machine.options[0], build.options[0]


@pytest.mark.parametrize("machine", ["gpu-box-3", ANOTHER])
def test_an_import_of_a_later_day_is_not_the_newest(
    machine: str, sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the machine that measures, and on another."""
    measured = make_history(workloads=("mlp",))
    shown = chosen(sqlite_url, [*measured, *imported(machine)], monkeypatch)
    assert shown[0].startswith("Newest: gpu-box-3 ")
    assert shown[1] == "Newest: torch 2.13.0"


def test_many_later_imports_are_not_the_newest(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    later = [trial for number in range(60) for trial in imported(ANOTHER, run_id=f"later-{number}")]
    shown = chosen(sqlite_url, [*make_history(workloads=("mlp",)), *later], monkeypatch)
    assert shown[0].startswith("Newest: gpu-box-3 ")


def test_where_nothing_was_measured_imports_are_the_newest(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = chosen(sqlite_url, imported(ANOTHER), monkeypatch)
    assert shown[0].startswith("Newest: gpu-box-9 ")
    assert shown[1] == "Newest: torch 2.99.0"
