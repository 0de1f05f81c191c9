"""A case as an issue: one text, of what is stored alone."""

from __future__ import annotations

import pytest

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import NotFoundError
from compilewatch.db.judge.compare.sides import Selection
from compilewatch.db.judge.results import Comparison
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import trial_records
from compilewatch.db.records.evidence import Bisection, Failure, FailureKind
from compilewatch.db.records.ids import build_identity
from compilewatch.db.records.people import IssueScript, ScriptRun
from compilewatch.db.records.sampling_facts import Profile
from compilewatch.db.records.trial import Status, Trial
from compilewatch.db.store.trials import save_trials
from compilewatch.db.verdicts import gateway
from compilewatch.db.verdicts.issue import ISSUE_SCRIPTS, IssueSides, issue_sides, issue_text
from tests.builders import START
from tests.db.cause.profiles import side
from tests.regression_cases import stepping_history

HOSTILE = "mlp ![x](http://evil.example/a.png) <b> @ada"
AFTER = "2.13.0"


def stored(database: Database, *factors: float, **changes: object) -> Trial:
    """A history of mlp and bert-base; the newest trial of mlp with the strategy `default`."""
    trials = stepping_history(*factors, builds=("2.12.0", AFTER)[: len(factors)])
    mine = [n for n, each in enumerate(trials) if _is_mlp(each)]
    trials[mine[-1]] = trials[mine[-1]].model_copy(update=changes)
    save_trials(database, trials)
    return trials[mine[-1]]


def _is_mlp(trial: Trial) -> bool:
    return (trial.workload.name, trial.strategy.name) == ("mlp", "default")


def text_of(database: Database, sides: IssueSides) -> str:
    def compare(base: Selection, head: Selection, machine_id: str) -> Comparison:
        return gateway.compare(database, base, head, machine_id=machine_id)

    return issue_text(database, sides, compare)


def test_the_verdict_both_stacks_and_what_to_type(sqlite_database: Database) -> None:
    """The compiled side takes 1.3 times as long."""
    head = stored(sqlite_database, 1.0, 1.3)
    sides = issue_sides(sqlite_database, head.trial_id)
    text = text_of(sqlite_database, sides)
    assert text.startswith("### mlp with default: ")
    assert "torch 2.12.0 to 2.13.0" in text.splitlines()[0]
    assert "(95 % interval +" in text
    assert "| torch | **2.12.0** | **2.13.0** |" in text
    assert f"    compilewatch reproduce {head.trial_id} --issue --base " in text
    assert "Compiled with: default" in text


def test_kernels_that_differ(sqlite_database: Database) -> None:
    trials = stepping_history(1.0, 1.5, builds=("2.12.0", AFTER))
    for release, name, taken in (
        ("2.12.0", "cpp_fused_add_0", 6_000_000),
        (AFTER, "cpp_fused_mul_0", 12_000_000),
    ):
        number = max(n for n, each in enumerate(trials) if _is_mlp(each) and each.build.torch == release)
        profile = Profile(steps=5, own=side(("triton_poi_" + name, 4, taken)), control=None)
        trials[number] = trials[number].model_copy(update={"profile": profile})
    save_trials(sqlite_database, trials)
    text = text_of(sqlite_database, issue_sides(sqlite_database, trials[number].trial_id))
    assert "| kernel, self time a step | base | head |" in text
    assert "cpp\\_fused\\_mul" in text


