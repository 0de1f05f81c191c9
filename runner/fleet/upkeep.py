"""What a worker's host needs at start and hourly: waiting trials stored, upgrades seen, old traces deleted.

    python -m runner.fleet.upkeep PARENT [CONFIG]

A process that ends when it is done, so that the waiting worker need not hold what this imports.
"""

from __future__ import annotations

import logging
import socket
import sys
from datetime import UTC, datetime
from pathlib import Path

from db.engine.session import Database, open_database
from db.errors import CompilewatchError
from runner.config.settings import Settings
from runner.config.sources import load_settings
from runner.fleet.lifeline import die_with
from runner.fleet.names import queue_of_host
from runner.process.trace import forget_traces
from runner.service.fingerprint import request_where_changed
from runner.service.logs import log_to_standard_error
from runner.service.owner import owner_of
from runner.storage.persistence import store_waiting
from runner.storage.spool import Spool

_LOG = logging.getLogger("compilewatch.fleet")


def do_chores(settings: Settings, database: Database, *, host: str, owner: str, now: datetime) -> None:
    """Raises DatabaseError; what was done until then stays."""
    store_waiting(database, Spool(settings.data_dir / "spool"))
    if settings.service.watch_builds:
        request_where_changed(database, settings, host=host, machine=queue_of_host(host), owner=owner, at=now)
    forget_traces(settings.data_dir, settings.service.keep_traces_days, now)


def main(parent: str, config: str = "") -> int:
    """Do it once for this host. `parent`: the process id of the waiting worker.

    The exit code is 2 where it was not done, and the log says why.
    """
    die_with(int(parent))
    settings = load_settings(Path(config) if config else None)
    log_to_standard_error(settings.service.log_format)
    host = socket.gethostname()
    try:
        with open_database(settings.database_url) as database:
            do_chores(settings, database, host=host, owner=owner_of(host), now=datetime.now(UTC))
    except CompilewatchError as error:
        _LOG.warning("The hourly work of this host was not done: %s", error)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
