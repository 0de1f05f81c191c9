"""The database that the dashboard reads: where it is, opened once for all threads, and what of the
configuration is in force.

Opened for reading only, but for what running jobs say: hundreds of ranks do every few seconds, and opening
anew takes four times what writing does. Nothing here migrates.
"""

from __future__ import annotations

import os
from functools import lru_cache
from threading import Lock

from pydantic import ValidationError

from compilewatch.db.engine.session import Database, open_database
from compilewatch.db.errors import CompilewatchError, ConfigError, DatabaseError
from compilewatch.db.judge.policy import Policy, Target
from compilewatch.db.queries.data_version import data_version
from compilewatch.db.records.fields import Closed
from compilewatch.db.records.requests import Limits
from compilewatch.db.service.integrity import first_damage

DATABASE_VARIABLE = "COMPILEWATCH_DATABASE_URL"
DEFAULT_DATABASE_URL = "sqlite:///compilewatch.db"

_open: dict[tuple[str, bool], Database] = {}
_opening = Lock()


def database_url() -> str:
    """The URL that the environment names, else that of a file in the working directory."""
    return os.environ.get(DATABASE_VARIABLE, DEFAULT_DATABASE_URL)


def opened(url: str, *, read_only: bool = True) -> Database:
    """The database at `url`, shared by all threads. Raises DatabaseError."""
    with _opening:
        if (url, read_only) not in _open:
            _open[url, read_only] = open_database(url, read_only=read_only)
        return _open[url, read_only]


def reader() -> Database:
    """`opened` for the database of this process. Raises DatabaseError."""
    return opened(database_url())


def read_version() -> int:
    """The data version now. Raises DatabaseError when the database cannot be read."""
    return data_version(reader())


def sentence_of(error: Exception) -> CompilewatchError | None:
    """What to tell of a failure: what a person can act on, else the damaged row of the database that it may
    come from; None where there is none, and the failure is a defect of ours.
    """
    if isinstance(error, CompilewatchError):
        return error
    try:
        return _damage(database_url(), read_version())
    except CompilewatchError as away:
        return away


@lru_cache(maxsize=4)
def _damage(url: str, _version: int) -> DatabaseError | None:
    """Searched once for each version of the data, however many pages fail over it."""
    return first_damage(opened(url))


def close_databases() -> None:
    """Close what was opened; a later read opens it again."""
    with _opening:
        while _open:
            _open.popitem()[1].close()


VARIABLE = "COMPILEWATCH_IN_FORCE"


class InForce(Closed):
    """The judge's policy, the [[target]] entries and [limits]."""

    policy: Policy = Policy()
    target: tuple[Target, ...] = ()
    limits: Limits = Limits()


def in_force() -> InForce:
    """That in the environment as JSON, else the defaults. Raises ConfigError."""
    try:
        return InForce.model_validate_json(os.environ.get(VARIABLE) or "{}")
    except ValidationError as error:
        raise ConfigError(
            f"The environment variable {VARIABLE} holds no settings.",
            "Unset it and write them in compilewatch.toml.",
        ) from error
