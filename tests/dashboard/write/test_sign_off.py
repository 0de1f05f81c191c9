"""Signing an upgrade off: stored under a name with what the judge said, shown to all, taken back by name."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from compilewatch.dashboard.links.links import Link, Page
from compilewatch.dashboard.write import sign_offs
from compilewatch.db.engine.session import open_database
from compilewatch.db.queries.facets import builds
from compilewatch.db.queries.people.sign_offs import sign_offs as stored
from compilewatch.db.records.people.sign_offs import Decision, SignOff
from tests.dashboard.conftest import machine_ids, opened, texts


@pytest.fixture
def upgrade(copied_url: str) -> dict[str, str]:
    with open_database(copied_url, read_only=True) as database:
        known = builds(database)
    by_torch = {
        str(row["torch"]): str(row["build_id"])
        for row in known.to_dict("records")
        if row["torch_variant"] != "cpu"
    }
    gpu = machine_ids(copied_url)["gpu-box-3"]
    return {"machine": gpu, "base": by_torch["2.12.0"], "head": by_torch["2.13.0"]}


def page(upgrade: dict[str, str]) -> AppTest:
    return opened(Link(page=Page.UPGRADE, **upgrade))


def sign(upgrade: dict[str, str], note: str = "") -> None:
    sides = {"machine_id": upgrade["machine"], "base": upgrade["base"], "head": upgrade["head"]}
    told = {"decision": Decision.ACCEPTED, "note": note, "by": "Ann", "verdict": "unchanged"}
    sign_offs.sign(**sides, **told, data_version=0)


def decisions(url: str, upgrade: dict[str, str]) -> list[SignOff]:
    with open_database(url, read_only=True) as database:
        return stored(database, upgrade["machine"], upgrade["base"], upgrade["head"])


def test_a_decision_is_recorded_shown_and_withdrawn(copied_url: str, upgrade: dict[str, str]) -> None:
    test = page(upgrade)
    assert "Nobody has signed this upgrade off yet" in texts(test)
    test.radio("sign-decision").set_value(Decision.REJECTED)
    test.text_input("sign-name").input("  Ann   Lee ")
    test.text_area("sign-note").input("![x](http://evil.example/a.png) slower on lstm-cell")
    next(button for button in test.button if button.label == "Record it").click().run()
    assert not test.exception
    (decided,) = decisions(copied_url, upgrade)
    assert (decided.decision, decided.author) == (Decision.REJECTED, "Ann Lee")
    assert decided.verdict.split(":")[0] in {"regressed", "improved", "unchanged", "inconclusive"}

    other = page(upgrade)
    assert "✗ rejected by Ann Lee on" in texts(other)
    assert f"The judge said then: {decided.verdict}" in texts(other)
    assert not [each for each in other.markdown if "](http" in each.value]
    other.text_input("withdraw-name").input("Bob").run()
    other.button("withdraw-yes").click().run()
    assert "Withdrawn by Bob." in "".join(element.value for element in other.success).replace("\\", "")
    assert "Nobody has signed this upgrade off yet" in texts(other)
    assert "✗ rejected by Ann Lee" in texts(other)
    assert decisions(copied_url, upgrade)[0].withdrawn_by == "Bob"


def test_a_sign_off_belongs_to_its_two_builds(copied_url: str, upgrade: dict[str, str]) -> None:
    sign(upgrade)
    said = texts(page(upgrade))
    assert "✓ accepted by Ann" in said
    assert "look whether the decision still holds" in said
    swapped = {**upgrade, "base": upgrade["head"], "head": upgrade["base"]}
    assert "Nobody has signed this upgrade off yet" in texts(page(swapped))


@pytest.mark.usefixtures("viewer")
def test_a_viewer_is_offered_no_signing(upgrade: dict[str, str]) -> None:
    test = page(upgrade)
    assert not [button for button in test.button if button.label in {"Record it", "Withdraw it"}]


def test_a_long_note_is_folded(copied_url: str, upgrade: dict[str, str]) -> None:
    note = "\n".join(f"line {number}" for number in range(300))
    sign(upgrade, note)
    test = page(upgrade)
    (folded,) = (each for each in test.expander if each.label == "The whole note")
    assert "line 200" in folded.text[0].value
    shown = [each.value for each in test.text if each.value not in {found.value for found in folded.text}]
    assert [each for each in shown if "line 5" in each and "line 6" not in each]
