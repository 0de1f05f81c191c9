"""The judge's policy, the targets and the limits in force, as `compilewatch dashboard` was started with."""

from __future__ import annotations

import os

from pydantic import TypeAdapter, ValidationError

from db.errors import ConfigError
from db.judge.policy import Policy
from db.judge.targets import Target
from db.records.limits import Limits

VARIABLE = "COMPILEWATCH_POLICY"
TARGETS_VARIABLE = "COMPILEWATCH_TARGETS"
LIMITS_VARIABLE = "COMPILEWATCH_LIMITS"

_TARGETS = TypeAdapter(tuple[Target, ...])


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


def targets_in_force() -> tuple[Target, ...]:
    """The [[target]] entries in the environment as JSON, else none. Raises ConfigError."""
    text = os.environ.get(TARGETS_VARIABLE)
    if not text:
        return ()
    try:
        return _TARGETS.validate_json(text)
    except ValidationError as error:
        raise ConfigError(
            f"The environment variable {TARGETS_VARIABLE} holds no targets.",
            "Unset it and write [[target]] in compilewatch.toml.",
        ) from error


def limits_in_force() -> Limits:
    """[limits] in the environment as JSON, else the default ones. Raises ConfigError."""
    text = os.environ.get(LIMITS_VARIABLE)
    if not text:
        return Limits()
    try:
        return Limits.model_validate_json(text)
    except ValidationError as error:
        raise ConfigError(
            f"The environment variable {LIMITS_VARIABLE} holds no limits.",
            "Unset it and write [limits] in compilewatch.toml.",
        ) from error
