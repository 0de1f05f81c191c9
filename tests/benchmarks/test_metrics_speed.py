"""How fast trials become cases, and cases break-evens: CPU time beside a plainer way over the same frame."""

from __future__ import annotations

import json
import resource
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from db.columns.case import CASE_KEYS
from db.metrics.break_even_rows import break_even_rows
from db.metrics.case_modes import GROUP_KEYS
from db.metrics.cases import summarize_cases
from tests.db.metrics.frames import trial, trials_frame
from tests.runner.terminal import compilewatch

pytestmark = pytest.mark.benchmark

TRIALS, PER_CASE = 20_000, 10


def best_cpu_seconds(work: Callable[[], object]) -> float:
    """Of five repeats, CPU time of this process: the machine may be shared."""
    seconds = []
    for _ in range(5):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return min(seconds)


def test_cases_of_20000_trials_with_bootstrap_intervals() -> None:
    random = np.random.default_rng(0)
    frame = trials_frame(
        [
            trial(
                workload=f"w{number // PER_CASE}",
                latency_ns=float(random.lognormal(17, 0.02)),
                control_latency_ns=float(random.lognormal(17.4, 0.02)),
                trial_compile_cost_ns=float(random.normal(3e10, 1e9)),
                peak_bytes=10**9,
                control_peak_bytes=2 * 10**9,
                graphs=1,
            )
            for number in range(TRIALS)
        ]
    )
    cases = summarize_cases(frame)
    assert len(cases) == TRIALS // PER_CASE
    assert set(cases["interval_method"]) == {"bootstrap"}
    seconds = best_cpu_seconds(lambda: summarize_cases(frame))
    plain = best_cpu_seconds(lambda: frame.groupby(CASE_KEYS)[["latency_ns", "control_latency_ns"]].median())
    print(
        f"\n{TRIALS:,} trials to {len(cases):,} cases, 2,000 resamples: {seconds:.2f} s CPU; "
        f"pandas medians of two columns alone: {plain:.3f} s"
    )


BREAK_EVEN_ROWS = 6_500


def test_break_even_of_6500_rows(tmp_path: Path) -> None:
    """The command over an imported pair without compile costs; the rows alone where each has one."""
    header = "model,infer_samples_per_sec,infer_step_time,infer_batch_size,infer_img_size"
    for name, step_ms in (("", 10.0), ("-dynamo", 7.5)):
        lines = [f"m{number},1e4,{step_ms + number / 1e4},256,224" for number in range(BREAK_EVEN_ROWS // 2)]
        file = tmp_path / f"benchmark-infer-amp-nchw-pt291-cu130-5090{name}.csv"
        file.write_text("\n".join([header, *lines]), encoding="utf-8")
    imported = compilewatch("import", file.name, "--measured-at", "2026-01-01", cwd=tmp_path)
    assert imported.returncode == 0, imported.stderr
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    asked = compilewatch("break-even", "--json", cwd=tmp_path)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert len(json.loads(asked.stdout)["rows"]) == BREAK_EVEN_ROWS
    command_s = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime

    compiled = {"control_latency_ns": 10e6, "trial_compile_cost_ns": 3e10}
    trials = [
        trial(workload=f"m{number}", strategy=strategy, latency_ns=latency_ns, **parts)
        for number in range(BREAK_EVEN_ROWS // 2)
        for strategy, latency_ns, parts in (("eager", 10e6, {}), ("default", 7.5e6 + number, compiled))
    ]
    cases = summarize_cases(trials_frame(trials))

    def frame_by_frame() -> list[object]:
        groups = (group for _, group in cases.groupby(GROUP_KEYS, sort=False))
        return [row for group in groups for row in break_even_rows(group, 10_000, 0, None)]

    start = time.process_time()
    assert len(frame_by_frame()) == BREAK_EVEN_ROWS
    frames_s = time.process_time() - start
    at_once_s = best_cpu_seconds(lambda: break_even_rows(cases, 10_000, 0, None))
    print(
        f"\nbreak-even of {BREAK_EVEN_ROWS:,} rows: {at_once_s:.2f} s CPU, a frame for each workload "
        f"{frames_s:.2f} s; the whole command {command_s:.2f} s"
    )
