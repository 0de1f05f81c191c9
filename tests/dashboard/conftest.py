"""Databases for the pages, and a page opened at a link."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pandas as pd
import pytest
from streamlit.components.v2 import manifest_scanner
from streamlit.config import set_option
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Dataframe
from streamlit.util import calc_hash

import compilewatch.dashboard.server.app
from compilewatch.dashboard.document.content import Content, FrozenColumn, Lines, Table
from compilewatch.dashboard.links.links import Link, params
from compilewatch.dashboard.read.database import close_databases
from compilewatch.dashboard.read.versions import REFRESH_THROTTLE
from compilewatch.dashboard.render.streamlit_parts import FOLD
from compilewatch.db.engine.session import open_database
from compilewatch.db.judge.compare.recorded_regressions import TriageEvent
from compilewatch.db.judge.compare.upgrade import compare_builds
from compilewatch.db.queries.facets import builds, machines
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import trials_frame
from compilewatch.db.records.people import Report, TriageState
from compilewatch.db.records.trial import Trial
from compilewatch.db.service.recording import record_comparison, triage
from compilewatch.db.service.regressions import standing_regressions
from compilewatch.db.service.reports import REPORTS, revoke_report
from compilewatch.db.store.trials import save_trials
from compilewatch.db.verdicts.sides import resolve_side
from tests.builders import MS, START, make_build, make_compiler_facts, make_history, make_machine, make_trial
from tests.made_once import MadeOnce

APP = Path(compilewatch.dashboard.server.app.__file__)
DATABASE = "COMPILEWATCH_DATABASE_URL"

OpenPage = Callable[[Link], AppTest]
Store = Callable[[Iterable[Trial]], str]


def stored(template: Path, factory: pytest.TempPathFactory, trials: Iterable[Trial]) -> str:
    """The URL of a new database of these trials, a copy of `template` otherwise."""
    path = factory.mktemp("stored") / "results.db"
    shutil.copyfile(template, path)
    with open_database(f"sqlite:///{path}") as database:
        save_trials(database, trials)
    return f"sqlite:///{path}"


@pytest.fixture(scope="session")
def store_once(_sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Stores trials in a new database, which many tests read and none writes to; its URL."""
    return lambda trials: stored(_sqlite_template, tmp_path_factory, trials)


