"""What a fleet needs before anything is started."""

from __future__ import annotations

import importlib.util

from compilewatch.db.errors import ConfigError


def require_fleet(database_url: str) -> None:
    """Raises ConfigError where the database is not PostgreSQL, or the extra is not installed."""
    if not database_url.startswith(("postgresql", "postgres:")):
        raise ConfigError(
            "A fleet needs a database on PostgreSQL: workers on other hosts share it.",
            "Name one with --db postgresql://USER@HOST/NAME, or leave [fleet] queues empty to measure here.",
        )
    if importlib.util.find_spec("procrastinate") is None:
        raise ConfigError(
            "The queue of a fleet, procrastinate, is not installed.",
            "Run `pip install 'compilewatch[fleet]'`.",
        )
