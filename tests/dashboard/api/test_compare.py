"""A comparison that is asked for again while trials come is of all that is stored by then."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta

import pytest
from starlette.applications import Starlette

from compilewatch.dashboard.api.routes import routes
from compilewatch.dashboard.read.database import close_databases
from compilewatch.db.engine.session import Database, open_database
from compilewatch.db.store.trials import save_trial
from compilewatch.db.verdicts import gateway
from compilewatch.db.verdicts.sides import resolve_side
from tests.builders import MS, START, make_history, make_trial
from tests.dashboard.asking import ask
from tests.dashboard.conftest import Store

RUNS = ("run-gpu-box-3-0-0001", "run-gpu-box-3-0-0002")


@pytest.fixture
def database(store: Store) -> Iterator[Database]:
    with open_database(store(make_history())) as database:
        yield database
    close_databases()


@pytest.mark.parametrize(
    ("base", "head"),
    [
        ("torch=2.12.0", "torch=2.13.0"),
        ("previous", "latest"),
        RUNS,
    ],
)
def test_every_answer_is_of_all_that_is_stored_by_then(database: Database, base: str, head: str) -> None:
    app = Starlette(routes=routes())
    answers = []
    for number in range(3):
        answer = ask(app, "/api/v1/compare", {"base": base, "head": head})
        assert answer.status == 200, answer.body
        sides = [resolve_side(name, database) for name in (base, head)]
        expected = gateway.compare(database, *sides).to_json()
        assert {name: answer.json[name] for name in expected} == json.loads(json.dumps(expected))
        answers.append(answer.json["rows"])
        save_trial(
            database,
            make_trial(
                run_id=RUNS[1],
                trial_id=f"later-{number}",
                latency_ns=(20 + 10 * number) * MS,
                started_at=START + timedelta(days=2, minutes=number),
            ),
        )
    assert answers[0] != answers[1] != answers[2]
