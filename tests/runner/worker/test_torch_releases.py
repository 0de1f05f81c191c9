"""Every release of torch at hand gives every fact, or null where docs/measured/torch-releases.md says so.

COMPILEWATCH_TEST_BUILDS names a directory of virtual environments (`compilewatch builds create torch==2.6.0`
makes them below its data directory); about a minute each.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from compilewatch.db.records.trial import FailureKind, NumericsStatus, Status
from compilewatch.runner.worker.step.host import split_version
from tests.runner.torch_releases import builds_in, measure_release

VARIABLE = "COMPILEWATCH_TEST_BUILDS"
DIRECTORY = os.environ.get(VARIABLE)
BUILDS = builds_in(Path(DIRECTORY)) if DIRECTORY else []

pytestmark = pytest.mark.timeout(1200)


@pytest.fixture(scope="module", params=BUILDS or [None], ids=lambda path: path and path.parents[1].name)
def trials(request):
    if request.param is None:
        pytest.skip("needs builds of torch: make test-builds BUILDS=.compilewatch/builds")
    return measure_release(request.param)


def release(trials) -> tuple[int, ...]:
    return tuple(int(part) for part in split_version(trials["cold"].build.torch)[0].split(".")[:2])


def phases(trial) -> dict[str, int]:
    told = trial.cold_start.phases_ns.model_dump()
    return {name: value for name, value in told.items() if value is not None}


def test_every_trial_ends_as_it_should(trials):
    failed = {name: trial.failure.kind for name, trial in trials.items() if trial.failure}
    expected = {"wrong": FailureKind.WRONG_RESULT}
    if release(trials) < (2, 7):
        expected["portable"] = FailureKind.UNSUPPORTED
    assert failed == expected, {name: trials[name].failure for name in failed}


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("cold", {"dynamo", "aot_autograd", "inductor", "kernel_compile", "isa_probe", "other"}),
        ("training", {"dynamo", "aot_autograd", "inductor", "kernel_compile", "backward", "other"}),
    ],
)
def test_phases_are_told_apart_and_add_up(trials, name, told):
    cold = trials[name].cold_start
    # The probe of vector instructions is left out by the environment of the second one, in most releases.
    assert set(phases(trials[name])) - {"isa_probe"} == told - {"isa_probe"}
    assert name != "cold" or "isa_probe" in phases(trials[name])
    assert sum(phases(trials[name]).values()) == cold.first_call_ns
    assert phases(trials[name])["other"] < 0.1 * cold.first_call_ns
    before = (
        *("interpreter_ns", "import_torch_ns", "harness_ns", "import_libraries_ns"),
        *("import_compile_stack_ns", "build_model_ns", "eager_first_ns", "first_call_ns"),
    )
    assert sum(getattr(cold, part) for part in before) == pytest.approx(cold.total_ns, rel=0.01)


def test_a_warm_start_hits_both_caches(trials):
    cold, warm = trials["cold"].compiler, trials["warm"].compiler
    assert (cold.cache.fx_graph_hits, cold.cache.fx_graph_misses) == (0, 1)
    assert cold.cache.fx_graph_bypasses == 0
    assert (warm.cache.fx_graph_hits, warm.cache.fx_graph_misses) == (1, 0)
    # What was compiled is loaded, in the region in which a cold start waits for the compiler.
    assert phases(trials["warm"]).get("kernel_compile", 0) < 0.05 * phases(trials["cold"])["kernel_compile"]
    if release(trials) >= (2, 7):
        assert (warm.cache.aot_autograd_hits, warm.cache.aot_autograd_misses) == (1, 0)
    else:
        assert warm.cache.aot_autograd_hits is None


def test_graphs_breaks_and_recompiles_have_their_reason_and_line(trials):
    assert (trials["cold"].compiler.graphs, trials["cold"].compiler.ops_captured) == (1, 6)
    for name, graphs in (("break", 2), ("branch", 2)):
        facts = trials[name].compiler
        assert facts.graphs == graphs, name
        assert [event.location.partition(":")[0] for event in facts.graph_breaks] == ["workload_fixtures.py"]
    assert "print" in trials["break"].compiler.graph_breaks[0].reason
    loop = trials["loop"].compiler
    assert (loop.graphs, len(loop.graph_breaks)) == (0, 1)
    assert any("function" in frame for frame in loop.skipped_frames)
    lengths = trials["lengths"].compiler
    assert lengths.graphs == 8
    assert lengths.recompile_limit_hit is True
    assert sum(event.count for event in lengths.recompiles) >= 7
    assert all(event.location.startswith("release_workloads.py:") for event in lengths.recompiles)
    assert "size mismatch" in lengths.recompiles[0].reason
    assert trials["recurrent"].compiler.graphs == 0


def test_numerics_and_memory_are_filled(trials):
    for name in ("cold", "training", "packaged"):
        trial = trials[name]
        assert trial.numerics.status is NumericsStatus.PASS, name
        assert trial.memory.peak_bytes > 0
        assert trial.memory.control_peak_bytes > 0
        assert trial.memory.peak_with_compile_bytes > 0
        assert trial.memory.peak_rss_bytes > 100 << 20
        assert trial.memory.peak_reserved_bytes is None


def test_the_profile_is_filled(trials):
    inference, training = trials["cold"].profile, trials["training"].profile
    # Three linear layers of 8 by 8 for 2 rows, two operations per weight.
    assert inference.flops == 3 * 2 * 2 * 8 * 8
    # Three times (linear, relu) in eager; at most the matrix products are left as operators.
    assert inference.control.operators == 6
    assert inference.own.operators < 6
    assert training.flops > 0
    assert inference.bytes > 0
    assert inference.control.python_ns is not None
    assert (inference.own.python_ns is not None) is (release(trials) >= (2, 9))
    assert inference.own.device_busy_fraction is None
    assert inference.own.launches is None
    assert inference.own.top


def test_the_build_says_which_torch_it_was(trials):
    build = trials["cold"].build
    assert build.torch_git
    assert build.torch_variant
    assert trials["cold"].status is Status.OK
    assert {trial.build.torch for trial in trials.values()} == {build.torch}
