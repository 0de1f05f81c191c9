"""Machines and builds by name: addresses of pages, of the API and of badges take them alike."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from datetime import timedelta
from typing import Any

import pytest
from starlette.applications import Starlette

from compilewatch.dashboard.api.routes import routes
from compilewatch.dashboard.links.links import Link, Page
from compilewatch.db.engine.session import open_database
from compilewatch.db.queries.facets import builds
from tests.builders import START, make_build, make_machine, make_trial
from tests.dashboard.asking import ask
from tests.dashboard.conftest import Store, machine_ids, opened, texts


@pytest.fixture
def ids(filled_here: str) -> dict[str, str]:
    """Of a database whose two machines measured different builds of torch 2.13.0: name -> id."""
    with open_database(filled_here, read_only=True) as database:
        known = builds(database)
    versions = known["torch"] + " " + known["torch_variant"]
    return machine_ids(filled_here) | dict(zip(versions, known["build_id"], strict=True))


def api(path: str, query: dict[str, Any]) -> Any:
    reply = ask(Starlette(routes=routes()), f"/api/v1/{path}", query)
    assert reply.status == 200
    return reply.json


def shared(link: Link) -> str:
    """The link that the page of `link` offers to share, every selector written out."""
    test = opened(link)
    assert "was left out" not in texts(test)
    return next(str(code.value) for code in test.code if f"{link.page}?" in code.value)


@pytest.mark.parametrize("torch", ["torch 2.13.0", "2.13.0"])
def test_a_page_takes_a_torch_for_the_build_of_its_machine(ids: dict[str, str], torch: str) -> None:
    compared = shared(Link(page=Page.UPGRADE, base="2.12.0", head=torch))
    assert f"base={ids['2.12.0 cu130']}&" in compared
    assert f"head={ids['2.13.0 cu130']}&" in compared
    for machine, meant in (("gpu-box-3", "2.13.0 cu130"), ("cpu-box", "2.13.0 cpu")):
        assert f"build={ids[meant]}" in shared(Link(page=Page.MODES, machine=machine, build=torch))


def test_a_page_of_all_machines_names_every_build_of_a_torch(ids: dict[str, str]) -> None:
    said = texts(opened(Link(page=Page.REGRESSIONS, head="torch 2.13.0")))
    assert "torch 2.13.0 is 2 builds: " in said
    for key in ("2.13.0 cu130", "2.13.0 cpu"):
        assert ids[key][:8] in said


@pytest.mark.parametrize("path", ["machines", "trials", "series", "break-even"])
def test_the_api_takes_the_name_of_a_machine(ids: dict[str, str], path: str) -> None:
    for name in ("gpu-box-3", "cpu-box"):
        rows = api(path, {"machine": name})["rows"]
        assert rows
        assert rows == api(path, {"machine": ids[name]})["rows"]
    both = api(path, {"machine": ["cpu-box", ids["gpu-box-3"]]})["rows"]
    assert both == api(path, {})["rows"]
    nobody = ask(Starlette(routes=routes()), f"/api/v1/{path}", {"machine": "none-such"})
    assert nobody.status == 404
    assert "none-such" in nobody.json["error"]["message"]


@pytest.mark.parametrize("path", ["builds", "trials", "break-even"])
def test_the_api_takes_a_torch_for_its_builds(ids: dict[str, str], path: str) -> None:
    whole = api(path, {"build": ids["2.12.0 cu130"]})["rows"]
    assert whole
    assert api(path, {"build": "2.12.0"})["rows"] == api(path, {"build": "torch 2.12.0"})["rows"] == whole
    both = [ids[f"2.13.0 {variant}"] for variant in ("cu130", "cpu")]
    assert api(path, {"build": "2.13.0"})["rows"] == api(path, {"build": both})["rows"]


def badge(query: dict[str, str]) -> str:
    """What a badge says on its right. The XML is our own."""
    reply = ask(Starlette(routes=routes()), "/badge/mlp/default.svg", query)
    return [text.text or "" for text in ET.fromstring(reply.body).iter("{http://www.w3.org/2000/svg}text")][1]


def test_a_badge_takes_names(ids: dict[str, str]) -> None:
    assert badge({"machine": "cpu-box"}) == badge({"machine": ids["cpu-box"]}) != "not there"
    assert badge({"build": "2.12.0"}) == badge({"build": ids["2.12.0 cu130"]}) != "not there"
    assert badge({"machine": "none-such"}) == badge({"build": "2.14.0"}) == "not there"


def test_a_name_is_that_of_nobody_once_another_machine_has_it_too(store: Store) -> None:
    store([make_trial(machine=make_machine("box"), build=make_build())])
    app = Starlette(routes=routes())
    first = ask(app, "/api/v1/trials", {"machine": "box"})
    assert len(first.json["rows"]) == 1
    twin = make_machine("box", threads=77)
    store([make_trial(machine=twin, started_at=START + timedelta(1), run_id="next")])
    tag = first.headers["etag"]
    again = ask(app, "/api/v1/trials", {"machine": "box"}, if_none_match=tag)
    assert again.status == 404
    assert "2 machines" in again.json["error"]["message"]
