"""The judge's policy, the targets and the limits in force, as `compilewatch dashboard` was started with."""

from __future__ import annotations

import os
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from db.errors import ConfigError
from db.judge.policy import Policy, Target
from db.records.service.limits import Limits

VARIABLE = "COMPILEWATCH_POLICY"
TARGETS_VARIABLE = "COMPILEWATCH_TARGETS"
LIMITS_VARIABLE = "COMPILEWATCH_LIMITS"
CHANNELS_VARIABLE = "COMPILEWATCH_CHANNELS"

T = TypeVar("T")
_POLICY = TypeAdapter(Policy)
_TARGETS = TypeAdapter(tuple[Target, ...])
_LIMITS = TypeAdapter(Limits)
_CHANNELS = TypeAdapter(dict[str, bool])


def policy_in_force() -> Policy:
    """The policy in the environment as JSON, else the default one. Raises ConfigError."""
    return _in_force(VARIABLE, _POLICY, "policy", "[policy]") or Policy()


def targets_in_force() -> tuple[Target, ...]:
    """The [[target]] entries in the environment as JSON, else none. Raises ConfigError."""
    return _in_force(TARGETS_VARIABLE, _TARGETS, "targets", "[[target]]") or ()


def limits_in_force() -> Limits:
    """[limits] in the environment as JSON, else the default ones. Raises ConfigError."""
    return _in_force(LIMITS_VARIABLE, _LIMITS, "limits", "[limits]") or Limits()


def channels_in_force() -> dict[str, bool]:
    """The names of the [[channel]] entries, with whether each sends mail. Raises ConfigError."""
    return _in_force(CHANNELS_VARIABLE, _CHANNELS, "channels", "[[channel]]") or {}


def _in_force(variable: str, form: TypeAdapter[T], what: str, section: str) -> T | None:
    text = os.environ.get(variable)
    if not text:
        return None
    try:
        return form.validate_json(text)
    except ValidationError as error:
        raise ConfigError(
            f"The environment variable {variable} holds no {what}.",
            f"Unset it and write {section} in compilewatch.toml.",
        ) from error
