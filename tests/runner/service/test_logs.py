"""Log lines for people, or for programs."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.runner.terminal import ROOT

PROGRAM = """
import logging, sys
from compilewatch.runner.service.logs import log_to_standard_error
log_to_standard_error(sys.argv[1])
log = logging.getLogger("compilewatch.fleet")
log.info("Measured in %d s.\\nTwice.", 3, extra={"trial_id": "01A"})
try:
    1 / 0
except ZeroDivisionError:
    log.exception("Oh")
logging.getLogger("apscheduler").info("not said")
"""


def said(style: str) -> list[str]:
    command = [sys.executable, "-c", PROGRAM, style]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stderr.splitlines()


def test_json_lines_are_one_object_each_with_what_was_given() -> None:
    first, second = (json.loads(line) for line in said("json"))
    assert first["message"] == "Measured in 3 s.\nTwice."
    assert (first["level"], first["logger"], first["trial_id"]) == ("info", "compilewatch.fleet", "01A")
    assert first["at"].endswith("+00:00")
    assert set(first) == {"at", "level", "logger", "message", "trial_id"}
    assert "ZeroDivisionError" in second["traceback"]


def test_text_lines_begin_with_the_time() -> None:
    lines = said("text")
    assert "INFO Measured in 3 s." in lines[0]
    assert lines[0][:2] == "20"
