"""Messages about confirmed regressions: to a real server, once, in the face of every answer it can give."""

from __future__ import annotations

import base64
import contextlib
import html
import json
import logging
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from sqlalchemy import select

from compilewatch.db.engine.session import Database, open_database
from compilewatch.db.engine.tables import NOTIFICATION
from compilewatch.db.judge.compare.recorded_regressions import TriageEvent
from compilewatch.db.records.people import NotificationState, TriageState
from compilewatch.db.service.recording import MOST_DELIVERIES, claim_notifications, record_comparison, triage
from compilewatch.db.service.regressions import regressions_frame, standing_regressions
from compilewatch.db.store.trials import save_trials
from compilewatch.runner.config.settings import ChannelSettings, NotifySettings
from compilewatch.runner.regressions.notify import Message, Notified, deliver, notify
from tests.loopback import Quiet, on_loopback
from tests.regression_cases import RUN_0, RUN_1, RUN_2, RUN_3, judged, stepping_history
from tests.runner.fleet_processes import wait_until

NOW = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)
TOKEN = "s3cr3t-t0ken"
SETTINGS = NotifySettings(base_url="https://watch.example.com/perf/", timeout_s=60)


@dataclass
class Receiver:
    """A server on loopback that keeps what it is sent and answers as told; the last answer is repeated."""

    port: int = 0
    answers: list[int] = field(default_factory=lambda: [200])
    headers: dict[str, str] = field(default_factory=dict)
    received: list[dict[str, Any]] = field(default_factory=list)
    seen_headers: list[dict[str, str]] = field(default_factory=list)
    hold: threading.Event | None = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/hooks/{TOKEN}"

    def answer(self) -> int:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    here = Receiver()

    class Handler(Quiet):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            here.received.append({"path": self.path, **json.loads(body)})
            here.seen_headers.append(dict(self.headers))
            if here.hold is not None:
                here.hold.wait(60)
                return
            self.send_response(here.answer())
            for name, value in here.headers.items():
                self.send_header(name, value)
            self.end_headers()

        do_GET = do_POST

    with on_loopback(Handler) as address:
        here.port = int(address.rpartition(":")[2])
        yield here
        if here.hold is not None:
            here.hold.set()


def webhook(address: str, name: str = "team") -> ChannelSettings:
    return ChannelSettings(name=name, webhook=SecretStr(address))


@dataclass
class Pauses:
    """Stands in for sleeping, and keeps how long."""

    taken: list[float] = field(default_factory=list)

    def __call__(self, seconds: float) -> None:
        self.taken.append(seconds)


def _confirm(database: Database) -> Database:
    """Both workloads regressed with 2.13.0, confirmed by a second run, queued for two channels."""
    builds = ("2.12.0", "2.13.0", "2.13.0", "2.13.0")
    save_trials(database, stepping_history(1.0, 1.4, 1.4, 1.0, builds=builds))
    for run in (RUN_1, RUN_2):
        record_comparison(database, judged(database, RUN_0, run), at=NOW, channels=("team", "other"))
    assert {found.state for found in standing_regressions(database)} == {TriageState.CONFIRMED}
    return database


