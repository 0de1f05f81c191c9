"""Regressions: the inbox shows what is recorded, and what somebody says is asked once, written, and told."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from compilewatch.dashboard.links.links import Link, Page, href
from compilewatch.dashboard.pages.overview import content as overview
from compilewatch.dashboard.pages.regressions import content, triage_form
from compilewatch.dashboard.parts.parts import LEFT_OUT, Chart, Lines, Table, flat, named
from compilewatch.dashboard.read.data import read_choices_on
from compilewatch.dashboard.read.requested import first_machine
from compilewatch.dashboard.reports.freeze import freeze_link
from compilewatch.dashboard.text.foreign_text import escaped
from compilewatch.dashboard.verdicts import inbox
from compilewatch.dashboard.verdicts.inbox import web_link
from compilewatch.dashboard.write import writing
from compilewatch.db.engine.session import open_database
from compilewatch.db.judge.compare.recorded_regressions import TriageEvent
from compilewatch.db.records.people import TriageState
from compilewatch.db.records.trial import Trial
from compilewatch.db.service.recording import record_comparison
from compilewatch.db.service.recording import triage as store_triage
from compilewatch.db.service.regressions import RegressionState, standing_regressions
from compilewatch.db.store.trials import save_trials
from tests.builders import START, make_history, make_machine
from tests.dashboard.conftest import DATABASE, Store, opened, texts
from tests.regression_cases import RUN_0, RUN_1, RUN_2, judged, stepping_history

_HIDDEN = "It was chosen by its link; the filters of this report leave it out of its table."
HOSTILE = "![x](http://evil.example/a.png) <script>alert(1)</script> :smile: $x$"
Recorded = Callable[[], tuple[RegressionState, ...]]


@pytest.fixture(scope="module")
def recorded_once(store_once: Store) -> Path:
    url = store_once(stepping_history(1.0, 1.4, builds=("2.12.0", "2.13.0")))
    with open_database(url) as database:
        record_comparison(database, judged(database, RUN_0, RUN_1), at=START)
    return Path(url.removeprefix("sqlite:///"))


@pytest.fixture
def recorded(recorded_once: Path, sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> Recorded:
    """A database in which the second run's regressions are recorded, and what stands in it now."""
    url = sqlite_url
    shutil.copyfile(recorded_once, url.removeprefix("sqlite:///"))
    monkeypatch.setenv(DATABASE, url)

    def standing() -> tuple[RegressionState, ...]:
        with open_database(url, read_only=True) as database:
            return standing_regressions(database)

    return standing


def _id(states: tuple[RegressionState, ...], workload: str = "mlp", metric: str = "latency") -> str:
    (found,) = (
        each.regression.regression_id
        for each in states
        if (each.regression.row.workload, each.regression.row.metric.value) == (workload, metric)
    )
    return found


def plainly(markdown: str) -> str:
    """Markdown without its escapes."""
    return markdown.replace("\\", "")


def _inbox(test: AppTest):
    return next(e.value for e in test.dataframe if "cause" in e.value.columns)


def _type(test: AppTest, **typed: str) -> AppTest:
    """Fill the form and press Record."""
    if "state" in typed:
        test.radio("triage-state").set_value(TriageState(typed["state"]))
    test.text_input("triage-name").set_value(typed.get("name", ""))
    test.text_area("triage-note").set_value(typed.get("note", ""))
    test.text_input("triage-link").set_value(typed.get("link", ""))
    return next(button for button in test.button if button.label == "Record").click().run()


def headline(test: AppTest) -> str:
    return next(plainly(each.value) for each in test.markdown if each.value.startswith("## :"))


