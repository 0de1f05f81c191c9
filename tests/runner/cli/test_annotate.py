"""`compilewatch annotate`: a note at a day or at a build, listed, drawn in histories, taken away."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compilewatch.db.engine.session import open_database
from compilewatch.db.service.annotations import stored_annotations
from compilewatch.db.store.trials import save_trials
from compilewatch.runner.cli.app import app
from compilewatch.runner.cli.front import exit_code_of
from tests.builders import make_history


@pytest.fixture
def url(sqlite_url: str) -> str:
    with open_database(sqlite_url) as database:
        save_trials(database, make_history())
    return sqlite_url


def annotate(url: str, *arguments: str) -> int:
    return exit_code_of(app, ["annotate", *arguments, "--db", url])


def listed(url: str, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert exit_code_of(app, ["list", "annotations", "--json", "--db", url]) == 0
    rows: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["rows"]
    return rows


def test_a_note_is_written_listed_and_taken_away(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    link = "https://example.org/580"
    assert annotate(url, "Driver  580", "--on", "2026-11-20", "--url", link, "--by", "anna") == 0
    (row,) = listed(url, capsys)
    assert (row["text"], row["author"], row["url"]) == ("Driver 580", "anna", link)
    assert row["happened_at"].startswith("2026-11-20T00:00")
    assert annotate(url, "--remove", row["annotation_id"][:12]) == 0
    assert listed(url, capsys) == []


def test_a_note_at_a_build_is_of_that_build(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert annotate(url, "New allocator", "--build", "latest") == 0
    (row,) = listed(url, capsys)
    assert row["happened_at"] is None
    assert row["build_id"]


def test_a_note_of_one_model_is_of_that_model_on_every_door(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert annotate(url, "New weights", "--on", "2026-11-20", "--workload", "bert-base") == 0
    assert annotate(url, "New driver", "--on", "2026-11-20") == 0
    assert {row["text"]: row["workload"] for row in listed(url, capsys)} == {
        "New weights": "bert-base",
        "New driver": None,
    }
    with open_database(url, read_only=True) as database:
        texts = {
            name: [note.text for note in stored_annotations(database, workload=name)]
            for name in ("bert-base", "resnet-50")
        }
    assert texts == {"bert-base": ["New weights", "New driver"], "resnet-50": ["New driver"]}


@pytest.mark.parametrize(
    "wrong",
    [
        (),
        ("x", "--remove", "01"),
        ("x" * 201,),
        ("x", "--url", "javascript:alert(1)"),
        ("x", "--on", "yesterday"),
        ("x", "--on", "2026-11-20", "--build", "latest"),
        ("x", "--machine", "nobody's"),
        ("x", "--workload", "bert"),
        ("--remove", "zz"),
    ],
)
def test_what_is_typed_wrongly_changes_nothing(
    url: str, capsys: pytest.CaptureFixture[str], wrong: tuple[str, ...]
) -> None:
    assert annotate(url, *wrong) == 2
    assert "Traceback" not in capsys.readouterr().err
    with open_database(url, read_only=True) as database:
        assert stored_annotations(database) == []
