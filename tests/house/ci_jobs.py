"""The recipes of docs/ci.md: their own lines, typed by bash from a fresh repository to a red pull request.

What differs from a job of a real CI: the runner's part (the checkout, as deep as the recipe says, the
variables, the artefact's address) is played here, installing is left out, and a case is measured with `eager`
alone.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.git_repository import Repository
from tests.house.shell_blocks import blocks
from tests.house.tracked import ROOT
from tests.loopback import Quiet, on_loopback

DOCUMENT = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
ACTION = ROOT / ".github" / "actions" / "compilewatch-gate"
MODEL = "import torch\n\nfrom ranking import step\n\n\ndef build():\n    return step, (torch.ones(4),)\n"
RANKING = "import time\n\n\ndef step(x):\n    time.sleep({seconds})\n    return x + 1\n"
BRIEFLY = "\n[run]\nsamples = 8\nrelative_interval = 0.99\nwarmup_s = 0\ncanaries = false\n"
INSTALLS = re.compile(r"pip install ")


@dataclass
class Forge:
    """The part of GitHub or GitLab: takes comments, and gives the artefact of main where there is one."""

    url: str = ""
    comments: list[str] = field(default_factory=list)
    artefact: bytes | None = None


@contextmanager
def forge() -> Iterator[Forge]:
    kept = Forge()

    class Handler(Quiet):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            kept.comments.append(json.loads(body)["body"])
            self.send_response(201)
            self.end_headers()

        def do_GET(self) -> None:
            self.send_response(200 if kept.artefact else 404)
            self.end_headers()
            self.wfile.write(kept.artefact or b"")

    with on_loopback(Handler) as kept.url:
        yield kept


class Project(Repository):
    """A team's repository with the files that the page names, and the commands of a fresh clone. Each job has
    a checkout of its own, which is `checkout` until the next one.
    """

    def __init__(self, root: Path, commands: Path) -> None:
        super().__init__(root / "project")
        self.outside, self.checkout = root, root / "job"
        self.commands = commands
        (root / "tmp").mkdir()
        shutil.copy(ACTION / "gate.sh", self.root)
        (self.root / "compilewatch.toml").write_text(blocks(DOCUMENT, "toml")[0] + BRIEFLY, encoding="utf-8")
        left = ("__pycache__/", ".compilewatch/", "*.db*", "*.jsonl", "main.zip", "gate.md")
        (self.root / ".gitignore").write_text("\n".join(left), encoding="utf-8")
        (self.root / "my_models.py").write_text(MODEL, encoding="utf-8")
        self.base = self.commit("The first model", ranking_py=RANKING.format(seconds=0.1))

    def slower(self) -> str:
        """The commit of a pull request after which a step takes 2.5 times as long."""
        self.git("checkout", "--quiet", "-b", "change")
        return self.commit("Sort before ranking", ranking_py=RANKING.format(seconds=0.25))

    def _check_out(self, depth: int) -> None:
        """The branch that is checked out here, with so many commits, or with all of every branch for 0."""
        shutil.rmtree(self.checkout, ignore_errors=True)
        branch = self.git("rev-parse", "--abbrev-ref", "HEAD")
        shallow = [f"--depth={depth}"] if depth else []
        self.git(
            *("clone", "--quiet", *shallow, f"--branch={branch}"), f"file://{self.root}", str(self.checkout)
        )

    def types(self, lines: list[str], variables: Mapping[str, str], depth: int = 0) -> tuple[int, str]:
        """Exit code and output of a job's lines in one shell that ends at the first that fails, in a checkout
        of `depth` commits.
        """
        self._check_out(depth)
        script = "\n".join(line for line in lines if not INSTALLS.match(line))
        measured = {"TMPDIR": str(self.outside / "tmp"), "PATH": f"{self.commands}:{os.environ['PATH']}"}
        kept = {name: os.environ[name] for name in ("HOME", "LANG") if name in os.environ}
        briefly = {
            name: re.sub(r"--minutes \d+", "--minutes 4 -s eager", text) for name, text in variables.items()
        }
        done = subprocess.run(
            ["bash", "-eo", "pipefail", "-c", re.sub(r"--minutes \d+", "--minutes 4 -s eager", script)],
            cwd=self.checkout,
            env=kept | measured | {"NO_COLOR": "1"} | briefly,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=600,
        )
        return done.returncode, done.stdout


def github(project: Project, at: Forge, *, is_pull_request: bool) -> tuple[int, str]:
    """The steps of the workflow: `run:` as it stands, the action as its own file says."""
    workflow = yaml.safe_load(blocks(DOCUMENT, "yaml")[0])
    steps = workflow["jobs"]["compilewatch"]["steps"]
    action = yaml.safe_load((ACTION / "action.yml").read_text(encoding="utf-8"))
    given = {name: each.get("default", "") for name, each in action["inputs"].items()} | steps[-1]["with"]
    given["database"] = f"sqlite:///{project.outside}/history.db"
    variables = {
        "RUN_OPTIONS": given["run"],
        "GATE_OPTIONS": given["gate"],
        "PASS_UNDECIDED": given["pass-undecided"],
        "COMPILEWATCH_DATABASE_URL": given["database"],
        "COMMENT_URL": f"{at.url}/issues/1/comments" if is_pull_request else "",
        "COMMENT_HEADER": "Authorization: Bearer token",
        "GATE_TABLE": str(project.outside / "gate.md"),
        "GITHUB_ACTION_PATH": str(ACTION),
        **({"GITHUB_BASE_REF": "main"} if is_pull_request else {}),
    }
    assert set(action["runs"]["steps"][0]["env"]) <= variables.keys()
    lines = [step["run"] for step in (*steps, *action["runs"]["steps"]) if "run" in step]
    return project.types(lines, variables, int(steps[0].get("with", {}).get("fetch-depth", 1)))


def gitlab(project: Project, at: Forge, *, is_pull_request: bool) -> tuple[int, str]:
    """The `script:` of the job with its variables; the artefact of main is what its job left."""
    job: dict[str, Any] = yaml.safe_load(blocks(DOCUMENT, "yaml")[1])["compilewatch"]
    variables = {name: str(value) for name, value in job["variables"].items()} | {
        "CI_API_V4_URL": at.url,
        "CI_PROJECT_ID": "1",
        "CI_JOB_TOKEN": "token",
        "CI_DEFAULT_BRANCH": "main",
        "BOT_TOKEN": "token",
    }
    if is_pull_request:
        variables |= {"CI_MERGE_REQUEST_IID": "7", "CI_MERGE_REQUEST_DIFF_BASE_SHA": project.base}
    code, shown = project.types(job["script"], variables, int(variables.get("GIT_DEPTH", 20)))
    if code == 0 and not is_pull_request:
        with zipfile.ZipFile(project.outside / "artefact.zip", "w") as archive:
            for path in job["artifacts"]["paths"]:
                archive.write(project.checkout / path, path)
        at.artefact = (project.outside / "artefact.zip").read_bytes()
    return code, shown


def any_shell(project: Project, at: Forge, *, head: str) -> tuple[int, str]:
    """The block of the plain shell."""
    (block,) = blocks(DOCUMENT, "bash")
    variables = {"BASE": project.base, "HEAD": head, "COMMENT_URL": f"{at.url}/notes"}
    return project.types(block.splitlines(), variables)
