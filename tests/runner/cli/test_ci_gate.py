"""The recipe for CI: the script as a job runs it, with real commands and a server that takes comments."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

from tests.loopback import Quiet, on_loopback
from tests.runner.ci_script import ACTION, ROOT, gate

DOCUMENT = (ROOT / "docs" / "ci.md").read_text()


@dataclass
class Comments:
    """A server that keeps the comments it is sent; `answer` is the status it answers with."""

    url: str = ""
    answer: int = 201
    bodies: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)


@pytest.fixture
def comments() -> Iterator[Comments]:
    kept = Comments()

    class Handler(Quiet):
        def do_POST(self) -> None:
            kept.headers.append(dict(self.headers))
            kept.bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["body"])
            self.send_response(kept.answer)
            self.end_headers()

    with on_loopback(Handler) as address:
        kept.url = f"{address}/notes"
        yield kept


def stand_in(folder: Path, script: str) -> str:
    """A search path where `compilewatch` is `script`: for what gate.sh itself makes of an answer."""
    commands = folder / "bin"
    commands.mkdir()
    command = commands / "compilewatch"
    command.write_text(f"#!/bin/sh\n{script}\n")
    command.chmod(0o755)
    return f"{commands}:{Path(sys.executable).parent}:{os.environ['PATH']}"


@pytest.mark.parametrize("text", ["--workload ranker\n--trials 10 --label '2.13 + driver 580'", "", "  \n"])
def test_options_are_split_as_a_shell_does(tmp_path: Path, sqlite_url: str, text: str) -> None:
    path = stand_in(tmp_path, 'for word; do echo "<$word>" >&2; done; exit 0')
    done = gate(tmp_path, sqlite_url, RUN_OPTIONS=text, GATE_OPTIONS="$(touch ran) `touch ran`", PATH=path)
    ran = [
        "run",
        *(["--workload", "ranker", "--trials", "10", "--label", "2.13 + driver 580"] if text.strip() else []),
    ]
    judged = ["gate", "--markdown", "$(touch", "ran)", "`touch", "ran`"]
    assert done.stderr.splitlines() == [f"<{word}>" for word in (*ran, *judged)]
    assert not (tmp_path / "ran").exists()


def test_a_quote_that_is_not_closed_measures_nothing(tmp_path: Path, sqlite_url: str) -> None:
    path = stand_in(tmp_path, "echo called >&2")
    done = gate(tmp_path, sqlite_url, RUN_OPTIONS="--label 'x", PASS_UNDECIDED="true", PATH=path)
    assert done.returncode == 2
    assert done.stderr == "RUN_OPTIONS: No closing quotation. Close the quote.\n"


def test_a_regression_is_commented_and_fails_the_job(
    tmp_path: Path, stepped: str, comments: Comments
) -> None:
    summary = tmp_path / "summary.md"
    done = gate(
        tmp_path,
        stepped,
        RUN_OPTIONS="none",
        COMMENT_URL=comments.url,
        COMMENT_HEADER="Authorization: Bearer s3cret",
        GITHUB_STEP_SUMMARY=str(summary),
        GATE_TABLE=str(tmp_path / "table.md"),
    )
    assert done.returncode == 1, done.stderr
    (body,) = comments.bodies
    assert "| mlp (ungated) | default | Latency |" in body
    assert "✗ regressed" in body
    assert body == (tmp_path / "table.md").read_text() == summary.read_text() == done.stdout
    assert comments.headers[0]["Authorization"] == "Bearer s3cret"
    assert comments.headers[0]["Content-Type"] == "application/json"
    assert "s3cret" not in done.stdout + done.stderr


def test_a_comment_that_cannot_be_posted_changes_no_verdict(
    tmp_path: Path, sqlite_url: str, comments: Comments
) -> None:
    comments.answer = 403
    path = stand_in(tmp_path, "echo '| a | table |'")
    done = gate(tmp_path, sqlite_url, RUN_OPTIONS="none", COMMENT_URL=comments.url, PATH=path)
    assert done.returncode == 0
    assert len(comments.bodies) == 1
    assert "The comment could not be posted; the verdict stands." in done.stderr


def test_what_cannot_be_told_fails_unless_it_may_pass(
    tmp_path: Path, sqlite_url: str, comments: Comments
) -> None:
    path = stand_in(tmp_path, "exit 2")
    done = gate(tmp_path, sqlite_url, RUN_OPTIONS="none", COMMENT_URL=comments.url, PATH=path)
    assert done.returncode == 2
    assert comments.bodies == [], "there is no table to show"
    assert gate(tmp_path, sqlite_url, RUN_OPTIONS="none", PASS_UNDECIDED="true", PATH=path).returncode == 0


def test_a_long_table_is_cut_to_what_a_comment_holds(
    tmp_path: Path, sqlite_url: str, comments: Comments
) -> None:
    path = stand_in(tmp_path, 'for n in $(seq 4000); do echo "| row $n | of many |"; done')
    done = gate(tmp_path, sqlite_url, RUN_OPTIONS="none", COMMENT_URL=comments.url, PATH=path)
    assert done.returncode == 0
    assert 59_000 < len(comments.bodies[0]) < 65_536
    assert comments.bodies[0].endswith("The rest is in the log of the job.\n")
    assert "row 4000" in done.stdout


def test_the_action_hands_every_input_to_the_script_by_environment() -> None:
    action = yaml.safe_load((ACTION / "action.yml").read_text())
    (step,) = action["runs"]["steps"]
    assert action["runs"]["using"] == "composite"
    assert step["run"] == '"$GITHUB_ACTION_PATH/gate.sh"', "an input inside a command would be run as code"
    script = (ACTION / "gate.sh").read_text()
    read = {name for name in step["env"] if f"${{{name}:" in script}
    assert set(step["env"]) - read == {"COMPILEWATCH_DATABASE_URL"}
    used = set(re.findall(r"inputs\.([a-z-]+)", (ACTION / "action.yml").read_text()))
    assert used == set(action["inputs"])
    table = re.findall(r"^\| `([a-z-]+)` \|", DOCUMENT, re.MULTILINE)
    assert set(table) == set(action["inputs"])


GITHUB, GITLAB = (yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", DOCUMENT, re.DOTALL)[:2])


def test_no_recipe_lets_a_job_be_cancelled_that_waits_or_measured_without_its_history() -> None:
    """A queue that cancels pushes to main measures no base, and a shallow clone knows none."""
    job = GITHUB["jobs"]["compilewatch"]
    assert "concurrency" not in GITHUB.keys() | job.keys()
    assert job["steps"][0]["with"]["fetch-depth"] == 0
    assert GITLAB["workflow"]["auto_cancel"]["on_new_commit"] == "none"
    assert not {"resource_group", "interruptible"} & GITLAB["compilewatch"].keys()
    assert GITLAB["compilewatch"]["variables"]["GIT_DEPTH"] == 0


def test_the_documented_workflow_is_one_that_uses_the_action() -> None:
    steps = GITHUB["jobs"]["compilewatch"]["steps"]
    given = steps[-1]["with"]
    assert steps[-1]["uses"].split("@")[0].endswith("/.github/actions/compilewatch-gate")
    assert set(given) <= set(yaml.safe_load((ACTION / "action.yml").read_text())["inputs"])
