"""Writes results as asv itself writes them. Run by an interpreter that has asv, not imported:

    python asv_results.py FOLDER RESULTS.jsonl

`RESULTS.jsonl` has one line per result: the number of its commit, its benchmark, its samples in seconds. In
`FOLDER` come a git repository with as many commits, `asv.conf.json` and the results of one machine.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from asv import util  # type: ignore[import-not-found]
from asv.machine import Machine  # type: ignore[import-not-found]
from asv.results import Results  # type: ignore[import-not-found]
from asv.runner import BenchmarkResult  # type: ignore[import-not-found]

MACHINE = {"arch": "x86_64", "cpu": "", "machine": "box", "num_cpu": "2", "os": "", "ram": ""}
FIRST_COMMIT_S = 1_700_000_000
DAY_S = 86_400


def write_repository(folder: Path, commits: int) -> list[str]:
    """The hashes of `commits` commits on one branch, oldest first."""
    subprocess.run(["git", "init", "-q", "-b", "main", folder], check=True)
    lines = []
    for number in range(commits):
        moment = f"{FIRST_COMMIT_S + number * DAY_S} +0000"
        lines += [
            "commit refs/heads/main",
            f"mark :{number + 1}",
            f"committer bench <bench@example.org> {moment}",
            "data 1",
            "x",
        ]
    text = "\n".join([*lines, ""])
    subprocess.run(["git", "-C", folder, "fast-import", "--quiet"], input=text, text=True, check=True)
    command = ["git", "-C", str(folder), "rev-list", "--reverse", "main"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return listed.split()


def main(folder: Path, source: Path) -> None:
    by_commit: dict[int, list[tuple[str, list[float]]]] = {}
    with source.open() as lines:
        for line in lines:
            entry = json.loads(line)
            by_commit.setdefault(entry["commit"], []).append((entry["benchmark"], entry["samples_s"]))
    hashes = write_repository(folder / "repository", max(by_commit) + 1)
    settings = {
        "version": 1,
        "project": "history",
        "repo": str(folder / "repository"),
        "branches": ["main"],
        "results_dir": str(folder / "results"),
        "html_dir": str(folder / "html"),
    }
    (folder / "asv.conf.json").write_text(json.dumps(settings))
    results = folder / "results"
    (results / "box").mkdir(parents=True)
    util.write_json(str(results / "box" / "machine.json"), MACHINE, Machine.api_version)
    names = {name for entries in by_commit.values() for name, _ in entries}
    benchmarks = {name: benchmark(name) for name in sorted(names)}
    util.write_json(str(results / "benchmarks.json"), dict(benchmarks), 2)
    for number, entries in by_commit.items():
        made = Results(
            {**MACHINE, "python": "3.11"},
            {},
            hashes[number],
            (FIRST_COMMIT_S + number * DAY_S) * 1000,
            "3.11",
            "existing",
            {},
        )
        for name, samples in entries:
            found = BenchmarkResult([None], [samples], [1], 0, "", None)
            made.add_result(benchmarks[name], found._replace(result=[0.0]), duration=1.0)
        made.save(str(results))


def benchmark(name: str) -> dict[str, object]:
    return {
        "code": "",
        "name": name,
        "param_names": [],
        "params": [],
        "timeout": 60.0,
        "type": "time",
        "unit": "seconds",
        "version": "1",
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
