"""What services and workers say on standard error: lines for people, or one JSON object per line."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

from compilewatch.db.errors import OneLine
from compilewatch.runner.config.sections import LogFormat

# What every record of the logging module has; the rest was given with `extra`.
_STANDARD = {*vars(logging.makeLogRecord({})), "message", "asctime", "taskName"}
# The pool of connections warns at every try while the server is away; whoever asks it says so once.
_QUIET_LIBRARIES = {"apscheduler": logging.WARNING, "alembic": logging.WARNING, "psycopg.pool": logging.ERROR}


class JsonLines(logging.Formatter):
    """`at` (UTC), `level`, `logger`, `message`, and what was given with `extra`, such as `trial_id`."""

    def format(self, record: logging.LogRecord) -> str:
        content: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        content |= {name: value for name, value in vars(record).items() if name not in _STANDARD}
        if record.exc_info:
            content["traceback"] = self.formatException(record.exc_info)
        return json.dumps(content, ensure_ascii=False, default=str)


def log_to_standard_error(style: LogFormat) -> None:
    """Send everything but details for debugging to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    if style == "json":
        handler.setFormatter(JsonLines())
    else:
        handler.setFormatter(OneLine("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    for library, least in _QUIET_LIBRARIES.items():
        logging.getLogger(library).setLevel(least)
