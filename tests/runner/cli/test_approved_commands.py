"""What commands print over the recorded histories of an H100 and a CPU."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.approving import approve
from tests.runner.terminal import in_this_process

MEASURED = Path(__file__).parents[3] / "docs" / "measured"
COMMANDS = {
    "h100": (
        "compare torch=2.11.0 torch=2.13.0",
        "history --workload gpt2 --strategy default --metric latency",
        "break-even",
        "gate --since 01M82ZDB75MHHE255Q7CCHVRTA",
        "show 01M8306581GSQM1KS4BDV92CEB",
    ),
    "cpu": (
        "compare torch=2.6.0 torch=2.8.0",
        "compare torch=2.6.0 torch=2.8.0 --markdown",
        "history",
        "geomean",
    ),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_say_what_was_approved(
    name: str, tmp_path: Path, histories_of: Callable[[str], Path]
) -> None:
    shutil.copyfile(histories_of(name), tmp_path / "compilewatch.db")
    said = []
    for command in COMMANDS[name]:
        ended = in_this_process(*command.split(), cwd=tmp_path, COLUMNS="190")
        said += [f"$ compilewatch {command}", ended.stdout, ended.stderr, f"exit code {ended.returncode}", ""]
    approve(f"commands-{name}", "\n".join(said))
