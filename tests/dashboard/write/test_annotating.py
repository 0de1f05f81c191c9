"""Notes on a history: written in the form, drawn on both axes, said below the chart, taken away."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from ulid import ULID

from compilewatch.dashboard.links.links import Link, Page
from compilewatch.dashboard.login.access import AccessError
from compilewatch.dashboard.pages.workload import content
from compilewatch.dashboard.parts.parts import Chart
from compilewatch.dashboard.read.data import read_choices_on
from compilewatch.dashboard.write import writing
from compilewatch.db.engine.session import open_database
from compilewatch.db.queries import facets
from compilewatch.db.records.people import Annotation
from compilewatch.db.service.annotations import ANNOTATIONS, stored_annotations
from tests.dashboard.conftest import opened, texts


def _machine(url: str) -> tuple[str, datetime]:
    """The GPU box, and when it measured last."""
    with open_database(url, read_only=True) as database:
        boxes = facets.machines(database)
    box = boxes.loc[boxes["machine"] == "gpu-box-3"].iloc[0]
    return str(box["machine_id"]), box["last_seen_at"].to_pydatetime()


def test_a_note_is_written_shown_and_taken_away(copied_url: str) -> None:
    machine, measured_at = _machine(copied_url)
    link = Link(page=Page.WORKLOAD, focus="mlp", machine=machine)
    test = opened(link)
    names = read_choices_on(machine)
    newest_first = [names.builds[key] for key in reversed(names.offered_builds)]
    assert test.selectbox("note-build").options == ["A day", *newest_first]
    test.text_input("note-text").input("Driver [580](http://evil.example)")
    test.date_input("note-day").set_value(measured_at.date())
    test.text_input("note-name").input("Ann Lee")
    next(button for button in test.button if button.label == "Write it").click().run()
    assert not test.exception
    with open_database(copied_url, read_only=True) as database:
        (note,) = stored_annotations(database)
    assert (note.author, note.machine_id) == ("Ann Lee", machine)
    other = opened(link)
    said = next(line for line in texts(other).splitlines() if "580" in line)
    assert said.endswith("(Ann Lee)")
    # It is text: a link of a note is that of its mark.
    assert "http://" not in said
    other.selectbox("note-removed").set_value(note.annotation_id)
    other.button("note-remove").click().run()
    assert not other.exception
    with open_database(copied_url, read_only=True) as database:
        assert stored_annotations(database) == []


@pytest.mark.parametrize("axis", ["time", "torch"])
def test_notes_are_marks_of_the_chart(copied_url: str, axis: str) -> None:
    machine, measured_at = _machine(copied_url)
    with open_database(copied_url) as database:
        build = str(facets.builds(database)["build_id"].iloc[-1])
        for about in (
            {"happened_at": measured_at - timedelta(hours=1)},
            {"happened_at": measured_at - timedelta(days=9999)},
            {"build_id": build},
        ):
            ANNOTATIONS.add(
                database,
                Annotation(
                    annotation_id=str(ULID()),
                    text="noted",
                    author="ann",
                    written_at=datetime.now(UTC),
                    machine_id=machine,
                    **about,
                ),
            )
    test = opened(Link(page=Page.WORKLOAD, focus="mlp", machine=machine, axis=axis))
    assert not test.exception
    assert texts(test).count("noted (ann)") == 3


def test_a_note_about_one_model_is_drawn_in_its_charts_alone(copied_url: str) -> None:
    machine, measured_at = _machine(copied_url)

    def drawn(focus: str) -> list[str]:
        page = content.page(replace(of_mlp, focus=focus))
        chart = next(part for part in page.parts if isinstance(part, Chart) and part.key == "trend")
        frame = chart.chart.frames.get("annotations")
        return [] if frame is None else list(frame["text"])

    def write(text: str, *, of_one: bool) -> None:
        test = opened(of_mlp)
        test.text_input("note-text").input(text)
        test.date_input("note-day").set_value((measured_at - timedelta(days=1)).date())
        test.text_input("note-name").input("Ann Lee")
        if not of_one:
            test.checkbox("note-of-one").uncheck()
        next(button for button in test.button if button.label == "Write it").click().run()
        assert not test.exception

    of_mlp = Link(page=Page.WORKLOAD, focus="mlp", machine=machine, metric="latency", axis="time")
    write("New weights", of_one=True)
    assert "mlp: New weights (Ann Lee)" in texts(opened(of_mlp))
    assert (drawn("mlp"), drawn("elementwise")) == (["New weights"], [])
    assert "New weights" not in texts(opened(replace(of_mlp, focus="elementwise")))
    write("New driver", of_one=False)
    assert (drawn("mlp"), drawn("elementwise")) == (["New weights", "New driver"], ["New driver"])


@pytest.mark.usefixtures("viewer", "copied_url")
def test_who_may_only_read_cannot_write() -> None:
    test = opened(Link(page=Page.WORKLOAD, focus="mlp"))
    assert not [field for field in test.text_input if field.key == "note-text"]
    with pytest.raises(AccessError):
        writing.remove("01")
