"""What a bisection has measured so far, on disk: after a kill the same command goes on from there."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from compilewatch.runner.storage.search_state import SearchQuestion, SearchState


class Pair(NamedTuple):
    """Two runs that took turns: the first release's, and that of the release in question."""

    first: str
    other: str


class Step(BaseModel):
    """One release: the runs that measured it, or why it cannot be measured, and whether its environment was
    made for this.
    """

    model_config = ConfigDict(extra="forbid")

    runs: list[Pair] = []
    made: bool = False
    skipped: str | None = None


class Question(SearchQuestion):
    """Between which releases something changed, and in which case."""

    folder: ClassVar[str] = "bisect"

    good: str
    bad: str
    packages: tuple[str, ...]
    workload: str
    strategy: str
    metric: str | None
    device: str


class State(SearchState):
    """Steps by release."""

    question: Question
    steps: dict[str, Step] = Field(default={})

    def step(self, release: str) -> Step:
        """Of a release, a new one where it was not measured."""
        return self.steps.setdefault(release, Step())

    @property
    def measured(self) -> list[str]:
        """Releases with trials."""
        return [release for release, step in self.steps.items() if step.runs]
