"""A mail of a channel: it says what the page says to which it leads."""

from __future__ import annotations

import re
import socketserver
from email import message_from_bytes, policy
from threading import Thread
from typing import ClassVar

import pytest
from pydantic import SecretStr

from compilewatch.dashboard.links.links import read_url
from compilewatch.db.engine.session import open_database
from compilewatch.db.records.identity import Code
from compilewatch.db.records.trial import Trial
from compilewatch.db.service.recording import record_comparison
from compilewatch.db.store.trials import save_trials
from compilewatch.runner.config.settings import ChannelSettings, NotifySettings
from compilewatch.runner.regressions.notify import Notified, notify
from tests.builders import START
from tests.dashboard.conftest import DATABASE, opened, texts
from tests.regression_cases import RUN_0, RUN_1, RUN_2, judged, stepping_history

ORIGIN = "https://watch.example"


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
def test_a_mail_says_what_its_page_says(sqlite_url: str, monkeypatch: pytest.MonkeyPatch, head: str) -> None:
    pytest.importorskip("apprise", reason="apprise is not installed: pip install compilewatch[notify]")
    with (
        open_database(sqlite_url) as database,
        socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Mails) as mails,
    ):
        Thread(target=mails.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        history = stepping_history(1.0, 1.4, 1.4, builds=("2.12.0", head, head))
        save_trials(database, _of_two_commits(history))
        for run in (RUN_1, RUN_2):
            record_comparison(database, judged(database, RUN_0, run), at=START, channels=("mail",))
        address = SecretStr(
            f"mailto://127.0.0.1:{mails.server_address[1]}?from=cw@example.com&to=ann@example.com"
        )
        channel = ChannelSettings(name="mail", apprise=address)
        settings = NotifySettings(base_url=ORIGIN)
        assert notify(database, [channel], settings) == Notified(1, ())
        mails.shutdown()
        mail = _Mails.taken.pop()
        assert mail.startswith("ann@example.com\n2 cases regressed: ")
        monkeypatch.setenv(DATABASE, sqlite_url)
        page = re.search(rf"{ORIGIN}/(upgrade\S*)", mail)
        assert page
        said = texts(opened(read_url(page[1])[0]))
        counted = re.search(r"latency \d+ slower, .*undecided", mail)
        assert counted
        assert counted[0] in said
