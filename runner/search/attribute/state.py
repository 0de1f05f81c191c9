"""What an attribution has measured so far, on disk."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field

from compilewatch.db.judge.compare.attribution import Hybrid
from compilewatch.runner.storage.search_state import SearchQuestion, SearchState


class Question(SearchQuestion):
    """What is to be attributed; `base` and `head` are what is installed there, by package."""

    folder: ClassVar[str] = "attribute"

    base: dict[str, str]
    head: dict[str, str]
    builds: tuple[str, str]
    cases: tuple[tuple[str, str], ...]
    metric: str
    device: str


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


class State(SearchState):
    """`ends` are runs of base and head alone, `mixed` those with the hybrids; `made` are environments made
    for this.
    """

    question: Question
    ends: list[Batch] = Field(default=[])
    mixed: list[Batch] = Field(default=[])
    skipped: list[Skipped] = Field(default=[])
    made: list[str] = Field(default=[])

    def reason(self, hybrid: Hybrid) -> str | None:
        """Why it cannot be measured, None where that is not known."""
        return next((each.reason for each in self.skipped if frozenset(each.hybrid) == hybrid), None)
