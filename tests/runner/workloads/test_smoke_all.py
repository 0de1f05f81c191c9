"""Every strategy and cache state of every smoke workload in one run: what it stores adds up.

With `-s` it prints the table of docs/measured/strategies.md.
"""

from __future__ import annotations

import os
import statistics

import pytest

from compilewatch.db.engine.session import open_database
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import trial_records
from compilewatch.db.records.strategies import sort_key
from compilewatch.db.records.trial import NumericsStatus, Status, Trial
from compilewatch.db.units import count, duration, ratio
from tests.runner.terminal import compilewatch

PARTS = (
    "interpreter_ns",
    "import_torch_ns",
    "harness_ns",
    "import_libraries_ns",
    "import_compile_stack_ns",
    "build_model_ns",
    "eager_first_ns",
    "first_call_ns",
)


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> list[Trial]:
    """Of a database that is there (`COMPILEWATCH_SMOKE_ALL=sqlite:///...`), else of a run made now."""
    url = os.environ.get("COMPILEWATCH_SMOKE_ALL")
    if url is None:
        project = tmp_path_factory.mktemp("smoke-all")
        (project / "tmp").mkdir()
        places = {"TMPDIR": str(project / "tmp")}
        ran = compilewatch("run", "--suite", "smoke-all", cwd=project, timeout_s=6000, **places)
        assert ran.returncode == 0, ran.stderr
        url = f"sqlite:///{project / 'compilewatch.db'}"
    with open_database(url) as database:
        stored = list(trial_records(database, Filters(suites=("smoke-all",))))
    assert stored, f"nothing of the suite is stored in {url}"
    print("\n" + table(stored))
    return stored


def table(trials: list[Trial]) -> str:
    """One line per case: what a first result takes and costs, what comes after, what was reused."""
    lines = [
        "| workload | strategy | first result | CPU time | first call | latency | speedup "
        "| FX hits/misses | graphs |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for trial in sorted(trials, key=lambda each: (each.workload.name, sort_key(each.strategy.name))):
        cold, compiler = trial.cold_start, trial.compiler
        if trial.status is not Status.OK or cold is None:
            lines.append(f"| {trial.workload.name} | {trial.strategy.name} | {trial.failure.kind.value} |")
            continue
        own = statistics.median(trial.samples_ns)
        control = statistics.median(trial.control_samples_ns) if trial.control_samples_ns else None
        cache = compiler.cache if compiler else None
        hits = f"{count(cache.fx_graph_hits)}/{count(cache.fx_graph_misses)}" if cache else count(None)
        cells = (
            trial.workload.name,
            trial.strategy.name,
            duration(cold.total_ns),
            duration(cold.process_tree_cpu_ns),
            duration(cold.first_call_ns),
            duration(own),
            ratio(control / own if control else None),
            hits,
            count(compiler.graphs if compiler else None),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_every_case_that_applies_was_measured_and_is_right(trials: list[Trial]) -> None:
    failed = [(t.workload.name, t.strategy.name, t.failure) for t in trials if t.status is not Status.OK]
    assert failed == []
    assert len({(t.workload.name, t.strategy.name) for t in trials}) == 38
    assert {t.strategy.cache.value for t in trials} == {"none", "cold", "warm", "portable", "packaged"}
    compiled = [t.numerics for t in trials if t.strategy.kind != "eager"]
    assert {numerics.status for numerics in compiled if numerics} == {NumericsStatus.PASS}


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_phases_add_up_to_the_first_call_and_to_the_first_result(trials: list[Trial]) -> None:
    for trial in trials:
        cold = trial.cold_start
        assert cold.total_ns is not None
        case = f"{trial.workload.name} / {trial.strategy.name}"
        if cold.phases_ns is not None:
            phases = sum(value or 0 for value in cold.phases_ns.model_dump().values())
            assert phases == pytest.approx(cold.first_call_ns, rel=0.01), case
        parts = sum(getattr(cold, name) or 0 for name in PARTS)
        assert parts == pytest.approx(cold.total_ns, rel=0.01), case
