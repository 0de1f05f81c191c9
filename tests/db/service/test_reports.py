"""Reports: stored whole, revoked for good, and no change of the measured data."""

from __future__ import annotations

from datetime import timedelta

import pytest

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import NotFoundError
from compilewatch.db.queries.data_version import data_version
from compilewatch.db.records.people import Report, new_report_id
from compilewatch.db.service.reports import REPORTS, reports_frame, revoke_report
from tests.builders import START


def make_report(**overrides: object) -> Report:
    fields: dict[str, object] = {
        "report_id": new_report_id(),
        "title": "2.12 against 2.13",
        "created_at": START,
        "created_by": "ann",
        "data_version": 7,
        "content": {"sections": [{"lines": ["ä", "\u202e", 1e23]}]},
    }
    return Report.model_validate(fields | overrides)


def test_a_report_comes_back_as_it_was(database: Database) -> None:
    before, report = data_version(database), make_report()
    REPORTS.add(database, report)
    assert REPORTS.get(database, report.report_id) == report
    assert data_version(database) == before


@pytest.mark.parametrize("unknown", ["", "none-such", "a\x00b"])
def test_an_unknown_report_is_none(database: Database, unknown: str) -> None:
    assert REPORTS.get(database, unknown) is None


def test_revoking_takes_the_content_away_and_says_who(database: Database) -> None:
    report = make_report()
    REPORTS.add(database, report)
    later = START + timedelta(days=1)
    revoked = revoke_report(database, report.report_id, at=later, by="ben")
    assert revoked == report.model_copy(update={"content": None, "revoked_at": later, "revoked_by": "ben"})
    again = revoke_report(database, report.report_id, at=later + timedelta(days=1), by="eve")
    assert again == revoked == REPORTS.get(database, report.report_id)


def test_what_never_was_cannot_be_revoked(database: Database) -> None:
    with pytest.raises(NotFoundError):
        revoke_report(database, "none-such", at=START, by="ann")


def test_the_list_is_newest_first(database: Database) -> None:
    older, newer = make_report(), make_report(created_at=START + timedelta(hours=1))
    for report in (older, newer):
        REPORTS.add(database, report)
    frame = reports_frame(database)
    assert list(frame["report_id"]) == [newer.report_id, older.report_id]
    assert frame["revoked_at"].isna().all()


def test_ids_are_long_random_and_fit_an_address() -> None:
    ids = {new_report_id() for _ in range(1000)}
    assert len(ids) == 1000
    assert all(len(each) == 32 and each.isalnum() for each in ids)
