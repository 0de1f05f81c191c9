"""The judge's policy in force: that of the configuration with which `compilewatch dashboard` was started."""

from __future__ import annotations

import os

from pydantic import ValidationError

from db.errors import ConfigError
from db.verdicts.policy import Policy

VARIABLE = "COMPILEWATCH_POLICY"


def policy_in_force() -> Policy:
    """The policy in the environment as JSON, else the default one. Raises ConfigError."""
    text = os.environ.get(VARIABLE)
    if not text:
        return Policy()
    try:
        return Policy.model_validate_json(text)
    except ValidationError as error:
        raise ConfigError(
            f"The environment variable {VARIABLE} holds no policy.",
            "Unset it and write [policy] in compilewatch.toml.",
        ) from error
