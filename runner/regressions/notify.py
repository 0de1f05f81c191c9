"""Tells confirmed regressions by mail, chat or webhook: one message per event, never one twice.

Series that moved together between the same two sides on one machine are one event. A message is claimed in
the database, sent outside every transaction, and its end is recorded: `sent`; `failed`, to be taken up by a
later command; or `unknown` where the other side took the message and gave no answer: that one is never sent
again. Addresses hold tokens and passwords; no message, log line or database row repeats one.
"""

from __future__ import annotations

import base64
import html
import http.client
import json
import logging
import re
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote, urlencode, urlsplit, urlunsplit

from compilewatch import __version__
from compilewatch.db.cause.running_jobs import compiled_lines, compiled_sentence
from compilewatch.db.columns.metrics import METRICS
from compilewatch.db.engine.session import Database
from compilewatch.db.errors import CompilewatchError, printable
from compilewatch.db.judge.compare.recorded_regressions import (
    Change,
    Regression,
    between,
    changes_of,
    side_title,
)
from compilewatch.db.judge.results import Comparison, Row
from compilewatch.db.queries.causes import recorded_explanations
from compilewatch.db.records.hosts import JobState
from compilewatch.db.records.ids import identity
from compilewatch.db.records.people import NotificationState
from compilewatch.db.records.requests import Schedule, ScheduleWatch
from compilewatch.db.service.recording import claim_notifications, end_notifications
from compilewatch.db.service.regressions import measured_steps
from compilewatch.db.units import MISSING, moment, percent, plural
from compilewatch.runner.config.settings import ChannelSettings, NotifySettings

SILENCE_SCHEMA = "compilewatch.regression/1"
LONGEST_RETRY_AFTER_S = 60.0
_TRANSIENT = (408, 425, 429)


@dataclass(frozen=True)
class Message:
    """`lines` has one line per regression, `regressions` the same as JSON objects. `message_id` is the same
    for the same regressions, so that a receiver can tell a repetition.
    """

    message_id: str
    title: str
    lines: tuple[str, ...]
    cause: str | None = None
    link: str | None = None
    regressions: tuple[dict[str, object], ...] = ()
    schema: str = SILENCE_SCHEMA

    @property
    def heading(self) -> str:
        """The title as mail and chat show it."""
        return _without_markup(self.title)

    @property
    def body(self) -> str:
        """What mail and chat show below the title."""
        return "\n".join((*self._lines(), *self._link()))

    def _lines(self) -> list[str]:
        cause = (f"Cause class: {self.cause}.",) if self.cause else ()
        return [_without_markup(line) for line in (*self.lines, *cause)]

    def _link(self) -> tuple[str, ...]:
        return (self.link,) if self.link else ()

    def document(self) -> dict[str, Any]:
        """What a webhook gets. `text` is what chat services show; the rest is for programs.

        Slack wants `&`, `<` and `>` as entities (https://docs.slack.dev/messaging/formatting-message-text).
        """
        text = html.escape("\n".join((self.heading, *self._lines())), quote=False)
        return {
            "schema": self.schema,
            "message_id": self.message_id,
            "title": self.title,
            "text": "\n".join((text, *self._link())),
            "cause": self.cause,
            "link": self.link,
            "regressions": list(self.regressions),
        }


# Where chat services see a mention, a link or an image; names come from whoever may import.
_MARKUP = re.compile(r"@|<|!(?=\[)|\](?=\()|:(?=//)|\bwww(?=\.)", re.IGNORECASE)


def _without_markup(text: str) -> str:
    """One line, with an invisible space (U+200B) wherever a chat service would see more than text."""
    line = " ".join(printable(text).splitlines())
    return _MARKUP.sub(lambda match: f"{match[0]}\N{ZERO WIDTH SPACE}", line)


class DeliveryError(CompilewatchError):
    """The message was not taken. The sentence never holds the address."""

    def __init__(self, message: str, *, worth_retrying: bool, retry_after_s: float = 0.0) -> None:
        super().__init__(message)
        self.worth_retrying = worth_retrying
        self.retry_after_s = retry_after_s


