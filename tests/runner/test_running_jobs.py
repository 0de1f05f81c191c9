"""Jobs that say how they are while they run: to a dashboard, which may be away, and to people."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from compilewatch.dashboard.api import jobs as jobs_api
from compilewatch.dashboard.document.sections import sections
from compilewatch.dashboard.pages.runs.jobs import running_jobs
from compilewatch.dashboard.parts.parts import Lines, Table
from compilewatch.dashboard.read import database as read_database
from compilewatch.dashboard.read.database import DATABASE_VARIABLE
from compilewatch.db.cause.running_jobs import compiled_sentence, job_rows, waiting_sentences
from compilewatch.db.engine.session import Database, open_database
from compilewatch.db.records.access import Scope, Token, new_secret, secret_hash
from compilewatch.db.records.hosts import JobReport, JobState
from compilewatch.db.service.jobs import JOB_STATES, claim_compiled, save_report, shown_jobs
from compilewatch.db.service.tokens import TOKENS
from compilewatch.runner import compilewatch_recorder as recorder
from compilewatch.runner.config.settings import ChannelSettings, NotifySettings
from compilewatch.runner.regressions.notify import notify_compiled
from tests.dashboard.serving import Served, served
from tests.db.interchange.reading import read
from tests.loopback import Quiet, on_loopback
from tests.runner.webhook import webhook

NOW = datetime(2026, 11, 20, 18, 0, tzinfo=UTC)

_SERVER = """
import sys, time, torch
from compilewatch import record


@torch.compile(backend="eager", dynamic=False)
def forward(features):
    return features.sin()


forward(torch.ones(8))
record.ready()
for size in (8, 24, 24, 48):
    with record.request(f"batch {size}"):
        forward(torch.ones(size))
    record.step()
print("served", flush=True)
sys.stdin.read()
"""
_RANKS = """
import os, pathlib, time, torch
from compilewatch import record

go = pathlib.Path("go")


def slowly(graph, inputs):
    while not go.exists():
        time.sleep(0.05)
    return graph.forward


@torch.compile(backend=slowly)
def forward(features):
    return features.sin()


if os.environ["RANK"] == "0":
    # It ends its first step after the other began to compile the second.
    time.sleep(3)
record.step()
if os.environ["RANK"] == "1":
    forward(torch.ones(8))
while not go.exists():
    time.sleep(0.05)
