"""`export` as it is typed: its filters, and the file that stands where it writes."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from compilewatch.db.engine.session import open_database
from compilewatch.db.errors import CONTROLS
from compilewatch.db.interchange.files import trial_jsonl
from compilewatch.db.records.trial import Task
from compilewatch.db.store.trials import save_trials
from compilewatch.runner.cli.app import app
from compilewatch.runner.cli.front import exit_code_of
from tests.builders import make_imported, make_trial, make_workload
from tests.runner.terminal import ROOT, in_this_process

EARLIER = "an earlier export\n"


@pytest.fixture
def url(sqlite_url: str) -> str:
    with open_database(sqlite_url) as database:
        trials = [
            make_trial(trial_id="one"),
            make_trial(trial_id="two", workload=make_workload("mlp", task=Task.TRAINING)),
            make_imported(trial_id="three", run_id="imported"),
        ]
        save_trials(database, trials)
    return sqlite_url


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    path = tmp_path / "kept.jsonl"
    path.write_text(EARLIER, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--task", "training"), {"two"}),
        (("--task", "training", "--task", "inference"), {"one", "two", "three"}),
        (("--source", "imported"), {"three"}),
        (("--source", "measured", "--task", "inference"), {"one"}),
    ],
)
def test_task_and_source_choose_what_goes_out(
    url: str, tmp_path: Path, options: tuple[str, ...], expected: set[str]
) -> None:
    path = tmp_path / "out.jsonl"
    assert exit_code_of(app, ["export", *options, "--output", str(path), "--db", url]) == 0
    lines = path.read_text(encoding="utf-8").splitlines()
    assert {json.loads(line)["trial_id"] for line in lines} == expected


SUFFIXES = {"jsonl": "jsonl", "csv": "csv", "parquet": "parquet", "oss-v3": "json", "markdown": "md"}


@pytest.mark.parametrize("format_", SUFFIXES)
def test_a_filter_that_fits_nothing_leaves_the_file_as_it_was(
    url: str, capsys: pytest.CaptureFixture[str], kept: Path, format_: str
) -> None:
    kept = kept.rename(kept.with_suffix(f".{SUFFIXES[format_]}"))
    words = ["export", "--since", "2030-01-01", "--format", format_, "--output", str(kept), "--db", url]
    assert exit_code_of(app, words) == 2
    assert kept.read_text(encoding="utf-8") == EARLIER
    assert capsys.readouterr().err.splitlines() == [
        f"compilewatch: No stored trial fits these filters; {kept} was not written.",
        "  Leave out one of them, or see `compilewatch list runs`.",
    ]


def test_a_filter_that_fits_nothing_makes_no_file_and_prints_nothing(
    url: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "new.csv"
    words = ["export", "--since", "2030-01-01", "--format", "csv", "--db", url]
    assert exit_code_of(app, [*words, "--output", str(path)]) == 2
    assert not path.exists()
    capsys.readouterr()
    assert exit_code_of(app, words) == 2
    shown = capsys.readouterr()
    assert (shown.out, shown.err.splitlines()[0]) == ("", "compilewatch: No stored trial fits these filters.")


@pytest.mark.parametrize(
    ("name", "options", "begins"),
    [
        ("out.csv", (), b"trial_id,"),
        ("out.PARQUET", (), b"PAR1"),
        ("out.md", (), b"| "),
        ("out.jsonl", (), b'{"schema"'),
        ("out.txt", (), b'{"schema"'),
        ("out.txt", ("--format", "csv"), b"trial_id,"),
        ("out.jsonl", ("--format", "oss-v3"), b'{"timestamp"'),
    ],
)
def test_the_name_of_the_file_says_its_format(
    url: str, tmp_path: Path, name: str, options: tuple[str, ...], begins: bytes
) -> None:
    path = tmp_path / name
    assert exit_code_of(app, ["export", *options, "--output", str(path), "--db", url]) == 0
    assert path.read_bytes().startswith(begins)


def test_a_name_of_another_format_is_refused(
    url: str, capsys: pytest.CaptureFixture[str], kept: Path
) -> None:
    assert exit_code_of(app, ["export", "--format", "csv", "--output", str(kept), "--db", url]) == 2
    assert capsys.readouterr().err.splitlines() == [
        f"compilewatch: {kept}: is the name of a jsonl file, and --format is csv.",
        "  Leave out --format, or give the file another suffix.",
    ]
    assert kept.read_text(encoding="utf-8") == EARLIER


@pytest.mark.parametrize(("trouble", "code"), [(KeyboardInterrupt(), 130), (OSError(28, "No space left"), 2)])
def test_an_export_that_ends_early_leaves_the_file_as_it_was(
    url: str, kept: Path, monkeypatch: pytest.MonkeyPatch, trouble: BaseException, code: int
) -> None:
    def write_some(_lines: object, stream: object) -> int:
        stream.write(b"half a line")  # type: ignore[attr-defined]
        raise trouble

    monkeypatch.setattr(trial_jsonl, "write_lines", write_some)
    assert exit_code_of(app, ["export", "--output", str(kept), "--db", url]) == code
    assert kept.read_text(encoding="utf-8") == EARLIER
    assert [each.name for each in kept.parent.glob("*kept*")] == [kept.name], "nothing is left beside it"


def test_one_trial_is_one_trial(url: str, tmp_path: Path) -> None:
    path = tmp_path / "o.jsonl"
    path.write_text(EARLIER, encoding="utf-8")
    words = ("export", "--task", "training", "--output", path.name, "--db", url)
    assert in_this_process(*words, cwd=tmp_path).stderr == "Wrote 1 trial to o.jsonl.\n"
    (line,) = path.read_text(encoding="utf-8").splitlines()
    assert json.loads(line)["trial_id"] == "two"


TO_A_TERMINAL = """
import sys
from compilewatch.runner.cli.app import app
from compilewatch.runner.cli.front import exit_code_of
for format in ("jsonl", "csv", "markdown", "oss-v3"):
    assert exit_code_of(app, ["export", "--format", format, "--db", sys.argv[1]]) == 0
    print("end of one", flush=True)
"""


def test_an_export_cannot_drive_a_terminal(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/results.db"
    hostile = "a\u001b[31mb\u202ec\u009bd"
    with open_database(url, migrate=True) as database:
        save_trials(database, [make_trial(workload=make_workload(hostile))])
    shown, other = pty.openpty()
    command = [sys.executable, "-c", TO_A_TERMINAL, url]
    with subprocess.Popen(command, cwd=ROOT, stdout=other, stderr=subprocess.DEVNULL) as process:
        os.close(other)
        text = b""
        with contextlib.suppress(OSError):  # how a terminal says that nobody writes any more
            while part := os.read(shown, 65_536):
                text += part
    os.close(shown)
    assert process.returncode == 0
    exports = text.decode().replace("\r", "").split("end of one\n")
    assert [bool(each) for each in exports] == [True] * 4 + [False]
    assert not CONTROLS.search("".join(exports))
