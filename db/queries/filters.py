"""Which trials a question is about, as links and commands select them; `selection` makes SQL of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from compilewatch.db.records.trial import SourceKind, Status, Task


@dataclass(frozen=True)
class Filters:
    """A selection of trials; every field that is empty or None leaves its subject open.

    Workloads and strategies are selected by short name, machines and builds by identity id, `since` and
    `until` (both inclusive, aware) bound when the trial started.
    """

    workloads: tuple[str, ...] = ()
    strategies: tuple[str, ...] = ()
    machines: tuple[str, ...] = ()
    builds: tuple[str, ...] = ()
    suites: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    tasks: tuple[Task, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    statuses: tuple[Status, ...] = ()
    sources: tuple[SourceKind, ...] = ()

    def __post_init__(self) -> None:
        for name in ("since", "until"):
            moment = getattr(self, name)
            if moment is not None and moment.tzinfo is None:
                raise ValueError(f"{name} must carry a time zone")
