"""The walk: what a page tells people to type, typed in a folder of its own, with what a reader would have.

A page's folder holds the recorded history as `compilewatch.db` and `history.jsonl`, the page's own
`my_models.py` (else the README's) and its TOML as `compilewatch.toml`. What is typed is changed by these
rules alone: a case is measured once and briefly, a server gets a port of its own and is stopped once it
answers, the team's PostgreSQL is one of ours, and an id is that of the thing made on the page before.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

from compilewatch.db.interchange.formats import Format
from tests.db.interchange.tiny_files import TINY
from tests.db.interchange.trace_logs import whole_log, whole_recording
from tests.house.shell_blocks import Typed, blocks
from tests.house.tracked import ROOT

HISTORY = ROOT / "docs" / "measured" / "cpu-history.jsonl"
TEAM_DATABASE = re.compile(r"postgresql(?:\+psycopg)?://compilewatch@db\.example\.org/compilewatch")

# A line that is not typed, and why. Each has to be there, and to be needed.
EXCUSED = {
    r"(docker|kubectl|sbatch|rsync) .*": "needs Docker, Kubernetes, Slurm or a second host",
    r"echo \"POSTGRES_PASSWORD=.*": "is for Docker",
    r"(pip|pipx) install .*|uvx .*": "`make install` installs the extra, or tests/house/test_release.py does",
    r"TORCH_TRACE=\S+ python train\.py|vllm bench .*": "stands for a job of the reader's own",
    r"compilewatch builds create .*|compilewatch run .*--build .*": "downloads another release of torch",
    r"compilewatch run (--suite standard|--workload (hf|timm):.*)": "needs a GPU or the extras of models",
    r"compilewatch ((attribute|bisect) .*|watch)": "downloads other releases of torch, or asks for them",
    r"compilewatch worker --gpu 0|COMPILEWATCH_FLEET__QUEUES=.*": "needs a GPU; tests/runner has a fleet",
    r"compilewatch doctor --validate": "eight minutes and a quiet machine",
    r"compilewatch dashboard --host 0\.0\.0\.0|export COMPILEWATCH_AUTH__.*": "needs an OpenID provider",
    r"PGPASSWORD=.*|curl .*(example|https://HOST)/.*": "needs an account or a server of the reader's own",
    r"(RUN_OPTIONS=.* )?\./gate\.sh|git checkout --quiet .*": "tests/house/ci_jobs.py types the recipes",
    r"make (test(-builds)?|gpu-evidence)( .*)?": "runs this among everything, or needs a GPU or other builds",
    r"(COMPILEWATCH_BENCH\S*=\S+ )?\.venv/bin/python .*": "a measurement of hours on a quiet machine",
}
# What a verdict, a failed trial or a warning ends with is a result; anything else has to end with 0.
RESULTS = {r"compilewatch (compare|gate|history|run)\b": {0, 1, 2}, r"compilewatch doctor\b": {0, 1}}
SERVES = re.compile(r"make (up|demo)|compilewatch (dashboard|schedule)\b(?! (list|pause|resume))")
MEASURES = re.compile(r"compilewatch (run|advise|doctor|reproduce)\b|make up")
MADE = {
    "ID": re.compile(r"^([0-9A-Za-z_-]{20,})$", re.MULTILINE),
    "01KA8Z7Q3V5T2M9N4R6S8W0XYZ": re.compile(r"\b(01[0-9A-Z]{24})\b"),
}
BRIEFLY = {
    "COMPILEWATCH_RUN__CANARIES": "false",
    "COMPILEWATCH_RUN__TRIALS": "1",
    "COMPILEWATCH_RUN__SAMPLES": "5",
    "COMPILEWATCH_RUN__MAX_SAMPLES": "5",
    "COMPILEWATCH_RUN__WARMUP_S": "0",
    "COMPILEWATCH_RUN__WARMUP_CALLS": "3",
    "COMPILEWATCH_RUN__WARMUP_MAX_CALLS": "5",
}
JOBS = {
    "compilewatch-jobs/compilewatch_job_1.jsonl": whole_recording(job="ranker-train"),
    "ranker-train/dedicated_log_torch_trace_x1.log": whole_log(),
    "llama-8b.json": TINY[Format.VLLM_STARTUP]["startup.json"],
}
"""What jobs of the reader's own left behind."""
DEFECT = re.compile(r"Traceback|defect of compilewatch|Try `compilewatch|command not found")
PATIENCE_S = 900


def excuse(line: str) -> str | None:
    """Why a line is not typed; None where it is."""
    return next((why for pattern, why in EXCUSED.items() if re.fullmatch(pattern, line)), None)


def is_typed(typed: Typed) -> bool:
    """Whether the walk knows what to do with a line that has no excuse."""
    return bool(re.match(r"compilewatch |make (up|demo)$|git apply |export COMPILEWATCH_\w+=", typed.line))


