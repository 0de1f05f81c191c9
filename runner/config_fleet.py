"""`[fleet]`: measuring on other hosts, through a queue on the team's PostgreSQL."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field
from pydantic_settings import NoDecode

from runner.config_types import Section, ShortName, split_list


class FleetSettings(Section):
    """`[fleet]`: what `compilewatch schedule` leaves to the workers, and how workers are watched."""

    queues: Annotated[tuple[ShortName, ...], NoDecode, BeforeValidator(split_list)] = Field(
        default=(), description="machine types the service has workers measure on; empty: it measures itself"
    )
    heartbeat_s: Annotated[float, Field(ge=0.5, le=60)] = Field(
        default=5.0, description="between two signs of life of a worker"
    )
    stalled_s: Annotated[float, Field(ge=2, le=3600)] = Field(
        default=30.0, description="a worker without a sign of life for longer loses its trial to another"
    )
    idle_s: Annotated[float, Field(ge=0, le=3600)] = Field(
        default=15.0, description="how long a worker without a trial stays ready to begin the next at once"
    )
