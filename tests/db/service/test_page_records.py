"""What readers and services leave beside measurements: stored views, hosts, expired reports."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import CompilewatchError
from compilewatch.db.queries.data_version import service_pulse
from compilewatch.db.records.hosts import HostDevice, HostState
from compilewatch.db.records.people import LONGEST_LINK, Report
from compilewatch.db.records.requests import RequestKind, RequestSpec
from compilewatch.db.service.hosts import HOSTS, note_host_stopped, save_host
from compilewatch.db.service.reports import REPORTS, expire_reports, report_subjects, store_view, stored_link
from compilewatch.db.service.requests import new_request, save_request

NOW = datetime(2026, 11, 20, 20, 0, tzinfo=UTC)


def test_one_view_has_one_id(database: Database) -> None:
    link = "trends?workload=" + "x" * 5000
    first = store_view(database, link, at=NOW, by="Ann")
    assert store_view(database, link, at=NOW + timedelta(days=1), by=None) == first
    assert store_view(database, f"{link}y", at=NOW, by=None) != first
    assert stored_link(database, first) == link
    assert stored_link(database, "missing") is None
    assert stored_link(database, "\x00") is None
    with pytest.raises(CompilewatchError, match="too long"):
        store_view(database, "x" * (LONGEST_LINK + 1), at=NOW, by=None)


def host(**changes: object) -> HostState:
    fields = {
        "name": "gpu-box",
        "owner": "gpu-box:1:ab",
        "started_at": NOW,
        "seen_at": NOW,
        "program_version": "1.0",
        "free_bytes": 2**40,
        "total_bytes": 2**41,
        "devices": (HostDevice(name="H200", temperature_c=31.0, throttle_reasons=()),),
        "devices_read_at": NOW,
    }
    return HostState.model_validate(fields | changes)


def test_a_host_is_what_its_service_said_last(database: Database) -> None:
    save_host(database, host(devices=None, devices_read_at=None))
    assert HOSTS.all(database) == [host(devices=None, devices_read_at=None)]
    later = host(owner="gpu-box:2:cd", seen_at=NOW + timedelta(minutes=1))
    save_host(database, later)
    assert HOSTS.all(database) == [later]
    note_host_stopped(database, "gpu-box", owner="gpu-box:1:ab", at=NOW)
    assert HOSTS.all(database) == [later]
    note_host_stopped(database, "gpu-box", owner="gpu-box:2:cd", at=NOW)
    assert HOSTS.all(database)[0].stopped_at == NOW


def test_the_pulse_of_the_service_beats_when_there_is_something_to_see(database: Database) -> None:
    quiet = service_pulse(database)
    assert service_pulse(database) == quiet
    save_request(database, new_request("r", RequestKind.MANUAL, RequestSpec(), by="Ann", at=NOW))
    asked = service_pulse(database)
    assert asked != quiet
    save_host(database, host())
    living = service_pulse(database)
    assert living != asked
    save_host(database, host(seen_at=NOW + timedelta(seconds=30)))
    assert service_pulse(database) == living
    save_host(database, host(seen_at=NOW + timedelta(seconds=61)))
    assert service_pulse(database) != living


def test_old_reports_lose_their_content_and_stay_known(database: Database) -> None:
    for name, days in (("old", 10), ("young", 1)):
        REPORTS.add(
            database,
            Report(
                report_id=name,
                title=name,
                created_at=NOW - timedelta(days=days),
                created_by="Ann",
                data_version=1,
                content={"subject": f"What {name} shows."},
            ),
        )
    assert report_subjects(database) == {"old": "What old shows.", "young": "What young shows."}
    assert expire_reports(database, NOW - timedelta(days=5), at=NOW) == 1
    assert expire_reports(database, NOW - timedelta(days=5), at=NOW) == 0
    old, young = REPORTS.get(database, "old"), REPORTS.get(database, "young")
    assert (old.content, old.revoked_by, old.revoked_at) == (None, "retention", NOW)
    assert young.revoked_at is None
    assert report_subjects(database) == {"young": "What young shows."}
