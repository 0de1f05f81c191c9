"""One resolver of names: whatever a person writes for a side stands for the same trials everywhere."""

from __future__ import annotations

from datetime import timedelta

import pytest

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import ConfigError, NotFoundError
from compilewatch.db.queries.facets import builds
from compilewatch.db.store.trials import save_trials
from compilewatch.db.verdicts.sides import builds_named, resolve_side, resolve_sides
from tests.builders import START, make_build, make_history, make_trial


def interleaved(database: Database, *releases: str) -> None:
    """Runs of these releases by turns: the trial that ends last is of the first of them."""
    for number in range(4):
        for place, release in enumerate(reversed(releases)):
            save_trials(
                database,
                [
                    make_trial(
                        build=release,
                        run_id=f"run-{release}",
                        started_at=START + timedelta(minutes=10 * number + place),
                    )
                ],
            )


def torch_of(database: Database, name: str) -> list[str]:
    frame = builds(database).set_index("build_id")
    return sorted({str(frame.loc[each, "torch"]) for each in builds_named([name], database)})


def test_builds_measured_by_turns_are_in_the_order_of_their_versions(database: Database) -> None:
    interleaved(database, "2.12.1", "2.13.0")
    assert torch_of(database, "latest") == ["2.13.0"]
    assert torch_of(database, "previous") == ["2.12.1"]


def test_a_release_that_was_measured_later_alone_is_the_latest(database: Database) -> None:
    interleaved(database, "2.12.1", "2.13.0")
    save_trials(database, [make_trial(build="2.11.0", started_at=START + timedelta(days=1), run_id="after")])
    assert torch_of(database, "latest") == ["2.11.0"]
    assert torch_of(database, "previous") == ["2.13.0"]


def test_a_closer_look_at_the_older_release_turns_nothing_around(database: Database) -> None:
    interleaved(database, "2.12.1", "2.13.0")
    look = make_trial(build="2.12.1", started_at=START + timedelta(days=1), run_id="look", suite=None)
    save_trials(database, [look])
    assert torch_of(database, "latest") == ["2.13.0"]
    assert torch_of(database, "previous") == ["2.12.1"]


@pytest.mark.parametrize(
    "name", ["torch=2.12.0", "torch-2.12.0", "torch 2.12.0", "2.12.0", "2026-11-21", "run-gpu-box-3-0-0001"]
)
def test_all_names_of_a_build_stand_for_it(database: Database, name: str) -> None:
    save_trials(database, make_history(workloads=("mlp",), start=START))
    runs = {"2026-11-21": "2.12.0"}
    if name in runs:
        began = START + timedelta(days=1)
        name = began.date().isoformat()
    assert torch_of(database, name) == ["2.12.0"]
    (build_id,) = builds_named([name], database)
    assert builds_named([build_id[:6]], database) == (build_id,)
    assert resolve_side(build_id[:6], database).build_ids == (build_id,)


def test_of_several_builds_the_one_with_most_cases_in_common_is_taken_and_all_are_named(
    sqlite_database: Database,
) -> None:
    other = make_build("2.12.0", os="Linux 5.10")
    save_trials(sqlite_database, make_history(workloads=("mlp", "cnn"), builds=("2.12.0", "2.13.0")))
    save_trials(sqlite_database, make_history(workloads=("rnn",), builds=(other,), seed=1))
    sides = resolve_sides("torch=2.12.0", "torch=2.13.0", sqlite_database)
    plain = next(
        each for each in builds_named(["torch=2.12.0"], sqlite_database) if each in sides.base.build_ids
    )
    assert sides.base.build_ids == (plain,)
    assert len(builds_named(["torch=2.12.0"], sqlite_database)) == 2
    (sentence,) = sides.remarks
    for build_id in builds_named(["torch=2.12.0"], sqlite_database):
        assert build_id[:8] in sentence
    assert "4 cases" in sentence
    assert resolve_sides(plain, "latest", sqlite_database).remarks == ()


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("nothing", NotFoundError),
        ("mood=2", ConfigError),
        ("2026-02-31", NotFoundError),
        ("abc", NotFoundError),
    ],
)
def test_what_means_nothing_is_refused(sqlite_database: Database, name: str, error: type[Exception]) -> None:
    save_trials(sqlite_database, make_history(workloads=("mlp",)))
    with pytest.raises(error):
        resolve_side(name, sqlite_database)


def test_a_version_that_was_not_measured_brings_the_nearest_else_the_newest(
    sqlite_database: Database,
) -> None:
    """Of a nightly build a day there are thousands, and nobody reads all."""
    save_trials(
        sqlite_database, [make_trial(build=f"2.{minor}.0", run_id=f"r{minor}") for minor in range(20)]
    )
    with pytest.raises(NotFoundError) as near:
        resolve_side("torch=2.19.1", sqlite_database)
    assert near.value.next_step == "Did you mean 2.19.0 or 2.9.0?"
    with pytest.raises(NotFoundError) as far:
        resolve_side("torch=nightly", sqlite_database)
    newest = ", ".join(f"2.{minor}.0" for minor in range(19, 11, -1))
    assert far.value.next_step == f"Measured torch: {newest} and 12 more."
