"""What of the configuration is in force, as `compilewatch dashboard` was started with."""

from __future__ import annotations

import os

from pydantic import ValidationError

from compilewatch.db.errors import ConfigError
from compilewatch.db.judge.policy import Policy, Target
from compilewatch.db.records.fields import Closed
from compilewatch.db.records.requests import Limits

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