def test_the_inbox_lists_what_is_recorded_with_its_numbers(recorded: Recorded) -> None:
    test = opened(Link(page=Page.REGRESSIONS))
    rows = _inbox(test).set_index(["workload", "metric"])
    assert len(rows) == len(recorded()) == 2, "a case that got slower is one row"
    latency = rows.loc[("mlp", "Latency")]
    assert "speedup \N{MINUS SIGN}" in latency["also"]
    assert latency["state"] == "● new"
    assert 37 < latency["change"] < 43
    assert (latency["moved"], latency["cause"]) == ("compiled", "compiler")
    assert (latency["from"], latency["to"]) == ("torch 2.12.0", "torch 2.13.0")


def test_what_one_step_did_is_one_row_and_a_link_to_it_shows_its_cases(recorded: Recorded) -> None:
    (change,) = inbox.changes(recorded())
    test = opened(Link(page=Page.REGRESSIONS))
    (rows,) = (each.value for each in test.dataframe if "who" in each.value.columns)
    assert list(rows["owner"]) == ["nobody"]
    assert rows["who"].iloc[0].startswith("2 workloads with default, 2 cases: ")
    assert "1 change needs an owner" in headline(test)
    chosen = opened(Link(page=Page.REGRESSIONS, change=(change.change.change_id,)))
    assert set(_inbox(chosen)["workload"]) == {"mlp", "bert-base"}
    assert "compilewatch bisect --good torch==2.12.0 --bad torch==2.13.0" in texts(chosen)
    taken = next(button for button in chosen.button if button.label == "Take").click().run()
    taken.text_input("triage-name-quick").set_value("Ada")
    taken.button("triage-quick-say").click().run()
    assert {each.state for each in recorded()} == {TriageState.ACKNOWLEDGED}
    assert {event.author for each in recorded() for event in each.triage} == {"Ada"}
    assert "1 change has an owner" in headline(opened(Link(page=Page.REGRESSIONS)))


def test_a_change_is_answered_in_its_row_without_leaving_the_list(recorded: Recorded) -> None:
    (change,) = inbox.changes(recorded())
    test = opened(Link(page=Page.REGRESSIONS))
    (rows,) = (each.value for each in test.dataframe if "who" in each.value.columns)
    words = rows.filter(regex="^changes-.*-(do|more)$").iloc[0].tolist()
    assert words[0] == "Take"
    assert list(words[1]) == ["Expected", "Close as fixed", "Bisect"]
    # What a click on a cell leaves behind: no test of Streamlit's own can click there.
    test.session_state["triage-of-row"] = ("Bisect", change.change.change_id)
    assert "compilewatch bisect --good torch==2.12.0 --bad torch==2.13.0" in texts(test.run())
    test.session_state["triage-of-row"] = ("Expected", change.change.change_id)
    test.run().text_input("triage-name-quick").set_value("Ada")
    test.text_input("triage-quick-note").set_value("wanted")
    test.button("triage-quick-say").click().run()
    assert {(each.state, each.triage[-1].note) for each in recorded()} == {(TriageState.EXPECTED, "wanted")}
    assert "triage-of-row" not in test.session_state, "asked once"
    assert test.query_params == {}
    (closed,) = inbox.changes(recorded())
    assert triage_form.actions(closed) == ("Take",)


def test_filters_and_states_choose_rows(recorded: Recorded) -> None:
    assert set(_inbox(opened(Link(page=Page.REGRESSIONS, workload=("mlp",))))["workload"]) == {"mlp"}
    none = opened(Link(page=Page.REGRESSIONS, state=("fixed",)))
    assert "No recorded regression fits these filters" in texts(none)
    assert set(_inbox(opened(Link(page=Page.REGRESSIONS, task=("training",))))["workload"]) == {"mlp"}


def test_a_link_to_a_regression_shows_its_evidence(recorded: Recorded) -> None:
    test = opened(Link(page=Page.REGRESSIONS, regression=(_id(recorded()),)))
    said = texts(test)
    assert "mlp with default: Latency rose by" in said
    assert "compilewatch compare run-gpu-box-3-0-0000 run-gpu-box-3-0-0001 --workload mlp" in said
    evidence, series = test.get("vega_lite_chart")
    assert "every trial of the base side" in evidence.proto.alt
    assert series.proto.alt == "Latency of mlp with default, run by run"
    assert "the judge" in test.table[-1].value.to_string()


