"""Databases that cannot be shown, and databases full of hostile strings."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from compilewatch.dashboard.links import links
from compilewatch.dashboard.links.links import Link, Page
from compilewatch.dashboard.text.foreign_text import escaped
from compilewatch.db.engine.schema import VERSION_TABLE
from compilewatch.db.records.trial import CompilerEvent, CompilerFacts, Failure, FailureKind
from tests.builders import make_build, make_history, make_machine, make_strategy, make_trial, make_workload
from tests.dashboard.conftest import DATABASE, Store, opened, texts

HOSTILE = (
    "<b>x</b> ![i](http://evil.example/p.png) [l](javascript:alert(1)) $x$ :red[r] \u202eabc **b** `c` # h"
)


def test_an_absent_database_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DATABASE, f"sqlite:///{tmp_path / 'absent.db'}")
    test = opened(Link())
    assert len(test.error) == 1
    assert "absent.db" in texts(test)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("revision", "said"), [("0000", "compilewatch db upgrade"), ("9999", "newer than this release")]
)
def test_a_schema_of_another_release_names_the_way_out(copied_url: str, revision: str, said: str) -> None:
    path = Path(copied_url.removeprefix("sqlite:///"))
    connection = sqlite3.connect(path)
    connection.execute(f"UPDATE {VERSION_TABLE} SET version_num = ?", (revision,))
    connection.commit()
    connection.close()
    before = path.read_bytes()
    test = opened(Link(page=Page.MODES))
    assert said in texts(test)
    assert path.read_bytes() == before


@pytest.fixture(scope="module")
def hostile_url(store_once: Store) -> str:
    """Every text field of a good and of a failed trial holds markup."""
    name = HOSTILE[:200]
    build = make_build(torch=name, driver=name, packages={name: name}, settings={name: name}, label=name)
    machine = make_machine(name, device_name=name, cpu_name=name)
    common = {
        "workload": make_workload(name, item=name, shape={name: 3}),
        "machine": machine,
        "build": build,
        "suite": name,
        "label": name,
    }
    events = [CompilerEvent(reason=HOSTILE, location=HOSTILE, count=1)]
    facts = CompilerFacts(graphs=1, graph_breaks=events, recompiles=events, skipped_frames=[HOSTILE])
    failure = Failure(kind=FailureKind.CRASH, phase=name, message=HOSTILE, log_tail=HOSTILE * 50, signal=11)
    strategy = make_strategy(name)
    trials = [
        make_trial(strategy="eager", trial_id="eager", **common),
        make_trial(strategy=strategy, trial_id="good", compiler=facts, **common),
        make_trial(strategy="default", trial_id="failed", failure=failure, **common),
    ]
    return store_once([*trials, *make_history(builds=("2.13.0",))])


@pytest.mark.parametrize(
    "shown",
    [
        *(Link(page=page) for page in Page if page is not Page.GUIDE),
        Link(page=Page.TRIAL, trial="good"),
        Link(page=Page.TRIAL, trial="failed"),
    ],
    ids=links.href,
)
def test_hostile_strings_never_reach_markdown(
    hostile_url: str, monkeypatch: pytest.MonkeyPatch, shown: Link
) -> None:
    monkeypatch.setenv(DATABASE, hostile_url)
    test = opened(shown)
    for element in [*test.markdown, *test.caption, *test.info, *test.warning, *test.metric]:
        said = " ".join(str(getattr(element, name, "")) for name in ("value", "label", "help", "delta"))
        for unescaped in ("![i]", "[l](", "**b**", ":red[r]", "<b>", "`c`", "$x$"):
            assert unescaped not in said, f"{unescaped} in {said[:200]}"
    for chart in test.get("vega_lite_chart"):
        assert "evil.example" not in json.dumps(json.loads(chart.proto.spec).get("title", ""))


def test_the_list_of_trials_says_why_one_failed(store: Store) -> None:
    told = f"C++ compile error:\n  a.cpp:1:2: error: {HOSTILE * 9}"
    failure = Failure(kind=FailureKind.COMPILE_ERROR, phase="first_call", message=told)
    store([make_trial(strategy="eager"), make_trial(failure=failure)])
    (table,) = opened(Link(page=Page.TRIAL)).dataframe
    (why,) = table.value["why"].dropna()
    assert why.startswith("compile error: C++ compile error: a.cpp:1:2: error: <b>x</b>")
    assert why.isprintable()
    assert len(why) <= 200


def test_every_character_with_a_meaning_is_escaped_and_text_kept_on_one_line() -> None:
    for character in "\\`*_{}[]()#+-!|<>~$:^":
        assert escaped(f"a{character}b") == f"a\\{character}b"
    assert escaped("a\n\n# b\r\n\tc") == "a \\# b c"
