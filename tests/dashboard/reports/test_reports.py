"""Frozen reports: made by the command, shown from their own content alone, gone once revoked."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette

from compilewatch.dashboard.document.content import (
    Chart,
    Content,
    FrozenColumn,
    Lines,
    ReportError,
    Table,
    content_of,
)
from compilewatch.dashboard.document.page import render
from compilewatch.dashboard.document.svg import draw, let_through
from compilewatch.dashboard.links.links import Link, Page
from compilewatch.dashboard.pages.upgrade import charts as forest
from compilewatch.dashboard.reports import freeze
from compilewatch.dashboard.reports.__main__ import main
from compilewatch.dashboard.reports.freeze import LARGEST_BYTES, freeze_comparison, freeze_link, store_report
from compilewatch.dashboard.reports.routes import reports
from compilewatch.db.engine.session import open_database
from compilewatch.db.records.people import Report, new_report_id
from compilewatch.db.service.reports import REPORTS, reports_frame
from compilewatch.runner.cli.app import app as command_line
from compilewatch.runner.cli.front import exit_code_of
from tests.builders import START, make_build, make_history, make_machine
from tests.dashboard.asking import ask
from tests.dashboard.conftest import Store, opened, selector
from tests.runner import terminal

ROOT = Path(__file__).parents[3]
SIGNED = {"title": None, "by": "ann", "at": datetime(2026, 11, 20, 20, 0, tzinfo=UTC)}
Program = Callable[..., tuple[int, str, str]]
HOSTILE = "<img src=x onerror=alert(1)>\"'&\u202e\x1b[31m\u2028\x0b" + "A" * 100


def compilewatch(url: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return terminal.compilewatch(*arguments, "--db", url, cwd=ROOT)


def in_this_process(url: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return terminal.in_this_process(*arguments, "--db", url, cwd=ROOT)


@pytest.fixture
def program(copied_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Program:
    """The program that the command starts, in this process: its exit code, and what it said where."""

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["report", *arguments])
        code = main()
        said = capsys.readouterr()
        return code, said.out.strip(), said.err

    return run


class Elements(HTMLParser):
    """Every start tag of a page with its attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def check_page(page: str) -> None:
    """Nothing in it runs, loads or leads anywhere, and it is small."""
    assert len(page.encode()) < LARGEST_BYTES
    allowed = {"html", "head", "meta", "title", "style", "body", "main", "h1", "h2", "p", "dl", "div", "dt"}
    allowed |= {"dd", "ul", "li", "figure", "figcaption", "footer", "table", "thead", "tbody", "tr", "th"}
    allowed |= {"td", "svg", "g", "path", "rect", "line", "circle", "text", "tspan", "defs", "clippath"}
    allowed |= {"details", "summary", "pre"}
    for tag, attributes in Elements(page).found:
        assert tag in allowed
        assert not {name for name in attributes if name.startswith("on")}
        assert not {"src", "href", "xlink:href", "action", "style"} & set(attributes)
    assert "default-src 'none'" in page


@pytest.mark.parametrize(("link", "frozen"), [("", "?"), ("modes", "modes?"), ("modes/", "modes?")])
def test_a_link_below_a_path_is_frozen_as_any_other(filled_here: str, link: str, frozen: str) -> None:
    content = freeze_link(f"https://host.example/compilewatch/{link}?task=inference", **SIGNED)
    assert content.link.startswith(frozen)
    assert "task=inference" in content.link


def test_a_report_needs_none_of_the_rows_it_was_made_from(
    filled_here: str, empty_url: str, tmp_path: Path
) -> None:
    content = freeze_comparison("torch=2.12.0", "torch=2.13.0", **SIGNED)
    stored = json.loads(json.dumps(content.model_dump(mode="json")))
    other = tmp_path / "other.db"
    shutil.copyfile(empty_url.removeprefix("sqlite:///"), other)
    report = Report(
        report_id=new_report_id(),
        title=content.title,
        created_at=START,
        created_by="ann",
        data_version=content.data_version,
        content=stored,
    )
    with open_database(f"sqlite:///{other}") as database:
        REPORTS.add(database, report)
        found = REPORTS.get(database, report.report_id)
    assert render(content_of(found.content or {})) == render(content)