def test_a_trial_set_aside_is_no_point_beside_a_number_without_it(store: Store) -> None:
    """Drawn, it would move the mean line away from the value that the verdict has."""
    history = stepping_history(1.0, 1.4, builds=("2.12.0", "2.13.0"), trials_per_case=6)
    place = next(n for n, each in enumerate(history) if each.strategy.name == "default")
    wild = [10 * each for each in history[place].latency_samples_ns]
    history[place] = Trial.model_validate(history[place].to_document() | {"samples_ns": wild})
    with open_database(store(history)) as database:
        record_comparison(database, judged(database, RUN_0, RUN_1), at=START)
        (found,) = (
            each.regression
            for each in standing_regressions(database)
            if each.regression.row.workload == history[place].workload.name
            and each.regression.row.strategy == "default"
        )
    assert found.row.trials == (5, 6)
    page = content.page(Link(page=Page.REGRESSIONS, regression=(found.regression_id,)))
    (strip,) = (
        part for part in page.parts if isinstance(part, Chart) and part.key == "regression-case-strip"
    )
    assert strip.chart.notes == ["1 trial without a value that counts left out."]
    means = strip.chart.frames["middles"].set_index("lane")["value"]
    assert [1e6 * means[f"{side} · default"] for side in ("base", "head")] == pytest.approx(
        [found.row.base, found.row.head]
    )


def test_what_is_said_is_asked_once_written_and_told(recorded: Recorded) -> None:
    chosen = _id(recorded())
    test = _type(
        opened(Link(page=Page.REGRESSIONS, regression=(chosen,))),
        name=" Ada ",
        note="bisecting",
        link="https://example.org/issues/1",
    )
    # Addresses stand with an unseen joiner, so that Markdown makes no link of them.
    question = texts(test).replace("\u2060", "").partition("Record 1 regression as acknowledged, by Ada?")[2]
    for said in ("mlp with default: latency +", "bisecting", "Link: https://example.org/issues/1"):
        assert said in question
    assert all(not each.triage for each in recorded()), "asked, so not written yet"
    before = datetime.now(UTC)
    test.button("triage-yes").click().run()
    assert not test.exception
    assert "Recorded 1 regression as acknowledged, by Ada." in test.success[0].value
    (event,) = next(e.triage for e in recorded() if e.regression.regression_id == chosen)
    assert (event.state, event.author, event.note) == (TriageState.ACKNOWLEDGED, "Ada", "bisecting")
    assert event.url == "https://example.org/issues/1"
    assert before <= event.at <= datetime.now(UTC)
    rows = _inbox(test).set_index(["workload", "metric"])
    assert rows.loc[("mlp", "Latency"), "state"] == "◐ acknowledged"
    assert not test.run().success, "it is told once"


def test_cancelling_writes_nothing(recorded: Recorded) -> None:
    test = _type(opened(Link(page=Page.REGRESSIONS, regression=(_id(recorded()),))), name="Ada")
    test.button("triage-no").click().run()
    assert not test.success
    assert all(not each.triage for each in recorded())


def test_several_are_said_at_once(recorded: Recorded) -> None:
    both = (_id(recorded()), _id(recorded(), "bert-base"))
    test = opened(Link(page=Page.REGRESSIONS, regression=both))
    _type(test, name="Ada", state="expected")
    question = texts(test).partition("Record 2 regressions as expected, by Ada?")[2]
    assert "mlp with default: latency +" in question
    assert "bert-base with default: latency +" in question
    test.button("triage-yes").click().run()
    assert {e.regression.regression_id for e in recorded() if e.state is TriageState.EXPECTED} == set(both)


