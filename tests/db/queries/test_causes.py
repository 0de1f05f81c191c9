"""Why a case changed, from what both sides have stored; nothing where a side has no profile."""

from __future__ import annotations

import pytest

from compilewatch.db.engine.session import Database
from compilewatch.db.judge.compare.sides import Selection
from compilewatch.db.queries.causes import (
    causes,
    explanation_documents,
    explanations,
    recorded_explanations,
    traced_changes,
)
from compilewatch.db.records.evidence import HeldMemory, Memory, SavedForBackward
from compilewatch.db.records.sampling_facts import GeneratedSource, Profile, Trace
from compilewatch.db.service.recording import record_comparison
from compilewatch.db.service.regressions import regressions_frame, standing_regressions
from compilewatch.db.store.trials import save_trials
from compilewatch.db.verdicts import gateway
from compilewatch.runner.regressions.notify import message_of
from tests.builders import MS, START
from tests.db.cause.profiles import side
from tests.regression_cases import RUN_0, RUN_1, RUN_2, stepping_history

GEMM = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_nn"
SGEMM = "ampere_sgemm_128x64_tn"
BEFORE, AFTER = side((GEMM, 4, 6_000_000)), side((SGEMM, 4, 9_000_000))
SENTENCE = (
    "Slower on the device (6.00 ms became 9.00 ms a step): matrix products left the tensor cores "
    "in float32 (6.00 ms became 9.00 ms)."
)


def explained_history(*profiles, factors=(1.0, 1.3), builds=("2.12.0", "2.13.0"), last="default"):
    """The history with a profile on the last trial of mlp / `last` in each run; None where it has none."""
    trials = stepping_history(*factors, builds=builds)
    newest = {}
    for number, trial in enumerate(trials):
        if trial.workload.name == "mlp" and trial.strategy.name == last:
            newest[trial.run_id] = number
    for (_, number), profile in zip(sorted(newest.items()), profiles, strict=True):
        if profile is not None:
            whole = Profile(steps=5, own=profile, control=BEFORE)
            trials[number] = trials[number].model_copy(update={"profile": whole})
    return trials


def compared(database: Database, base=RUN_0, head=RUN_1):
    before, after = (Selection(name=run, run_ids=(run,)) for run in (base, head))
    return gateway.compare(database, before, after)


def test_a_case_that_moved_has_its_cause(sqlite_database: Database) -> None:
    save_trials(sqlite_database, explained_history(BEFORE, AFTER))
    comparison = compared(sqlite_database)
    (document,) = explanation_documents(comparison, explanations(sqlite_database, comparison))
    assert (document["workload"], document["strategy"]) == ("mlp", "default")
    assert document["sentence"] == SENTENCE


@pytest.mark.parametrize(
    ("profiles", "factors"),
    [
        ((None, AFTER), (1.0, 1.3)),
        ((BEFORE, None), (1.0, 1.3)),
        ((BEFORE, BEFORE), (1.0, 1.3)),
        # Judged faster, and the profile is slower: they are of different moments, nothing is said.
        ((BEFORE, AFTER), (1.3, 1.0)),
        # Nothing moved: there is nothing to explain.
        ((BEFORE, AFTER), (1.0, 1.0)),
    ],
)
def test_without_evidence_there_is_no_cause(sqlite_database: Database, profiles, factors) -> None:
    save_trials(sqlite_database, explained_history(*profiles, factors=factors))
    assert causes(sqlite_database, compared(sqlite_database)) == {}


def test_a_peak_that_moved_says_what_is_held(sqlite_database: Database) -> None:
    """Of eager and compiled 100 MB became 130 MB: a tensor more is saved, in the compiled case alone."""
    held = HeldMemory(tensor="64x64 float32", place="model.py:12", size_bytes=16_384)
    trials = []
    for trial in stepping_history(1.0, 1.0, builds=("2.12.0", "2.13.0")):
        is_head, eager = trial.run_id == RUN_1, trial.strategy.name == "eager"
        mine = [held] * (2 if is_head else 1)
        saved = SavedForBackward(count=len(mine), size_bytes=16_384 * len(mine), largest=mine)
        memory = Memory(peak_bytes=130_000_000 if is_head else 100_000_000, saved=None if eager else saved)
        trials.append(trial.model_copy(update={"memory": memory}))
    save_trials(sqlite_database, trials)
    comparison = compared(sqlite_database)
    explained = explanations(sqlite_database, comparison)
    assert {each.memory for each in explained.values()} == {
        (
            "Saved for backward: 1 tensor, 16.0 KiB became 2 tensors, 32.0 KiB; "
            "came: 64x64 float32 at model.py:12 (16.0 KiB).",
        )
    }
    assert all(document["memory"] for document in explanation_documents(comparison, explained))


def test_a_calm_profile_is_taken_before_a_newer_disturbed_one(sqlite_database: Database) -> None:
    kernel = "graph_0_cpp_fused_add_0"
    calm, slow = (side((kernel, 1, ns), busy=None) for ns in (8 * MS, 20 * MS))
    disturbed = side((kernel, 1, 90 * MS), busy=None)
    trials = stepping_history(1.0, 2.5, builds=("2.12.0", "2.13.0"))
    for run, profiles in ((RUN_0, (calm, disturbed)), (RUN_1, (slow, disturbed))):
        mine = [
            number
            for number, trial in enumerate(trials)
            if (trial.run_id, trial.workload.name, trial.strategy.name) == (run, "mlp", "default")
        ]
        for number, own in zip(mine[:2], profiles, strict=True):
            profile = Profile(steps=5, own=own)
            trials[number] = trials[number].model_copy(update={"profile": profile})
    save_trials(sqlite_database, trials)
    (found,) = causes(sqlite_database, compared(sqlite_database)).values()
    assert found.sentence == (
        "Slower (8.00 ms became 20.0 ms a step): cpp_fused_add takes 20.0 ms instead of 8.00 ms."
    )