@pytest.fixture(scope="module")
def once_confirmed(_sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = Path(shutil.copy(_sqlite_template, tmp_path_factory.mktemp("confirmed") / "confirmed.db"))
    with open_database(f"sqlite:///{path}") as database:
        _confirm(database)
    return path


@pytest.fixture
def confirmed(once_confirmed: Path, tmp_path: Path) -> Iterator[Database]:
    """A copy to write into."""
    with open_database(f"sqlite:///{shutil.copy(once_confirmed, tmp_path / 'confirmed.db')}") as database:
        yield database


@pytest.fixture
def confirmed_on_both(database: Database) -> Database:
    """For what depends on how the database locks."""
    return _confirm(database)


def states(database: Database, channel: str = "team") -> set[tuple[str, int]]:
    with database.read() as connection:
        rows = connection.execute(select(NOTIFICATION).where(NOTIFICATION.c.channel == channel))
        return {(row.state, row.deliveries) for row in rows}


def everything_stored(database: Database) -> str:
    with database.read() as connection:
        return str(connection.execute(select(NOTIFICATION)).all())


def send(database: Database, receiver: Receiver, pauses: Pauses | None = None) -> Notified:
    return notify(database, [webhook(receiver.address)], SETTINGS, pause=pauses or Pauses())


def test_one_message_per_event_with_numbers_cause_and_link(confirmed: Database, receiver: Receiver) -> None:
    assert send(confirmed, receiver) == Notified(1, ())
    (message,) = receiver.received
    assert message["schema"] == "compilewatch.regression/1"
    assert message["title"].startswith(
        "2 cases regressed: torch 2.12.0 to torch 2.13.0 on gpu-box-3: latency 2 slower, "
    )
    assert message["cause"] == "compiler"
    assert {(each["workload"], each["metric"]) for each in message["regressions"]} >= {
        ("mlp", "latency"),
        ("bert-base", "latency"),
    }
    latency = next(each for each in message["regressions"] if each["metric"] == "latency")
    assert latency["change"] == pytest.approx(0.4, abs=0.01)
    frame = regressions_frame(confirmed)
    assert {each["regression_id"] for each in message["regressions"]} == set(frame["regression_id"])
    builds = standing_regressions(confirmed)[0].regression
    assert message["link"] == (
        "https://watch.example.com/perf/upgrade?"
        f"base={builds.base.build_ids[0]}&head={builds.head.build_ids[0]}"
        f"&base_run={RUN_0}&head_run={RUN_1}&machine={builds.machine_id}"
    )
    for word in (message["title"], "mlp / default: latency +39.", "Cause class: compiler.", message["link"]):
        assert word in message["text"]
    assert receiver.seen_headers[0]["Idempotency-Key"] == message["message_id"]
    assert states(confirmed) == {("sent", 1)}


def test_nothing_is_sent_twice(confirmed_on_both: Database, receiver: Receiver) -> None:
    send(confirmed_on_both, receiver)
    record_comparison(confirmed_on_both, judged(confirmed_on_both, RUN_0, RUN_2), at=NOW, channels=("team",))
    assert send(confirmed_on_both, receiver) == Notified(0, ())
    assert len(receiver.received) == 1


def test_many_processes_send_one_message(
    confirmed_on_both: Database, receiver: Receiver, open_again: Callable[[], Database]
) -> None:
    databases = [open_again() for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        told = list(pool.map(lambda each: send(each, receiver), databases))
    assert sorted(each.sent for each in told) == [0, 0, 0, 1]
    assert len(receiver.received) == 1


def test_no_transaction_is_open_while_a_message_is_on_its_way(
    confirmed_on_both: Database, receiver: Receiver, open_again: Callable[[], Database]
) -> None:
    receiver.hold = threading.Event()
    other = open_again()
    with ThreadPoolExecutor(1) as pool:
        sending = pool.submit(
            notify,
            confirmed_on_both,
            [webhook(receiver.address)],
            SETTINGS,
            pause=Pauses(),
        )
        wait_until(lambda: bool(receiver.received), 60, "nothing was sent")
        with other.write() as connection:
            connection.execute(select(NOTIFICATION).with_for_update()).all()
        assert states(other) == {("sending", 1)}
        receiver.hold.set()
        sending.result(timeout=60)


@pytest.mark.parametrize("trouble", [500, 503, 429])
def test_a_passing_trouble_is_waited_out(confirmed: Database, receiver: Receiver, trouble: int) -> None:
    receiver.answers = [trouble, trouble, 204]
    pauses = Pauses()
    assert send(confirmed, receiver, pauses) == Notified(1, ())
    assert pauses.taken == [1.0, 2.0]
    assert len({message["message_id"] for message in receiver.received}) == 1
    assert states(confirmed) == {("sent", 1)}


def test_the_pause_a_service_asks_for_is_kept_within_reason(confirmed: Database, receiver: Receiver) -> None:
    receiver.answers, receiver.headers = [429, 200], {"Retry-After": "7"}
    pauses = Pauses()
    send(confirmed, receiver, pauses)
    assert pauses.taken == [7.0]


def test_a_refusal_is_not_repeated_at_once_but_taken_up_later(
    confirmed: Database, receiver: Receiver
) -> None:
    receiver.answers = [404, 200]
    pauses = Pauses()
    told = send(confirmed, receiver, pauses)
    assert told.sent == 0
    assert "The webhook answered 404." in told.problems[0]
    assert (pauses.taken, states(confirmed)) == ([], {("failed", 1)})
    assert send(confirmed, receiver).sent == 1
    assert states(confirmed) == {("sent", 2)}


def test_a_channel_that_never_works_is_given_up(confirmed: Database, receiver: Receiver) -> None:
    receiver.answers = [500]
    for _ in range(MOST_DELIVERIES):
        assert send(confirmed, receiver).problems
    assert len(receiver.received) == MOST_DELIVERIES * SETTINGS.attempts
    assert send(confirmed, receiver) == Notified(0, ())
    assert len(receiver.received) == MOST_DELIVERIES * SETTINGS.attempts


def test_a_redirect_is_a_refusal_and_hands_the_token_to_nobody(
    confirmed: Database, receiver: Receiver
) -> None:
    receiver.answers, receiver.headers = [302], {"Location": receiver.address}
    assert "answered 302" in send(confirmed, receiver).problems[0]
    assert len(receiver.received) == 1


def test_a_message_without_an_answer_may_have_arrived_and_is_never_repeated(
    confirmed: Database, receiver: Receiver
) -> None:
    receiver.hold = threading.Event()
    impatient = SETTINGS.model_copy(update={"timeout_s": 0.5})
    told = notify(confirmed, [webhook(receiver.address)], impatient, pause=Pauses())
    assert "took the message and did not answer" in told.problems[0]
    assert states(confirmed) == {("unknown", 1)}
    receiver.hold.set()
    assert send(confirmed, receiver) == Notified(0, ())
    assert len(receiver.received) == 1


def test_a_server_that_is_away_is_tried_again_later(confirmed: Database, receiver: Receiver) -> None:
    with contextlib.closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        away = webhook(f"http://127.0.0.1:{taken.getsockname()[1]}/{TOKEN}")
        pauses = Pauses()
        told = notify(confirmed, [away], SETTINGS, pause=pauses)
    assert "cannot be reached (ConnectionRefusedError)" in told.problems[0]
    assert pauses.taken == [1.0, 2.0, 4.0]
    assert send(confirmed, receiver).sent == 1


def test_one_channel_in_trouble_keeps_no_other_from_its_message(
    confirmed: Database, receiver: Receiver
) -> None:
    bad = webhook("http://127.0.0.1:9/x", name="other")
    told = notify(confirmed, [bad, webhook(receiver.address)], SETTINGS, pause=Pauses())
    assert (told.sent, len(told.problems)) == (1, 1)


def test_what_is_taken_back_or_triaged_before_it_is_sent_stays_unsent(
    confirmed: Database, receiver: Receiver
) -> None:
    record_comparison(confirmed, judged(confirmed, RUN_0, RUN_3), at=NOW, channels=("team",))
    assert send(confirmed, receiver) == Notified(0, ())
    assert receiver.received == []


def test_what_somebody_accepted_is_not_told(confirmed: Database, receiver: Receiver) -> None:
    for found in standing_regressions(confirmed):
        event = TriageEvent(state=TriageState.EXPECTED, author="ada", at=NOW)
        triage(confirmed, found.regression.regression_id, event)
    assert send(confirmed, receiver) == Notified(0, ())


def test_what_a_vanished_process_was_sending_is_not_sent_again(
    confirmed_on_both: Database, receiver: Receiver
) -> None:
    claimed = claim_notifications(confirmed_on_both, "team", at=datetime.now(UTC) - timedelta(hours=2))
    assert claimed
    assert send(confirmed_on_both, receiver) == Notified(0, ())
    assert states(confirmed_on_both) == {("unknown", 1)}
    assert NotificationState.UNKNOWN in everything_stored(confirmed_on_both)


def test_credentials_of_an_address_become_a_header(confirmed: Database, receiver: Receiver) -> None:
    address = f"http://ada:{TOKEN}%21@127.0.0.1:{receiver.port}/hooks"
    assert notify(confirmed, [webhook(address)], SETTINGS, pause=Pauses()).sent == 1
    expected = base64.b64encode(f"ada:{TOKEN}!".encode()).decode()
    assert receiver.seen_headers[0]["Authorization"] == f"Basic {expected}"
    assert receiver.seen_headers[0]["Host"] == f"127.0.0.1:{receiver.port}"


@pytest.mark.parametrize("answers", [[200], [404], [500], [302]])
def test_a_token_appears_in_no_log_row_or_sentence(
    confirmed: Database, receiver: Receiver, answers: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    receiver.answers, receiver.headers = answers, {"Location": receiver.address}
    told = send(confirmed, receiver)
    assert TOKEN not in caplog.text
    assert TOKEN not in str(told)
    assert TOKEN not in everything_stored(confirmed)
    assert TOKEN not in repr(webhook(receiver.address))
    assert TOKEN in receiver.received[0]["path"]


HOSTILE = "<!channel> <@U1> @everyone <https://evil.example|ok> [go](https://evil.example) ![i](x) www.e &\nb"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("through", ["webhook", "apprise"])
def test_no_name_is_markup_in_a_message(receiver: Receiver, through: str) -> None:
    """Neither a mention of everybody nor a link under other words; programs get the names as they are."""
    message = Message("id", f"{HOSTILE} regressed", (f"{HOSTILE}: +9 %",), HOSTILE, "https://ours/x?a=1", ())
    if through == "webhook":
        deliver(webhook(receiver.address), message, timeout_s=60)
        (received,) = receiver.received
        assert received["title"] == f"{HOSTILE} regressed"
        text = received["text"]
        assert not {"<", ">"} & set(text)
    else:
        pytest.importorskip("apprise")
        address = SecretStr(f"json://127.0.0.1:{receiver.port}/{TOKEN}")
        deliver(ChannelSettings(name="team", apprise=address), message, timeout_s=60)
        (received,) = receiver.received
        text = f"{received['title']}\n{received['message']}"
    for markup in ("<!", "<@", "@everyone", "<https", "https://evil", "](", "![", "www."):
        assert markup not in text
    *lines, link = text.splitlines()
    assert (len(lines), html.unescape(link)) == (3, "https://ours/x?a=1")
    assert "evil.example" in text


# apprise imports modules that Python is about to lose
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_apprise_delivers_the_same_event(
    confirmed: Database, receiver: Receiver, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("apprise", reason="apprise is not installed: pip install compilewatch[notify]")
    channel = ChannelSettings(name="team", apprise=SecretStr(f"json://127.0.0.1:{receiver.port}/{TOKEN}"))
    assert notify(confirmed, [channel], SETTINGS, pause=Pauses()) == Notified(1, ())
    (message,) = receiver.received
    assert message["title"].startswith(
        "2 cases regressed: torch 2.12.0 to torch 2.13.0 on gpu-box-3: latency 2 slower, "
    )
    assert "Cause class: compiler." in message["message"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_an_address_that_apprise_does_not_understand_is_not_repeated(
    confirmed: Database, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("apprise", reason="apprise is not installed: pip install compilewatch[notify]")
    channel = ChannelSettings(name="team", apprise=SecretStr(f"nosuch://{TOKEN}"))
    told = notify(confirmed, [channel], SETTINGS, pause=Pauses())
    assert "Apprise does not understand the channel's address." in told.problems[0]
    captured = capsys.readouterr()
    assert TOKEN not in captured.out + captured.err + caplog.text + str(told)
