"""Old reports lose their content: by the service once an hour, and by the command."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from compilewatch.db.engine.session import Database, open_database
from compilewatch.db.records.people import Report
from compilewatch.db.service.reports import REPORTS
from compilewatch.runner.config.sections import ReportSettings
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.process.spool import Spool
from compilewatch.runner.service.timetable import Host
from compilewatch.runner.service.upkeep import Upkeep
from tests.runner.terminal import in_this_process

NOW = datetime(2026, 11, 20, 20, 0, tzinfo=UTC)


def frozen(database: Database, name: str, age: timedelta, now: datetime = NOW) -> None:
    REPORTS.add(
        database,
        Report(
            report_id=name,
            title=name,
            created_at=now - age,
            created_by="Ann",
            data_version=1,
            content={"subject": "What it shows."},
        ),
    )


def has_content(database: Database, name: str) -> bool:
    report = REPORTS.get(database, name)
    return report.content is not None


@pytest.mark.parametrize(("keep_days", "kept"), [(None, True), (400, True), (30, False)])
def test_the_service_keeps_reports_as_long_as_configured(
    sqlite_database: Database, tmp_path: Path, keep_days: int | None, kept: bool
) -> None:
    frozen(sqlite_database, "old", timedelta(days=31))
    frozen(sqlite_database, "young", timedelta(days=29))
    settings = Settings(data_dir=tmp_path, report=ReportSettings(keep_days=keep_days)).model_copy(
        update={"service": Settings().service.model_copy(update={"watch_builds": False})}
    )
    upkeep = Upkeep(settings, sqlite_database, Host("box", "box:1"), Spool(tmp_path / "spool"))
    upkeep.when_idle(lambda: NOW, lambda: False)
    assert has_content(sqlite_database, "old") is kept
    assert has_content(sqlite_database, "young")


def test_the_command_expires_and_says_how_many(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'results.db'}"
    now = datetime.now(UTC)
    with open_database(url, migrate=True) as database:
        frozen(database, "old", timedelta(days=31), now)
        frozen(database, "young", timedelta(days=29), now)
    refused = in_this_process("report", "expire", "--db", url, cwd=tmp_path)
    assert (refused.returncode, "Give --older-than-days" in refused.stderr) == (2, True)
    done = in_this_process("report", "expire", "--older-than-days", "30", "--db", url, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "Took away 1 report older than 30 days.\n")
    with open_database(url, read_only=True) as database:
        assert not has_content(database, "old")
        assert has_content(database, "young")
