"""Every constant of a policy with its value and meaning, as the Guide and reports list them."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel

from compilewatch.db.judge.policy import Policy
from compilewatch.db.records.fields import Closed


class PolicyEntry(Closed):
    """One constant, as the Guide lists it."""

    name: str
    value: str
    meaning: str


def policy_entries(policy: Policy) -> list[PolicyEntry]:
    """Every constant of `policy` with its value, meaning and source, in reading order."""
    return list(_entries(policy, ""))


def _entries(part: BaseModel, prefix: str) -> Iterator[PolicyEntry]:
    for name, field in type(part).model_fields.items():
        value = getattr(part, name)
        if isinstance(value, BaseModel):
            yield from _entries(value, f"{prefix}{name}.")
        elif name == "thresholds":
            for metric, thresholds in value.items():
                yield from _entries(thresholds, f"{prefix}thresholds.{metric.value}.")
        elif name == "overrides":
            for index, override in enumerate(value):
                text = ", ".join(
                    f"{k} {v}" for k, v in override.model_dump(mode="json").items() if v is not None
                )
                yield PolicyEntry(name=f"overrides[{index}]", value=text, meaning="set in the configuration")
        else:
            meaning = " ".join((field.description or "").split())
            yield PolicyEntry(name=prefix + name, value=str(value), meaning=meaning)