WRONGLY: tuple[tuple[dict[str, str], str], ...] = (
    ({"name": "  "}, "Type your name"),
    ({"name": "Ada", "link": "javascript:alert(1)"}, "must begin with https://"),
    ({"name": "Ada", "link": "https://example.org/a b"}, "hold no blanks"),
)


def test_what_cannot_be_recorded_is_said_and_changes_nothing(recorded: Recorded) -> None:
    test = opened(Link(page=Page.REGRESSIONS, regression=(_id(recorded()),)))
    for typed, problem in WRONGLY:
        test = _type(test, **typed)
        (said,) = test.warning
        assert problem in said.value
    assert all(not each.triage for each in recorded())


def test_a_verdict_that_is_gone_is_named(recorded: Recorded) -> None:
    test = opened(Link(page=Page.REGRESSIONS, regression=("0" * 16,)))
    assert "There is no standing regression 0000000000000000" in texts(test)


def test_writing_what_is_known_or_unknown_says_so(recorded: Recorded, sqlite_url: str) -> None:
    url = sqlite_url
    what = writing.triage_decision([_id(recorded())], TriageState.FIXED, author="Ada", note="", url="")
    assert writing.record(url, what) == ("Recorded 1 regression as fixed, by Ada.", True)
    told, whole = writing.record(url, what)
    assert whole
    assert "1 regression said so already" in told
    told, whole = writing.record(
        url, writing.triage_decision(["nothing"], TriageState.FIXED, author="Ada", note="", url="")
    )
    assert not whole
    assert "There is no regression 'nothing'" in told


def test_what_people_said_stays_text(recorded: Recorded, sqlite_url: str) -> None:
    chosen = _id(recorded())
    event = TriageEvent(state=TriageState.CONFIRMED, author=HOSTILE, at=START, note=HOSTILE)
    with open_database(sqlite_url) as database:
        store_triage(database, chosen, event)
    test = opened(Link(page=Page.REGRESSIONS, regression=(chosen,)))
    assert escaped(HOSTILE) in test.table[-1].value.to_numpy().ravel().tolist()
    kinds = (test.markdown, test.caption, test.info, test.success, test.warning)
    assert not any("](http" in str(element.value) for kind in kinds for element in kind)


def test_only_web_links_can_be_followed() -> None:
    assert web_link("https://example.org/1") == "https://example.org/1"
    assert web_link("javascript:alert(1)") is None
    assert web_link(None) is None


def _confirm(url: str, regression_id: str) -> None:
    with open_database(url) as database:
        event = TriageEvent(state=TriageState.CONFIRMED, author="ann", at=datetime.now(UTC))
        store_triage(database, regression_id, event)


def test_an_upgrade_says_how_many_of_its_slower_cases_are_confirmed_and_leads_to_them(
    recorded: Recorded,
) -> None:
    states = recorded()
    assert "Latency: 2 of 4 cases slower, not confirmed yet. Only compiled code slowed." in texts(
        opened(Link(page=Page.UPGRADE))
    )
    _confirm(os.environ[DATABASE], _id(states))
    test = opened(Link(page=Page.UPGRADE))
    assert "Latency: 2 of 4 cases slower, 1 confirmed. Only compiled code slowed." in texts(test)
    figures = f"In the inbox {len(states)} regressions of these builds: 1 confirmed, {len(states) - 1} new."
    assert figures in plainly(texts(test))
    assert [each.label for each in test.button if "inbox" in each.label] == ["Open them in the inbox"]


@pytest.fixture
def slower_and_unrecorded(store: Store) -> None:
    store(stepping_history(1.0, 1.4, builds=("2.12.0", "2.13.0")))


@pytest.mark.usefixtures("slower_and_unrecorded")
def test_what_no_run_recorded_is_said_not_to_be_in_the_inbox() -> None:
    said = texts(opened(Link(page=Page.UPGRADE)))
    assert "Latency: 2 of 4 cases slower, not confirmed yet" in said
    assert "Not filed yet" in said


