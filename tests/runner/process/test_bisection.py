"""A failure of the compiler names the part that it comes from, in real processes with one planted defect."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from compilewatch.db.cause.compiler_change import bisection_sentence, replay_line
from compilewatch.db.records.evidence import Bisection
from compilewatch.db.records.trial import FailureKind, Status, parse_trial
from compilewatch.runner.plan.trial_spec import Diagnostics
from compilewatch.runner.process.measured_process import ProcessRole, worker_specification
from compilewatch.runner.process.supervise import run_trial
from compilewatch.runner.worker.bisecting import Attempts, bisect
from compilewatch.runner.worker.step.steps import make_variant
from compilewatch.runner.worker.timing.sampling import Deadline
from tests.runner.measuring import FAST_COMPILE, compiled, make_spec, measure
from tests.runner.right_models import RIGHT

BUDGET_S = 600.0


def _bisection(defect: str, kind: FailureKind) -> Bisection:
    trial = measure(
        f"build_{defect}",
        compiled("inductor"),
        target=f"planted_defects:build_{defect}",
        diagnostics=Diagnostics(bisect_s=BUDGET_S),
    )
    assert trial.failure.kind is kind
    found = trial.failure.bisection
    assert found is not None
    assert bisection_sentence(found) in trial.failure.message
    assert (replay_line(found) or "") in trial.failure.message
    # It is stored as it was found.
    assert parse_trial(trial.to_json()).failure == trial.failure
    return found


@pytest.mark.slow
def test_a_wrong_decomposition_is_named() -> None:
    found = _bisection("decomposition", FailureKind.WRONG_RESULT)
    assert (found.outcome, found.backend) == ("named", "aot_eager_decomp_partition")
    assert (found.subsystem, found.operator) == ("decomposition", "aten.gelu.default")


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("defect", "kind", "subsystem", "operator"),
    [
        ("lowering", FailureKind.WRONG_RESULT, "lowerings", "sin"),
        ("fusion", FailureKind.WRONG_RESULT, "post_grad_passes", "post_grad_custom_post_pass"),
        ("in_place", FailureKind.WRONG_RESULT, "post_grad_passes", "reinplace_inplaceable_ops"),
        ("uncompilable", FailureKind.COMPILE_ERROR, "lowerings", "sin"),
    ],
)
def test_a_defect_in_inductor_is_named(defect: str, kind: FailureKind, subsystem: str, operator: str) -> None:
    found = _bisection(defect, kind)
    assert (found.outcome, found.backend) == ("named", "inductor")
    assert (found.subsystem, found.operator) == (subsystem, operator)


@pytest.mark.slow
def test_what_is_right_is_not_compiled_again() -> None:
    phases: list[str] = []
    spec = make_spec(
        "build_right",
        compiled("inductor"),
        target="planted_defects:build_right",
        diagnostics=Diagnostics(bisect_s=BUDGET_S),
    )
    trial = run_trial(spec, on_phase=phases.append)
    assert trial.status is Status.OK
    assert not [phase for phase in phases if "bisection" in phase]


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.usefixtures("fresh_dynamo")
@pytest.mark.filterwarnings("default")  # of torch, which would pass for failures of the compiler
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", RIGHT)
def test_nothing_is_named_where_the_compiler_is_right(name: str, seed: int, tmp_path: Path) -> None:
    """Searched all the same, as where a result was wrong by chance."""
    torch.manual_seed(seed)
    spec = worker_specification(
        make_spec(name, compiled("inductor"), seed=seed),
        ProcessRole(tmp_path / "caches", "bisect"),
        sample_device=False,
        artifacts=tmp_path / "artifacts",
    )
    found = bisect(Attempts(spec, make_variant(RIGHT[name]()), Deadline()))
    print(f"\n{name}: {found['outcome']}, {found['attempts']} compilations, {found['spent_ns'] / 1e9:.3g} s")
    assert (found["outcome"], found.get("operator")) == ("passed", None)


@pytest.mark.slow
def test_no_operator_is_blamed_for_a_host_whose_cpp_compiler_fails(tmp_path: Path) -> None:
    broken = tmp_path / "g++"
    broken.write_text('#!/bin/sh\ncase "$*" in *--version*|*-dumpversion*) exec g++ "$@";; esac\nexit 1\n')
    broken.chmod(0o755)
    trial = measure(
        "build_right",
        compiled("inductor"),
        target="planted_defects:build_right",
        diagnostics=Diagnostics(bisect_s=BUDGET_S),
        worker_env=FAST_COMPILE | {"CXX": str(broken)},
    )
    found = trial.failure.bisection
    assert found is not None
    # Nothing is searched there: each of fifty compilations would fail alike.
    assert (found.outcome, found.operator, found.attempts) == ("host", None, 1)
    assert "makes it fail" not in trial.failure.message


@pytest.mark.slow
def test_a_budget_that_is_spent_names_nothing_and_keeps_the_failure() -> None:
    trial = measure(
        "build_lowering",
        compiled("inductor"),
        target="planted_defects:build_lowering",
        diagnostics=Diagnostics(bisect_s=12.0),
    )
    assert trial.failure.kind is FailureKind.WRONG_RESULT
    found = trial.failure.bisection
    assert found is None or found.outcome == "out_of_time"


@pytest.mark.parametrize(
    ("found", "replayed"),
    [
        ({"backend": "aot_eager"}, 'backend="aot_eager"'),
        (
            {"backend": "inductor", "subsystem": "lowerings", "number": 5, "operator": "sin"},
            "TORCH_BISECT_SUBSYSTEM=lowerings TORCH_BISECT_MAX=5",
        ),
        (
            {"backend": "inductor", "subsystem": "inductor_emulate_precision_casts", "number": 0},
            "`emulate_precision_casts`",
        ),
    ],
)
def test_the_line_that_replays_it_names_what_torch_takes(found: dict[str, object], replayed: str) -> None:
    bisection = Bisection.model_validate({"outcome": "named", "attempts": 3, "spent_ns": 1} | found)
    assert replayed in (replay_line(bisection) or "")
    assert bisection_sentence(bisection)