"""


@dataclass(frozen=True)
class Dashboard:
    """A running one with its database, and a token that lets jobs report."""

    server: Served
    url: str
    token: str

    def variables(self) -> dict[str, str]:
        return {"COMPILEWATCH_ADDRESS": self.server.origin, "COMPILEWATCH_TOKEN": self.token}

    def states(self, job: str) -> list[JobState]:
        with open_database(self.url) as database:
            return [each for each in JOB_STATES.all(database) if each.job == job]

    def heard(self, job: str, wanted: Callable[[list[JobState]], Any]) -> list[JobState]:
        """What the processes of `job` said, as soon as it is `wanted`."""
        deadline = time.monotonic() + 120
        while not wanted(states := self.states(job)):
            assert time.monotonic() < deadline, states
            time.sleep(0.1)
        return states


@pytest.fixture(scope="module")
def dashboard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    folder = tmp_path_factory.mktemp("dashboard")
    url, secret = f"sqlite:///{folder / 'own.db'}", new_secret()
    with open_database(url, migrate=True) as database:
        TOKENS.add(
            database,
            Token(
                token_id="jobs",
                name="jobs",
                secret_hash=secret_hash(secret),
                scopes=(Scope.JOBS,),
                created_at=NOW,
                created_by="ann",
            ),
        )
    with served(url, folder / "log") as server:
        yield Dashboard(server, url, secret)


def _started(folder: Path, program: str, job: str, **variables: str) -> subprocess.Popen[str]:
    # Two processes of one folder: written once, so that neither reads half of it.
    if not (folder / "serve.py").exists():
        (folder / "serve.py").write_text(program)
    words = [sys.executable, "-m", "compilewatch.record", "--name", job, "--", "serve.py"]
    environment = os.environ | {"COMPILEWATCH_JOBS": str(folder / "jobs")} | variables
    return subprocess.Popen(
        words, cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def _served(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == "served\n"


def test_what_compiles_after_ready_is_heard_of_while_the_job_runs(
    dashboard: Dashboard, tmp_path: Path
) -> None:
    process = _started(tmp_path, _SERVER, "live", **dashboard.variables())
    _served(process)
    (state,) = dashboard.heard("live", lambda states: states and states[0].compiles_after_ready == 2)
    assert (state.ready, state.ended, state.steps) == (True, False, 4)
    assert [(each.what, each.request) for each in state.events] == [
        ("forward (serve.py:6)", "batch 24"),
        ("forward (serve.py:6)", "batch 48"),
    ]
    assert "expected 8, actual 24" in (state.events[0].reason or "")

    # Again and again the same: nothing is counted twice.
    (again,) = dashboard.heard("live", lambda states: states[0].sequence > state.sequence + 1)
    assert (again.compiles_after_ready, again.cost_after_ready_ns) == (2, state.cost_after_ready_ns)
    metrics = dashboard.server.get("/metrics").body.decode()
    (counted,) = [line for line in metrics.splitlines() if "job_compiles_after_ready_total{" in line]
    assert counted.startswith('compilewatch_job_compiles_after_ready_total{host="')
    assert counted.endswith(" 2.0")
    (row,) = json.loads(dashboard.server.get("/api/v1/jobs").body)["rows"]
    assert (row["job"], row["compiles_after_ready"]) == ("live", 2)

    process.communicate("")
    assert process.returncode == 0
    (ended,) = dashboard.heard("live", lambda states: states[0].ended)
    (trial,) = read(tmp_path / "jobs")
    assert trial.compiler is not None
    assert trial.compiler.after_ready is not None
    assert trial.compiler.after_ready.count == ended.compiles_after_ready
    assert trial.compiler.after_ready.cost_ns == ended.cost_after_ready_ns


def test_a_killed_job_leaves_what_it_said_and_a_file_that_comes_in(
    dashboard: Dashboard, tmp_path: Path
) -> None:
    process = _started(tmp_path, _SERVER, "killed", **dashboard.variables())
    _served(process)
    (state,) = dashboard.heard("killed", lambda states: states and states[0].compiles_after_ready == 2)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    (left,) = dashboard.states("killed")
    assert (left.ended, left.compiles_after_ready) == (False, state.compiles_after_ready)
    later = left.seen_at + timedelta(minutes=20)
    assert not left.is_live(later)
    assert job_rows([left], later)[0]["state"] == "silent for 20.0 min"
    (trial,) = read(tmp_path / "jobs")
    assert trial.compiler is not None
    assert trial.compiler.after_ready is not None
    assert (trial.compiler.after_ready.count, trial.compiler.after_ready.watched_ns) == (2, None)


def test_a_full_disk_ends_the_recording_and_not_the_job(dashboard: Dashboard, tmp_path: Path) -> None:
    limited = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000))\n" + _SERVER
    process = _started(tmp_path, limited, "full", **dashboard.variables())
    _served(process)
    dashboard.heard("full", lambda states: states and states[0].ended)
    process.communicate("")
    assert process.returncode == 0


def test_a_dashboard_that_does_not_answer_keeps_no_step_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrived, answers = Event(), Event()
    reports: list[dict[str, Any]] = []

    class Handler(Quiet):
        def do_POST(self) -> None:
            reports.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            arrived.set()
            answers.wait(60)
            self.send_response(201)
            self.end_headers()

    monkeypatch.setattr(recorder, "_SECONDS_BETWEEN_REPORTS", 0.05)
    monkeypatch.setattr(recorder, "_TIMEOUT_S", 60.0)
    monkeypatch.setattr(recorder, "_LAST_TIMEOUT_S", 60.0)
    with on_loopback(Handler) as address:
        monkeypatch.setenv("COMPILEWATCH_ADDRESS", address)
        monkeypatch.setenv("COMPILEWATCH_TOKEN", "cwt_secret")
        recorder.start("away", directory=tmp_path)
        try:
            assert arrived.wait(60)
            current = recorder._current
            assert current is not None
            for number in range(50):
                current._note_late(f"function {number}", None, number, number + 2)
                recorder.step()
            # The first report waits for its answer all the while.
            assert len(reports) == 1
            answers.set()
        finally:
            recorder.stop()
    last = reports[-1]
    assert (last["ended"], last["steps"]) == (True, 50)
    assert (last["compiles_after_ready"], last["cost_after_ready_ns"]) == (50, 100)
    # Of 50 events the newest are there, and those that nobody took are counted.
    assert [each["number"] for each in last["events"]] == list(range(31, 51))
    assert last["dropped"] == 30
    assert [each["sequence"] for each in reports] == list(range(1, len(reports) + 1))


def test_ranks_of_a_large_job_say_so_more_seldom_and_what_they_say_finds_the_database_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def heartbeat(ranks: str) -> float:
        monkeypatch.setenv("COMPILEWATCH_ADDRESS", "http://127.0.0.1:9")
        monkeypatch.setenv("COMPILEWATCH_TOKEN", "cwt_secret")
        monkeypatch.setenv("RANK", "0")
        monkeypatch.setenv("WORLD_SIZE", ranks)
        recorder.start(f"of-{ranks}", directory=tmp_path)
        try:
            assert recorder._current is not None
            assert recorder._current._reporter is not None
            return recorder._current._reporter._heartbeat_s
        finally:
            recorder.stop()

    assert [heartbeat(ranks) for ranks in ("8", "256", "100000")] == [5, 20, 40]

    url = f"sqlite:///{tmp_path / 'own.db'}"
    with open_database(url, migrate=True):
        pass
    asked: list[str] = []

    def counted(url: str, **options: bool) -> Database:
        asked.append(url)
        return open_database(url, **options)

    monkeypatch.setenv(DATABASE_VARIABLE, url)
    monkeypatch.setattr(read_database, "open_database", counted)
    try:
        for host in ("a", "b", "c"):
            assert jobs_api._saved(_report("many", host), "token jobs")["is_new"]
    finally:
        read_database.close_databases()
    assert asked == [url]


def test_the_token_goes_to_the_named_dashboard_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    class Handler(Quiet):
        def do_POST(self) -> None:
            asked.append(self.path)
            self.send_response(307)
            self.send_header("Location", "/elsewhere")
            self.end_headers()

    monkeypatch.setenv("COMPILEWATCH_TOKEN", "cwt_secret")
    with on_loopback(Handler) as address:
        monkeypatch.setenv("COMPILEWATCH_ADDRESS", address)
        recorder.start("redirected", directory=tmp_path)
        recorder.stop()
    assert set(asked) == {"/api/v1/jobs"}


def test_a_rank_that_compiles_is_named_while_the_others_wait(dashboard: Dashboard, tmp_path: Path) -> None:
    launch = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1", "WORLD_SIZE": "2"}
    ranks = [
        _started(tmp_path, _RANKS, "ranks", **dashboard.variables(), **launch, RANK=str(rank))
        for rank in (0, 1)
    ]

    def said(states: list[JobState]) -> list[str]:
        return waiting_sentences(states, datetime.now(UTC))

    try:
        states = dashboard.heard("ranks", lambda states: [each for each in said(states) if "while" in each])
        (sentence,) = said(states)
        assert sentence.startswith(f"rank 1 on {states[0].host} has compiled forward (serve.py:")
        assert sentence.endswith(" while 1 rank waits")
        page = str(list(sections(running_jobs(states, datetime.now(UTC)))))
        assert f"ranks: {sentence[:20]}" in page
    finally:
        (tmp_path / "go").touch()
        for process in ranks:
            process.communicate()
    assert [process.returncode for process in ranks] == [0, 0]
    assert dashboard.heard("ranks", lambda states: all(each.ended for each in states))


@pytest.mark.parametrize(
    ("scope", "body", "status"),
    [
        (Scope.JOBS, {"job": "../../etc"}, 201),
        (Scope.JOBS, {"process": "../../etc"}, 400),
        (Scope.JOBS, {"command": "rm"}, 400),
        (Scope.REQUESTS, {}, 403),
    ],
)
def test_a_report_is_data_and_needs_its_scope(
    dashboard: Dashboard, scope: Scope, body: dict[str, Any], status: int
) -> None:
    secret = new_secret()
    with open_database(dashboard.url) as database:
        token = Token(
            token_id=secret_hash(secret)[:8],
            name="other",
            secret_hash=secret_hash(secret),
            scopes=(scope,),
            created_at=NOW,
            created_by="ann",
        )
        TOKENS.add(database, token)
    report = _report("hostile", sequence=1).model_dump(mode="json") | body
    answer = dashboard.server.ask(
        "POST", "/api/v1/jobs", {"Authorization": f"Bearer {secret}"}, json.dumps(report).encode()
    )
    assert answer.status == status, answer.body


def _report(job: str, host: str = "a", **more: Any) -> JobReport:
    process = secret_hash(job + host)[:32]
    return JobReport(**{"process": process, "sequence": 1, "job": job, "host": host} | more)


def test_the_page_says_of_each_job_in_a_line_of_its_own_who_waits() -> None:
    late = {"ready": True, "compiles_after_ready": 1, "cost_after_ready_ns": 2_000_000_000}
    states = [
        JobState(**_report(job, **late).model_dump(), seen_at=NOW, compiling_since=None) for job in ("a", "b")
    ]
    lines, table = running_jobs(states, NOW)
    assert isinstance(lines, Lines)
    said = "compiled after ready on 1 of 1 host: 1 compilation, 2.00 s."
    assert lines.lines == (f"a: {said}", f"b: {said}")
    assert isinstance(table, Table)
    assert list(table.frame["job"]) == ["a", "b"]


def test_people_are_told_once_an_hour_on_how_many_hosts_it_compiled(database: Database) -> None:
    late = {
        "ready": True,
        "compiles_after_ready": 3,
        "cost_after_ready_ns": 20_000_000_000,
        "events": [{"number": 3, "began_ns": 1, "cost_ns": 9_000_000_000, "what": "forward (serve.py:6)"}],
    }
    for number in range(8):
        report = _report("serve", f"host-{number}", **(late if number < 2 else {}))
        assert save_report(database, report, NOW)
    assert not save_report(database, _report("serve", "host-0"), NOW)  # an older one comes late
    assert claim_compiled(database, NOW + timedelta(seconds=30)) == []
    (job,) = claim_compiled(database, NOW + timedelta(minutes=2))
    assert compiled_sentence(job) == "compiled after ready on 2 of 8 hosts: 6 compilations, 40.0 s"
    assert claim_compiled(database, NOW + timedelta(minutes=2)) == []
    with webhook() as receiving:
        channel = ChannelSettings(name="team", webhook=receiving.address)
        notify_compiled(job, (channel,), NotifySettings(base_url="https://watch.example"))
        (message,) = receiving.messages
    assert message["title"] == "serve compiled after ready on 2 of 8 hosts: 6 compilations, 40.0 s"
    # Both compiled the same: ranks do, and a line for each would bury what it was.
    assert "host-0 and 1 other: 6 compilations, 40.0 s; forward (serve.py:6), 9.00 s" in message["text"]
    assert "host-1" not in message["text"]
    assert message["link"] == "https://watch.example/runs"

    report = _report("serve", "host-5", sequence=2, **late)
    assert save_report(database, report, NOW + timedelta(minutes=10))
    assert claim_compiled(database, NOW + timedelta(minutes=20)) == []
    assert save_report(database, report.model_copy(update={"sequence": 3}), NOW + timedelta(minutes=61))
    (job,) = claim_compiled(database, NOW + timedelta(minutes=63))
    assert [each.host for each in job] == ["host-5"]
    assert shown_jobs(database, NOW + timedelta(days=8)) == []