def test_the_inbox_of_two_builds_holds_what_is_recorded_between_them_alone(recorded: Recorded) -> None:
    states = recorded()
    base, head = (side.build_ids[0] for side in (states[0].regression.base, states[0].regression.head))
    test = opened(Link(page=Page.REGRESSIONS, base=base, head=head))
    assert len(_inbox(test)) == len(states)
    assert "Only regressions from " in texts(test)
    (everything,) = (each for each in test.button if each.label == "Show those of all builds")
    turned = opened(Link(page=Page.REGRESSIONS, base=head, head=base))
    assert "No recorded regression fits these filters." in texts(turned)
    everything.click().run()
    assert "base" not in test.query_params
    assert "Only regressions" not in texts(test)


@pytest.mark.usefixtures("slower_and_unrecorded")
def test_with_nothing_recorded_the_newest_run_is_judged_and_that_is_said() -> None:
    test = opened(Link(page=Page.REGRESSIONS))
    assert "No regression is recorded." in texts(test)
    rows = next(e.value for e in test.dataframe if "moved" in e.value.columns)
    assert set(rows["workload"]) == {"mlp", "bert-base"}
    assert not [button for button in test.button if button.label == "Record"]


def test_builds_of_one_run_are_set_against_each_other_by_version(store: Store) -> None:
    """As `gate` does it, whichever was measured first."""
    both = stepping_history(1.4, 1.0, builds=("2.13.0", "2.12.0"))
    store(trial.model_copy(update={"run_id": "turns"}) for trial in both)
    test = opened(Link(page=Page.REGRESSIONS))
    rows = next(e.value for e in test.dataframe if "moved" in e.value.columns)
    assert set(rows["workload"]) == {"mlp", "bert-base"}


def test_one_run_is_an_empty_state(store: Store) -> None:
    store(stepping_history(1.0, builds=("2.12.0",)))
    assert "There is no run before the newest one" in texts(opened(Link(page=Page.REGRESSIONS)))


def test_a_regression_is_frozen_with_its_evidence_and_its_story(recorded: Recorded) -> None:
    chosen = _id(recorded())
    content = freeze_link(
        href(Link(page=Page.REGRESSIONS, regression=(chosen,))), title=None, by="ann", at=START
    )
    charts = [part for part in content.sections if part.kind == "chart"]
    assert [chart.title for chart in charts] == [
        "Latency of mlp with default: the trials of both sides",
        "Latency of mlp with default, run by run",
    ]
    titles = [part.title for part in content.sections if part.kind == "table"]
    assert titles == [
        "",
        "2 cases, one by one",
        "What differs between the builds",
        "",
        "Who said what",
    ]
    assert chosen in {each["regression_id"] for each in content.data["regressions"]}
    assert _HIDDEN not in [line for part in content.sections if part.kind == "lines" for line in part.lines]
    json.dumps(content.model_dump(mode="json"), allow_nan=False)


def test_what_could_not_be_compared_is_no_good_news(store: Store) -> None:
    """Two runs of the same suite that share no case: silence about regressions, not health."""
    store(
        trial
        for trial in stepping_history(1.0, 1.0, builds=("2.12.0", "2.13.0"))
        if trial.workload.name == ("mlp" if trial.run_id == RUN_0 else "bert-base")
    )
    test = opened(Link(page=Page.REGRESSIONS))
    assert not test.success, "nothing was compared, so nothing is known to be well"
    (said,) = (plainly(info.value) for info in test.info)
    assert said.startswith("Nothing could be compared: 1 earlier run, none with a case comparable")
    assert any(LEFT_OUT in folded.label for folded in test.expander)
    assert "did not run" in texts(test)