def test_a_revoked_report_is_gone_and_an_unknown_one_never_was(
    copied_url: str, capfd: pytest.CaptureFixture[str]
) -> None:
    report_id = store_report(copied_url, freeze_link("modes", **SIGNED))
    app = Starlette(routes=[reports()])
    there = ask(app, f"/report/{report_id}")
    assert there.status == 200
    assert there.headers["cache-control"] == "no-store"
    done = in_this_process(copied_url, "report", "revoke", report_id, "--by", "ben")
    assert done.returncode == 0
    assert "ben" in done.stdout
    gone = ask(app, f"/report/{report_id}")
    assert gone.status == 410
    assert b"was revoked on" in gone.body
    assert b"bert-base" not in gone.body
    assert ask(app, "/report/0123").status == 404
    assert ask(app, f"/report/{report_id}", method="DELETE").status == 405
    export = in_this_process(copied_url, "report", "export", report_id, "--output", "never.html")
    assert export.returncode == 2
    assert "revoked" in capfd.readouterr().err, "of the program that the command starts"
    (row,) = json.loads(in_this_process(copied_url, "report", "list", "--json").stdout)["rows"]
    assert (row["report_id"], row["revoked_by"]) == (report_id, "ben")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("create",), "one thing"),
        (("create", "--link", "modes", "--compare", "latest", "previous"), "one thing"),
        (("create", "--link", "modes", "--by", " "), "--by"),
        (("show", "none-such"), "no report"),
        (("revoke", "none-such"), "no report"),
    ],
)
def test_what_the_command_cannot_do_is_a_sentence(
    copied_url: str, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    assert exit_code_of(command_line, ["report", *arguments, "--db", copied_url]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert len(told.strip().splitlines()) == 2


@pytest.mark.parametrize(
    ("link", "said"),
    [
        ("trendz", "no page"),
        ("trends?workload=none-such", "none-such"),
        ("trends?focus=none-such", "none-such"),
        ("modes?since=2026-11-20", "since selects nothing"),
        ("guide", "cannot be frozen"),
        ("upgrade?machine=cpu-box", "fewer than two builds"),
    ],
)
def test_a_link_that_means_no_one_view_is_refused(filled_here: str, link: str, said: str) -> None:
    with pytest.raises(ReportError, match=said) as caught:
        freeze_link(link, **SIGNED)
    assert caught.value.next_step


def test_one_machine_is_told_that_it_takes_two(store: Store) -> None:
    store(make_history(workloads=("mlp",), builds=("2.10.0",)))
    with pytest.raises(ReportError, match="no two machines can be compared"):
        freeze_link("machines", **SIGNED)


def test_what_cannot_be_frozen_leaves_nothing_behind(copied_url: str, program: Program) -> None:
    code, _, said = program("create", "--compare", "latest", "latest", "--by", "ann")
    assert code == 2
    assert "same trials" in said
    with open_database(copied_url) as database:
        assert reports_frame(database).empty


def test_an_upgrade_link_without_builds_freezes_the_pair_that_its_page_opens_with(filled_here: str) -> None:
    shown = opened(Link(page=Page.UPGRADE))
    base, head = (selector(shown, key).value for key in ("base", "head"))
    for link in ("upgrade", f"upgrade?head={head}", f"upgrade?base={base}"):
        frozen = freeze_link(link, **SIGNED)
        assert f"base={base}&" in frozen.link
        assert f"head={head}&" in frozen.link


def test_hostile_names_stay_text(store: Store) -> None:
    name = HOSTILE.replace("\x1b", "")
    trials = make_history(workloads=(f"net {name}",), builds=("2.12.0", make_build("2.13.0", label=name)))
    machine = make_machine(f"box {name}")
    store(trial.model_copy(update={"machine": machine}) for trial in trials)
    for content in (
        freeze_comparison("previous", "latest", **{**SIGNED, "title": HOSTILE, "by": HOSTILE}),
        *(freeze_link(link, **SIGNED) for link in ("", "trends?axis=torch", "modes", "cold-start")),
    ):
        page = render(content)
        check_page(page)
        assert "&lt;img src=x onerror=alert(1)&gt;" in page
        assert "\x1b" not in page
        assert not {"\u202e", "\u2028", "\x0b"} & set(page), "not in its charts either"


def content_with(*sections: Any) -> Content:
    empty = Table(title="", columns=(FrozenColumn(title="part"),), rows=())
    return Content(
        title="t",
        subject="s",
        link="modes",
        created_at=START,
        created_by="ann",
        program_version="1",
        data_version=1,
        newest_result_at=None,
        sections=sections,
        environment=empty,
        policy=empty,
        data={},
    )


def test_what_is_too_large_is_cut_and_says_so() -> None:
    rows = tuple((f"case {number} " + "x" * 250,) for number in range(1000))
    svg = '<svg xmlns="http://www.w3.org/2000/svg"><path d="M' + "0 0 " * 60_000 + '"/></svg>'
    large = content_with(
        Chart(title="chart", alt="a", svg=svg), Table(columns=(FrozenColumn(title="case"),), rows=rows)
    )
    assert len(render(large).encode()) > 2 * LARGEST_BYTES
    page = render(freeze._fitting(large))
    assert len(page.encode()) <= LARGEST_BYTES
    assert "too large for a report" in page
    assert "Cut to the first rows" in page
    assert "case 0 " in page


def test_the_largest_forest_plot_stays_and_the_tables_are_cut_instead() -> None:
    values = {"change": 0.01, "low": -0.02, "high": 0.04, "group": "unchanged", "kind": "model"}
    texts = dict.fromkeys(("base_text", "head_text", "change_text", "within"), "10.0 ms")
    rows_of_cases = pd.DataFrame(
        [
            {"place": number, "label": f"network-{number:02d} · default", **values, **texts}
            for number in range(1, forest.MOST_ROWS)
        ]
    )
    spec = forest.spec(("unchanged",), forest.MOST_ROWS, "Latency", (-0.1, 0.1))
    frames = {
        "main": rows_of_cases,
        "chosen": rows_of_cases.iloc[:0],
        "ground": pd.DataFrame([{"margin_low": -0.03, "margin_high": 0.03, "zero": 0.0}]),
        "heads": pd.DataFrame([{"place": 0, "text": "59 models shown the same, 59 cases"}]),
    }
    chart = Chart(title="changes", alt="a", svg=draw(spec, frames))
    rows = tuple((f"case {number} " + "x" * 250,) for number in range(900))
    few = (("never left out",),) * 20
    columns = (FrozenColumn(title="case"),)
    fitted = freeze._fitting(
        content_with(chart, Table(columns=columns, rows=few), Table(columns=columns, rows=rows))
    )
    page = render(fitted)
    assert len(page.encode()) <= LARGEST_BYTES
    assert page.count("<figure") == 1
    assert page.count("never left out") == 20
    assert freeze._FEWEST_ROWS <= page.count("case ") - 1 < 900
    assert page.count("Cut to the first rows") == 1


@given(st.text(), st.text())
def test_any_text_is_shown_as_text(title: str, line: str) -> None:
    page = render(content_with(Lines(title=title, lines=(line,)), Lines(lines=(title,), listed=True)))
    check_page(page)
    tags = [tag for tag, _ in Elements(page).found]
    assert tags.count("p") == 2
    assert tags.count("li") == 1


SVG = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">{}</svg>'


@pytest.mark.parametrize(
    ("inside", "gone"),
    [
        ("<script>alert(1)</script>", "script"),
        ('<g onload="alert(1)"/>', "onload"),
        ('<a href="javascript:alert(1)"><text>x</text></a>', "javascript"),
        ('<image href="http://192.0.2.1/x.png"/>', "192.0.2.1"),
        ('<use xlink:href="http://192.0.2.1/x.svg#a"/>', "192.0.2.1"),
        ("<foreignObject><body xmlns='http://www.w3.org/1999/xhtml'>x</body></foreignObject>", "body"),
        ("<style>@import url(http://192.0.2.1)</style>", "192.0.2.1"),
        ('<rect fill="url(http://192.0.2.1/#a)"/>', "192.0.2.1"),
        ('<rect clip-path="url(http://192.0.2.1/#a)"/>', "192.0.2.1"),
        ('<rect style="background:url(http://192.0.2.1)"/>', "192.0.2.1"),
        ("<set attributeName='href' to='javascript:alert(1)'/>", "javascript"),
        ("<x:rect xmlns:x='http://192.0.2.1/ns'/>", "192.0.2.1"),
    ],
)
def test_a_stored_chart_cannot_run_or_load_anything(inside: str, gone: str) -> None:
    shown = let_through(SVG.format(f"<text>kept</text>{inside}"), number=3)
    assert "kept" in shown
    assert gone not in shown


def test_charts_of_one_page_do_not_share_ids() -> None:
    chart = SVG.format('<defs><clipPath id="c1"/></defs><g clip-path="url(#c1)"/>')
    assert 'id="chart2-c1"' in let_through(chart, number=2)
    assert 'clip-path="url(#chart2-c1)"' in let_through(chart, number=2)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no markup",
        "<svg/>",
        "<html xmlns='http://www.w3.org/2000/svg'/>",
        '<!DOCTYPE x [<!ENTITY a "b">]>',
    ],
)
def test_what_is_no_chart_is_refused(text: str) -> None:
    with pytest.raises(ReportError):
        let_through(text, number=0)


def test_content_of_another_release_is_refused_with_a_sentence() -> None:
    stored = content_with().model_dump(mode="json")
    assert content_of(stored) == content_with()
    with pytest.raises(ReportError, match="another release"):
        content_of({**stored, "schema": "compilewatch.report/2"})


def test_an_export_leaves_the_files_beside_it_alone(copied_url: str, tmp_path: Path) -> None:
    """Two exports to one name at once wrote into one part file, which took away a file of that name."""
    report_id = store_report(copied_url, freeze_link("modes", **SIGNED))
    beside = tmp_path / "report.html.part"
    beside.write_text("mine", encoding="utf-8")
    output = tmp_path / "report.html"
    assert in_this_process(copied_url, "report", "export", report_id, "--output", str(output)).returncode == 0
    assert beside.read_text(encoding="utf-8") == "mine"
    assert sorted(path.name for path in tmp_path.glob("*report.html*")) == ["report.html", "report.html.part"]
