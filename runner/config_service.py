"""`[[schedule]]` and `[service]`: what `compilewatch schedule` does."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from runner.config_types import Positive, Section, ShortName
from runner.logs import LogFormat


class ScheduleSettings(Section):
    """`[[schedule]]`: when `compilewatch schedule` measures a suite."""

    name: ShortName
    cron: str = Field(description="five fields as in crontab, such as '0 3 * * mon-fri', or @daily")
    timezone: str = Field(default="UTC", description="a name such as Europe/Berlin")
    suite: ShortName | None = Field(default=None, description="unset: that of [run]")
    trials: Positive | None = Field(default=None, description="fresh processes per case; unset: the suite's")
    machine: str | None = Field(
        default=None, description="pattern of the hosts that measure it; unset: the service that is first"
    )

    @model_validator(mode="after")
    def _comes_sometime(self) -> Self:
        # APScheduler takes a while to import, and most commands need no schedule.
        from runner.schedule.cron import parse_cron

        parse_cron(self.cron, self.timezone)
        return self


class ServiceSettings(Section):
    """`[service]`: what `compilewatch schedule` does besides the schedules."""

    watch_builds: bool = Field(default=True, description="measure when a torch or driver is new on this host")
    keep_samples_days: Positive | None = Field(
        default=None, description="older trials keep their summary only; unset: samples are kept for ever"
    )
    keep_traces_days: Positive | None = Field(
        default=None, description="older traces on this host's disk are deleted; unset: kept for ever"
    )
    log_format: LogFormat = Field(default="text", description="text, or json: one object per line")
