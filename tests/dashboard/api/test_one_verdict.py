"""`compare`, `gate`, the API, the page and a frozen report say the same of the same history."""

from __future__ import annotations

import json
import math
import random
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from starlette.applications import Starlette

from dashboard.api.routes import routes
from dashboard.links.links import Link, Page, href
from dashboard.read.data import filters_of, read_comparison
from dashboard.read.database import close_databases
from dashboard.reports.freeze import freeze_comparison, freeze_link
from dashboard.server.charts import charts
from dashboard.server.wall import wall_page
from db.engine.session import Database, open_database
from db.judge.compare.sides import Selection
from db.judge.compare.upgrade import compare_builds
from db.judge.policy import Policy
from db.judge.results import Comparison
from db.queries.people.regressions import standing_regressions
from db.queries.trials import trials_frame
from db.records.trial import Machine, Trial
from db.store.trials import save_trials
from runner.regressions.notify import events_of, message_of
from tests.builders import MS, START, make_machine, make_trial
from tests.dashboard.asking import ask
from tests.dashboard.conftest import DATABASE, Store, opened, texts
from tests.numbers.figures import TALLY
from tests.regression_cases import stepping_history
from tests.runner.terminal import in_this_process

SIGNED: dict[str, Any] = {"title": None, "by": "ann", "at": datetime(2026, 11, 20, tzinfo=UTC)}
STRATEGIES = {"eager": 1.0, "default": 0.7, "max-autotune": 0.6}


class Question(NamedTuple):
    """Two builds of the database at `url`, each of one run, the newest two."""

    url: str
    base: str
    head: str
    folder: Path
    machine: str | None = None


Document = dict[str, Any]


def nightly(
    runs: int, *, seed: int, workloads: int = 2, trials_a_case: int = 1, machine: Machine | str = "gpu-box-3"
) -> list[Trial]:
    """A build every night, one trial a case, of the newest two builds three; the noise of trials and of whole
    nights is drawn, and by how much the newest build is slower.
    """
    draw = random.Random(seed)
    of_trial, of_night = draw.choice((0.002, 0.01, 0.03)), draw.choice((0.0, 0.005, 0.02))
    slower = {n: draw.choice((1.0, 1.02, 1.04, 1.1)) for n in range(workloads)}
    name = machine if isinstance(machine, str) else machine.name
    trials = []
    for night in range(runs):
        newest = night >= runs - 2
        shift = math.exp(draw.gauss(0, of_night))
        cases = [(n, name) for n in range(workloads) for name in STRATEGIES]
        for place, (n, strategy) in enumerate(cases * (draw.choice((2, 3)) if newest else trials_a_case)):
            compiled = strategy != "eager"
            factor = slower[n] if compiled and night == runs - 1 else 1.0
            latency_ns = 10 * MS * (n + 1) * STRATEGIES[strategy] * factor * shift
            trials.append(
                make_trial(
                    workload=f"model-{n}",
                    strategy=strategy,
                    machine=machine,
                    build=f"2.14.0.dev{night:04d}",
                    run_id=f"night-{name}-{night:04d}",
                    trial_id=f"night-{name}-{night:04d}-{place:03d}",
                    started_at=START + timedelta(days=night, minutes=place),
                    latency_ns=latency_ns * math.exp(draw.gauss(0, of_trial)),
                    control_latency_ns=10 * MS * (n + 1) * shift * math.exp(draw.gauss(0, of_trial)),
                    samples=3,
                    seed=seed,
                )
            )
    return trials


def question(url: str, folder: Path, machine: str | None = None) -> Question:
    """About the newest build against the one before it."""
    with open_database(url) as database:
        found = trials_frame(database)
    mine = found if machine is None else found[found["machine"] == machine]
    *_, base, head = mine["torch"].unique()
    ids = mine.drop_duplicates("torch").set_index("torch")["build_id"]
    named = None if machine is None else str(mine["machine_id"].iloc[0])
    return Question(url, str(ids[base]), str(ids[head]), folder, named)


