"""A build in an address is named as for `compilewatch compare`: by commit, day, label, version or turn."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from datetime import timedelta

import pytest
from starlette.applications import Starlette

from compilewatch.dashboard.links.links import Link, Page
from compilewatch.dashboard.read.data import read_choices
from compilewatch.dashboard.read.requested import Requested, resolved_link
from compilewatch.db.records.trial import Build, Code, Trial
from tests.builders import START, make_build, make_timing, make_trial
from tests.dashboard.asking import ask, whole_application
from tests.dashboard.conftest import DATABASE, Store, opened, texts

SLOW, FAST = "a" * 40, "b" * 40
OLD = make_build("2.12.0", label="mine")
NEW, OTHER = make_build("2.13.0"), make_build("2.13.0", driver="999.9")


def run(
    number: int, latency_ms: float, build: Build, *workloads: str, commit: str | None = None
) -> list[Trial]:
    """Three trials of each workload, on a day of their own."""
    code = {} if commit is None else {"code": Code(commit=commit, dirty=False, source_hash=commit[:16])}
    timed = {"timing": make_timing("host", headline="samples")}
    return [
        make_trial(
            build=build,
            workload=workload,
            run_id=f"run-{number}",
            trial_id=f"trial-{number}-{workload}-{place}",
            started_at=START + timedelta(days=number, minutes=2 * place),
            latency_ns=latency_ms * 1e6 * (1 + place / 1000),
            control_latency_ns=12e6,
            **({**code, **timed} if commit else {}),
        )
        for workload in workloads
        for place in range(3)
    ]


@pytest.fixture
def app(store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[Starlette]:
    url = store(
        [
            *run(0, 8.0, OLD, "mlp"),
            *run(1, 30.0, NEW, "mlp", commit=SLOW),
            *run(2, 6.0, NEW, "mlp", commit=FAST),
            *run(3, 8.0, OTHER, "bert-base"),
        ]
    )
    monkeypatch.setenv(DATABASE, url)
    with whole_application() as app:
        yield app


def asked(link: Link) -> Requested:
    return resolved_link(link, read_choices())


def ids(app: Starlette) -> dict[str, str]:
    rows = ask(app, "/api/v1/builds").json["rows"]
    return {f"{row['torch']} {row['driver']}": row["build_id"] for row in rows}


@pytest.mark.parametrize("name", [f"commit={SLOW[:7]}", "2026-11-21", "run-1"])
def test_some_runs_of_a_build_are_meant_alone(app: Starlette, name: str) -> None:
    found = asked(Link(page=Page.MODES, build=name))
    assert (found.link.build, found.link.build_run) == (ids(app)[f"2.13.0 {NEW.driver}"], ("run-1",))
    assert found.unknown == ()
    said = texts(opened(Link(page=Page.OVERVIEW, build=name)))
    assert "was left out" not in said
    badge = ask(app, f"/badge/mlp/default.svg?build={name}").body.decode()
    assert ">0.399x<" in badge
    framed = ask(app, f"/embed/modes/modes-map?build={name}")
    assert framed.status == 200
    trials = ask(app, f"/api/v1/trials?build={name}").json["rows"]
    assert {row["run_id"] for row in trials} == {"run-1"}


def test_two_commits_of_one_build_are_compared(app: Starlette) -> None:
    sides = f"base=commit={FAST[:7]}&head=commit={SLOW[:7]}"
    document = ask(app, f"/api/v1/compare?{sides}").json
    (row,) = (each for each in document["rows"] if each["metric"] == "latency")
    assert row["verdict"] == "regressed"
    said = texts(opened(Link(page=Page.UPGRADE, base=f"commit={FAST[:7]}", head=f"commit={SLOW[:7]}")))
    assert "1 slower" in said
    drawn = ask(app, f"/chart/upgrade/upgrade-forest.svg?{sides}")
    assert drawn.status == 200


@pytest.mark.parametrize("name", ["commit=fffffff", "2020-01-01", "no-such-name", "smell=2"])
def test_what_is_not_there_is_404_with_the_sentence(app: Starlette, name: str) -> None:
    for path in ("/embed/modes/modes-map", "/chart/modes/modes-map.svg", "/badge/mlp/default.svg"):
        answer = ask(app, f"{path}?build={name}")
        assert answer.status == 404, path
        said = html.unescape(re.sub(r"<[^>]+>", " ", answer.body.decode()))
        assert name.removeprefix("commit=").removesuffix("=2") in said or "no data" in said, path
    for path in ("trials", "break-even"):
        answer = ask(app, f"/api/v1/{path}?build={name}")
        assert answer.status == 404
        assert answer.json["error"]["message"]
    page = ask(app, f"/modes?build={name}").body.decode()
    picture = html.unescape(re.search(r'property="og:image" content="([^"]+)"', page)[1])  # type: ignore[index]
    assert ask(app, picture.removeprefix("http://testserver")).status == 404


def test_another_build_chosen_on_the_page_has_all_its_runs(app: Starlette) -> None:
    link = asked(Link(page=Page.MODES, build=f"commit={SLOW[:7]}")).link
    page = opened(link)
    (box,) = (each for each in page.selectbox if str(each.key).startswith("select-build-"))
    box.set_value(ids(app)[f"2.12.0 {OLD.driver}"]).run()
    assert "build_run" not in page.query_params
