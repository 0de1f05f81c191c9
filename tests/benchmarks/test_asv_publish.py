"""Results on disk to a page in sight: importing and serving here, `asv publish` there, equally many results.

asv writes a static site of everything at once; here the import keeps what pages need and a page is made when
asked for. Both start from files that hold the same samples. The asv to compare with is installed into an
environment of its own; `COMPILEWATCH_BENCH_ASV` names the Python of one that has it.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from dashboard.links.links import Page
from db.records.trial import Trial
from tests.benchmarks.large_history import SHARES
from tests.benchmarks.websocket_reader import reading
from tests.builders import make_history
from tests.dashboard.serving import served

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(1800)]

ASV = "asv==0.6.6"
WORKLOADS, SAMPLES = 48, 20
SCRIPT = Path(__file__).with_name("asv_results.py")
SIZES = [int(size) for size in os.environ.get("COMPILEWATCH_BENCH_ASV_RESULTS", "10000").split(",")]


@dataclass(frozen=True)
class Took:
    """Seconds by the clock, and of the processors, all processes together."""

    wall_s: float
    cpu_s: float

    def __str__(self) -> str:
        return f"{self.wall_s:.1f} s ({self.cpu_s:.1f} s CPU)"


@pytest.fixture(scope="module")
def asv(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Python that has asv."""
    named = os.environ.get("COMPILEWATCH_BENCH_ASV")
    if named:
        return named
    folder = tmp_path_factory.mktemp("asv")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = str(folder / "bin" / "python")
    installed = subprocess.run(
        [python, "-m", "pip", "install", "-q", ASV], check=False, capture_output=True, text=True
    )
    if installed.returncode:
        pytest.skip(f"asv could not be installed: {installed.stderr[-300:]}")
    return python


def _history(results: int) -> list[Trial]:
    """One trial a case and night, each night another build."""
    nights = results // (WORKLOADS * len(SHARES)) + 1
    trials = make_history(
        workloads=[f"model-{n:02d}" for n in range(WORKLOADS)],
        strategies=list(SHARES),
        builds=[f"2.13.0.dev{20250101 + night}" for night in range(nights)],
        trials_per_case=1,
        samples=SAMPLES,
    )
    return trials[:results]


def _run(command: Sequence[str | Path], cwd: Path | None = None) -> Took:
    """One process with its children, which it waits for."""
    before, started = os.times(), time.perf_counter()
    done = subprocess.run(command, cwd=cwd, check=False, capture_output=True, text=True)
    wall_s, after = time.perf_counter() - started, os.times()
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    used = after.children_user - before.children_user + after.children_system - before.children_system
    return Took(wall_s, used)


def _serve(url: str, log: Path, page: Page) -> tuple[Took, Took]:
    """From starting the server to the first page drawn; and that first page alone."""
    started = time.perf_counter()
    with served(url, log) as server:

        async def look() -> float:
            async with reading(server.port) as reader:
                return (await reader.run(page)).seconds

        process = psutil.Process(server.pid).cpu_times
        before = process()
        seconds = asyncio.run(look())
        after, wall_s = process(), time.perf_counter() - started
        used = after.user + after.system
        return Took(wall_s, used), Took(seconds, used - before.user - before.system)


@pytest.mark.parametrize("results", SIZES)
def test_results_to_page_against_asv_publish(asv: str, results: int, tmp_path: Path) -> None:
    trials = _history(results)
    ours, theirs = tmp_path / "trials.jsonl", tmp_path / "results.jsonl"
    ours.write_text("".join(trial.to_json() + "\n" for trial in trials))
    nights = {run: number for number, run in enumerate(dict.fromkeys(trial.run_id for trial in trials))}
    with theirs.open("w") as stream:
        for trial in trials:
            entry = {
                "commit": nights[trial.run_id],
                "benchmark": f"{trial.workload.name}.time_{trial.strategy.name}",
                "samples_s": [sample / 1e9 for sample in trial.samples_ns],
            }
            stream.write(json.dumps(entry) + "\n")

    site = tmp_path / "asv"
    site.mkdir()
    _run([asv, SCRIPT, site, theirs])
    published = _run([asv, "-m", "asv", "publish", "--no-pull"], cwd=site)
    assert (site / "html" / "index.html").exists()

    url = f"sqlite:///{tmp_path / 'history.db'}"
    imported = _run([sys.executable, "-m", "runner", "import", ours, "--db", url])
    started, overview = _serve(url, tmp_path / "log", Page.OVERVIEW)
    wall_s, cpu_s = imported.wall_s + started.wall_s, imported.cpu_s + started.cpu_s
    ratios = f"by the clock {published.wall_s / wall_s:.2f}, of CPU {published.cpu_s / cpu_s:.2f}"
    print(
        f"\n{results:,} results of {len(nights)} builds: asv publish {published}; import {imported}, "
        f"server up and Overview drawn {started}, of it the page {overview}; asv / ours {ratios}; "
        f"load {os.getloadavg()[0]:.1f}"
    )
