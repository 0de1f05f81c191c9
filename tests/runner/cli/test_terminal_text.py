"""What a terminal would obey stays out of every output: texts of records come from whoever may import."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from compilewatch.db.errors import printable
from compilewatch.db.records.trial import Failure, FailureKind, Status
from compilewatch.runner.output.tables import PlainConsole
from tests.builders import make_machine, make_trial
from tests.runner.terminal import compilewatch, environment, in_this_process

# The window's title, the clipboard, a cleared screen by its 8-bit form, an overwritten line, a turned text.
HOSTILE = "a\x1b]0;owned\x07b\x1b]52;c;ZWNobw==\x07c\x9b2Jd\re\x7ff\u202eg\x08h"
OBEYED = set("\x1b\x07\x9b\r\x7f\u202e\x08")


@pytest.mark.parametrize("as_json", [False, True])
def test_no_text_of_a_record_drives_a_terminal(tmp_path: Path, as_json: bool) -> None:
    failure = Failure(kind=FailureKind.CRASH, message=HOSTILE, log_tail=f"first\n{HOSTILE}\nlast")
    trial = make_trial(
        status=Status.FAILED,
        samples_ns=[],
        failure=failure,
        label=HOSTILE,
        machine=make_machine(name=HOSTILE, device_name=HOSTILE),
    )
    (tmp_path / "foreign.jsonl").write_text(trial.to_json() + "\n")
    json_ = ["--json"] if as_json else []
    assert in_this_process("import", "foreign.jsonl", cwd=tmp_path).returncode == 0
    commands = [["show", trial.trial_id], *(["list", what] for what in ("runs", "machines", "builds"))]
    for command in (*commands, ["import", "foreign.jsonl", "--dry-run"]):
        said = in_this_process(*command, *json_, cwd=tmp_path)
        assert said.returncode == 0, said.stderr
        assert not OBEYED & set(said.stdout + said.stderr), command
        if as_json and command[0] == "show":
            assert json.loads(said.stdout)["failure"]["message"] == HOSTILE


def test_colours_of_ours_stay() -> None:
    out = io.StringIO()
    PlainConsole(file=out, force_terminal=True, color_system="standard").print(
        "[red]ours[/red] \x1b[31mtheirs", highlight=False
    )
    assert out.getvalue() == "\x1b[31mours\x1b[0m \N{REPLACEMENT CHARACTER}[31mtheirs\n"


def test_lines_and_letters_stay() -> None:
    text = "two\nlines\twith \u00e9, \u2009 and \U0001f469\u200d\U0001f680"
    assert printable(text) == text


ASCII = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C"}
QUICK = "import torch\n\n\ndef build():\n    return (lambda x: x + 1), (torch.ones(8),)\n"


ONE_AFTER_ANOTHER = """
import ast, sys
from compilewatch.runner.cli.front import main
for command in ast.literal_eval(sys.argv[1]):
    try:
        main(command)
    except SystemExit as ended:
        print(f"\\f{ended.code}", end="\\f")
"""


@pytest.mark.parametrize("terminal", [{}, ASCII], ids=["utf-8", "ascii"])
def test_neither_the_name_of_a_folder_nor_an_ascii_terminal_is_a_defect(
    tmp_path: Path, terminal: dict[str, str]
) -> None:
    """A folder made under an older encoding, whose name is not UTF-8."""
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    (folder / "quick.py").write_text(QUICK)
    words = ("run", "-w", "quick:build", "-s", "eager", "--trials", "1")
    measured = compilewatch(*words, cwd=folder, **terminal)
    assert measured.returncode == 0, measured.stderr
    copy = os.fsdecode(b"monday\xe9.db")
    commands = [
        ["break-even"],
        ["list", "workloads"],
        ["db", "backup", copy],
        ["db", "restore", copy, "--db", "sqlite:///restored.db", "--yes"],
        ["db", "check"],
        ["break-even", "--json"],
        ["doctor", "--json"],
    ]
    # In one process, which imports the program once.
    done = subprocess.run(
        [sys.executable, "-c", ONE_AFTER_ANOTHER, ascii(commands)],
        cwd=folder,
        env=environment(**terminal),
        capture_output=True,
        text=True,
        check=True,
    )
    *said, rest = done.stdout.split("\f")
    assert rest == ""
    assert said[1:-2:2] == ["0"] * 6, done.stderr
    assert done.stdout.isascii() or not terminal
    assert [bool(json.loads(document)) for document in said[-4::2]] == [True, True], done.stderr


@pytest.mark.parametrize("words", [["history", "-w"], ["triage", "--state", "expected"]])
def test_what_was_typed_in_no_utf_8_is_named(tmp_path: Path, words: list[str]) -> None:
    assert in_this_process("db", "upgrade", cwd=tmp_path).returncode == 0
    said = in_this_process(*words, os.fsdecode(b"caf\xe9"), cwd=tmp_path)
    assert said.returncode == 2, said.stderr
    assert "caf\\udce9" in said.stderr
    assert "defect" not in said.stderr


def test_an_exception_s_message_is_one_short_line(tmp_path: Path) -> None:
    raising = "def build():\n    raise RuntimeError('x' * 3_000_000)\n"
    (tmp_path / "loud.py").write_text(raising)
    said = compilewatch("run", "-w", "loud:build", "-s", "eager", "--trials", "1", cwd=tmp_path)
    assert said.returncode == 1
    assert "xxx..." in said.stdout + said.stderr
    assert max(map(len, (said.stdout + said.stderr).splitlines())) < 600
    assert len(said.stdout + said.stderr) < 3000
