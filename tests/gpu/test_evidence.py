"""The calls that a GPU is asked, dry: on the simulated device, in real processes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import torch

from compilewatch.db.records.trial import parse_trial
from tests.gpu.conftest import NO_DEVICE
from tests.gpu.evidence import CALLS, DRY_CALLS, GRACE_S, run_call
from tests.gpu.findings import LAUNCHES, PARTS

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a device: make gpu-evidence")


def lines_of(file: Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text().splitlines()]


@pytest.mark.slow
def test_every_call_leaves_what_it_found_and_one_that_is_cut_says_so(tmp_path: Path) -> None:
    # A validation takes longer than this: it is interrupted.
    limits = dict.fromkeys(CALLS, 240.0) | {"validate": GRACE_S + 4}
    well = {name: run_call(name, DRY_CALLS[name], tmp_path, limits[name]) for name in CALLS}
    steps = {line["step"]: line for line in lines_of(tmp_path / "steps.jsonl")}
    logs = {name: (tmp_path / f"{name}.log").read_text() for name in steps}
    assert well == {"findings": True, "tests": True, "validate": False, "models": True}, logs
    assert [name for name, line in steps.items() if line["cut"]] == ["validate"]
    assert steps["validate"]["seconds"] < 4 + 2 * GRACE_S

    findings = lines_of(tmp_path / "findings.txt")
    assert {line["part"] for line in findings} == {part.__name__ for part in PARTS}
    held = {line["launches"]: line["held"] for line in findings if line["part"] == "queue"}
    assert [held[number] for number in (500, 4000)] == [True, False]
    assert set(held) == set(LAUNCHES)
    whole = {line["part"]: line["whole"] for line in findings if "whole" in line}
    assert whole == {"sessions_empty_first": 0, "sessions_step_first": 12}
    sides = [line["method"] for line in findings if line["part"] == "methods" and "side" in line]
    assert sides == ["cupti", "cupti"]

    # Without a GPU its tests are collected still, and each says why it did not run.
    reports = [(tmp_path / f"{name}.txt").read_text() for name in ("test-timing", "test-others")]
    told = re.findall(r"^SKIPPED \[(\d+)\].*" + re.escape(NO_DEVICE), "\n".join(reports), re.MULTILINE)
    skipped = [re.findall(r"(\d+) skipped", report.splitlines()[-1])[0] for report in reports]
    assert sum(map(int, told)) == sum(map(int, skipped)) >= 15
    assert not any("passed" in report.splitlines()[-1] for report in reports)

    trials = [parse_trial(line) for line in (tmp_path / "records.jsonl").read_text().splitlines()]
    assert "mlp-train" in {trial.workload.name for trial in trials if trial.suite != "validate"}
