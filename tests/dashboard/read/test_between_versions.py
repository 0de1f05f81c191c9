"""What is written while pages are still drawn of an earlier version of the data."""

from __future__ import annotations

from datetime import timedelta

import pytest

from compilewatch.dashboard.links.links import Link, Page
from compilewatch.dashboard.read.versions import REFRESH_THROTTLE, drawn_version
from compilewatch.db.engine.session import Database, open_database
from compilewatch.db.service.recording import record_comparison
from compilewatch.db.store.trials import save_trials
from compilewatch.db.verdicts.gateway import compare
from compilewatch.db.verdicts.sides import resolve_side
from tests.builders import MS, START, make_build, make_history, make_machine
from tests.dashboard.conftest import opened, texts

PAGES = [page for page in Page if page is not Page.GUIDE]
NEW_TORCH, NEW_MACHINE, NEW_WORKLOAD = "2.99.0", "new-box", "brand-new"


def save_a_night(database: Database) -> None:
    """A build, a machine and a workload that nobody has seen, and a regression of them."""
    builds = ("2.13.0", make_build(NEW_TORCH))
    known = make_history(
        workloads=("bert-base", NEW_WORKLOAD), builds=builds, start=START + timedelta(days=1), seed=31
    )
    beside = make_history(
        workloads=("bert-base",),
        strategies=("eager", "default"),
        builds=builds,
        machines=(make_machine(NEW_MACHINE),),
        latency_ns=lambda _, __, run: (10 + 5 * run) * MS,
        start=START + timedelta(days=1),
        seed=37,
    )
    save_trials(database, [*known, *beside])
    base, head = (resolve_side(f"torch={torch}", database) for torch in ("2.13.0", NEW_TORCH))
    record_comparison(database, compare(database, base, head), at=START)


@pytest.fixture
def drawn_of_before(copied_recorded_url: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """The version that pages are drawn of, after which a night was written that they do not take up yet."""
    # What there is to choose from is read once a version, by whichever page comes first.
    opened(Link(page=Page.GUIDE))
    monkeypatch.setattr(REFRESH_THROTTLE, "_every_s", 1e9)
    before = drawn_version()
    with open_database(copied_recorded_url) as database:
        save_a_night(database)
    assert drawn_version() == before
    return before


EVERY_OTHER = [
    pytest.param(page, marks=[pytest.mark.slow] if place % 2 else []) for place, page in enumerate(PAGES)
]


@pytest.mark.parametrize("page", EVERY_OTHER)
def test_a_build_that_came_since_waits_for_the_next_version(page: Page, drawn_of_before: int) -> None:
    drawn = opened(Link(page=page))
    said = texts(drawn) + "".join(str(frame.value) for frame in drawn.dataframe)
    assert "This page failed" not in said
    assert NEW_TORCH not in said