@pytest.mark.parametrize(
    ("compiled_ns", "found"),
    [
        ((1e6, 1.3e6), "shows it: compiled code over eager is 1.30x that of the base (recorded: 1.30x)."),
        ((1e6, 1.02e6), "does not show it: compiled code over eager is 1.02x that of the base"),
        ((1e6, 0.7e6), "does not show it"),
        (
            (1e6, None),
            "ran under torch 2.12.0 only; not under torch 2.13.0. Whether it shows the change is not",
        ),
        ((None, None), "ran under no build; not under torch 2.12.0 and torch 2.13.0."),
    ],
)
def test_what_the_script_showed(
    sqlite_database: Database, compiled_ns: tuple[float | None, float | None], found: str
) -> None:
    sides = issue_sides(sqlite_database, stored(sqlite_database, 1.0, 1.3).trial_id)
    assert sides.base is not None
    runs = [
        ScriptRun(
            build_id=build_identity(trial.build),
            torch=trial.build.torch,
            eager_ns=None if compiled is None else 2e6,
            compiled_ns=compiled,
            problem="not installed on the host that ran it" if compiled is None else None,
        )
        for trial, compiled in zip((sides.base, sides.head), compiled_ns, strict=True)
    ]
    script = IssueScript(issue_id=sides.issue_id, made_at=START, script="import torch\n# ```\n", runs=runs)
    ISSUE_SCRIPTS.put(sqlite_database, script.model_copy(update={"script": "print()"}))
    ISSUE_SCRIPTS.put(sqlite_database, script)
    text = text_of(sqlite_database, sides)
    assert found in text
    assert "`````python\nimport torch\n# ```\n`````" in text
    ISSUE_SCRIPTS.put(sqlite_database, script.model_copy(update={"script": None, "is_private": True}))
    private = text_of(sqlite_database, sides)
    assert found in private.replace("The script ran", "The script below ran")
    assert "The model is private" in private
    assert "import torch" not in private


def test_a_script_shows_no_change_where_none_is_recorded(sqlite_database: Database) -> None:
    sides = issue_sides(sqlite_database, stored(sqlite_database, 1.0, 1.0).trial_id)
    assert sides.base is not None
    runs = [
        ScriptRun(build_id="b", torch=trial.build.torch, eager_ns=2e6, compiled_ns=taken)
        for trial, taken in ((sides.base, 1e6), (sides.head, 0.9e6))
    ]
    ISSUE_SCRIPTS.put(
        sqlite_database, IssueScript(issue_id=sides.issue_id, made_at=START, script="print()", runs=runs)
    )
    text = text_of(sqlite_database, sides)
    assert "The script below ran under both: compiled code over eager is 0.900x that of the base" in text


def test_a_failure_names_what_bisection_found_without_another_build(sqlite_database: Database) -> None:
    found = Bisection(
        outcome="named",
        backend="inductor",
        subsystem="lowerings",
        number=5,
        operator="sin",
        attempts=19,
        spent_ns=1,
    )
    failure = Failure(kind=FailureKind.WRONG_RESULT, message="Output 0 is wrong.\nMore", bisection=found)
    head = stored(sqlite_database, 1.0, status=Status.FAILED, failure=failure, host_samples_ns=[])
    text = text_of(sqlite_database, issue_sides(sqlite_database, head.trial_id))
    assert text.startswith("### mlp with default: wrong result with torch 2.12.0")
    assert "- Wrong result: Output 0 is wrong.\n" in text
    assert "TORCH\\_BISECT\\_MAX=5" in text
    assert "No other build of this case is stored" in text


def test_texts_of_records_stay_texts(sqlite_database: Database) -> None:
    trials = stepping_history(1.0, 1.3, builds=("2.12.0", AFTER))
    named = [
        each.model_copy(update={"workload": each.workload.model_copy(update={"name": HOSTILE})})
        for each in trials
    ]
    save_trials(sqlite_database, named)
    head = [each for each in named if each.strategy.name == "default"][-1]
    text = text_of(sqlite_database, issue_sides(sqlite_database, head.trial_id))
    assert "![x](" not in text
    assert "<b>" not in text
    assert "@ada" not in text


def test_a_base_without_the_case_is_refused(sqlite_database: Database) -> None:
    head = stored(sqlite_database, 1.0, 1.3)
    with pytest.raises(NotFoundError, match="has no trial of mlp with default"):
        issue_sides(sqlite_database, head.trial_id, "0badc0de")
    older = next(each for each in trial_records(sqlite_database, Filters()) if _is_mlp(each))
    assert issue_sides(sqlite_database, older.trial_id).base is None
