"""Whole trials of healthy workloads in real processes: what the record holds and how its parts fit."""

from __future__ import annotations

import os
import struct
import subprocess
import sys

import pytest

from compilewatch.db.cause.trial_words import process_text
from compilewatch.db.records.trial import Status, parse_trial
from compilewatch.db.units import plural
from compilewatch.runner.worker.step import host
from compilewatch.runner.worker.timing.evidence import InstructionCounter
from tests.runner.bare_environment import make_bare_environment
from tests.runner.measuring import FAST_COMPILE, compiled, measure

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
FIFTY = {"samples": 50, "relative_interval": 0.99, "warmup_ns": 0}


def parts_of(cold) -> int:
    return sum(getattr(cold, name) or 0 for name in PARTS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where workloads write what they found of their own process."""
    return tmp_path_factory.mktemp("found")


@pytest.fixture(scope="module")
def eager():
    heard = []
    return measure("hoarding", sampling=FIFTY, on_phase=heard.append), heard


@pytest.fixture(scope="module")
def default(folder):
    strategy, kwargs = compiled("inductor", mode="default"), {"child_file": str(folder / "child")}
    return measure("training", strategy, task="training", sampling=FIFTY, kwargs=kwargs)


def fewest(trial):
    """Of the 50 samples that are planned a host that others keep busy may leave half: see `Sampler.take`."""
    return 25 if trial.host_state.blocks_rejected else 50


def test_an_eager_trial_is_whole(eager):
    trial, heard = eager
    assert trial.status is Status.OK, trial.failure
    assert parse_trial(trial.to_json()) == trial
    assert fewest(trial) <= len(trial.samples_ns) <= 200
    assert trial.control_samples_ns == []
    assert (trial.sampling.samples, trial.sampling.order, trial.sampling.garbage_collector) == (50, "A", True)
    assert trial.sampling.ended_by in ("interval", "samples", "disturbed")
    assert trial.sampling.warmup_ended_by in ("steady", "calls")
    assert trial.sampling.flush_l2 is None
    assert trial.host_samples_ns == []
    assert trial.compiler is None
    assert trial.numerics is None
    assert heard == [
        "import_torch",
        "import_libraries",
        "build_model",
        "eager_first",
        "warmup",
        "sampling",
        "memory",
    ]


def test_the_first_eager_result_ends_an_eager_cold_start(eager):
    cold = eager[0].cold_start
    assert cold.first_call_ns is None
    assert cold.import_compile_stack_ns is None
    assert 0 <= cold.total_ns - parts_of(cold) < 0.05 * cold.total_ns
    assert cold.process_tree_cpu_ns > 100_000_000


def test_a_trial_knows_its_machine_and_build(eager):
    import torch

    trial = eager[0]
    assert trial.machine.device == "cpu"
    # libgomp pins the process to one core; the machine still has all of them.
    assert trial.machine.cpu_count == os.cpu_count()
    assert trial.machine.threads == 1
    assert trial.build.torch == torch.__version__.partition("+")[0]
    assert "+" not in trial.build.torch
    assert trial.build.torch_variant == (torch.__version__.partition("+")[2] or trial.build.torch_variant)
    assert trial.build.settings["matmul_precision"] == "highest"
    environment = trial.build.settings["environment"]
    assert environment["OMP_PLACES"] == "cores"
    assert environment["TORCHINDUCTOR_VEC_ISA_OK"] == "1"


def test_a_compiled_trial_carries_its_own_control(default):
    assert default.status is Status.OK, default.failure
    for samples in (default.samples_ns, default.control_samples_ns):
        assert fewest(default) <= len(samples) <= 400
    assert default.sampling.order == "ABBA"
    assert default.compiler.graphs == 1
    assert default.compiler.cache.fx_graph_hits == 0
    assert default.compiler.cache.fx_graph_misses >= 1
    assert default.numerics.status == "pass"
    assert default.memory.peak_bytes > 0
    assert default.memory.control_peak_bytes > 0
    assert default.memory.peak_rss_bytes > 100 << 20


def test_cold_start_phases_add_up(default):
    cold = default.cold_start
    phases = cold.phases_ns.model_dump()
    assert sum(value or 0 for value in phases.values()) == cold.first_call_ns
    assert cold.phase_source == "dynamo_timed_events"
    for name in ("dynamo", "aot_autograd", "inductor", "kernel_compile", "backward"):
        assert phases[name] > 0, name
    assert phases["other"] < 0.1 * cold.first_call_ns
    assert 0 <= cold.total_ns - parts_of(cold) < 0.05 * cold.total_ns


def test_until_steady_starts_with_the_first_call(default):
    cold = default.cold_start
    assert cold.calls_until_steady >= 1
    assert cold.until_steady_ns >= cold.first_call_ns


def test_the_compilers_processes_count_as_cpu_time(default):
    """g++ runs in children, so the process itself spends far less than the tree."""
    cold = default.cold_start
    assert cold.process_tree_cpu_ns > cold.phases_ns.kernel_compile // 2
    assert cold.phases_ns.kernel_compile // 2 < cold.first_call_cpu_ns < cold.process_tree_cpu_ns


def test_instructions_are_counted_where_the_kernel_does(default, eager):
    try:
        InstructionCounter().close()
    except OSError:
        assert default.cold_start.first_call_instructions is None
    else:
        # Any processor executes some in a nanosecond of its time, and fewer than a hundred.
        assert 0.1 < default.cold_start.first_call_instructions / default.cold_start.first_call_cpu_ns < 100
    assert eager[0].cold_start.first_call_instructions is None
    assert eager[0].cold_start.first_call_cpu_ns is None


def test_a_count_is_read_only_where_nothing_was_missed(monkeypatch):
    """The kernel's answer is the count, and for how long it was enabled and really counted."""
    read_end, write_end = os.pipe()
    monkeypatch.setattr(InstructionCounter, "__init__", lambda self: setattr(self, "_descriptor", read_end))
    counter = InstructionCounter()
    os.write(write_end, struct.pack("<QQQ", 4711, 90, 90))
    assert counter.read() == 4711
    os.write(write_end, struct.pack("<QQQ", 4711, 90, 60))
    assert counter.read() is None
    counter.close()
    os.close(write_end)


PLAIN_SCRIPT = """
import torch
torch.compile(torch.t)(torch.ones(8, 4))
print(torch._inductor.config.compile_threads)
"""


def test_it_compiles_with_the_threads_that_a_plain_script_has(default):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OMP_")}
    command = [sys.executable, "-c", PLAIN_SCRIPT]
    plain = subprocess.run(command, env=environment | FAST_COMPILE, capture_output=True, check=True)
    assert default.compiler.compile_threads == int(plain.stdout)
    assert default.build.settings["compile_threads"] == int(plain.stdout)
    # On a CPU torch compiles with threads and g++: there is no pool, so none was ended.
    assert default.compiler.compile_pool_size == 0
    assert default.host_state.compile_pool_ended is None


def test_a_strategy_may_say_with_how_many_threads_it_compiles():
    options = {"compile_threads": 3}
    trial = measure("transposed", compiled("inductor", options=options), task="function")
    assert trial.compiler.compile_threads == 3
    assert trial.build.settings["compile_threads"] == host.compile_threads_of_a_script()


def test_what_the_workload_sets_for_itself_counts_and_is_recorded(eager):
    """A builder that sets threads and precision is measured with them, as its plain script is."""
    own = measure("own_threads")
    assert own.status is Status.OK, own.failure
    assert own.build.settings == eager[0].build.settings | {"threads": 2, "matmul_precision": "medium"}
    cpus = plural(os.cpu_count(), "CPU")
    assert process_text(own) == f"2 threads on {cpus}, bound to cores; matmul precision medium"
    assert process_text(eager[0]) == f"1 thread on {cpus}, bound to cores; matmul precision highest"


def test_no_process_of_the_compilers_pool_is_left_beside_the_samples():
    trial = measure("pooled", compiled("pooled"), task="function")
    assert trial.failure is None, trial.failure
    # Two that compile, and the one that starts them.
    assert trial.compiler.compile_pool_size == 3
    assert trial.host_state.compile_pool_ended is True


def test_children_of_a_compilation_may_use_every_cpu(default, folder):
    """OMP_PROC_BIND pins the main thread; inherited, it would queue every g++ on one core."""
    cpus, binding = (folder / "child").read_text().split()
    assert int(cpus) == len(os.sched_getaffinity(0))
    assert binding == "unset"


def test_memory_that_steps_free_goes_back_as_in_a_plain_process(eager):
    """Up to a thousand calls keep 8 MiB. With an allocator that is told to keep blocks of up to 1 GiB it is a
    gigabyte: each copy of the growing list is larger than any that was freed.
    """
    assert eager[0].memory.peak_rss_bytes < 500 << 20


def test_a_foreign_interpreter_measures_its_own_torch(tmp_path):
    """The worker's package is found without putting our site-packages, and our torch, on its path."""
    import torch

    trial = measure("healthy", interpreter=str(make_bare_environment(tmp_path / "other")))
    assert trial.status is Status.OK, trial.failure
    assert trial.build.torch == torch.__version__.partition("+")[0]
    assert trial.build.packages == {}


@pytest.mark.slow
def test_what_autotuning_took_is_recorded_with_its_time():
    trial = measure(
        "batched_product", compiled("inductor", mode="max-autotune-no-cudagraphs"), task="function"
    )
    assert trial.status is Status.OK, trial.failure
    (found,) = trial.compiler.autotuned
    assert (found.operation, found.inputs) == ("bmm", "4x64x64 float32, 4x64x64 float32")
    assert found.candidate == "bmm" or found.candidate.startswith("cpp_")
    assert (found.candidates, found.count) == (2, 1)
    assert found.time_ns > 0
