"""Who is at this terminal, for what keeps a name."""

from __future__ import annotations

import getpass
import socket

from db.errors import ConfigError, one_line

LONGEST_NAME = 200


def author(by: str | None) -> str:
    """`by`, else the user's name on this machine, in one line. Raises ConfigError where there is neither."""
    if by is not None and not by.strip():
        raise ConfigError("--by is empty.", "Say who you are, or leave it out.")
    try:
        return one_line(by or getpass.getuser(), LONGEST_NAME)
    except (OSError, KeyError, ImportError) as error:
        raise ConfigError("This user has no name on this machine.", "Say who you are with --by.") from error


def who_asks() -> str:
    """The person at this terminal and its host, for the history of a request: "anna@gpu-box-3"."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError, ImportError):
        user = "somebody"
    return f"{user}@{socket.gethostname()}"
