"""Mutation testing of db/metrics and db/judge by mutmut: a copy is mutated, and the table printed.

`make mutants` mutates everything anew and takes hours; `--sample N` tries N mutants drawn from all files.
`--again` keeps the copy's results and tries only the mutants that live, with the tests as they are now.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

from scipy.stats import binomtest

ROOT = Path(__file__).parents[3]
WORK = ROOT / "build" / "mutants"
MUTMUT = ROOT / "build" / "mutmut"
PACKAGES = ("db/metrics", "db/judge")
COPIED = ("compilewatch", "db", "tests", "docs/measured")

LEFT_OUT = (
    "metrics/test_cases.py::test_any_frame",
    "metrics/test_trend.py::test_a_point_is_the_summary",
    "verdicts/test_upgrade.py::test_swapping",
    "verdicts/test_upgrade.py::test_measuring_in_other_units",
    "verdicts/test_upgrade.py::test_an_unrelated_case",
    "verdicts/test_upgrade.py::test_the_order_of_cases",
    "verdicts/test_published_timm.py",
)
"""Properties and recorded data of whole comparisons: seconds a mutant, and others kill what they would."""

SEED = 20261121

NAMES = """
import json, pathlib, sys
from mutmut.mutation.file_mutation import mutate_file_contents
from mutmut.utils.format_utils import get_mutant_name
paths = [path for package in sys.argv[1:] for path in sorted(pathlib.Path(package).glob("*.py"))]
files = [(path, mutate_file_contents(str(path), path.read_text("utf-8"))) for path in paths]
print(json.dumps([get_mutant_name(path, name) for path, file in files for name in file.mutant_names]))
"""
"""Prints the names of all mutants, as mutmut will call them."""

OUTCOMES: dict[int | None, str] = {None: "not tried", 0: "survived", 33: "no test"} | dict.fromkeys(
    (-24, 24, 36, 152, 255), "timeout"
)
"""By the exit code of pytest or of the process; every other one is a kill: a failed test or module."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("--again", action="store_true", help="keep the results, try what is not killed")
    parser.add_argument("--sample", type=int, help="how many mutants, drawn at random from all files")
    parser.add_argument("--children", type=int, default=os.cpu_count() or 1, help="processes at a time")
    arguments = parser.parse_args()
    if not arguments.again:
        shutil.rmtree(WORK, ignore_errors=True)
    copy_project()
    known = outcomes()
    names: list[str] = [*known] or json.loads(python("-c", NAMES, *PACKAGES, stdout=subprocess.PIPE))
    sample = drawn(names, arguments.sample)
    chosen = [name for name in sample if known.get(name) != "killed"]
    if chosen:
        python("-m", "mutmut", "run", "--max-children", str(arguments.children), *chosen)
    tried = outcomes()
    found = {name: tried[name] for name in sample if name in tried}
    print("\n".join([*table(found), "", *(f"{found[name]}: {name}" for name in alive(found))]))


def copy_project() -> None:
    """What mutmut mutates and runs, beside its earlier results."""
    for folder in ("tests", "mutants/tests"):  # mutmut copies no test over an older copy of it
        shutil.rmtree(WORK / folder, ignore_errors=True)
    ignored = shutil.ignore_patterns("__pycache__")
    for name in COPIED:
        shutil.copytree(
            ROOT / name, WORK / name, copy_function=copy_if_changed, ignore=ignored, dirs_exist_ok=True
        )
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (WORK / "pyproject.toml").write_text(project + settings(), encoding="utf-8")


def copy_if_changed(source: str, target: str) -> None:
    """A changed file gets the time of now: mutmut mutates anew what is younger than its mutants."""
    if not Path(target).exists() or Path(source).read_bytes() != Path(target).read_bytes():
        shutil.copyfile(source, target)


def settings() -> str:
    options = ["-p", "no:cacheprovider", *(f"--deselect=tests/db/{each}" for each in LEFT_OUT)]
    return f"""
[tool.mutmut]
source_paths = ["db"]
only_mutate = {[f"{package}/*.py" for package in PACKAGES]}
also_copy = ["docs"]
pytest_add_cli_args = {options}
pytest_add_cli_args_test_selection = {[f"tests/{package}" for package in PACKAGES]}
track_dependencies = false
timeout_multiplier = 6.0
"""


def drawn(names: list[str], sample: int | None) -> list[str]:
    """All of them, or `sample` of them drawn by their digest: a mutant of code that stays is drawn again."""
    return sorted(names, key=lambda name: hashlib.sha256(f"{SEED} {name}".encode()).digest())[:sample]


def python(*arguments: str, stdout: int | None = None) -> str:
    """Runs where mutmut is installed; ends this process where that fails, with what was said above."""
    environment = os.environ | {
        "PYTHONPATH": str(MUTMUT),
        "OMP_NUM_THREADS": "1",
        "COMPILEWATCH_HYPOTHESIS_PROFILE": "mutants",
    }
    command = [sys.executable, *arguments]
    ended = subprocess.run(command, cwd=WORK, env=environment, check=False, stdout=stdout, text=True)
    if ended.returncode:
        sys.exit("mutmut stopped; what it printed last says why.")
    return ended.stdout or ""


def outcomes() -> dict[str, str]:
    """What became of each mutant, by its name."""
    return {
        name: OUTCOMES.get(code, "killed")
        for package in PACKAGES
        for meta in sorted((WORK / "mutants" / package).glob("*.meta"))
        for name, code in json.loads(meta.read_text(encoding="utf-8"))["exit_code_by_key"].items()
    }


def alive(found: dict[str, str]) -> list[str]:
    return [name for name, outcome in found.items() if outcome not in ("killed", "not tried")]


def table(found: dict[str, str]) -> list[str]:
    """Rows of Markdown, one for each package, with the 95 % interval of Wilson (1927, J. Am. Statist. Assoc.
    22, 209-212) where not all were tried; what ran into the time limit is not counted as killed.
    """
    columns = ("killed", "timeout", "survived", "no test", "not tried")
    lines = [
        f"| package | tried | {' | '.join(columns)} | killed, % | 95 % interval |",
        "|---|" + "---:|" * 8,
    ]
    for package in PACKAGES:
        dotted = package.replace("/", ".") + "."
        counts = Counter(outcome for name, outcome in found.items() if name.startswith(dotted))
        tried = counts.total() - counts["not tried"]
        ends = binomtest(counts["killed"], max(tried, 1)).proportion_ci(method="wilson")
        cells = [package, tried, *(counts[column] for column in columns)]
        cells += [
            f"{100 * counts['killed'] / max(tried, 1):.1f}",
            f"{100 * ends.low:.1f} to {100 * ends.high:.1f}",
        ]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return lines


if __name__ == "__main__":
    main()