class UnknownOutcomeError(CompilewatchError):
    """The message went out whole and no answer came: it may have arrived."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirected POST becomes a GET without its body, and would hand the token to another host."""

    def redirect_request(self, *_: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirects)


def deliver(channel: ChannelSettings, message: Message, *, timeout_s: float) -> None:
    """Send `message` once. Raises DeliveryError where it was not taken, UnknownOutcomeError where that is
    unknown.
    """
    if channel.webhook is not None:
        _post(channel.webhook.get_secret_value(), message, timeout_s)
    elif channel.apprise is not None:
        _through_apprise(channel.apprise.get_secret_value(), message)


def _post(address: str, message: Message, timeout_s: float) -> None:
    bare_address, authorization = _without_credentials(address)
    request = urllib.request.Request(  # noqa: S310 - the configuration takes http and https only
        bare_address,
        data=json.dumps(message.document(), ensure_ascii=False, allow_nan=False).encode(),
        headers={
            "Content-Type": "application/json; charset=utf-8",
            "User-Agent": f"compilewatch/{__version__}",
            "Idempotency-Key": message.message_id,
            **authorization,
        },
        method="POST",
    )
    try:
        with _OPENER.open(request, timeout=timeout_s) as answer:
            answer.read(1)
    except urllib.error.HTTPError as error:
        with error:
            transient = error.code >= 500 or error.code in _TRANSIENT
            raise DeliveryError(
                f"The webhook answered {error.code}.",
                worth_retrying=transient,
                retry_after_s=_retry_after_s(error.headers.get("Retry-After")),
            ) from None
    except urllib.error.URLError as error:
        # urllib wraps what happens before the request is out; what happens later arrives as it is.
        bad_certificate = isinstance(error.reason, ssl.SSLCertVerificationError)
        raise DeliveryError(
            f"The webhook cannot be reached ({type(error.reason).__name__}).",
            worth_retrying=not bad_certificate,
        ) from None
    except (OSError, http.client.HTTPException) as error:
        raise UnknownOutcomeError(
            f"The webhook took the message and did not answer ({type(error).__name__})."
        ) from None


def _without_credentials(address: str) -> tuple[str, dict[str, str]]:
    """https://user:password@host/ as the address urllib takes and the header it leaves to the caller."""
    parts = urlsplit(address)
    if parts.username is None:
        return address, {}
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    bare = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    return bare, {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}


def _retry_after_s(header: str | None) -> float:
    """The pause a service asks for in seconds, within reason; its other form, a date, is passed over."""
    return min(float(header), LONGEST_RETRY_AFTER_S) if header is not None and header.isdecimal() else 0.0


def _through_apprise(address: str, message: Message) -> None:
    try:
        import apprise
    except ImportError:
        raise DeliveryError(
            "Channels through apprise need the extra: pip install compilewatch[notify].", worth_retrying=False
        ) from None
    # Its own log lines repeat addresses it does not understand.
    logging.getLogger("apprise").setLevel(logging.CRITICAL + 1)
    service = apprise.Apprise()
    if not service.add(address):
        raise DeliveryError("Apprise does not understand the channel's address.", worth_retrying=False)
    if not service.notify(title=message.heading, body=message.body, body_format=apprise.NotifyFormat.TEXT):
        raise DeliveryError("The service behind apprise did not take the message.", worth_retrying=True)


FIRST_PAUSE_S = 1.0
"""Before the second try; every further pause is twice as long."""

_NAMED_RUNS = 12
"""Of more runs a side is all of its build, and naming them makes an address too long for a chat."""

_NAMED_CASES = 4
"""Of a change that hits more cases one line stands for all, and the first few are named."""

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Notified:
    """How many messages went out, and a sentence for each that did not."""

    sent: int
    problems: tuple[str, ...]