def plain(document: Document) -> Document:
    """What is said, without how the sides were named when it was asked and what only some doors add."""
    said = {name: value for name, value in document.items() if name in Comparison.model_fields}
    sides = {side: {**said[side], "name": None} for side in ("base", "head")}
    return {**said, **sides, **{name: document[name] for name in ("case_counts", "counts", "tally")}}


def typed(asked: Question, *arguments: str) -> Document:
    machine = () if asked.machine is None else ("--machine", asked.machine)
    answer = in_this_process(*arguments, *machine, "--json", "--db", asked.url, cwd=asked.folder)
    assert answer.stdout, answer.stderr
    found: Document = json.loads(answer.stdout)
    return found


def compare_door(asked: Question) -> Document:
    return typed(asked, "compare", asked.base, asked.head)


def gate_door(asked: Question) -> Document:
    return typed(asked, "gate")


def api_door(asked: Question) -> Document:
    query = {"base": asked.base, "head": asked.head}
    if asked.machine is not None:
        query["machine"] = asked.machine
    answer = ask(Starlette(routes=routes()), "/api/v1/compare", query)
    assert answer.status == 200, answer.body
    found: Document = answer.json
    return found


def upgrade_link(asked: Question) -> Link:
    return Link(page=Page.UPGRADE, machine=asked.machine, base=asked.base, head=asked.head)


def page_door(asked: Question) -> Document:
    filters = filters_of(upgrade_link(asked))
    judged = read_comparison(filters, asked.base, asked.head)
    found: Document = json.loads(json.dumps(judged.to_json()))
    return found


def report_door(asked: Question) -> Document:
    if asked.machine is None:
        content = freeze_comparison(asked.base, asked.head, **SIGNED)
    else:
        content = freeze_link(href(upgrade_link(asked), full=True), **SIGNED)
    found: Document = json.loads(content.model_dump_json())["data"]["comparison"]
    return found


DOORS: dict[str, Callable[[Question], Document]] = {
    "compare": compare_door,
    "gate": gate_door,
    "API": api_door,
    "page": page_door,
    "report": report_door,
}
# Where each door has its judge from.
JUDGE_OF = {
    "compare": "runner.cli.verdicts.judging.gateway.compare",
    "gate": "runner.cli.verdicts.judging.gateway.compare",
    "API": "dashboard.api.comparisons.gateway.compare",
    "page": "dashboard.read.data.compare",
    "report": "dashboard.reports.freeze.compare",
}


def answers(asked: Question, doors: tuple[str, ...] = tuple(DOORS)) -> dict[str, Document]:
    return {name: plain(DOORS[name](asked)) for name in doors}


def assert_all_agree(found: dict[str, Document]) -> None:
    first, *others = found
    for name in others:
        assert found[name] == found[first], f"{name} differs from {first}"


