"""The pages and reports that show a case of two builds say why it changed, where profiles show it."""

from __future__ import annotations

import pytest

from compilewatch.dashboard.document.page import render
from compilewatch.dashboard.links.links import Link, Page, href
from compilewatch.dashboard.reports.freeze import freeze_comparison, freeze_link
from compilewatch.db.engine.session import open_database
from compilewatch.db.service.recording import record_comparison
from compilewatch.db.service.regressions import standing_regressions
from tests.builders import START
from tests.dashboard.conftest import Store, opened, texts
from tests.db.queries.test_causes import AFTER, BEFORE, SENTENCE, explained_history, traced_history
from tests.regression_cases import RUN_0, RUN_1, judged


@pytest.fixture
def links(store: Store) -> list[Link]:
    """A link to the evidence of mlp on Upgrade, and one to its recorded regression."""
    with open_database(store(explained_history(BEFORE, AFTER))) as database:
        record_comparison(database, judged(database, RUN_0, RUN_1), at=START)
        (latency,) = (
            each.regression
            for each in standing_regressions(database)
            if (each.regression.row.workload, each.regression.row.metric) == ("mlp", "latency")
        )
    focus = {"focus": "mlp", "focus_strategy": "default", "metric": "latency"}
    return [
        Link(page=Page.UPGRADE, base=latency.base.build_ids[0], head=latency.head.build_ids[0], **focus),
        Link(page=Page.REGRESSIONS, regression=(latency.regression_id,)),
    ]


def test_a_page_and_its_report_carry_the_sentence(links: list[Link]) -> None:
    for link in links:
        test = opened(link)
        assert SENTENCE in texts(test).replace("\\", "")
        frozen = freeze_link(href(link), title=None, by="ann", at=START)
        assert SENTENCE in [line for part in frozen.sections if part.kind == "lines" for line in part.lines]
    # And that of no case in focus says why each changed.
    upgrade, _ = links
    whole = Link(page=Page.UPGRADE, base=upgrade.base, head=upgrade.head)
    why = f"mlp / default: {SENTENCE}"
    test = opened(whole)
    assert why in texts(test).replace("\\", "")
    for frozen in (
        freeze_link(href(whole), title=None, by="ann", at=START),
        freeze_comparison("torch=2.12.0", "torch=2.13.0", title=None, by="ann", at=START),
    ):
        said = [part for part in frozen.sections if part.kind == "lines"]
        assert [why in part.lines for part in said if part.title == "Why cases changed"] == [True]


def test_a_report_has_the_code_of_both_builds_escaped_and_bounded(store: Store) -> None:
    more = "".join(f"\nx{number} = {number}" for number in range(500))
    sources = {RUN_0: "a<b> = 1", RUN_1: f"a<b> = <script>{more}"}
    store(traced_history(**sources))
    frozen = freeze_comparison("torch=2.12.0", "torch=2.13.0", title=None, by="ann", at=START)
    (code,) = (part for part in frozen.sections if part.kind == "lines" and part.code)
    assert code.title == "Generated code of mlp with default, graph 1: base (-), head (+)"
    assert code.lines[-1] == "385 more lines"
    page = render(frozen)
    assert "<pre>--- base\n+++ head\n@@ -1 +1,501 @@\n-a&lt;b&gt; = 1\n+a&lt;b&gt; = &lt;script&gt;" in page
    assert "<script" not in page