def notify(
    db: Database,
    channels: Sequence[ChannelSettings],
    settings: NotifySettings,
    *,
    pause: Callable[[float], object] = time.sleep,
) -> Notified:
    """Send what is queued for `channels`. A message that fails keeps no other from being tried."""
    sent, problems = 0, []
    for channel in channels:
        for event in events_of(claim_notifications(db, channel.name, at=datetime.now(UTC))):
            explained, steps = recorded_explanations(db, event), measured_steps(db, event)
            message = message_of(event, settings.base_url, explained, steps)
            state, problem = send(channel, message, settings, pause)
            ids = [each.regression_id for each in event]
            end_notifications(db, channel.name, ids, state=state, at=datetime.now(UTC), problem=problem)
            sent += problem is None
            if problem is not None:
                problems.append(f"{channel.name}: {message.title}: {problem}")
    return Notified(sent, tuple(problems))


def address(base_url: str | None, path: str) -> str | None:
    """Of a page of the dashboard; None where it is not known where that is."""
    return f"{base_url.rstrip('/')}{path}" if base_url else None


def events_of(regressions: Sequence[Regression]) -> list[tuple[Regression, ...]]:
    """Regressions of the same machine between the same sides are one event."""
    events: dict[tuple[str | None, str, str], list[Regression]] = {}
    for each in regressions:
        events.setdefault((each.machine_id, each.base_key, each.head_key), []).append(each)
    return [tuple(event) for event in events.values()]


def message_of(
    event: Sequence[Regression],
    base_url: str | None,
    explained: Sequence[Sequence[str]] = (),
    steps: Mapping[str, int] | None = None,
) -> Message:
    """Title with the tally of all cases, one line per number, why each case changed where that is known, the
    cause class and the link; `event` has at least one regression, `explained` the sentences on each, `steps`
    how many were timed with it, by its id.
    """
    first, newest = event[0], max(event, key=lambda each: each.recorded_at)
    base, head = (side_title(side, first.changed_components) for side in (first.base, first.head))
    cases = {(each.row.workload, each.row.strategy) for each in event}
    why = dict.fromkeys(
        f"{each.row.workload} / {each.row.strategy}: {sentence}"
        for each, sentences in zip(event, explained, strict=False)
        for sentence in sentences
    )
    subject = " / ".join(next(iter(cases))) if len(cases) == 1 else plural(len(cases), "case")
    classes = sorted({each.row.cause for each in event if each.row.cause})
    return Message(
        message_id=identity({"regressions": sorted(each.regression_id for each in event)}),
        title=f"{subject} regressed: {between(base, head, first.machine, newest.tally_text)}",
        lines=(*(line for each in changes_of(event, steps) for line in _change_lines(each)), *why),
        cause=", ".join(cause.value for cause in classes) or None,
        link=address(base_url, upgrade_address(first)),
        regressions=tuple(_document(each) for each in event),
    )


def _change_lines(change: Change) -> list[str]:
    """A line per case; of many, one for all of them and the first few."""
    shown = change.rows[:_NAMED_CASES]
    if len(shown) == len(change.rows):
        return [row_line(row) for row in shown]
    return [
        change.sentence,
        *map(row_line, shown),
        f"and {plural(len(change.rows) - len(shown), 'more case')}",
    ]


def row_line(row: Row) -> str:
    """What moved in one row, with its interval and reason."""
    change = f"{percent(row.change, signed=True)}" if row.change is not None else f"{row.base} to {row.head}"
    bounds = ""
    if row.interval is not None:
        low, high = (percent(end, signed=True) for end in row.interval)
        bounds = f" [{low}, {high}]"
    name = METRICS[row.metric].word
    return f"{row.workload} / {row.strategy}: {name} {change}{bounds}. {row.reason}"


def _document(regression: Regression) -> dict[str, object]:
    row = regression.row.model_dump(mode="json", exclude={"case"})
    return {
        "regression_id": regression.regression_id,
        "workload": regression.row.workload,
        "strategy": regression.row.strategy,
        **row,
    }


