"""The calls that a GPU is asked, dry: on the simulated device, in real processes without a network."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from compilewatch.db.records.trial import parse_trial
from tests.gpu.conftest import NO_DEVICE
from tests.gpu.evidence import CALLS, GRACE_S, LEASE, MINUTES, ROOT, SECONDS, Step, run_call
from tests.gpu.findings import LAUNCHES, PARTS

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a device: make gpu-evidence")


def lines_of(file: Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text().splitlines()]


ALONE = ("unshare", "--net", "--map-root-user")
has_no_namespaces = subprocess.run([*ALONE, "true"], capture_output=True, check=False).returncode != 0


@pytest.mark.slow
@pytest.mark.skipif(has_no_namespaces, reason="needs Linux that lets a process be without a network")
def test_a_lease_is_asked_without_a_network_and_brings_one_file(tmp_path: Path) -> None:
    """As on a bare machine: the interpreter that is there, no index; a validation that lasts is cut."""
    folder = tmp_path / "evidence"
    for call, seconds in (("models", 240), ("validate", GRACE_S + 4), ("device", 120)):
        command = [sys.executable, "-m", "tests.gpu.evidence", "--simulated", "--seconds", str(seconds)]
        done = subprocess.run(
            [*ALONE, *command, str(folder), call], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert (done.returncode == 0) == (call != "validate"), done.stdout + done.stderr
        assert "evidence.tar.gz" in done.stdout
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    subprocess.run(["tar", "-xzf", tmp_path / "evidence.tar.gz", "-C", elsewhere], check=True)
    there = elsewhere / "evidence"
    assert {file.suffix for file in there.iterdir()} == {".jsonl", ".txt", ".log"}

    steps = {line["step"]: line for line in lines_of(there / "steps.jsonl")}
    assert list(steps) == ["models", "tests", "validate", "findings", "test-timing"]
    assert [name for name, line in steps.items() if line["cut"]] == ["validate"]
    assert steps["validate"]["seconds"] < 4 + 2 * GRACE_S

    findings = lines_of(there / "findings.txt")
    assert {line["part"] for line in findings} == {part.__name__ for part in PARTS}
    held = {line["launches"]: line["held"] for line in findings if line["part"] == "queue"}
    assert [held[number] for number in (500, 4000)] == [True, False]
    assert set(held) == set(LAUNCHES)
    whole = {line["part"]: line["whole"] for line in findings if "whole" in line}
    assert whole == {"sessions_empty_first": 0, "sessions_step_first": 12}
    sides = [line["method"] for line in findings if line["part"] == "methods" and "side" in line]
    assert sides == ["cupti", "cupti"]

    # Without a GPU its tests are collected still, and each says why it did not run.
    reports = [(there / f"{name}.txt").read_text() for name in ("test-timing", "tests")]
    told = re.findall(r"^SKIPPED \[(\d+)\].*" + re.escape(NO_DEVICE), "\n".join(reports), re.MULTILINE)
    skipped = [re.findall(r"(\d+) skipped", report.splitlines()[-1])[0] for report in reports]
    assert sum(map(int, told)) == sum(map(int, skipped)) >= 15
    assert not any("passed" in report.splitlines()[-1] for report in reports)

    trials = [parse_trial(line) for line in (there / "records.jsonl").read_text().splitlines()]
    assert "mlp-train" in {trial.workload.name for trial in trials if trial.suite != "validate"}
    assert not (there / "results.db").exists()


@pytest.mark.parametrize(("share", "minutes"), [(1.0, 4.0), (0.5, 1.63)])
def test_what_a_step_measures_for_follows_from_the_seconds_of_its_call(
    tmp_path: Path, share: float, minutes: float
) -> None:
    told = Step(
        "told", ("timeit", "-n", "1", "-r", "1", "-s", "import sys", "print(sys.argv[-1])", MINUTES), share
    )
    assert run_call("one", (told,), tmp_path / "found", 285) is True
    first = (tmp_path / "found" / "told.txt").read_text().splitlines()[0]
    assert float(first) == pytest.approx(minutes, abs=0.02)


def test_a_lease_is_a_quarter_of_an_hour_with_its_start() -> None:
    lease = [part for name in LEASE for step in CALLS[name] for part in step.module]
    assert lease.count(MINUTES) == len(LEASE)
    assert sum(SECONDS[name] for name in LEASE) <= 12 * 60