def test_what_is_not_decided_is_no_good_news(store: Store) -> None:
    """One trial a side is never a verdict."""
    store(stepping_history(1.0, 1.0, builds=("2.12.0", "2.13.0"), trials_per_case=1))
    test = opened(Link(page=Page.REGRESSIONS))
    said = headline(test)
    assert ":orange[" in said
    assert "No regression is shown, but that is no all-clear" in said


def test_what_was_compared_and_stands_is_good_news(store: Store) -> None:
    store(stepping_history(1.0, 1.0, builds=("2.12.0", "2.13.0"), trials_per_case=12))
    test = opened(Link(page=Page.REGRESSIONS))
    assert "Nothing regressed in the newest run: 4 of 4 cases compared" in headline(test)


def _with_a_third_run(recorded: Recorded, factor: float) -> None:
    """A later release on the same machine, and a newer machine without regressions."""
    assert recorded()
    with open_database(os.environ[DATABASE]) as database:
        save_trials(database, stepping_history(1.0, 1.4, factor, builds=("2.12.0", "2.13.0", "2.15.0")))
        later, other = START + timedelta(days=30), make_machine("newer", device_name="NVIDIA L4")
        save_trials(database, make_history(machines=(other,), builds=("2.14.0", "2.15.0"), start=later))


@pytest.mark.parametrize(("factor", "is_gone"), [(1.0, True), (1.4, False)])
def test_what_a_later_build_took_back_asks_to_be_closed_and_colours_no_headline(
    recorded: Recorded, factor: float, *, is_gone: bool
) -> None:
    _with_a_third_run(recorded, factor)
    machine = recorded()[0].regression.machine_id
    first = first_machine()
    assert first is not None
    assert (first.machine_id == machine) is not is_gone
    inbox_page = content.page(Link(page=Page.REGRESSIONS, machine=machine))
    assert ("1 change looks fixed" in inbox_page.headline) is is_gone
    (listed,) = named(inbox_page.parts, content.changes_key())
    assert isinstance(listed, Table)
    assert list(listed.frame["now"].str.startswith("gone with ")) == [is_gone]
    build = read_choices_on(machine).offered_builds[-1]
    page = overview.page(Link(page=Page.OVERVIEW, machine=machine, build=build))
    (counted,) = named(flat(page.parts), "tally")
    assert isinstance(counted, Lines)
    assert ("0 open changes" in " ".join(counted.lines)) is is_gone
    (first,) = named(flat(page.parts), "overview-first")
    assert isinstance(first, Table)
    assert list(first.frame["since"].str.endswith("gone with torch 2.15.0, close?")) == [is_gone]
    assert first.tones == ("improved" if is_gone else "regressed",)
    # Red as it came, green as it went.
    assert first.frame["moved"].iloc[0][0] == ("\N{MINUS SIGN}" if is_gone else "+")


def test_a_change_that_is_gone_in_part_is_one_open_change(recorded: Recorded) -> None:
    """mlp is mended by the later release, bert-base is not."""
    assert recorded()
    builds = ("2.12.0", "2.13.0", "2.15.0")
    later = [
        trial
        for factor, workload in ((1.0, "mlp"), (1.4, "bert-base"))
        for trial in stepping_history(1.0, 1.4, factor, builds=builds)
        if (trial.run_id, trial.workload.name) == (RUN_2, workload)
    ]
    with open_database(os.environ[DATABASE]) as database:
        save_trials(database, later)
    machine = recorded()[0].regression.machine_id
    said = content.page(Link(page=Page.REGRESSIONS, machine=machine)).headline
    assert "looks fixed" not in said
    build = read_choices_on(machine).offered_builds[-1]
    page = overview.page(Link(page=Page.OVERVIEW, machine=machine, build=build))
    (first,) = named(flat(page.parts), "overview-first")
    assert isinstance(first, Table)
    assert [*first.frame["model"]] == ["bert-base"]
    assert not first.frame["since"].str.endswith("close?").any()
