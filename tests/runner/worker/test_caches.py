"""Cache states: what a second process finds, in the same directories, in a file, or in a package."""

from __future__ import annotations

import pytest

from compilewatch.db.records.trial import CacheState, FailureKind, Status, Strategy, StrategyKind
from tests.runner.measuring import measure
from tests.runner.quick_measurement import interpreter


def strategy(cache: CacheState, kind: StrategyKind = StrategyKind.COMPILE) -> Strategy:
    return Strategy(name=f"default+{cache}", kind=kind, backend="inductor", mode="default", cache=cache)


def test_a_warm_process_has_the_caches_of_the_one_before(tmp_path):
    note = "open({!r}, 'a').write(spec['purpose'] + ' ' + os.environ['TORCHINDUCTOR_CACHE_DIR'] + '\\n')"
    python = interpreter(tmp_path / "build", death=note.format(str(tmp_path / "log")))
    trial = measure("three_blocks", strategy(CacheState.WARM), interpreter=str(python))
    assert trial.status is Status.OK, trial.failure
    (first, its_caches), (second, caches) = map(str.split, (tmp_path / "log").read_text().splitlines())
    assert (first, second, caches) == ("prime", "measure", its_caches)


@pytest.mark.slow
def test_a_warm_process_finds_what_the_first_one_compiled():
    phases = []
    trial = measure("three_blocks", strategy(CacheState.WARM), on_phase=phases.append)
    assert trial.status is Status.OK, trial.failure
    assert phases.count("first_call") == 2
    assert trial.compiler.cache.fx_graph_hits == 1
    assert trial.compiler.cache.fx_graph_misses == 0
    # Nothing is compiled by g++ on a hit, so that phase is absent rather than zero.
    assert trial.cold_start.phases_ns.kernel_compile is None


@pytest.mark.slow
def test_a_portable_cache_hits_in_empty_directories_and_still_runs_the_compiler():
    trial = measure("three_blocks", strategy(CacheState.PORTABLE))
    assert trial.status is Status.OK, trial.failure
    assert trial.compiler.cache.fx_graph_hits == 1
    assert trial.cold_start.phases_ns.kernel_compile > 0


@pytest.mark.slow
def test_a_package_is_loaded_without_compiling():
    trial = measure("three_blocks", strategy(CacheState.PACKAGED, StrategyKind.AOT_PACKAGE))
    assert trial.status is Status.OK, trial.failure
    assert trial.numerics.status == "pass"


def test_a_failure_while_priming_is_the_trials_failure(tmp_path):
    python = interpreter(tmp_path / "build", death="os.kill(os.getpid(), 11)")
    trial = measure("three_blocks", strategy(CacheState.WARM), interpreter=str(python))
    assert trial.failure.kind is FailureKind.CRASH