def upgrade_address(judged: Regression | Comparison, **more: str) -> str:
    """The page Upgrade on the builds and runs that were judged, so that it counts what a message counts."""
    sides = {"base": judged.base, "head": judged.head}
    query = {
        **{key: side.build_ids[-1] for key, side in sides.items()},
        **{f"{key}_run": side.run_ids for key, side in sides.items() if len(side.run_ids) <= _NAMED_RUNS},
        **({"machine": judged.machine_id} if judged.machine_id else {}),
        **more,
    }
    return f"/upgrade?{urlencode(query, doseq=True)}"


def send(
    channel: ChannelSettings, message: Message, settings: NotifySettings, pause: Callable[[float], object]
) -> tuple[NotificationState, str | None]:
    """Try up to `settings.attempts` times; how it ended, and why where it did not go out."""
    for attempt in range(1, settings.attempts + 1):
        try:
            deliver(channel, message, timeout_s=settings.timeout_s)
        except UnknownOutcomeError as error:
            return NotificationState.UNKNOWN, str(error)
        except DeliveryError as error:
            _LOG.info("channel %s, try %d of %d: %s", channel.name, attempt, settings.attempts, error)
            if attempt == settings.attempts or not error.worth_retrying:
                return NotificationState.FAILED, str(error)
            pause(max(error.retry_after_s, FIRST_PAUSE_S * 2 ** (attempt - 1)))
        else:
            return NotificationState.SENT, None
    raise AssertionError("settings.attempts is at least one")


# That a job compiles while requests wait, on every channel, tried as any other.

COMPILED_SCHEMA = "compilewatch.compiled/1"


def compiled_message(job: Sequence[JobState], base_url: str | None) -> Message:
    """On how many hosts the job compiled after it was ready, what, and where to look."""
    name = job[0].job
    compiled = {each.process: each.compiles_after_ready for each in job if each.compiles_after_ready}
    return Message(
        message_id=identity({"job": name, "compiled": compiled}),
        title=f"{name} {compiled_sentence(job)}",
        lines=(
            *compiled_lines(job),
            f"Once its recording is imported, `compilewatch warm-up {name}` writes the missing warm-up.",
        ),
        link=address(base_url, "/runs"),
        schema=COMPILED_SCHEMA,
    )


def notify_compiled(
    job: Sequence[JobState],
    channels: Sequence[ChannelSettings],
    settings: NotifySettings,
    *,
    pause: Callable[[float], object] = time.sleep,
) -> None:
    """Send it on every channel; one that fails keeps no other from being tried."""
    _tell(compiled_message(job, settings.base_url), channels, settings, pause)


# The message that a schedule has produced nothing for its period, on every channel, tried as any other.

SCHEMA = "compilewatch.silence/1"


def silence_message(watch: ScheduleWatch, schedule: Schedule, base_url: str | None) -> Message:
    """Which schedule, since when there was nothing, and where to look."""
    last = moment(watch.last_result_at) if watch.last_result_at else MISSING
    due_text = moment(watch.due_at) if watch.due_at else MISSING
    return Message(
        message_id=identity({"schedule": schedule.name, "due_at": due_text}),
        title=f"Schedule {schedule.name} has produced nothing for its period",
        lines=(
            f"{schedule.spec.cron} {schedule.spec.timezone}: last result {last}, next due by {due_text}.",
            "Is a service running that has this schedule? `compilewatch schedule list` and its log say more.",
        ),
        link=address(base_url, "/runs"),
        schema=SCHEMA,
    )


def notify_silence(
    watch: ScheduleWatch,
    schedule: Schedule,
    channels: Sequence[ChannelSettings],
    settings: NotifySettings,
    *,
    pause: Callable[[float], object] = time.sleep,
) -> None:
    """Send it on every channel; one that fails keeps no other from being tried."""
    _tell(silence_message(watch, schedule, settings.base_url), channels, settings, pause)


def _tell(
    message: Message,
    channels: Sequence[ChannelSettings],
    settings: NotifySettings,
    pause: Callable[[float], object],
) -> None:
    for channel in channels:
        _, problem = send(channel, message, settings, pause)
        if problem is not None:
            _LOG.warning("A message was not sent: %s: %s: %s", channel.name, message.title, problem)
