"""Who is told of regressions beside the channels of a team: one watch, of a workload, a machine or all."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import Field

from compilewatch.db.records.fields import Identifier, Name, Record, UtcDatetime

A_DAY = timedelta(days=1)
ADDRESS = r"^[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+$"


class Watch(Record):
    """`key` opens the way out without a login, so only the messages hold it."""

    watch_id: Identifier
    key: Annotated[str, Field(pattern=r"^[\w-]{16,64}$")]
    author: Name
    channel: Annotated[str, Field(min_length=1, max_length=100)]
    address: Annotated[str, Field(max_length=200, pattern=ADDRESS)] | None = None
    """Where a channel of mail sends it; null: where the channel does."""
    machine_id: str | None = None
    """The machine watched; null for all."""
    workload: str | None = None
    """The workload watched, by name; null for all."""
    daily: bool = False
    """Together once a day instead of at once."""
    made_at: UtcDatetime
    told_at: UtcDatetime
    """When the last message went out; at first when it was made."""

    @property
    def queue(self) -> str:
        """What its messages wait under beside those of channels, whose names begin with a letter or digit."""
        return f"#{self.watch_id}"

    def sees(self, machine_id: str | None, workload: str) -> bool:
        """Whether a regression of `workload` on that machine is one of those watched."""
        return self.machine_id in (None, machine_id) and self.workload in (None, workload)