@pytest.fixture
def shown(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv(DATABASE, database_url)
    yield database_url
    close_databases()


@pytest.mark.parametrize("runs", [10, 100, pytest.param(1000, marks=pytest.mark.slow)])
def test_every_door_gives_the_same_verdict(shown: str, runs: int, tmp_path: Path) -> None:
    with open_database(shown) as database:
        save_trials(database, nightly(runs, seed=runs))
    asked = question(shown, tmp_path)
    # Before the gate is asked: it records what it finds, and the page tells what became of that too.
    said = texts(opened(upgrade_link(asked)))
    found = answers(asked)
    assert_all_agree(found)
    for sentence in found["compare"]["sentences"]:
        # The page adds how many of them are confirmed.
        assert re.split(r"[;,.] ", sentence)[0] in said


def told_everywhere(asked: Question) -> dict[str, str]:
    """What each door writes about the cases, as text. `gate` comes before what it records."""
    sides, db = (asked.base, asked.head), ("--db", asked.url)
    commands = (("gate",), ("gate", "--markdown"), ("compare", *sides), ("compare", *sides, "--markdown"))
    app = Starlette(routes=[*routes(), *charts()])
    found: dict[str, str] = {}
    for command in (*commands, ("list", "regressions")):
        done = in_this_process(*command, *db, cwd=asked.folder, COLUMNS="400")
        found[" ".join(command)] = done.stdout + done.stderr
    with open_database(asked.url) as database:
        standing = [each.regression for each in standing_regressions(database)]
        machine = str(standing[0].machine_id)
    pages = (Page.OVERVIEW, Page.UPGRADE, Page.REGRESSIONS)
    links = [replace(upgrade_link(asked), page=page, machine=machine) for page in pages]
    links[0] = Link(machine=machine, build=asked.head)
    for link in links:
        found[f"page {link.page}"] = texts(opened(link))
        found[f"report of {link.page}"] = freeze_link(href(link, full=True), **SIGNED).model_dump_json()
    return found | {
        "subject": " ".join(message_of(event, None).title for event in events_of(standing)),
        "API, compare": " ".join(api_door(asked)["sentences"]),
        "API, regressions": ask(app, "/api/v1/regressions").body.decode(),
        "badge": ask(app, "/badge/tally.svg").body.decode(),
        "wall": wall_page({})[1],
    }


def test_every_door_counts_cases_in_the_same_words(store: Store, tmp_path: Path) -> None:
    asked = question(store(stepping_history(1.0, 1.4, builds=("2.12.0", "2.13.0"))), tmp_path)
    found = {door: re.sub(r"\\+", "", said) for door, said in told_everywhere(asked).items()}
    counted = {door: set(TALLY.findall(said)) for door, said in found.items()}
    (tally,) = counted["compare " + " ".join((asked.base, asked.head))]
    assert tally.startswith("2 slower (break-even 2, latency 2, speedup 2), 0 faster, ")
    assert {door: each for door, each in counted.items() if each != {tally}} == {}


def test_every_door_gives_the_same_verdict_about_one_of_several_machines(
    store: Store, tmp_path: Path
) -> None:
    for seed, device_name in enumerate(("NVIDIA L4", "NVIDIA H200"), start=1):
        machine = make_machine(f"gpu-box-{seed}", device_name=device_name)
        url = store(nightly(40, seed=seed, machine=machine, workloads=seed))
    asked = question(url, tmp_path, machine="gpu-box-1")
    found = answers(asked, ("compare", "API", "page", "report"))
    close_databases()
    assert_all_agree(found)
    assert (found["compare"]["machine"], found["compare"]["left_out"]) == ("gpu-box-1", [])


@pytest.mark.parametrize(
    "seeds", [range(4), pytest.param(range(1000, 1200), marks=[pytest.mark.slow, pytest.mark.timeout(3600)])]
)
def test_every_door_agrees_over_random_histories(
    empty_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seeds: range
) -> None:
    for seed in seeds:
        path, draw = tmp_path / f"random-{seed}.db", random.Random(seed)
        shutil.copyfile(empty_url.removeprefix("sqlite:///"), path)
        with open_database(f"sqlite:///{path}") as database:
            runs = draw.randint(3, 45)
            save_trials(database, nightly(runs, seed=seed, trials_a_case=draw.choice((1, 1, 2))))
        monkeypatch.setenv(DATABASE, f"sqlite:///{path}")
        assert_all_agree(answers(question(f"sqlite:///{path}", tmp_path)))
        close_databases()
        path.unlink()


def judged_on_everything(
    database: Database, base: Selection, head: Selection, *_: object, policy: Policy, **__: object
) -> Comparison:
    """The same sides with another history: all that is stored."""
    everything = trials_frame(database)
    return compare_builds(everything, base, head, policy, history=everything)


@pytest.fixture(scope="module")
def sixty(store_once: Store, tmp_path_factory: pytest.TempPathFactory) -> Question:
    return question(store_once(nightly(60, seed=1)), tmp_path_factory.mktemp("sixty"))


@pytest.mark.parametrize("door", DOORS)
def test_a_door_with_another_history_is_noticed(
    sixty: Question, door: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DATABASE, sixty.url)
    before = plain(DOORS[door](sixty))
    close_databases()
    monkeypatch.setattr(JUDGE_OF[door], judged_on_everything)
    read_comparison.clear()  # type: ignore[attr-defined]
    with pytest.raises(AssertionError, match="differs from"):
        assert_all_agree({"as before": before, door: plain(DOORS[door](sixty))})
    close_databases()
    read_comparison.clear()  # type: ignore[attr-defined]
