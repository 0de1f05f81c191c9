"""Watches of readers: who is to be told of which regressions, and no longer."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime

from ulid import ULID

from compilewatch.dashboard.login.access import Role, require
from compilewatch.dashboard.read.database import database_url
from compilewatch.dashboard.read.in_force import in_force
from compilewatch.db.engine.session import open_database
from compilewatch.db.errors import ConfigError
from compilewatch.db.records.people.watches import Watch
from compilewatch.db.store.people.watches import remove_watch, save_watch


def watch(
    *, by: str, channel: str, address: str, machine_id: str | None, workload: str | None, daily: bool
) -> str:
    """Keep a watch: a sentence on it. Raises CompilewatchError, ValidationError."""
    require(Role.EDITOR)
    sends_mail = in_force().channels.get(channel)
    if sends_mail is None:
        raise ConfigError(f"No channel is called {channel!r}.", "Choose one that is offered.")
    now = datetime.now(UTC)
    kept = Watch(
        watch_id=str(ULID()),
        key=secrets.token_urlsafe(24),
        author=by,
        channel=channel,
        address=address.strip() or None if sends_mail else None,
        machine_id=machine_id,
        workload=workload,
        daily=daily,
        made_at=now,
        told_at=now,
    )
    with open_database(database_url()) as database:
        save_watch(database, kept)
    return f"{kept.address or channel} is told {'once a day' if daily else 'at once'}."


def unwatch(key: str) -> str:
    """End the watch that `key` opens: a sentence on it. Raises CompilewatchError."""
    with open_database(database_url()) as database:
        ended = remove_watch(database, key)
    return "Nothing more is sent." if ended else "It had ended already."
