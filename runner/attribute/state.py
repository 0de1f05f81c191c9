"""What an attribution has measured so far, on disk."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from db.judge.attribution import Hybrid
from db.records.ids import identity


class Question(BaseModel):
    """What is to be attributed. Two commands with the same question share their trials. `base` and `head`
    are what is installed there, by package.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    base: dict[str, str]
    head: dict[str, str]
    builds: tuple[str, str]
    cases: tuple[tuple[str, str], ...]
    metric: str
    device: str

    @property
    def key(self) -> str:
        """The name of its state."""
        return identity(self.model_dump(mode="json"))


class Batch(BaseModel):
    """Runs that took turns, by hybrid: the components at the head's version, in order."""

    model_config = ConfigDict(extra="forbid")

    hybrids: list[list[str]]
    runs: list[str]

    def by_hybrid(self) -> dict[Hybrid, str]:
        """The run of each hybrid."""
        return {frozenset(names): run for names, run in zip(self.hybrids, self.runs, strict=True)}


class Skipped(BaseModel):
    """A hybrid that cannot be measured, and why."""

    model_config = ConfigDict(extra="forbid")

    hybrid: list[str]
    reason: str


class State(BaseModel):
    """`ends` are runs of base and head alone, `mixed` those with the hybrids; `made` are environments made
    for this. What is installed and run comes from this host's builds, only ids and reasons from here.
    """

    model_config = ConfigDict(extra="forbid")

    question: Question
    ends: list[Batch] = []
    mixed: list[Batch] = []
    skipped: list[Skipped] = []
    made: list[str] = []

    def reason(self, hybrid: Hybrid) -> str | None:
        """Why it cannot be measured, None where that is not known."""
        return next((each.reason for each in self.skipped if frozenset(each.hybrid) == hybrid), None)


def state_path(directory: Path, question: Question) -> Path:
    """Where the state is kept."""
    return directory / "attribute" / f"{question.key}.json"
