"""pytest-benchmark JSON: a whole file, the pairing rule, what has to be told."""

import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from compilewatch.db.errors import RecordError
from compilewatch.db.interchange.formats import Format
from compilewatch.db.records.trial import Code, Task
from tests.db.interchange.reading import by_name, of_each, read, read_told
from tests.db.interchange.tiny_files import TINY


def document(*benchmarks: dict[str, Any], **machine_info: Any) -> dict[str, Any]:
    return {
        "machine_info": {"node": "ci-7", "system": "Linux", "release": "6.1", **machine_info},
        "commit_info": {"id": "abc"},
        "benchmarks": list(benchmarks),
        "datetime": "2026-11-20T18:58:06.776938+00:00",
        "version": "5.3.1",
    }


def benchmark(name: str, median: float, params: dict[str, Any] | None, **extra_info: Any) -> dict[str, Any]:
    return {
        "name": name,
        "fullname": f"test_b.py::{name}",
        "params": params,
        "extra_info": extra_info,
        "stats": {"median": median, "rounds": 3, "data": [median, median * 2]},
    }


def write(folder: Path, content: object) -> Path:
    path = folder / "benchmark.json"
    path.write_text(json.dumps(content))
    return path


INVENTED_FILE = ((40_000, 80_000), (3, 40_000), "3.11.1", "Acme CPU", "2026-11-20T18:00:00.500000+00:00")
PUBLIC_FILE = (
    # 4.053779998685059e-05 s and 7.34171999283717e-05 s
    *((40_538, 73_417), (20, 56_008), "3.11.7", "AMD EPYC", "2026-11-20T18:58:06.776938+00:00"),
)


@pytest.mark.parametrize(("samples", "says"), of_each(INVENTED_FILE, PUBLIC_FILE))
def test_a_file_reads_as_it_says(samples: Path, says: tuple[Any, ...]) -> None:
    (eager_ns, compiled_ns), (rounds, first_ns), python, cpu, began = says
    trials = by_name(read(samples / "pytest_benchmark.json", device="cpu", dtype="float32"))
    eager, compiled = trials["test_b.py::test_mlp", "eager"], trials["test_b.py::test_mlp", "aot_eager"]
    assert (eager.summary.latency_ns, eager.summary.n) == (eager_ns, rounds)
    assert (compiled.summary.latency_ns, compiled.summary.control_latency_ns) == (compiled_ns, eager_ns)
    assert eager.summary.control_latency_ns is None
    assert (len(eager.samples_ns), eager.samples_ns[0]) == (rounds, first_ns)
    assert (eager.build.torch, eager.build.torch_variant, eager.build.python) == ("2.13.0", "cpu", python)
    assert (eager.machine.name, eager.machine.device_name, eager.machine.cpu_count) == ("vm", cpu, 2)
    assert eager.started_at.isoformat() == began
    assert (compiled.strategy.backend, compiled.strategy.mode) == ("aot_eager", None)
    assert eager.workload.task is Task.FUNCTION


@pytest.mark.parametrize(
    ("eager", "compiled", "strategy"),
    [
        ("eager", "default", "default"),
        (False, True, "compiled"),
        (None, "reduce-overhead", "reduce-overhead"),
        ("none", "inductor", "inductor"),
    ],
)
def test_the_pair_key_tells_eager_from_compiled(
    tmp_path: Path, eager: object, compiled: object, strategy: str
) -> None:
    path = write(
        tmp_path,
        document(
            benchmark("test_m[a-8]", 2e-3, {"mode": compiled, "batch": 8}),
            benchmark("test_m[b-8]", 4e-3, {"mode": eager, "batch": 8}),
            benchmark("test_m[b-16]", 7e-3, {"mode": eager, "batch": 16}),
        ),
    )
    trials = by_name(read_told(path))
    assert set(trials) == {
        ("test_b.py::test_m[batch=8]", strategy),
        ("test_b.py::test_m[batch=8]", "eager"),
        ("test_b.py::test_m[batch=16]", "eager"),
    }
    summary = trials["test_b.py::test_m[batch=8]", strategy].summary
    assert (summary.latency_ns, summary.control_latency_ns) == (2_000_000, 4_000_000)


def test_a_value_that_is_no_strategy_leaves_it_to_the_next_key(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        document(
            benchmark("test_m[a]", 4e-3, {"mode": "train", "compile": False}),
            benchmark("test_m[b]", 2e-3, {"mode": "train", "compile": True}),
        ),
    )
    trials = by_name(read_told(path))
    name = "test_b.py::test_m[mode=train]"
    assert set(trials) == {(name, "eager"), (name, "compiled")}
    summary = trials[name, "compiled"].summary
    assert summary.control_latency_ns == 4_000_000


