"""The tables of what `db.records` has field by field: what people wrote, what services and hosts said.

A new field of such a record is a column, and a migration.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Index, Integer, Table

from compilewatch.db.records.people.annotations import Annotation
from compilewatch.db.records.people.issues import IssueScript
from compilewatch.db.records.people.reports import Report
from compilewatch.db.records.service.fleet import FleetWorker, Launch
from compilewatch.db.records.service.hosts import HostHealth, HostState
from compilewatch.db.records.service.requests import RunRequest
from compilewatch.db.records.service.schedules import Firing, Schedule, ScheduleWatch
from compilewatch.db.records.service.tokens import Token
from compilewatch.db.tables.metadata import KEY, table_of

_MACHINE: dict[str, Any] = {"foreign_key": "machine.machine_id"}
_BUILD: dict[str, Any] = {"foreign_key": "build.build_id"}
_SCHEDULE: dict[str, Any] = {"primary_key": True, "foreign_key": "schedule.name"}

ANNOTATION: Table = table_of(
    "annotation", Annotation, annotation_id=KEY, build_id=_BUILD, machine_id=_MACHINE
)
ISSUE_SCRIPT: Table = table_of("issue_script", IssueScript, issue_id=KEY)
REPORT: Table = table_of("report", Report, report_id=KEY)
"""Revoking a report takes the content away and leaves that it was there."""
API_TOKEN: Table = table_of("api_token", Token, token_id=KEY, secret_hash={"index": True, "unique": True})
FLEET_WORKER: Table = table_of("fleet_worker", FleetWorker, owner=KEY)
FLEET_LAUNCH: Table = table_of(
    "fleet_launch", Launch, launch_id=KEY, queue={"index": True}, exit_code={"sa_type": Integer}
)
HOST: Table = table_of("host", HostState, name=KEY)
HOST_HEALTH: Table = table_of("host_health", HostHealth, host=KEY)
SCHEDULE: Table = table_of("schedule", Schedule, name=KEY)
SCHEDULE_WATCH: Table = table_of("schedule_watch", ScheduleWatch, schedule=_SCHEDULE)
RUN_REQUEST: Table = table_of("run_request", RunRequest, request_id=KEY)
Index(None, RUN_REQUEST.c.state, RUN_REQUEST.c.priority, RUN_REQUEST.c.asked_at)
FIRING: Table = table_of(
    "firing", Firing, schedule=_SCHEDULE, fire_at=KEY, request_id={"foreign_key": "run_request.request_id"}
)
"""The key is the claim: of any number of services only one can insert a firing."""
