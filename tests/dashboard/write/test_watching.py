"""*Notify me*: kept by the form of a page, ended by the link of a message."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from dashboard.links.links import Link, Page
from dashboard.login.access import AccessError, Person, Role, identify_people_by
from dashboard.write import watching
from db.engine.session import open_database
from db.errors import ConfigError
from db.queries.people.watches import watches
from db.records.watches import Watch
from tests.dashboard.conftest import opened
from tests.dashboard.serving import served

CHANNELS = '{"team": false, "mail": true}'


def _stored(url: str) -> list[Watch]:
    with open_database(url, read_only=True) as database:
        return watches(database)


def test_a_watch_is_kept_by_the_form_and_ended_by_its_link(
    copied_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert not [each for each in opened(Link(page=Page.WORKLOAD)).button if each.label == "Notify me"]
    monkeypatch.setenv("COMPILEWATCH_CHANNELS", CHANNELS)
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
    with served(copied_url, tmp_path / "log") as server:
        path = f"/unsubscribe/{kept.key}"
        assert server.get(path).status == 200
        assert _stored(copied_url) == [kept], "a mail server that opens links ends nothing"
        answer = server.ask("POST", path, {"Origin": "null", "Sec-Fetch-Site": "same-origin"})
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
    monkeypatch.setenv("COMPILEWATCH_CHANNELS", CHANNELS)
    identify_people_by(lambda _headers: Person("Ann", role))
    try:
        with pytest.raises(error):
            watching.watch(
                by="Ann", channel=channel, address=address, machine_id=None, workload=None, daily=False
            )
    finally:
        identify_people_by(None)
    assert _stored(copied_url) == []