@dataclass
class Walk:
    """One page in one folder; `clone` is a fresh checkout that is installed, `server` a PostgreSQL's URL."""

    clone: Path
    folder: Path
    server: str | None
    exported: dict[str, str] = field(default_factory=dict)
    made: dict[str, str] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)
    """How long each line took, a server until it answered."""

    def prepare(self, text: str) -> None:
        """Lay out what a reader of the page `text` would have."""
        shutil.copy(HISTORY, self.folder / "history.jsonl")
        stored = self.clone / ".compilewatch" / "history.db"
        if not stored.exists():
            stored.parent.mkdir(exist_ok=True)
            code, shown = self.run(f"compilewatch import history.jsonl --db sqlite:///{stored}")
            assert code == 0, shown
        shutil.copy(stored, self.folder / "compilewatch.db")
        readme = (ROOT / "README.md").read_text(encoding="utf-8")
        models = [body for body in blocks(text + readme, "python") if "from torch import nn" in body]
        (self.folder / "my_models.py").write_text(models[0], encoding="utf-8")
        for name, content in JOBS.items():
            if name.partition("/")[0] in text:
                (self.folder / name).parent.mkdir(exist_ok=True)
                (self.folder / name).write_text(content, encoding="utf-8")
        if "[auth]" not in text:
            settings = "\n".join(blocks(text, "toml"))
            (self.folder / "compilewatch.toml").write_text(settings, encoding="utf-8")

    def type(self, typed: Typed) -> str | None:
        """Type one line; what is wrong with what came of it, None where it is as the page says."""
        exported = re.fullmatch(r"export (\w+)=(.*)", self.ours(typed.line))
        if exported:
            self.exported[exported[1]] = exported[2]
            return None
        began = time.monotonic()
        code, shown = (self.serve if SERVES.match(typed.line) else self.run)(self.ours(typed.line))
        self.seconds.append(time.monotonic() - began)
        for name, pattern in MADE.items():
            if " create " in typed.line and (found := pattern.search(shown)):
                self.made[name] = found[1]
        allowed = next((codes for start, codes in RESULTS.items() if re.match(start, typed.line)), {0})
        if code not in allowed or DEFECT.search(shown):
            return f"{typed.line}\nended with {code}:\n{shown}"
        exactly = not MEASURES.match(typed.line)
        if typed.printed is not None and not same(typed.printed, shown, exactly=exactly):
            return f"{typed.line}\nprints not what the page says, but:\n{shown}"
        return None

    def ours(self, line: str) -> str:
        """The line by the rules of the walk."""
        if self.server is not None:
            line = TEAM_DATABASE.sub(self.server, line)
        line = re.sub(r"--trials \d+", "--trials 1", line) if MEASURES.match(line) else line
        for name, value in self.made.items():
            line = re.sub(rf"\b{name}\b", value, line)
        return line

    def run(self, line: str) -> tuple[int, str]:
        """Exit code and everything printed, of a line that ends by itself."""
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=self._place(line),
            env=self._environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
        return done.returncode, done.stdout

    def serve(self, line: str) -> tuple[int, str]:
        """The same of a line that serves: stopped as with Ctrl-C once it answers, 0 where it did."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        path = "/compilewatch/healthz" if "--base-path" in line else "/healthz"
        answers = f"http://127.0.0.1:{port}{path}"
        is_service = line.startswith("compilewatch schedule")
        told = line if is_service else f"{line} {'PORT=' if self._in_clone(line) else '--port '}{port}"
        log = self.folder / "served.log"
        with log.open("w") as output:
            process = subprocess.Popen(
                ["bash", "-c", f"exec {told}"],
                cwd=self._place(line),
                env=self._environment(),
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            came_up = _lives(process) if is_service else _answers(process, answers)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGINT)
            process.wait(60)
        return 0 if came_up else process.returncode or 1, log.read_text(encoding="utf-8")

    def _place(self, line: str) -> Path:
        return self.clone if self._in_clone(line) else self.folder

    @staticmethod
    def _in_clone(line: str) -> bool:
        return line.startswith(("make ", "git "))

    def _environment(self) -> dict[str, str]:
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("COMPILEWATCH_", "PYTHON", "VIRTUAL_ENV"))
        }
        path = f"{self.clone / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
        return kept | BRIEFLY | {"NO_COLOR": "1", "COLUMNS": "120", "PATH": path} | self.exported


def same(told: str, shown: str, *, exactly: bool) -> bool:
    """Whether a command printed what the page says, but for blanks; of what measures, but for numbers."""

    def plain(text: str) -> str:
        return " ".join(text.split() if exactly else re.sub(r"\d[\d.,]*", "#", text).split())

    return plain(told) == plain(shown)


def _answers(process: subprocess.Popen[bytes], url: str) -> bool:
    deadline = time.monotonic() + PATIENCE_S
    while process.poll() is None and time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return bool(answer.status == 200)
        except OSError:
            time.sleep(0.5)
    return False


def _lives(process: subprocess.Popen[bytes], seconds: float = 15) -> bool:
    """Whether a service that answers nobody is still there after a while."""
    time.sleep(seconds)
    return process.poll() is None