@pytest.fixture
def store(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Stores trials in the database of the test, which pages read; its URL."""
    monkeypatch.setenv(DATABASE, sqlite_url)

    def store(trials: Iterable[Trial]) -> str:
        with open_database(sqlite_url) as database:
            save_trials(database, trials)
        return sqlite_url

    return store


@pytest.fixture(scope="session")
def filled_url(made: MadeOnce) -> str:
    """Three builds of four workloads on a GPU box, a CPU box, a failing case, one that compiled nothing."""
    return f"sqlite:///{made('filled', _fill)}"


def _fill(url: str) -> None:
    names = ("bert-base", "mlp", "elementwise", "lstm-cell")
    strategies = ("eager", "default", "max-autotune")
    older = make_build("2.12.0", driver="570.86.15")

    def latency_ns(workload: str, strategy: str, run: int) -> float:
        share = {"eager": 1.0, "default": 0.5 if workload == "elementwise" else 0.7, "max-autotune": 0.6}[
            strategy
        ]
        slower = 1.2 if workload == "lstm-cell" and strategy != "eager" else share
        return 10 * MS * slower * (0.95 if run == 2 and strategy != "eager" else 1.0)

    trials = make_history(
        workloads=names,
        strategies=strategies,
        builds=("2.11.0", older, "2.13.0"),
        latency_ns=latency_ns,
        failures=[("mlp", "max-autotune", 2)],
        start=START - timedelta(days=3),
    )
    trials += make_history(
        workloads=("mlp",),
        builds=(make_build("2.13.0", cuda=None, torch_variant="cpu"),),
        machines=(make_machine("cpu-box", device="cpu"),),
        start=START - timedelta(days=9),
        seed=5,
    )
    trials.append(
        make_trial(
            workload="bert-base",
            strategy="reduce-overhead",
            run_id="run-nothing",
            trial_id="trial-nothing-compiled",
            started_at=START - timedelta(hours=12),
            compiler=make_compiler_facts(graphs=0, graph_breaks=[], recompiles=[]),
        )
    )
    with open_database(url, migrate=True) as database:
        save_trials(database, trials)


@pytest.fixture(autouse=True)
def _close_server_connections(request: pytest.FixtureRequest) -> Iterator[None]:
    """Pages keep their databases open; a PostgreSQL one is dropped after its test."""
    yield
    if "postgres_database_url" in request.fixturenames:
        close_databases()


@pytest.fixture(scope="session", autouse=True)
def _pages_run_as_the_server_runs_them() -> Iterator[None]:
    """With the options of the server, and without a search of all installed packages before every page.

    The server searches them once, for components of Streamlit; an `AppTest` does each time it is made, and
    takes longer for that than for the page.
    """
    for name in ("runner.magicEnabled", "runner.postScriptGC", "browser.gatherUsageStats"):
        set_option(name, False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_scanner, "scan_component_manifests", list)
        yield


@pytest.fixture(autouse=True)
def _take_up_every_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests write faster than people measure; `test_pace` says how pages keep up with a stream of writes."""
    monkeypatch.setattr(REFRESH_THROTTLE, "_every_s", 0.0)


REPORT_ID = "0123456789abcdef0123456789abcdef"
REVOKED_ID = "fedcba9876543210fedcba9876543210"


@pytest.fixture(scope="session")
def recorded_url(filled_url: str, made: MadeOnce) -> str:
    """The same trials with recorded regressions, one of them acknowledged, and two reports, one revoked."""
    return f"sqlite:///{made('recorded', partial(_record, filled_url))}"


def _record(filled_url: str, url: str) -> None:
    shutil.copyfile(filled_url.removeprefix("sqlite:///"), url.removeprefix("sqlite:///"))
    with open_database(url) as database:
        base, head = (resolve_side(f"torch={torch}", database) for torch in ("2.13.0", "2.12.0"))
        trials = trials_frame(database, Filters(workloads=("bert-base", "mlp")))
        # A step that is decided between two runs of three trials.
        is_slower = (trials["torch"] == "2.12.0") & (trials["strategy"] != "eager")
        trials["latency_ns"] = trials["latency_ns"].where(~is_slower, trials["latency_ns"] * 2)
        record_comparison(database, compare_builds(trials, base, head), at=START)
        (first, *_) = standing_regressions(database)
        event = TriageEvent(
            state=TriageState.ACKNOWLEDGED,
            author="ann",
            at=START,
            note="bisecting",
            url="https://example.org/1",
        )
        triage(database, first.regression.regression_id, event)
        for report_id in (REPORT_ID, REVOKED_ID):
            REPORTS.add(database, _report(report_id))
        revoke_report(database, REVOKED_ID, at=START, by="ann")


def _report(report_id: str) -> Report:
    table = Table(
        title="Cases",
        columns=(FrozenColumn(title="Workload"), FrozenColumn(title="Speedup")),
        rows=(("mlp", "1.4"),),
    )
    content = Content(
        title="Before the upgrade",
        subject="Speedup over time.",
        link="trends",
        created_at=START,
        created_by="ann",
        program_version="0.1.0",
        data_version=3,
        newest_result_at=START,
        sections=(Lines(lines=("All is well.",)), table),
        environment=table,
        policy=table,
        data={"cases": 1},
    )
    return Report(
        report_id=report_id,
        title=content.title,
        created_at=START,
        created_by="ann",
        data_version=3,
        content=content.model_dump(mode="json"),
    )


@pytest.fixture
def copied_url(filled_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A copy of the filled database, to write to; pages read it."""
    return _copied(filled_url, tmp_path, monkeypatch)


@pytest.fixture
def copied_recorded_url(recorded_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The same of the recorded database."""
    return _copied(recorded_url, tmp_path, monkeypatch)


def _copied(url: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    copy = folder / "copy.db"
    shutil.copyfile(url.removeprefix("sqlite:///"), copy)
    monkeypatch.setenv(DATABASE, f"sqlite:///{copy}")
    return f"sqlite:///{copy}"


@pytest.fixture(scope="session")
def empty_url(_sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    return stored(_sqlite_template, tmp_path_factory, [])


def machine_ids(url: str) -> dict[str, str]:
    """By the names of machines."""
    with open_database(url, read_only=True) as database:
        frame = machines(database)
    return dict(zip(frame["machine"], frame["machine_id"], strict=True))


def build_ids(url: str) -> dict[str, str]:
    """By the versions of torch, the newest of each."""
    with open_database(url, read_only=True) as database:
        frame = builds(database)
    return dict(zip(frame["torch"], frame["build_id"], strict=True))


_ADDRESS = re.compile(r"^(\./[^#]*)?#")
_sent = Dataframe.value.fget


def _seen(table: Dataframe) -> pd.DataFrame:
    """What a reader sees of a table: of links the names, which stand behind their addresses."""
    return _sent(table).map(lambda cell: unquote(_ADDRESS.sub("", cell)) if isinstance(cell, str) else cell)


Dataframe.value = property(_seen)  # type: ignore[method-assign]


FOLDED = (
    *("how-sure", "left-out", "issue", "overview-builds", "break-even-builds"),
    *("modes-against", "modes-percentiles", "upgrade-compile_cost", "upgrade-break_even"),
    "upgrade-cases",
    *("over-time", "sizes-0-cases", "sizes-1-cases"),
)


def opened(link: Link, *, folded: Sequence[str] = ()) -> AppTest:
    """The page of `link` after its first run in a new session, which ends without an exception; the parts
    `folded` are closed, all others open.
    """
    test = AppTest.from_file(str(APP), default_timeout=60)
    for key in FOLDED:
        test.session_state[f"{key}{FOLD}"] = key not in folded
    for key, value in params(link):
        test.query_params[key] = [*test.query_params.get(key, []), value]
    # AppTest.switch_page knows pages that are files; ours are callables, so their hash is set.
    test._page_hash = calc_hash(link.page.value)
    test.run()
    assert not test.exception, link
    return test


@pytest.fixture
def filled(filled_here: str) -> OpenPage:
    return opened


@pytest.fixture
def filled_here(filled_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Pages read the filled database, and nothing writes to it."""
    monkeypatch.setenv(DATABASE, filled_url)
    return filled_url


@pytest.fixture
def recorded_here(recorded_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Pages read the recorded database, and nothing writes to it."""
    monkeypatch.setenv(DATABASE, recorded_url)
    return recorded_url


@pytest.fixture
def empty(empty_url: str, monkeypatch: pytest.MonkeyPatch) -> OpenPage:
    monkeypatch.setenv(DATABASE, empty_url)
    return opened


def selector(test: AppTest, key: str) -> Any:
    """The widget of the page that chooses `key` of its link: a box, or a group of buttons."""
    widgets = [*test.selectbox, *test.button_group]
    return next(each for each in widgets if f"{each.key}-".startswith(f"select-{key}-"))


def texts(test: AppTest) -> str:
    """Everything the page says, tooltips last, with the escapes of Markdown removed."""
    kinds = (
        test.title,
        test.markdown,
        test.caption,
        test.info,
        test.warning,
        test.error,
        test.text,
        test.code,
    )
    elements = [element for kind in kinds for element in kind]
    said = [str(element.value) for element in elements] + [getattr(each, "help", "") for each in elements]
    return "\n".join(said).replace("\\", "")
