"""What a bisection has measured so far, on disk: after a kill the same command goes on from there."""

from __future__ import annotations

from typing import NamedTuple

from pydantic import BaseModel, ConfigDict

from db.records.ids import identity


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


class Question(BaseModel):
    """What is searched for. Two commands with the same question share their trials."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    good: str
    bad: str
    packages: tuple[str, ...]
    workload: str
    strategy: str
    metric: str | None
    device: str

    @property
    def key(self) -> str:
        """The name of its state."""
        return identity(self.model_dump(mode="json"))


class State(BaseModel):
    """Steps by release. What is installed and run comes from the command, only ids and reasons from here."""

    model_config = ConfigDict(extra="forbid")

    question: Question
    steps: dict[str, Step] = {}

    def step(self, release: str) -> Step:
        """Of a release, a new one where it was not measured."""
        return self.steps.setdefault(release, Step())

    @property
    def measured(self) -> list[str]:
        """Releases with trials."""
        return [release for release, step in self.steps.items() if step.runs]