def test_where_no_value_is_a_strategy_the_pair_key_is_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path, document(benchmark("test_m", 2e-3, {"mode": "my own flags"})))
    with pytest.raises(RecordError, match="nothing names eager or compiled") as raised:
        read_told(path, strategy=None)
    assert "--pair-key" in raised.value.next_step
    with pytest.raises(RecordError, match="my own flags") as raised:
        read_told(path, pair_key="mode")
    assert "--map" in raised.value.next_step
    (trial,) = read_told(path, pair_key="mode", words={"my own flags": "flags"})
    assert trial.strategy.name == "flags"


def test_a_word_that_is_explained_names_the_strategy(tmp_path: Path) -> None:
    """Neither a key of its own nor a strategy for all is asked for."""
    path = write(
        tmp_path,
        document(
            benchmark("test_m[a]", 4e-3, {"mode": "vanilla", "n": 4}),
            benchmark("test_m[b]", 2e-3, {"mode": "turbo", "n": 4}),
        ),
    )
    with pytest.raises(RecordError, match="mode is") as raised:
        read_told(path, strategy=None)
    assert '--map "vanilla=default"' in raised.value.next_step
    words = {"vanilla": "eager", "Turbo": "max-autotune"}
    eager, turbo = read_told(path, strategy=None, words=words)
    assert (eager.strategy.name, turbo.strategy.mode) == ("eager", "max-autotune")
    assert turbo.summary.control_latency_ns == 4_000_000


def test_the_pair_key_may_stand_in_extra_info_or_be_named(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        document(
            benchmark("test_e", 4e-3, None, way="eager"), benchmark("test_e", 2e-3, None, way="max-autotune")
        ),
    )
    with pytest.raises(RecordError, match="nothing names eager or compiled"):
        read_told(path, strategy=None)
    eager, compiled = read_told(path, pair_key="way")
    assert (eager.strategy.name, compiled.strategy.mode) == ("eager", "max-autotune")
    assert compiled.summary.control_latency_ns == 4_000_000


def test_two_eager_results_of_one_workload_are_ambiguous(tmp_path: Path) -> None:
    path = write(tmp_path, document(*[benchmark("test_e", 4e-3, {"mode": "eager"})] * 2))
    with pytest.raises(RecordError, match="two eager results"):
        read_told(path)


def test_torchbench_conftest_names_torch_in_machine_info(tmp_path: Path) -> None:
    content = document(
        benchmark("t", 1e-3, {"mode": "eager"}),
        pytorch_version="2.5.0a0+cu124",
        pytorch_git_version="c0ffee",
    )
    (trial,) = read_told(write(tmp_path, content), torch="9.9.9")
    assert (trial.build.torch, trial.build.cuda, trial.build.torch_git) == ("2.5.0a0", "12.4", "c0ffee")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"stats": {"rounds": 3}}, "benchmarks.0.stats.median"),
        ({"stats": []}, "benchmarks.0.stats"),
        ({"stats": {"median": -1}}, "benchmarks.0.stats.median"),
        ({"stats": {"median": 0}}, "benchmarks.0.stats.median"),
        ({"stats": {"median": 1, "data": "x"}}, "benchmarks.0.stats.data"),
        ({"fullname": 7}, "benchmarks.0.fullname"),
        ({"params": [1]}, "benchmarks.0.params"),
    ],
)
def test_an_error_names_the_field(tmp_path: Path, change: dict[str, Any], field: str) -> None:
    path = write(tmp_path, document(benchmark("t", 1e-3, {"mode": "eager"}) | change))
    with pytest.raises(RecordError) as raised:
        read_told(path)
    assert raised.value.message.startswith(f"{path}: {field}: ")


def test_the_commit_that_is_noted_is_that_of_the_code(tmp_path: Path) -> None:
    text = next(iter(TINY[Format.PYTEST_BENCHMARK].values()))
    path = tmp_path / "benchmark.json"
    for commit, code in (
        ("c0ffee" * 6 + "c0ff", Code(commit="c0ffee" * 6 + "c0ff", dirty=True)),
        ("abc", None),
    ):
        noted = json.loads(text) | {"commit_info": {"id": commit, "dirty": True, "branch": "main"}}
        path.write_text(json.dumps(noted))
        assert [trial.code for trial in read_told(path, strategy=None)] == [code, code]


def test_without_a_moment_it_is_that_of_the_commit_unless_another_is_told(tmp_path: Path) -> None:
    noted = json.loads(next(iter(TINY[Format.PYTEST_BENCHMARK].values())))
    del noted["datetime"]
    noted["commit_info"] = {"id": "c0ffee" * 6 + "c0ff", "time": "2026-03-01T12:00:00+02:00"}
    path = tmp_path / "benchmark.json"
    path.write_text(json.dumps(noted))
    for told, day in ((None, 1), (datetime(2026, 3, 5, tzinfo=UTC), 5)):
        moments = {trial.started_at.date() for trial in read_told(path, strategy=None, measured_at=told)}
        assert moments == {date(2026, 3, day)}
