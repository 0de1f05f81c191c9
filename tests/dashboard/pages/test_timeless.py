"""Pages, API and commands over samples of 0 ns that an earlier release stored: a number or a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.applications import Starlette

from dashboard.api.endpoints import ENDPOINTS, PREFIX
from dashboard.api.routes import routes
from dashboard.links.links import Link, Page
from db.engine.session import open_database
from db.queries.trials import trials_frame
from db.records.trial import Trial
from tests.builders import make_history
from tests.dashboard.asking import ask
from tests.dashboard.conftest import DATABASE, Store, opened, texts
from tests.db.store.test_impossible_samples import without_time
from tests.runner.terminal import in_this_process

COMMANDS = (
    "list runs",
    "list regressions",
    "compare torch=2.12.0 torch=2.13.0",
    "compare torch=2.11.0 torch=2.12.0",
    "gate",
    "break-even",
    "history --workload mlp --strategy default",
)


def timeless(trial: Trial) -> Trial:
    """Every time that it has is 0; of eager ones too, so that nothing can be divided by."""
    names = ("samples_ns", "warmup_ns", "control_samples_ns", "control_warmup_ns")
    return trial.model_copy(update={name: [0] * len(getattr(trial, name)) for name in names})


@pytest.fixture(scope="module")
def url(store_once: Store) -> str:
    """Three builds, of which the newest and every eager trial of the one before took no time."""
    trials = make_history(workloads=("mlp", "bert-base"), builds=("2.11.0", "2.12.0", "2.13.0"))
    newest, before = "2.13.0", "2.12.0"
    planted = [
        timeless(trial)
        if trial.build.torch == newest or (trial.build.torch == before and trial.strategy.name == "eager")
        else trial
        for trial in trials
    ]
    return store_once([*planted, *without_time()])


@pytest.fixture(autouse=True)
def _reads(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DATABASE, url)


@pytest.mark.parametrize("page", list(Page))
def test_every_page_draws(page: Page) -> None:
    links = [Link(page=page), Link(page=page, workload=("mlp",), focus="mlp", focus_strategy="default")]
    if page is Page.UPGRADE:
        links.append(Link(page=page, base="torch=2.11.0", head="torch=2.12.0"))
    for link in links:
        test = opened(link)
        assert "Traceback" not in texts(test)


@pytest.mark.parametrize("trial", ["timeless", "warmed", "summed"])
def test_the_page_of_such_a_trial_says_what_it_is(trial: str) -> None:
    test = opened(Link(page=Page.TRIAL, trial=trial))
    assert f"Trial {trial} is stored as no record may be" in texts(test)


def test_the_api_answers(url: str) -> None:
    app = Starlette(routes=routes())
    with open_database(url, read_only=True) as database:
        frame = trials_frame(database)
    answered = {}
    for endpoint in ENDPOINTS:
        ids = {"trial": list(frame["trial_id"]), "series": sorted(set(frame["series_id"]))}
        names = endpoint.ids
        paths = [endpoint.path.replace(f"{{{n}}}", found) for n in names for found in ids.get(n, ["none"])]
        needed = {
            name: field.examples[0]
            for name, field in endpoint.query.model_fields.items()
            if field.is_required() and field.examples
        }
        for path in paths or [endpoint.path]:
            for answer in ("json", "csv"):
                reply = ask(
                    app, PREFIX + path, {**needed, "format": answer}, client=f"192.0.2.{len(answered)}"
                )
                answered[path, answer] = reply.status
                assert b"Traceback" not in reply.body
    assert {asked: status for asked, status in answered.items() if status >= 500 or status == 429} == {}
    assert (answered["/runs", "json"], answered["/trials/timeless", "csv"]) == (200, 409)
    for path in ("/metrics", "/healthz", "/badge/mlp/default.svg"):
        assert ask(app, path).status in {200, 404}, path


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_gives_a_number_or_a_sentence(command: str, url: str, tmp_path: Path) -> None:
    done = in_this_process(*command.split(), "--db", url, cwd=tmp_path)
    assert done.returncode in {0, 1, 2}
    assert "Traceback" not in done.stderr + done.stdout
