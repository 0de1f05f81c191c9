"""The pages and reports that show a case of two builds say why it changed, where profiles show it."""

from __future__ import annotations

from pathlib import Path

import pytest

from dashboard.links.links import Link, Page, href
from dashboard.reports.freeze import freeze_link
from db.engine.session import open_database
from db.queries.regressions import standing_regressions
from db.store.regressions import record_comparison
from db.store.trials import save_trials
from tests.builders import START
from tests.dashboard.conftest import DATABASE, opened, texts
from tests.db.queries.test_causes import AFTER, BEFORE, SENTENCE, explained_history
from tests.regression_cases import RUN_0, RUN_1, judged


@pytest.fixture
def links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Link]:
    """A link to the evidence of mlp on Upgrade, and one to its recorded regression."""
    url = f"sqlite:///{tmp_path / 'results.db'}"
    with open_database(url, migrate=True) as database:
        save_trials(database, explained_history(BEFORE, AFTER))
        record_comparison(database, judged(database, RUN_0, RUN_1), at=START)
        (latency,) = (
            each.regression
            for each in standing_regressions(database)
            if (each.regression.row.workload, each.regression.row.metric) == ("mlp", "latency")
        )
    monkeypatch.setenv(DATABASE, url)
    focus = {"focus": "mlp", "focus_strategy": "default", "metric": "latency"}
    return [
        Link(page=Page.UPGRADE, base=latency.base.build_ids[0], head=latency.head.build_ids[0], **focus),
        Link(page=Page.REGRESSIONS, regression=(latency.regression_id,)),
    ]


@pytest.mark.parametrize("number", [0, 1])
def test_a_page_and_its_report_carry_the_sentence(links: list[Link], number: int) -> None:
    test = opened(links[number])
    assert not test.exception
    assert SENTENCE in texts(test).replace("\\", "")
    frozen = freeze_link(href(links[number]), title=None, by="ann", at=START)
    assert SENTENCE in [line for part in frozen.sections if part.kind == "lines" for line in part.lines]
