"""*Notify me*: kept by the form of a page, ended by the link of a message."""

from __future__ import annotations

import re
import socketserver
from email import message_from_bytes, policy
from threading import Thread
from typing import ClassVar

import pytest
from pydantic import SecretStr, ValidationError

from compilewatch.dashboard.links.links import Link, Page, read_url
from compilewatch.dashboard.login.access import AccessError, Person, Role, identify_people_by
from compilewatch.dashboard.read.in_force import VARIABLE
from compilewatch.dashboard.write import watching
from compilewatch.db.engine.session import open_database
from compilewatch.db.errors import ConfigError
from compilewatch.db.queries.people.watches import watches
from compilewatch.db.records.identity import Code
from compilewatch.db.records.people.watches import Watch
from compilewatch.db.records.trial import Trial
from compilewatch.db.store.people.regressions import record_comparison
from compilewatch.db.store.people.watches import save_watch
from compilewatch.db.store.trials import save_trials
from compilewatch.runner.config.settings import ChannelSettings, NotifySettings
from compilewatch.runner.regressions.notify import Notified, notify
from tests.builders import START
from tests.dashboard.asking import ask, whole_application
from tests.dashboard.conftest import DATABASE, opened, texts
from tests.regression_cases import RUN_0, RUN_1, RUN_2, judged, stepping_history

ORIGIN = "https://watch.example"
CHANNELS = '{"channels": {"team": false, "mail": true}}'


def _stored(url: str) -> list[Watch]:
    with open_database(url, read_only=True) as database:
        return watches(database)


def test_a_watch_is_kept_by_the_form_and_ended_by_its_link(
    copied_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not [each for each in opened(Link(page=Page.WORKLOAD)).button if each.label == "Notify me"]
    monkeypatch.setenv(VARIABLE, CHANNELS)
    test = opened(Link(page=Page.WORKLOAD, focus="mlp"))
    test.selectbox("watch-channel").set_value("mail")
    test.text_input("watch-address").input("ann@example.com")
    test.radio("watch-daily").set_value(True)
    test.text_input("watch-name").input("Ann Lee")
    next(button for button in test.button if button.label == "Notify me").click().run()
    assert not test.exception
    (kept,) = _stored(copied_url)
    assert (kept.author, kept.channel, kept.address) == ("Ann Lee", "mail", "ann@example.com")
    assert (kept.workload, kept.daily, kept.machine_id is None) == ("mlp", True, False)
    with whole_application() as app:
        path = f"/unsubscribe/{kept.key}"
        assert ask(app, path).status == 200
        assert _stored(copied_url) == [kept], "a mail server that opens links ends nothing"
        answer = ask(app, path, method="POST", origin="null", sec_fetch_site="same-origin")
        assert (answer.status, b"Nothing more is sent." in answer.body) == (200, True)
    assert _stored(copied_url) == []


@pytest.mark.parametrize(
    ("role", "channel", "address", "error"),
    [
        (Role.VIEWER, "team", "", AccessError),
        (Role.EDITOR, "other", "", ConfigError),
        (Role.EDITOR, "mail", "ann@example.com?cc=all@example.com", ValidationError),
    ],
)
def test_what_cannot_be_kept_changes_nothing(
    copied_url: str,
    monkeypatch: pytest.MonkeyPatch,
    role: Role,
    channel: str,
    address: str,
    error: type[Exception],
) -> None:
    monkeypatch.setenv(VARIABLE, CHANNELS)
    identify_people_by(lambda _headers: Person("Ann", role))
    try:
        with pytest.raises(error):
            watching.watch(
                by="Ann", channel=channel, address=address, machine_id=None, workload=None, daily=False
            )
    finally:
        identify_people_by(None)
    assert _stored(copied_url) == []


class _Mails(socketserver.StreamRequestHandler):
    """As much of a mail server as one mail needs; keeps what it is given."""

    taken: ClassVar[list[str]] = []

    def handle(self) -> None:
        self.wfile.write(b"220 here\r\n")
        for line in iter(self.rfile.readline, b""):
            word = line[:4].upper()
            if word == b"DATA":
                self.wfile.write(b"354 go on\r\n")
                body = b"".join(iter(self.rfile.readline, b".\r\n"))
                message = message_from_bytes(body, policy=policy.default)
                part = message.get_body(("plain", "html"))
                self.taken.append(
                    f"{message['To']}\n{message['Subject']}\n{part.get_content() if part else ''}"
                )
            self.wfile.write(b"221 bye\r\n" if word == b"QUIT" else b"250 fine\r\n")


def _of_two_commits(history: list[Trial]) -> list[Trial]:
    """The first run of one commit, the others of the next."""
    base, head = (
        {"code": Code(commit=digit * 40, dirty=False, source_hash=digit * 16)} for digit in ("a", "b")
    )
    return [trial.model_copy(update=base if trial.run_id == RUN_0 else head) for trial in history]


# apprise imports modules that Python is about to lose
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("head", ["2.13.0", "2.12.0"], ids=["new_build", "new_code"])
def test_a_mail_says_what_its_page_says_and_its_link_ends_it(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch, head: str
) -> None:
    pytest.importorskip("apprise", reason="apprise is not installed: pip install compilewatch[notify]")
    to, key = "ann@example.com", "k" * 16
    watch = Watch(
        watch_id="w", key=key, author="Ann", channel="mail", address=to, made_at=START, told_at=START
    )
    with (
        open_database(sqlite_url) as database,
        socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Mails) as mails,
    ):
        Thread(target=mails.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        save_watch(database, watch)
        history = stepping_history(1.0, 1.4, 1.4, builds=("2.12.0", head, head))
        save_trials(database, _of_two_commits(history))
        for run in (RUN_1, RUN_2):
            record_comparison(database, judged(database, RUN_0, run), at=START, channels=())
        address = SecretStr(
            f"mailto://127.0.0.1:{mails.server_address[1]}?from=cw@example.com&to=x@example.com"
        )
        channel = ChannelSettings(name="mail", apprise=address, only_watched=True)
        settings = NotifySettings(base_url=ORIGIN)
        assert notify(database, [channel], settings) == Notified(1, ())
        mails.shutdown()
        mail = _Mails.taken.pop()
        assert mail.startswith("ann@example.com\n2 cases regressed: ")
        monkeypatch.setenv(DATABASE, sqlite_url)
        page, way_out = (re.search(rf"{ORIGIN}/({way}\S*)", mail) for way in ("upgrade", "unsubscribe"))
        assert page
        assert way_out
        said = texts(opened(read_url(page[1])[0]))
        counted = re.search(r"latency \d+ slower, .*undecided", mail)
        assert counted
        assert counted[0] in said
        with whole_application() as app:
            assert ask(app, f"/{way_out[1]}", method="POST", sec_fetch_site="same-origin").status == 200
    assert _stored(sqlite_url) == []
