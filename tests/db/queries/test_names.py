"""Names that are asked for: those that are stored pass, of the others the first is refused with a hint."""

from __future__ import annotations

import pytest

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import NotFoundError
from compilewatch.db.queries.named import require_stored
from compilewatch.db.queries.selection import Filters
from compilewatch.db.store.trials import save_trials
from tests.builders import make_imported, make_trial


def refused(database: Database, filters: Filters) -> tuple[str, str]:
    with pytest.raises(NotFoundError) as caught:
        require_stored(database, filters)
    return caught.value.message, caught.value.next_step


def test_what_is_stored_passes_alone_and_together(database: Database) -> None:
    trial = make_trial(suite="smoke", run_id="r1")
    save_trials(database, [trial])
    require_stored(database, Filters())
    require_stored(
        database,
        Filters(
            workloads=(trial.workload.name,),
            strategies=(trial.strategy.name,),
            suites=("smoke",),
            runs=("r1",),
        ),
    )


def test_the_first_unknown_name_is_the_one_that_is_said(database: Database) -> None:
    save_trials(database, [make_trial(workload="mlp", suite="smoke")])
    asked = Filters(workloads=("mlp", "x", "y"), suites=("z",))
    assert refused(database, asked) == ("No workload 'x' is stored.", "Stored: mlp.")


def test_an_empty_database_says_how_to_begin(database: Database) -> None:
    message, next_step = refused(database, Filters(machines=("m",)))
    assert (message, next_step) == (
        "No machine 'm' is stored.",
        "Nothing is: measure with `compilewatch run`.",
    )


def test_runs_without_a_suite_have_no_name_of_one(database: Database) -> None:
    save_trials(database, [make_imported(suite=None, run_id="imported")])
    assert refused(database, Filters(suites=("smoke",)))[1].startswith("Nothing is: ")


def test_of_many_names_eight_are_told(database: Database) -> None:
    names = [f"workload-{letter}" for letter in "abcdefghij"]
    save_trials(database, [make_trial(workload=name) for name in names])
    told = refused(database, Filters(workloads=("?",)))[1]
    assert told == f"Stored: {', '.join(names[:8])} and 2 more."


def test_control_characters_of_a_name_are_not_repeated(database: Database) -> None:
    message, _ = refused(database, Filters(runs=("a\x1b[31m" + "b" * 500,)))
    assert "\x1b" not in message
    assert len(message) < 300


def test_releases_are_named_in_their_order(database: Database) -> None:
    save_trials(database, [make_trial(build=torch) for torch in ("2.11.0", "2.6.0", "2.9.1")])
    _, next_step = refused(database, Filters(builds=("9",)))
    assert [part.partition("(")[2][:-1] for part in next_step.rstrip(".").split(", ")] == [
        "2.6.0",
        "2.9.1",
        "2.11.0",
    ]
