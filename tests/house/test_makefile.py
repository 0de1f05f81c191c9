"""The doors that people and CI use: make targets, .ci/run, the hooks before a commit."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.test_pythons import ADMITTED
from tests.house.tracked import ROOT

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = re.search(r"^\.PHONY: (.+)$", MAKEFILE, re.MULTILINE)[1].split()

# Stands in for the console script: notes its arguments, answers `list` and fails on request.
NOTING_SCRIPT = """#!/bin/sh
echo "$@" >> calls
case "$1" in
    list) cat stored.json ;;
    run) exit {run_exit} ;;
esac
"""


def make(*arguments: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run make as from a bare login shell."""
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}
    command = ["make", "--directory", str(folder), "--no-print-directory", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with what make needs to install, and nothing installed."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def make_up(checkout: Path, *, stored: str, run_exit: int, target: str = "up") -> tuple[int, list[str]]:
    """Return the exit code of `make up` (or `target`) in an installed checkout, and what it called."""
    binaries = checkout / ".venv" / "bin"
    binaries.mkdir(parents=True)
    (binaries / "python").symlink_to(sys.executable)
    script = binaries / "compilewatch"
    script.write_text(NOTING_SCRIPT.format(run_exit=run_exit), encoding="utf-8")
    script.chmod(0o755)
    (checkout / "stored.json").write_text(stored, encoding="utf-8")
    (checkout / ".venv" / ".installed-here").touch()
    code = make(target, "STAMP_KEY=here", "PORT=8502", folder=checkout).returncode
    return code, (checkout / "calls").read_text(encoding="utf-8").splitlines()


def installed_by(checkout: Path, python: str) -> None:
    """An environment, installed and up to date, whose interpreter says that it is `python`."""
    binaries = checkout / ".venv" / "bin"
    binaries.mkdir(parents=True)
    (binaries / "python").write_text(f'#!/bin/sh\necho "{python}"\n', encoding="utf-8")
    (binaries / "python").chmod(0o755)
    (checkout / ".venv" / ".installed-here").touch()


@pytest.mark.parametrize("target", ["install", "dev"])
def test_an_environment_of_another_python_is_not_taken_for_the_one_that_is_named(
    target: str, checkout: Path
) -> None:
    installed_by(checkout, "Python 3.11.1 (/elsewhere)")
    result = make(target, f"PYTHON={sys.executable}", "STAMP_KEY=here", folder=checkout)
    assert result.returncode == 2
    here = f"Python {'.'.join(map(str, sys.version_info[:3]))} ({sys.base_prefix})"
    assert (
        f".venv has Python 3.11.1 (/elsewhere), and {sys.executable} is {here}; install anew: "
        in result.stderr
    )
    assert f"rm -rf .venv && make install PYTHON={sys.executable}" in result.stderr
    gone = make(target, "PYTHON=no-such-python", "STAMP_KEY=here", folder=checkout)
    assert gone.returncode == 2
    assert "no-such-python was not found; .venv has Python 3.11.1 (/elsewhere)" in gone.stderr


def test_an_environment_stays_where_none_or_its_own_python_is_named(checkout: Path) -> None:
    installed_by(checkout, f"Python {'.'.join(map(str, sys.version_info[:3]))} ({sys.base_prefix})")
    for named in ([f"PYTHON={sys.executable}"], []):
        result = make("install", *named, "STAMP_KEY=here", folder=checkout)
        assert (result.returncode, result.stderr) == (0, "")


def stored_runs(*statuses: str | None) -> str:
    return json.dumps({"schema": "compilewatch.list/1", "rows": [{"status": status} for status in statuses]})


LIST, RUN = "list runs --json", "run --suite smoke"
SERVE = "dashboard --host 127.0.0.1 --port 8502"


def test_help_has_one_line_per_target() -> None:
    lines = make("help").stdout.splitlines()
    assert [line.split()[0] for line in lines] == TARGETS
    assert all(len(line.split(maxsplit=1)[1]) > len("no words") for line in lines)


def test_promised_targets_exist() -> None:
    assert {"install", "up", "test", "lint", "fix", "serve", "bench", "docs"} <= set(TARGETS)


def test_make_test_runs_every_check() -> None:
    commands = make("--dry-run", "test").stdout
    for check in ("ruff check", "ruff format --check", "mypy", "pytest"):
        assert check in commands


def test_tests_run_in_three_processes_unless_asked_otherwise() -> None:
    words = pytest_words()
    assert "-m pytest --numprocesses 3 --dist loadfile --no-loadscope-reorder" in " ".join(words)
    assert words[-1] == "-n0"


def test_folders_that_make_test_does_not_collect_hold_nothing_for_it() -> None:
    ignored = [word.removeprefix("--ignore=") for word in pytest_words() if word.startswith("--ignore=")]
    assert ignored
    files = [file for folder in ignored for file in (ROOT / folder).glob("test_*.py")]
    assert [str(file) for file in files if not _all_have_targets(file.read_text(encoding="utf-8"))] == []


def _all_have_targets(text: str) -> bool:
    marks = re.findall(
        r"^(pytestmark\b.*|@)pytest\.mark\.(?:benchmark|faults|slurm|slow)\b", text, re.MULTILINE
    )
    return any(mark != "@" for mark in marks) or len(marks) >= text.count("\ndef test_")


def pytest_words() -> list[str]:
    lines = make("--dry-run", "test", "PYTEST_ARGS=-n0").stdout.splitlines()
    (line,) = [line for line in lines if "-m pytest" in line]
    return line.split()


def test_ci_runs_what_people_run() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert script.read_text(encoding="utf-8").splitlines()[-1] == "make test"


def test_hooks_run_the_pinned_tools() -> None:
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    assert "repo: local" in hooks
    assert set(re.findall(r"entry: (\S+)", hooks)) == {".venv/bin/ruff", ".venv/bin/mypy"}


@pytest.mark.parametrize("stored", [stored_runs(), stored_runs("running", "cancelled", None), "not json", ""])
def test_up_measures_when_no_run_is_finished(checkout: Path, stored: str) -> None:
    assert make_up(checkout, stored=stored, run_exit=0) == (0, [LIST, RUN, SERVE])


# Stands in for the python of an environment with torch: notes what it is asked, and sees a GPU or none.
NOTING_PYTHON = """#!/bin/sh
echo "python $@" >> calls
case "$*" in
    *is_available*) exit {gpu_exit} ;;
    *pytest*) echo "1 failed"; echo "a warning" >&2; exit 1 ;;
esac
"""


def make_gpu_evidence(checkout: Path, *, sees_gpu: bool, run_exit: int) -> subprocess.CompletedProcess[str]:
    binaries = checkout / ".venv" / "bin"
    binaries.mkdir(parents=True)
    python = NOTING_PYTHON.format(gpu_exit=0 if sees_gpu else 1)
    for name, script in (("python", python), ("compilewatch", NOTING_SCRIPT.format(run_exit=run_exit))):
        (binaries / name).write_text(script, encoding="utf-8")
        (binaries / name).chmod(0o755)
    for stamp in (".installed-here", ".installed-dev-here"):
        (checkout / ".venv" / stamp).touch()
    return make("gpu-evidence", "STAMP_KEY=here", "MINUTES=7", "EVIDENCE=found", folder=checkout)


@pytest.mark.parametrize(("run_exit", "told"), [(1, " test-gpu.txt"), (2, " test-gpu.txt standard.txt")])
def test_evidence_of_a_gpu_is_one_folder_whatever_fails_on_the_way(
    checkout: Path, run_exit: int, told: str
) -> None:
    result = make_gpu_evidence(checkout, sees_gpu=True, run_exit=run_exit)
    assert result.returncode == 2
    assert f"What failed says why in its log:{told}\n" in result.stderr
    calls = (checkout / "calls").read_text(encoding="utf-8").splitlines()
    assert [line for line in calls if not line.startswith("python")] == [
        "doctor --validate --json",
        "run --suite standard --minutes 7",
        "export --format jsonl",
    ]
    commands = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8").split("## `compilewatch ")
    of_run = next(section for section in commands if section.startswith("run`"))
    assert "* `--minutes <" in of_run
    names = {"test-gpu.txt", "validate.json", "standard.txt", "records.jsonl"}
    assert {path.name for path in (checkout / "found").iterdir()} == names | {f"{name}.log" for name in names}
    assert (checkout / "found" / "test-gpu.txt").read_text(encoding="utf-8") == "1 failed\n"
    assert (checkout / "found" / "test-gpu.txt.log").read_text(encoding="utf-8") == "a warning\n"


def test_without_a_gpu_there_is_no_evidence_and_no_folder(checkout: Path) -> None:
    result = make_gpu_evidence(checkout, sees_gpu=False, run_exit=0)
    assert result.returncode == 2
    assert "torch sees no GPU here" in result.stderr
    assert not (checkout / "found").exists()


def test_up_reuses_a_finished_run(checkout: Path) -> None:
    assert make_up(checkout, stored=stored_runs("running", "finished"), run_exit=0) == (0, [LIST, SERVE])


def test_up_shows_failed_trials(checkout: Path) -> None:
    assert make_up(checkout, stored=stored_runs(), run_exit=1) == (0, [LIST, RUN, SERVE])


def test_demo_is_the_command_of_that_name(checkout: Path) -> None:
    code, calls = make_up(checkout, stored=stored_runs(), run_exit=2, target="demo")
    assert (code, calls) == (0, [SERVE.replace("dashboard", "demo")])


@pytest.mark.parametrize("code", [2, 3, 130])
def test_up_stops_where_nothing_could_be_measured(checkout: Path, code: int) -> None:
    exit_code, calls = make_up(checkout, stored=stored_runs(), run_exit=code)
    assert exit_code != 0
    assert calls == [LIST, RUN]


@pytest.mark.parametrize(
    ("interpreter", "sentence"),
    [
        ("exit 127", "needs 3.11, 3.12 or 3.13"),
        ('case "$2" in *ensurepip*) exit 1;; esac', "cannot create virtual environments"),
    ],
)
def test_an_unfit_interpreter_is_refused_with_the_next_step(
    checkout: Path, interpreter: str, sentence: str
) -> None:
    python = checkout / "some-python"
    python.write_text(f"#!/bin/sh\n{interpreter}\n", encoding="utf-8")
    python.chmod(0o755)
    result = make("install", f"PYTHON={python}", folder=checkout)
    assert result.returncode != 0
    assert sentence in result.stderr
    assert not (checkout / ".venv").exists()


@pytest.mark.parametrize("version", ["3.10.13", "3.11.0", "3.11.2", "3.12.1", "3.13.7", "3.14.0", "3.15.0"])
def test_make_takes_the_pythons_that_the_package_admits(checkout: Path, version: str) -> None:
    python = checkout / "some-python"
    told = tuple(map(int, version.split(".")))
    python.write_text(
        f"""#!/bin/sh
case "$1" in
    --version) echo Python {version} ;;
    -c) exec {sys.executable} -c 'import sys; sys.version_info = {told}; exec(sys.argv[1])' "$2" ;;
    *) echo no more than looked at >&2; exit 1 ;;
esac
""",
        encoding="utf-8",
    )
    python.chmod(0o755)
    result = make("install", f"PYTHON={python}", folder=checkout)
    refusal = f"{python} is Python {version}, and compilewatch needs 3.11, 3.12 or 3.13: "
    assert ("no more than looked at" in result.stderr) == ADMITTED.contains(version)
    assert (refusal in result.stderr) != ADMITTED.contains(version)
    assert not (checkout / ".venv").exists()


def test_a_missing_interpreter_is_named(checkout: Path) -> None:
    result = make("install", "PYTHON=no-such-python", folder=checkout)
    assert result.returncode != 0
    assert "no-such-python was not found" in result.stderr
