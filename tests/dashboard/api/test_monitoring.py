"""Badges, health and Prometheus text: honest about what is not there."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette

from compilewatch.dashboard.api.badge import BadgeText, draw
from compilewatch.dashboard.api.routes import routes
from compilewatch.dashboard.http.rate_limit import Buckets, RateLimit
from compilewatch.db.engine.session import Database
from compilewatch.db.records.hosts import HostHealth
from compilewatch.db.records.requests import RequestKind, RequestSpec, ScheduleSpec
from compilewatch.db.records.trial import FailureKind
from compilewatch.db.service.hosts import HEALTHS
from compilewatch.db.service.requests import new_request, save_request, take_request
from compilewatch.db.service.schedules import save_due, save_schedule
from compilewatch.runner.fleet.queue import create_tables
from tests.builders import (
    MS,
    START,
    make_history,
    make_imported,
    make_machine,
    make_strategy,
    make_trial,
    make_workload,
)
from tests.dashboard.asking import Reply, ask
from tests.dashboard.conftest import DATABASE, Store
from tests.few_examples import FEW

SVG = "{http://www.w3.org/2000/svg}"


def badge(case: str) -> Reply:
    return ask(Starlette(routes=routes()), f"/badge/{case}")


def said(reply: Reply) -> list[str]:
    """The texts of an SVG, label first. The XML is our own."""
    assert reply.headers["content-type"] == "image/svg+xml"
    return [text.text or "" for text in ET.fromstring(reply.body).iter(f"{SVG}text")]


@pytest.fixture
def case_url(store: Store) -> str:
    """12 ms eager, 8 ms compiled, on two machines; a failing case, and one slower than eager."""
    older = {"started_at": START - timedelta(days=2), "run_id": "older", "latency_ns": 6 * MS}
    trials = [
        make_trial(samples=1, spread=0, latency_ns=8 * MS, control_latency_ns=12 * MS),
        make_trial(samples=1, spread=0, machine=make_machine("old-box", threads=2), **older),
        make_trial(strategy="max-autotune", failure=FailureKind.TIMEOUT),
        make_trial(
            strategy="reduce-overhead", samples=1, spread=0, latency_ns=12 * MS, control_latency_ns=8 * MS
        ),
    ]
    return store(trials)


@pytest.mark.parametrize(
    ("case", "text"),
    [
        ("bert-base/default.svg", "1.50x (first look)"),
        ("bert-base/default.svg?metric=break_even", "first look"),
        ("bert-base/max-autotune.svg", "failed"),
        ("bert-base/reduce-overhead.svg", "0.667x (first look)"),
        ("bert-base/reduce-overhead.svg?metric=break_even", "first look"),
        ("bert-base/none-such.svg", "not there"),
        ("none-such/default.svg", "not there"),
        ("bert-base/default.svg?machine=none-such", "not there"),
        ("bert-base/default.svg?build=none-such", "not there"),
        ("a%00b/default.svg", "not there"),
        ("tally.svg", "no data"),
        ("tally.svg?machine=none-such", "not there"),
    ],
)
def test_a_badge_says_the_newest_value_of_a_case(case_url: str, case: str, text: str) -> None:
    reply = badge(case)
    assert reply.status == (404 if text == "not there" else 200)
    label, value = said(reply)
    assert value == text
    shown = "compilewatch" if case.startswith("tally.svg") else case.split("/", maxsplit=1)[0]
    assert label.split()[0] == shown.replace("%00", r"\x00")


def test_a_badge_of_several_trials_decides(store: Store) -> None:
    times = {"samples": 1, "spread": 0, "latency_ns": 8 * MS, "control_latency_ns": 12 * MS}
    store([make_trial(trial_id=f"trial-{number}", **times) for number in range(3)])
    assert said(badge("bert-base/default.svg"))[1] == "1.50x"
    # 6 s of compile cost, 4 ms saved per step
    assert said(badge("bert-base/default.svg?metric=break_even"))[1] == "1,500 steps"


def test_a_badge_of_an_imported_case_says_so(store: Store) -> None:
    store([make_imported(latency_ns=8 * MS, control_latency_ns=12 * MS)])
    reply = badge("bert-base/default.svg")
    assert said(reply)[1] == "1.50x (first look) (imported)"
    assert b", imported from dynamo-csv</title>" in reply.body
    assert said(badge("bert-base/none-such.svg"))[1] == "not there"


def test_a_badge_can_be_of_one_machine(case_url: str) -> None:
    app = Starlette(routes=routes())
    machines = {row["machine"]: row["machine_id"] for row in ask(app, "/api/v1/machines").json["rows"]}
    assert (
        said(ask(app, f"/badge/bert-base/default.svg?machine={machines['old-box']}"))[1]
        == "2.00x (first look)"
    )


def test_a_badge_of_a_workload_named_like_a_path(store: Store) -> None:
    hostile = make_workload("models/<svg onload=alert(1)>&")
    strategy = make_strategy("default+dynamic")
    store([make_trial(workload=hostile, strategy=strategy, samples=1, spread=0)])
    reply = badge("models/%3Csvg%20onload=alert(1)%3E&/default+dynamic.svg")
    assert said(reply) == ["models/<svg onload=alert(1)>& default+dynamic", "1.50x (first look)"]
    assert b"<svg onload" not in reply.body


@FEW
@given(st.text())
def test_a_badge_is_xml_whatever_the_label(label: str) -> None:
    root = ET.fromstring(draw(label, BadgeText("no data", "#000")).encode())
    assert len(list(root.iter(f"{SVG}text"))) == 2


def test_a_badge_has_a_tag_and_refuses_what_it_does_not_know(case_url: str) -> None:
    app = Starlette(routes=routes())
    tag = ask(app, "/badge/bert-base/default.svg").headers["etag"]
    assert ask(app, "/badge/bert-base/default.svg", if_none_match=tag).status == 304
    assert ask(app, "/badge/bert-base/default.svg?metric=smell").status == 400
    assert ask(app, "/badge/bert-base/default.svg", method="POST").status == 405


def values(text: str) -> dict[str, float]:
    """Prometheus text as metric with labels -> value; every sample must follow its HELP and TYPE."""
    found, declared = {}, set()
    for line in text.splitlines():
        if line.startswith("#"):
            declared.add(line.split()[2])
            continue
        match = re.fullmatch(r'([a-z_]+)((?:{(?:[a-z_]+="(?:[^"\\\n]|\\.)*",?)*})?) (\S+)', line)
        assert match, line
        assert match[1] in declared
        found[match[1] + match[2]] = float(match[3])
    return found


def test_metrics_count_trials_and_age_machines(case_url: str, store: Store) -> None:
    hostile = make_machine('quo"te\\back\nline', threads=99)
    store([make_trial(machine=hostile), make_trial(failure="cancelled")])
    reply = ask(Starlette(routes=routes()), "/metrics")
    assert reply.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    told = values(reply.body.decode())
    assert told["compilewatch_database_reachable"] == 1
    assert told['compilewatch_trials{status="ok"}'] == 4
    assert told['compilewatch_trials{status="failed"}'] == 1
    assert told['compilewatch_trials{status="cancelled"}'] == 1
    ages = [name for name in told if name.startswith("compilewatch_last_result_age_seconds")]
    assert len(ages) == 3
    assert any('machine="quo\\"te\\\\back\\nline"' in name for name in ages)
    old, new = (next(told[age] for age in ages if f'"{box}"' in age) for box in ("old-box", "gpu-box-3"))
    assert old - new == pytest.approx(2 * 86_400, abs=1)


def test_metrics_tell_what_waits_and_what_is_silent(
    sqlite_database: Database, sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        asked = new_request(name, RequestKind.MANUAL, RequestSpec(), by="ann", at=START)
        save_request(sqlite_database, asked)
    take_request(sqlite_database, owner="me", at=START, fits=lambda _request: True)
    for name, due_at in (("nightly", START), ("rare", datetime.now(UTC) + timedelta(days=1))):
        save_schedule(sqlite_database, name, ScheduleSpec(cron="0 3 * * *"), at=START)
        save_due(sqlite_database, name, last_result_at=None, due_at=due_at)
    seen_at = datetime.now(UTC) - timedelta(seconds=90)
    for errors in (1, 3):
        health = HostHealth(
            host="box", seen_at=seen_at, spool_trials=2, spool_bytes=4096, database_errors=errors
        )
        HEALTHS.put(sqlite_database, health)
    monkeypatch.setenv(DATABASE, sqlite_url)
    told = values(ask(Starlette(routes=routes()), "/metrics").body.decode())
    assert told['compilewatch_requests{state="queued"}'] == 1
    assert told['compilewatch_requests{state="running"}'] == 1
    assert told['compilewatch_schedule_silent{schedule="nightly"}'] == 1
    assert told['compilewatch_schedule_silent{schedule="rare"}'] == 0
    assert told['compilewatch_spool_trials{host="box"}'] == 2
    assert told['compilewatch_spool_bytes{host="box"}'] == 4096
    assert told['compilewatch_database_errors{host="box"}'] == 3
    assert told['compilewatch_host_age_seconds{host="box"}'] == pytest.approx(90, abs=20)


def test_metrics_count_the_jobs_of_a_fleet(
    postgres_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DATABASE, postgres_database_url)
    app = Starlette(routes=routes())
    assert not any("fleet" in name for name in values(ask(app, "/metrics").body.decode()))
    create_tables(postgres_database_url)
    with psycopg.connect(postgres_database_url) as connection:
        connection.execute(
            "INSERT INTO procrastinate_jobs (queue_name, task_name) VALUES ('h200', 't'), ('h200', 't')"
        )
    told = values(ask(app, "/metrics").body.decode())
    assert told['compilewatch_fleet_jobs{queue="h200",status="todo"}'] == 2


def test_monitoring_says_when_the_database_is_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DATABASE, f"sqlite:///{tmp_path / 'none.db'}")
    app = Starlette(routes=routes())
    reply = ask(app, "/metrics")
    # Prometheus drops what comes with any other status.
    assert reply.status == 200
    assert values(reply.body.decode())["compilewatch_database_reachable"] == 0
    health = ask(app, "/healthz")
    assert health.status == 503
    assert health.json["message"] == "The database cannot be read."
    assert str(tmp_path) not in health.body.decode() + str(health.headers)


def test_health_is_unavailable_once_the_database_is_gone(copied_url: str) -> None:
    app = Starlette(routes=routes())
    assert ask(app, "/healthz").json["data_version"] >= 1
    Path(copied_url.removeprefix("sqlite:///")).write_bytes(b"this is no database " * 500)
    answer = ask(app, "/healthz")
    assert answer.status == 503
    assert answer.json["message"]


def test_a_bucket_fills_again_with_time() -> None:
    now = 0.0
    limit = RateLimit(Starlette(), burst=3, per_second=2, clock=lambda: now)
    assert [limit.take("a") for _ in range(4)] == [0, 0, 0, 0.5]
    assert limit.take("b") == 0
    now = 0.5
    assert [limit.take("a"), limit.take("a")] == [0, 0.5]
    now = 1000.0
    assert [limit.take("a") for _ in range(4)] == [0, 0, 0, 0.5]


def test_addresses_beyond_count_do_not_fill_the_memory() -> None:
    buckets = Buckets(1, 1, clock=lambda: 0.0)
    for number in range(20_000):
        buckets.take(str(number))
    assert len(buckets._buckets) <= 10_000


@pytest.mark.parametrize(
    ("first", "second", "is_one"),
    [
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", True),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
        ("fe80::1%eth0", "fe80::2%eth0", True),
        ("2001:db8::not", "2001:db8::one", False),
    ],
)
def test_a_subscriber_of_ipv6_has_one_bucket(first: str, second: str, is_one: bool) -> None:
    """Who has a network has billions of addresses in it."""
    buckets = Buckets(1, 1, clock=lambda: 0.0)
    assert buckets.take(first) == 0
    assert (buckets.take(second) > 0) is is_one


def test_looking_takes_no_token() -> None:
    buckets = Buckets(1, 1, clock=lambda: 0.0)
    assert [buckets.wait_s("a"), buckets.wait_s("a"), buckets.take("a"), buckets.wait_s("a")] == [0, 0, 0, 1]


@pytest.mark.parametrize(("factor", "trials", "is_shown"), [(1.0, 5, False), (0.7, 5, True), (0.7, 2, False)])
def test_a_badge_of_a_speedup_that_is_not_shown_says_so(
    store: Store, factor: float, trials: int, *, is_shown: bool
) -> None:
    """Two trials have no interval."""

    def latency_ns(_workload: str, strategy: str, _run: int) -> float:
        return 10 * MS * (1.0 if strategy == "eager" else factor)

    store(
        make_history(
            workloads=("mlp",),
            builds=("2.13.0",),
            trials_per_case=trials,
            between_trials=0.02,
            latency_ns=latency_ns,
        )
    )
    assert said(badge("mlp/default.svg"))[1].endswith(" (not shown)") is not is_shown
