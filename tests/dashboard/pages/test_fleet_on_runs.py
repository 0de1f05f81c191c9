"""Runs shows a fleet: who lives, what became of launches, and what a failed one printed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import insert
from streamlit.testing.v1 import AppTest

from compilewatch.dashboard.document.page import render
from compilewatch.dashboard.links.links import Link, Page, href
from compilewatch.dashboard.pages.runs.fleet import WORKERS, fleet
from compilewatch.dashboard.reports.freeze import freeze_link
from compilewatch.db.engine.session import Database, open_database
from compilewatch.db.engine.tables import FLEET_WORKER
from compilewatch.db.records.hosts import FleetWorker, Launch
from compilewatch.db.service.fleet import claim_launch, end_launch
from tests.builders import make_trial
from tests.dashboard.conftest import Store, opened, texts

PRINTED = "sbatch: error: invalid partition <script>alert(1)</script>\n![x](http://evil.example/a.png) *gpu*"


def _now() -> datetime:
    """Asked when a test runs: the file may be imported many minutes before."""
    return datetime.now(UTC)


def printed(test: AppTest) -> list[str]:
    """What stands on the page as it is, but for its own link."""
    return [each.value for each in test.code if not each.value.startswith("/runs")]


def _worker(owner: str, *, heard: timedelta, stopped: timedelta | None = None) -> FleetWorker:
    return FleetWorker(
        owner=owner,
        queue="nvidia-h200",
        host="node-7",
        served="GPU 0",
        started_at=_now() - timedelta(days=9),
        seen_at=_now() - heard,
        stopped_at=None if stopped is None else _now() - stopped,
        measured=41,
    )


def _launched(db: Database, launch_id: str, queue: str, ago: timedelta, **ended: object) -> None:
    at = _now() - ago
    launch = Launch(
        launch_id=launch_id, queue=queue, host="boss", launched_at=at, worker_due_at=at + timedelta(hours=1)
    )
    later = {"stalled_s": 30.0, "alive_after": _now()}
    assert claim_launch(db, launch, lambda *_: True, **later)
    if ended:
        end_launch(db, launch_id, at=at + timedelta(seconds=2), **ended)


@pytest.fixture
def fleet_url(store: Store) -> str:
    workers = (
        _worker("node-7:1", heard=timedelta(seconds=4)),
        _worker("node-8:2", heard=timedelta(hours=2)),
        _worker("node-9:3", heard=timedelta(hours=3), stopped=timedelta(hours=3)),
        _worker("node-9:0", heard=timedelta(days=3), stopped=timedelta(days=3)),
    )
    url = store([make_trial()])
    with open_database(url) as database:
        with database.write() as connection:
            connection.execute(insert(FLEET_WORKER), [each.model_dump() for each in workers])
        _launched(database, "1", "nvidia-h200", timedelta(hours=4), exit_code=1, output="an older failure")
        _launched(database, "2", "nvidia-h200", timedelta(minutes=5), exit_code=0, output="4711\n")
        _launched(database, "3", "nvidia-a100", timedelta(minutes=3), exit_code=1, output=PRINTED)
    return url


@pytest.mark.usefixtures("fleet_url")
def test_workers_and_launches_are_on_the_page_and_in_its_report() -> None:
    test = opened(Link(page=Page.RUNS))
    tables = [each.value for each in test.dataframe]
    workers = next(table for table in tables if "measured" in table).set_index("owner")
    states = {owner: state.partition(" for ")[0] for owner, state in workers["state"].items()}
    assert states == {"node-7:1": "● running", "node-8:2": "✗ silent", "node-9:3": "○ stopped"}
    launches = next(table for table in tables if "last_line" in table)
    assert launches["state"].tolist() == ["✗ failed", "○ pending", "✗ failed"]
    assert launches["queue"].tolist() == ["nvidia-a100", "nvidia-h200", "nvidia-h200"]
    assert "1 of 3 workers running." in texts(test)
    # As it is, never as Markdown; of the other machine type the newest launch did not fail.
    assert printed(test) == [PRINTED]

    page = render(freeze_link(href(Link(page=Page.RUNS)), title=None, by="ann", at=_now()))
    for text in ("node-7:1", "✗ silent for", "1 of 3 workers running.", "○ pending", "invalid partition"):
        assert text in page
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "node-9:0" not in page, "it stopped days ago"


@pytest.mark.usefixtures("fleet_url")
def test_a_launch_that_is_chosen_shows_its_whole_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "compilewatch.dashboard.render.elements.picked_rows", lambda key: [1] * (key == "runs-launches")
    )
    assert printed(opened(Link(page=Page.RUNS))) == ["4711", PRINTED]


def test_without_a_fleet_nothing_is_said_of_it() -> None:
    assert fleet([], [], _now()) == ()
    stopped = _worker("a", heard=timedelta(0), stopped=timedelta(0))
    (table,) = fleet([stopped], [], _now() + timedelta(hours=1))
    assert (table.key, table.note) == (WORKERS, "0 of 1 worker running.")
    assert fleet([stopped], [], _now() + timedelta(hours=30)) == ()


def test_a_launch_that_brought_no_worker_in_time_shows_its_output() -> None:
    launch = Launch(
        launch_id="1",
        queue="h200",
        host="boss",
        launched_at=_now(),
        worker_due_at=_now() + timedelta(hours=1),
        ended_at=_now(),
        exit_code=0,
        output="",
    )
    assert len(fleet([], [launch], _now())) == 1
    *_, output = fleet([], [launch], _now() + timedelta(hours=1))
    assert (output.code, output.lines) == (True, ("It printed nothing.",))