def test_a_gpu_that_waits_for_its_host_is_said_beside_the_verdict(sqlite_database: Database) -> None:
    idle = side((GEMM, 4, 2_000_000), busy=0.2)
    save_trials(sqlite_database, explained_history(idle, idle))
    (explained,) = explanations(sqlite_database, compared(sqlite_database)).values()
    assert explained.cause is None
    # 2 ms of kernels in a step of 13 ms.
    (sentence,) = explained.sentences
    assert sentence.endswith("% of the step: look at the host.")
    record_comparison(sqlite_database, compared(sqlite_database), at=START)
    assert sentence in set(regressions_frame(sqlite_database)["explanation"])


def test_two_runs_of_one_build_are_kept_apart(sqlite_database: Database) -> None:
    builds = ("2.13.0", "2.13.0", "2.13.0")
    trials = explained_history(BEFORE, AFTER, BEFORE, factors=(1.0, 1.3, 1.0), builds=builds)
    save_trials(sqlite_database, trials)
    assert [each.sentence for each in causes(sqlite_database, compared(sqlite_database)).values()] == [
        SENTENCE
    ]
    back = causes(sqlite_database, compared(sqlite_database, RUN_1, RUN_2))
    assert [each.sentence[:20] for each in back.values()] == ["Faster on the device"]


def test_a_recorded_regression_and_its_message_carry_the_sentence(sqlite_database: Database) -> None:
    save_trials(sqlite_database, explained_history(BEFORE, AFTER))
    record_comparison(sqlite_database, compared(sqlite_database), at=START)
    event = [each.regression for each in standing_regressions(sqlite_database)]
    found = recorded_explanations(sqlite_database, event)
    lines = message_of(event, None, found).lines
    assert lines[-1] == f"mlp / default: {SENTENCE}"
    assert len(lines) == len(event) + 1
    assert len(message_of(event, None).lines) == len(event)
    frame = regressions_frame(sqlite_database)
    of_case = (frame["workload"] == "mlp") & (frame["strategy"] == "default")
    assert set(frame.loc[of_case, "explanation"]) == {SENTENCE}
    assert frame.loc[~of_case, "explanation"].isna().all()
    assert recorded_explanations(sqlite_database, []) == []


def test_a_recorded_regression_without_evidence_has_no_sentence(sqlite_database: Database) -> None:
    save_trials(sqlite_database, explained_history(BEFORE, None))
    record_comparison(sqlite_database, compared(sqlite_database), at=START)
    assert regressions_frame(sqlite_database)["explanation"].isna().all()


def test_what_the_compiler_did_differently_is_listed(sqlite_database: Database) -> None:
    trials = stepping_history(1.0, 1.4, builds=("2.12.0", "2.13.0"))
    for number, trial in enumerate(trials):
        if trial.run_id == RUN_1 and trial.workload.name == "mlp" and trial.compiler is not None:
            more = trial.compiler.model_copy(update={"graphs": (trial.compiler.graphs or 0) + 2})
            trials[number] = trial.model_copy(update={"compiler": more})
    save_trials(sqlite_database, trials)
    comparison = compared(sqlite_database)
    (found,) = explanations(sqlite_database, comparison).values()
    graphs = next(trial.compiler.graphs for trial in trials if trial.compiler is not None)
    noun = "graph" if graphs == 1 else "graphs"
    assert found.cause is None
    assert found.sentences == [f"The compiler did differently: {graphs} {noun} became {graphs + 2}."]


def traced_history(**sources: str):
    """The history with a trace on every trial of mlp / default; run -> generated code."""
    trials = stepping_history(1.0, 1.4, builds=("2.12.0", "2.13.0"))
    for number, trial in enumerate(trials):
        if (trial.workload.name, trial.strategy.name) == ("mlp", "default") and trial.run_id in sources:
            code = [GeneratedSource(hash="ab", source=sources[trial.run_id])]
            trace = Trace(directory="traces/T", size_bytes=9, sources=code)
            trials[number] = trial.model_copy(update={"trace": trace})
    return trials


def test_generated_code_is_compared_where_both_sides_were_traced(sqlite_database: Database) -> None:
    save_trials(sqlite_database, traced_history(**{RUN_0: "a = 1\nb = 2", RUN_1: "a = 1\nb = 3"}))
    ((change,),) = traced_changes(sqlite_database, compared(sqlite_database)).values()
    assert change.lines[-3:] == (" a = 1", "-b = 2", "+b = 3")


@pytest.mark.parametrize("sources", [{RUN_1: "b"}, {RUN_0: "b", RUN_1: "b"}])
def test_without_two_different_sources_nothing_is_compared(sqlite_database: Database, sources) -> None:
    save_trials(sqlite_database, traced_history(**sources))
    assert traced_changes(sqlite_database, compared(sqlite_database)) == {}
