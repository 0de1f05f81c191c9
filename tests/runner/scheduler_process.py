"""A service in a process of its own that fires a schedule a second, and measures nothing.

Run as `python -m tests.runner.scheduler_process URL NAME TIMES`: it ends after so many firings.
"""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime

from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.cron import CronTrigger

from compilewatch.db.engine.session import open_database
from compilewatch.db.records.requests import RequestState, ScheduleSpec
from compilewatch.db.service.requests import end_request, take_request
from compilewatch.db.service.schedules import firings
from compilewatch.runner.service import timetable
from compilewatch.runner.service.timetable import Host, Timetable


def main(url: str, name: str, times: str) -> None:
    # Crontab has no seconds; the trigger is all that differs from a real service.
    timetable.parse_cron = lambda _cron, _timezone: CronTrigger(second="*", timezone="UTC")
    host = Host(name, f"{name}:1")
    with open_database(url) as database:
        table = Timetable(
            database,
            BackgroundScheduler(),
            host,
            {"often": ScheduleSpec(cron="* * * * *")},
            lambda: datetime.now(UTC),
        )
        table.start()
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while True:
            now = datetime.now(UTC)
            taken = take_request(database, owner=host.owner, at=now, fits=lambda _request: True)
            if taken is not None:
                sys.stdout.write(f"{taken.request_id}\n")
                state = RequestState.FINISHED
                end_request(database, taken.request_id, state, owner=host.owner, at=datetime.now(UTC))
            elif len(firings(database, "often")) >= int(times):
                break
            time.sleep(0.05)
        table.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
