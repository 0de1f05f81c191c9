"""The message that a schedule has produced nothing for its period, on every channel, tried as any other."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from db.identities import identity
from db.schedules import Schedule
from db.units import MISSING, moment
from db.watch import ScheduleWatch
from runner.config import ChannelSettings, NotifySettings
from runner.notify import send
from runner.notify_channels import Message

SCHEMA = "compilewatch.silence/1"
_LOG = logging.getLogger(__name__)


def silence_message(watch: ScheduleWatch, schedule: Schedule, base_url: str | None) -> Message:
    """Which schedule, since when there was nothing, and where to look."""
    last = moment(watch.last_result_at) if watch.last_result_at else MISSING
    due = moment(watch.due_at) if watch.due_at else MISSING
    return Message(
        message_id=identity({"schedule": schedule.name, "due_at": due}),
        title=f"Schedule {schedule.name} has produced nothing for its period",
        lines=(
            f"{schedule.spec.cron} {schedule.spec.timezone}: last result {last}, the next was due by {due}.",
            "Is a service running that has this schedule? `compilewatch schedule list` and its log say more.",
        ),
        cause=None,
        link=f"{base_url.rstrip('/')}/runs" if base_url else None,
        regressions=(),
        schema=SCHEMA,
    )


def tell_silence(
    watch: ScheduleWatch,
    schedule: Schedule,
    channels: Sequence[ChannelSettings],
    settings: NotifySettings,
    *,
    pause: Callable[[float], object] = time.sleep,
) -> None:
    """Send it on every channel; one that fails keeps no other from being tried."""
    message = silence_message(watch, schedule, settings.base_url)
    for channel in channels:
        _, problem = send(channel, message, settings, pause)
        if problem is not None:
            _LOG.warning("A message was not sent: %s: %s: %s", channel.name, message.title, problem)
