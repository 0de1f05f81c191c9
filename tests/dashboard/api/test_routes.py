"""The API: the same numbers as the command line, pages without a gap, tags, and one way of saying no."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette

from compilewatch.dashboard.api.endpoints import ENDPOINTS
from compilewatch.dashboard.api.representation import CSV, JSON, Answer, MadeAnswer, as_csv, made_answer
from compilewatch.dashboard.api.routes import routes
from compilewatch.dashboard.read.database import VARIABLE, InForce
from compilewatch.db.cells import plain
from compilewatch.db.engine.session import open_database
from compilewatch.db.interchange.flat import FlatColumns
from compilewatch.db.judge.policy import Policy
from compilewatch.db.queries.records import trial_batches
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import trial_records, trials_frame
from compilewatch.db.records.trial import Summary
from compilewatch.db.service.reports import revoke_report
from compilewatch.db.store.trials import save_trial, save_trials
from compilewatch.runner.cli.app import app as command_line
from compilewatch.runner.cli.front import exit_code_of
from tests.builders import START, make_imported, make_trial
from tests.dashboard.asking import Reply, ask
from tests.dashboard.conftest import DATABASE, REPORT_ID, REVOKED_ID, Store

Api = Callable[..., Reply]
LISTS = ("machines", "builds", "workloads", "runs", "trials", "series", "regressions", "reports")


@pytest.fixture
def api(recorded_here: str) -> Api:
    """Asks `/api/v1/PATH` of a database in which everything occurs."""
    app = Starlette(routes=routes())
    return lambda path, *args, **more: ask(app, f"/api/v1/{path}", *args, **more)


def printed(capsys: pytest.CaptureFixture[str], url: str, *arguments: str) -> Any:
    """The JSON document that a command prints."""
    capsys.readouterr()
    assert exit_code_of(command_line, [*arguments, "--json", "--db", url]) in {0, 1, 2}
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("subject", ["runs", "builds", "machines", "regressions"])
def test_lists_are_those_of_the_command_line(
    api: Api, recorded_url: str, capsys: pytest.CaptureFixture[str], subject: str
) -> None:
    rows = api(subject).json["rows"]
    assert rows
    assert rows == printed(capsys, recorded_url, "list", subject)["rows"]


def test_a_comparison_is_judged_by_the_configured_policy(
    api: Api, recorded_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    strict = Policy().with_margin(0.5)
    monkeypatch.setenv(VARIABLE, InForce(policy=strict).model_dump_json())
    answer = api("compare", {"base": "torch=2.12.0", "head": "torch=2.13.0"}).json
    assert answer["policy"] == strict.to_json() != Policy().to_json()


def test_a_trial_is_its_record_and_as_csv_its_samples(api: Api, recorded_url: str) -> None:
    with open_database(recorded_url) as database:
        record = next(trial_records(database))
    assert api(f"trials/{record.trial_id}").json == json.loads(record.to_json())
    table = api(f"trials/{record.trial_id}", {"format": "csv"}).table
    told = [int(row["value_ns"]) for row in table if row["kind"] == "samples_ns"]
    assert told == record.samples_ns


def test_trials_are_the_frame_that_pages_use(api: Api, recorded_url: str) -> None:
    query = {"workload": "mlp", "strategy": ["eager", "default"], "since": "2026-11-18", "limit": 1000}
    rows = api("trials", query).json["rows"]
    with open_database(recorded_url) as database:
        frame = trials_frame(database, Filters(workloads=("mlp",), strategies=("eager", "default")))
    frame = frame[frame["started_at"] >= "2026-11-18T00:00Z"]
    assert [row["trial_id"] for row in rows] == list(frame["trial_id"])
    assert [row["latency_ns"] for row in rows] == [plain(value) for value in frame["latency_ns"]]
    assert len(rows) > 0


def test_trials_have_the_figures_of_an_export(api: Api, recorded_url: str) -> None:
    stated = make_imported(summary=Summary(throughput_per_s=12.5, metrics={"score": 3}))
    timed = make_imported(summary=Summary(latency_ns=2_000_000, control_latency_ns=5_000_000))
    with open_database(recorded_url) as database:
        save_trials(database, [stated, timed])
        exported = {}
        for batch in trial_batches(database, Filters()):
            columns = FlatColumns().of(batch)
            exported |= {
                key: {name: values[place] for name, values in columns.items()}
                for place, key in enumerate(columns["trial_id"])
            }
    rows = api("trials", {"limit": 1000}).json["rows"]
    assert {row["trial_id"] for row in rows} == exported.keys()
    assert any(row["speedup"] for row in rows)
    for row in rows:
        alike = exported[row["trial_id"]]
        assert row["metrics"] == (alike["metrics"] and json.loads(alike["metrics"]))
        for name in ("speedup", "throughput_per_s"):
            assert row[name] == (None if alike[name] is None else pytest.approx(alike[name]))


def test_the_history_of_a_series_stands_on_its_own_trials(api: Api) -> None:
    for series in api("series", {"strategy": ["default", "eager"], "workload": "bert-base"}).json["rows"]:
        answer = api(f"series/{series['series_id']}").json
        assert answer["series"] == series
        assert sum(point["trials"] for point in answer["rows"]) == series["trials"]
        assert {point["series_id"] for point in answer["rows"]} == {series["series_id"]}


def test_regressions_are_filtered_as_the_links_of_their_page(api: Api) -> None:
    rows = api("regressions").json["rows"]
    (acknowledged,) = api("regressions?state=acknowledged").json["rows"]
    assert (acknowledged["author"], acknowledged["note"]) == ("ann", "bisecting")
    assert len(api("regressions?state=new&state=acknowledged").json["rows"]) == len(rows)
    for key in ("workload", "strategy", "task"):
        some = api("regressions", {key: acknowledged[key]}).json["rows"]
        assert some == [row for row in rows if row[key] == acknowledged[key]]
    assert api("regressions?until=2026-11-19").json["rows"] == []


def test_one_regression_is_told_with_what_was_said_about_it(api: Api) -> None:
    (row,) = api("regressions?state=acknowledged").json["rows"]
    path = f"regressions/{row['regression_id']}"
    whole = api(path).json
    assert whole["regression"]["row"]["case"]["workload"] == row["workload"]
    assert [event["note"] for event in whole["triage"]] == ["bisecting"]
    assert " ".join(whole["explanation"]) == (row["explanation"] or "")
    assert whole["now"] == row["now"]
    assert [event["url"] for event in api(path, accept="text/csv").table] == ["https://example.org/1"]
    # the command line takes the first characters of an id; an address is exact
    assert api(path[:-1]).status == 404


def test_no_answer_tells_the_id_of_a_report(api: Api) -> None:
    rows = api("reports").json["rows"]
    assert {(row["title"], row["revoked_by"]) for row in rows} == {
        ("Before the upgrade", None),
        ("Before the upgrade", "ann"),
    }
    for path in ("reports", "reports?format=csv", "reports?limit=1", "openapi.json"):
        answer = api(path)
        assert answer.status == 200
        assert not {REPORT_ID, REVOKED_ID} & set(re.findall(r"[0-9a-f]{32}", str(answer)))


def test_a_report_is_for_whoever_has_its_id_until_it_is_revoked(api: Api) -> None:
    answer = api(f"reports/{REPORT_ID}")
    assert answer.json["title"] == "Before the upgrade"
    assert answer.json["data"] == {"cases": 1}
    assert answer.headers["cache-control"] == "no-store"
    cells = api(f"reports/{REPORT_ID}?format=csv").table
    assert [cell["text"] for cell in cells] == ["mlp", "1.4"]
    assert api(f"reports/{REVOKED_ID}").status == 410
    (key,) = (row["key"] for row in api("reports").json["rows"] if row["revoked_by"] is None)
    assert api(f"reports/{key}").status == 404


def test_revoking_a_report_changes_its_tag_though_no_data_changed(
    copied_recorded_url: str,
) -> None:
    app = Starlette(routes=routes())
    paths = ("/api/v1/reports", f"/api/v1/reports/{REPORT_ID}")
    tags = [ask(app, path).headers["etag"] for path in paths]
    assert [ask(app, path, if_none_match=tag).status for path, tag in zip(paths, tags, strict=True)] == [
        304
    ] * 2
    with open_database(copied_recorded_url) as database:
        revoke_report(database, REPORT_ID, at=START, by="ann")
    assert [ask(app, path, if_none_match=tag).status for path, tag in zip(paths, tags, strict=True)] == [
        200,
        410,
    ]


@pytest.mark.parametrize("name", LISTS)
def test_pages_hold_every_row_once_and_in_order(api: Api, name: str) -> None:
    whole = api(name, {"limit": 1000}).json["rows"]
    path: str | None = f"{name}?limit=2"
    seen: list[Any] = []
    while path is not None:
        page = api(path)
        assert len(page.json["rows"]) <= 2
        seen += page.json["rows"]
        link = page.headers.get("link")
        assert (link is None) == (page.json["next"] is None)
        path = name + link.removeprefix("<").partition(">")[0] if link else None
    assert seen == whole
    assert len(whole) > 2 or name in {"machines", "reports"}


def test_trials_that_began_together_are_paged_by_id(store: Store) -> None:
    store(make_trial(trial_id=f"together-{name}") for name in ("b", "a", "d", "c"))
    app = Starlette(routes=routes())
    page = ask(app, "/api/v1/trials?limit=3").json
    rest = ask(app, "/api/v1/trials", {"limit": 3, "cursor": page["next"]}).json
    ids = [row["trial_id"][-1] for row in (*page["rows"], *rest["rows"])]
    assert ids == ["a", "b", "c", "d"]
    assert rest["next"] is None


@pytest.mark.parametrize("name", LISTS)
def test_csv_is_the_json_as_a_table(api: Api, name: str) -> None:
    rows = api(name, {"limit": 5}).json["rows"]
    answer = api(name, {"limit": 5}, accept="text/csv")
    assert answer.headers["content-type"].startswith("text/csv")
    table = answer.table
    assert [list(row) for row in table] == [list(row) for row in rows]
    for told, row in zip(table, rows, strict=True):
        for column, value in row.items():
            if isinstance(value, dict | list):
                assert json.loads(told[column]) == value
            elif isinstance(value, bool):
                assert told[column] == str(value).lower()
            else:
                assert told[column] == ("" if value is None else str(value))


def test_csv_holds_no_formula(store: Store) -> None:
    """Texts that begin like a formula are marked as texts, numbers stay numbers, and JSON stays as stored."""
    names = ['=HYPERLINK("http://evil.example")', "+1+1", "-2+3", "@SUM(1)", "\t=1", "\r=1", "\n=1", "＝1"]  # noqa: RUF001
    store(make_trial(workload=name, suite=name, trial_id=f"f-{number}") for number, name in enumerate(names))
    app = Starlette(routes=routes())
    answer = ask(app, "/api/v1/trials", {"format": "csv"})
    for row, name in zip(answer.table, names, strict=True):
        assert (row["workload"], row["suite"]) == (f"'{name}", f"'{name}")
    assert [row["workload"] for row in ask(app, "/api/v1/trials").json["rows"]] == names
    cells = as_csv(("number", "text", "list"), [{"number": -1.5, "text": "-1.5", "list": ["=1"]}])
    assert cells.splitlines()[1] == b'-1.5,\'-1.5,"[""=1""]"'


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("*/*", "application/json"),
        ("text/csv;q=0.4, application/json;q=0.5", "application/json"),
        ("application/json;q=0.1, text/*", "text/csv"),
        ("text/html", "application/json"),
    ],
)
def test_the_accept_header_chooses(api: Api, accept: str, kind: str) -> None:
    assert api("machines", accept=accept).headers["content-type"].startswith(kind)


def test_an_answer_is_made_once_until_something_is_written(
    copied_recorded_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = Starlette(routes=routes())
    made: list[str] = []

    def counted(answer: Answer, media: str) -> MadeAnswer:
        made.append(media)
        return made_answer(answer, media)

    monkeypatch.setattr("compilewatch.dashboard.api.routes.made_answer", counted)
    first, again = ask(app, "/api/v1/runs"), ask(app, "/api/v1/runs")
    assert (again.body, made) == (first.body, [JSON])
    # What another client prefers is another answer, and so is another query.
    assert ask(app, "/api/v1/runs", accept="text/csv").headers["content-type"].startswith("text/csv")
    assert ask(app, "/api/v1/runs", accept="application/json").body == first.body
    assert len(ask(app, "/api/v1/runs?limit=1").json["rows"]) == 1
    assert made == [JSON, CSV, JSON]
    with open_database(copied_recorded_url) as database:
        save_trial(database, make_trial(run_id="another-run"))
    assert "another-run" in {row["run_id"] for row in ask(app, "/api/v1/runs").json["rows"]}
    assert ask(app, "/api/v1/runs/none").status == ask(app, "/api/v1/runs/none").status == 404


def test_nothing_new_is_an_empty_304_until_something_is_written(
    copied_recorded_url: str,
) -> None:
    app = Starlette(routes=routes())
    first = ask(app, "/api/v1/machines")
    tag = first.headers["etag"]
    again = ask(app, "/api/v1/machines", if_none_match=f'"other", {tag}')
    assert (again.status, again.body, again.headers["etag"]) == (304, b"", tag)
    assert ask(app, "/api/v1/machines?format=csv", if_none_match=tag).status == 200
    with open_database(copied_recorded_url) as database:
        save_trial(database, make_trial(machine="another-box"))
    later = ask(app, "/api/v1/machines", if_none_match=tag)
    assert later.status == 200
    assert later.body != first.body


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("trials?workloads=mlp", "no parameter “workloads”"),
        ("trials?limit=0", "limit must be a whole number from 1 to 1,000"),
        ("trials?limit=٣", "limit must be a whole number"),
        ("trials?limit=1&limit=2", "only once"),
        ("trials?task=sleeping", "task must be one of inference, training, function"),
        ("trials?since=yesterday", "since must be like 2026-11-20"),
        ("trials?since=2026-W47-5", "since must be like 2026-11-20"),
        ("trials?workload=", "workload must be 1 to 500 characters"),
        ("trials?workload=a%00b", "none of them NUL"),
        ("break-even?price=nan", "price must be a number from 0"),
        ("compare?base=latest", "head is missing"),
        ("openapi.json?format=csv", "no parameter “format”"),
    ],
)
def test_a_bad_parameter_is_named_and_told_what_it_takes(api: Api, path: str, said: str) -> None:
    answer = api(path)
    assert answer.status == 400
    assert set(answer.json) == {"error"}
    assert set(answer.json["error"]) == {"message", "next_step"}
    assert said in answer.json["error"]["message"]
    assert answer.json["error"]["next_step"]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("trials/none-such", 404),
        ("trials/none%0Asuch", 404),
        ("trials%0A/x", 404),
        ("series/none-such", 404),
        ("regressions/none-such", 404),
        ("reports/none-such", 404),
        ("trials?cursor=none-such", 404),
        ("builds?cursor=none-such", 404),
        ("compare?base=torch=1.0&head=latest", 404),
        ("compare?base=engine=1.0&head=latest", 404),
        ("series?workload=none-such", 404),
        ("break-even?strategy=none-such", 404),
        ("trials?suite=none-such", 404),
        ("compare?base=latest&head=latest", 409),
        ("nothing", 404),
        ("", 404),
    ],
)
def test_what_is_not_there_is_told_in_the_same_shape(api: Api, path: str, status: int) -> None:
    answer = api(path)
    assert answer.status == status
    assert set(answer.json["error"]) == {"message", "next_step"}


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_nothing_writes(api: Api, recorded_url: str, method: str) -> None:
    for endpoint in ENDPOINTS:
        answer = api(endpoint.path.lstrip("/"), method=method)
        if (method, endpoint.path) in {("POST", "/requests"), ("POST", "/annotations"), ("POST", "/jobs")}:
            assert answer.status == 401
            continue
        assert answer.status == 405
        assert "GET" in answer.headers["allow"]
        assert answer.json["error"]["next_step"]


def test_head_tells_the_headers_alone(api: Api) -> None:
    answer = api("machines", method="HEAD")
    assert answer.status == 200
    assert answer.headers["etag"] == api("machines").headers["etag"]


def test_a_database_that_is_away_is_a_503(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DATABASE, f"sqlite:///{tmp_path / 'none.db'}")
    app = Starlette(routes=routes())
    for endpoint in ("machines", "trials", "openapi.json"):
        answer = ask(app, f"/api/v1/{endpoint}")
        assert answer.status == 503
        assert answer.json["error"]["next_step"]


def test_many_requests_from_one_address_are_told_to_wait(api: Api) -> None:
    replies = [api("nothing") for _ in range(200)]
    refused = [reply for reply in replies if reply.status == 429]
    assert refused
    assert int(refused[0].headers["retry-after"]) >= 1
    assert refused[0].json["error"]["next_step"]
    assert api("nothing", client="192.0.2.2").status == 404


def test_an_empty_database_gives_empty_lists(empty_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DATABASE, empty_url)
    app = Starlette(routes=routes())
    for name in (*LISTS, "break-even"):
        assert ask(app, f"/api/v1/{name}").json["rows"] == []
        assert ask(app, f"/api/v1/{name}?format=csv").table == []
    assert ask(app, "/api/v1/compare?base=previous&head=latest").status == 404


def test_hostile_names_stay_within_their_cell() -> None:
    hostile = 'a,"b"\r\n<script>=1+1'
    text = as_csv(("workload", "trials"), [{"workload": hostile, "trials": 1}])
    assert text.count(b"script") == 1
    assert Reply(200, {}, text).table == [{"workload": hostile, "trials": "1"}]
