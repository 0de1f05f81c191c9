"""Pages say that a schedule has fallen silent, with no service alive that could."""

from __future__ import annotations

from datetime import timedelta

import pytest

from compilewatch.dashboard.links.links import Link, Page
from compilewatch.db.engine.session import open_database
from compilewatch.db.records.requests import ScheduleSpec
from compilewatch.db.service.schedules import save_due, save_schedule
from tests.builders import START
from tests.dashboard.conftest import opened


@pytest.mark.parametrize("page", [Page.OVERVIEW, Page.RUNS])
def test_a_silent_schedule_is_told(page: Page, copied_url: str) -> None:
    with open_database(copied_url) as database:
        save_schedule(database, "night*ly", ScheduleSpec(cron="0 3 * * *"), at=START - timedelta(days=900))
        due_at = START - timedelta(days=800)
        save_due(database, "night*ly", last_result_at=None, due_at=due_at)
    test = opened(Link(page=page))
    (warning,) = [element.value for element in test.warning]
    assert r"night\*ly" in warning
    assert "has produced nothing for its period" in warning
