"""A build in which a CPU loses its fused attention, measured for real, and where people read why."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dashboard.serving import served
from tests.runner.second_environment import make_environment
from tests.runner.terminal import compilewatch
from tests.runner.webhook import Webhook, webhook

CONFIG = """
[run]
samples = 5
sampling_max_s = 2.0
warmup_s = 0.1
warmup_max_s = 1.0
canaries = false

[[workload]]
name = "attention"
target = "mine:attention"

[[build]]
name = "old"
python = "{old}"

[[build]]
name = "new"
python = "{new}"

[policy.confirm]
fresh_trials = 4

[[channel]]
name = "team"
webhook = "{webhook}"
"""
MINE = """
import importlib.util

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

BACKEND = SDPBackend.MATH if importlib.util.find_spec("unfused") else SDPBackend.FLASH_ATTENTION

def attention(heads=8, length=1024):
    def step(x):
        with sdpa_kernel(BACKEND):
            return scaled_dot_product_attention(x, x, x)
    return step, (torch.randn(1, heads, length, 64),)
"""
SENTENCE = re.compile(
    r"attention / eager: Slower \([\d.]+ m?s became [\d.]+ m?s a step\): attention lost its fused kernel "
    r"\(flash, [\d.]+ m?s\) and runs unfused \([\d.]+ m?s\)\."
)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def inbox() -> Iterator[Webhook]:
    with webhook() as receiving:
        yield receiving


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, inbox: Webhook) -> Path:
    """Each build measured once, in a run of its own."""
    folder = tmp_path_factory.mktemp("attention")
    new = make_environment(folder / "new", timm="9.9.9", unfused="")
    config = CONFIG.format(old=sys.executable, new=new, webhook=inbox.address)
    (folder / "compilewatch.toml").write_text(config)
    (folder / "mine.py").write_text(MINE)
    (folder / "tmp").mkdir()
    for build in ("old", "new"):
        typed(folder, "run", "-w", "attention", "-s", "eager", "--trials", "3", "--build", build)
    return folder


@pytest.fixture(scope="module")
def gated(project: Path) -> subprocess.CompletedProcess[str]:
    return typed(project, "gate", "--confirm", "run", "--markdown")


def typed(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return compilewatch(*arguments, cwd=folder, TMPDIR=str(folder / "tmp"), NO_PROXY="127.0.0.1")


def said(text: str) -> str:
    """The sentence on the case, its own or without the case before it."""
    found = SENTENCE.search(" ".join(text.replace("\\", "").split()))
    assert found is not None, text
    return found[0]


def test_the_gate_comments_what_it_decided_and_why(gated: subprocess.CompletedProcess[str]) -> None:
    assert gated.returncode == 1, gated.stderr
    assert "Measuring 1 suspected case again in 8 trials, both builds interleaved." in gated.stderr
    assert "- Confirmed: attention / eager, latency: Latency rose by" in gated.stdout
    said(gated.stdout)


def test_the_message_says_why(gated: subprocess.CompletedProcess[str], inbox: Webhook) -> None:
    (message,) = inbox.messages
    said(message["text"])


def test_lists_and_comparisons_say_why(gated: subprocess.CompletedProcess[str], project: Path) -> None:
    why = said(gated.stdout)
    of_case = why.removeprefix("attention / eager: ")
    rows = json.loads(typed(project, "list", "regressions", "--json").stdout)["rows"]
    assert of_case in [row["explanation"] for row in rows if row["metric"] == "latency"]
    assert of_case in " ".join(typed(project, "list", "regressions").stdout.split())
    sides = sides_of(project)
    for how in ((), ("--markdown",)):
        assert said(typed(project, "compare", *sides, *how).stdout) == why
    (cause,) = json.loads(typed(project, "compare", *sides, "--json").stdout)["causes"]
    assert cause["sentence"] == of_case
    assert [each["kind"] for each in cause["findings"]] == ["lost_fused_attention"]


def test_the_service_and_its_reports_say_why(gated: subprocess.CompletedProcess[str], project: Path) -> None:
    of_case = said(gated.stdout).removeprefix("attention / eager: ")
    base, head = sides_of(project)
    made = typed(project, "report", "create", "--compare", base, head)
    typed(project, "report", "export", made.stdout.split()[-1], "--output", "report.html")
    assert of_case in (project / "report.html").read_text()
    with served(f"sqlite:///{project / 'compilewatch.db'}", project / "log") as running:
        compared = json.loads(running.get(f"/api/v1/compare?base={base}&head={head}").body)
        assert [cause["sentence"] for cause in compared["causes"]] == [of_case]
        listed = json.loads(running.get("/api/v1/regressions").body)["rows"]
        assert of_case in [row["explanation"] for row in listed if row["metric"] == "latency"]


def sides_of(project: Path) -> tuple[str, str]:
    """Both builds by id, as they were measured first."""
    rows = json.loads(typed(project, "list", "builds", "--json").stdout)["rows"]
    base, head = (row["build_id"] for row in sorted(rows, key=lambda row: row["first_seen_at"]))
    return base, head
