"""One message on one channel, tried once: mail, chat or whatever apprise knows, or a plain webhook."""

from __future__ import annotations

import base64
import html
import http.client
import json
import logging
import re
import ssl
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from compilewatch import __version__
from compilewatch.db.errors import CompilewatchError, printable
from compilewatch.runner.config.settings import ChannelSettings

SCHEMA = "compilewatch.regression/1"
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
    schema: str = SCHEMA

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
