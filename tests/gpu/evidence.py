"""What a GPU is asked in one go: four calls, each of at most nine minutes, each of use without the others.

    python -m tests.gpu.evidence FOLDER              all four
    python -m tests.gpu.evidence FOLDER findings     one of them

It needs a checkout, and an interpreter with torch, pytest and what compilewatch needs; no network. Every step
writes its log as it goes and has its line in `steps.jsonl` once it has ended, and the trials so far are in
`records.jsonl`. So what a call that is cut short has found by then is there.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
CALL_S = 540
GRACE_S = 15
_PYTEST = ("pytest", "-m", "gpu", "-s", "-p", "no:cacheprovider")
_MODELS = ("mlp-train", "bert-base-train", "gpt2", "vit-b16")
_STRATEGIES = ("default", "reduce-overhead")
_DRY_RUN = ("-w", "mlp-train", "-s", "eager", "--trials", "1", "--device", "cpu")


@dataclass(frozen=True)
class Step:
    """One command: a module and its arguments. `is_result` are exit codes that are results, too."""

    name: str
    module: tuple[str, ...]
    is_result: tuple[int, ...] = (0,)


CALLS = {
    "findings": (
        Step("findings", ("tests.gpu.findings",)),
        Step("test-timing", (*_PYTEST, "tests/gpu/test_timing.py")),
    ),
    "tests": (Step("test-others", (*_PYTEST, "tests/gpu", "--ignore", "tests/gpu/test_timing.py")),),
    "validate": (Step("validate", ("runner", "doctor", "--validate", "--json", "--minutes", "8")),),
    "models": (
        Step(
            "models",
            (
                *("runner", "run", "--trials", "2", "--minutes", "8"),
                *(each for name in _MODELS for each in ("-w", name)),
                *(each for name in _STRATEGIES for each in ("-s", name)),
            ),
            # A failed trial is a result to look at.
            is_result=(0, 1),
        ),
    ),
}
# The same where there is no GPU: the simulated device, and small trials.
DRY_CALLS = {
    **CALLS,
    "findings": (Step("findings", ("tests.gpu.findings", "--simulated")), *CALLS["findings"][1:]),
    "models": (Step("models", ("runner", "run", *_DRY_RUN)),),
}


def run_call(name: str, steps: Sequence[Step], folder: Path, seconds: float) -> bool:
    """Run the steps of one call until its time is over; whether all ended well."""
    folder.mkdir(parents=True, exist_ok=True)
    environment = os.environ | {
        "COMPILEWATCH_DATABASE_URL": f"sqlite:///{folder.resolve()}/results.db",
        "COMPILEWATCH_DATA_DIR": str(folder.resolve() / "data"),
        "PYTHONUNBUFFERED": "1",
    }
    ends_at = time.monotonic() + seconds
    well = True
    for step in steps:
        began = time.monotonic()
        code, was_cut = _run(step, folder, environment, max(1.0, ends_at - GRACE_S - began))
        took = round(time.monotonic() - began, 1)
        line = {"call": name, "step": step.name, "exit_code": code, "seconds": took, "cut": was_cut}
        with (folder / "steps.jsonl").open("a", encoding="utf-8") as steps_file:
            steps_file.write(json.dumps(line) + "\n")
        print(json.dumps(line), flush=True)
        _export(folder, environment)
        well = well and not was_cut and code in step.is_result
    return well


def _run(step: Step, folder: Path, environment: dict[str, str], seconds: float) -> tuple[int, bool]:
    """Its exit code, and whether its time was over. Interrupted first, so that it stores what it has."""
    command = [sys.executable, "-m", *step.module]
    with (folder / f"{step.name}.txt").open("ab") as out, (folder / f"{step.name}.log").open("ab") as log:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=out, stderr=log, start_new_session=True
        )
        ends = ((seconds, signal.SIGINT), (GRACE_S / 2, signal.SIGTERM), (GRACE_S / 4, None))
        for patience, number in ends:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.wait(patience), number is not signal.SIGINT
            if number is not None:
                process.send_signal(number)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        return process.wait(), True


def _export(folder: Path, environment: dict[str, str]) -> None:
    """The trials so far, where there are any."""
    if not (folder / "results.db").exists():
        return
    command = [sys.executable, "-m", "compilewatch.runner", "export", "--format", "jsonl"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=False, timeout=60)
    if done.returncode == 0:
        (folder / "records.jsonl").write_bytes(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("calls", nargs="*", help=f"of {', '.join(CALLS)}; all without any")
    parser.add_argument("--seconds", type=float, default=CALL_S, help="for each call")
    parser.add_argument("--simulated", action="store_true", help="a dry run, without a GPU")
    options = parser.parse_args()
    unknown = [name for name in options.calls if name not in CALLS]
    if unknown:
        parser.error(f"{unknown[0]} is no call; there are {', '.join(CALLS)}")
    calls = DRY_CALLS if options.simulated else CALLS
    well = [run_call(name, calls[name], options.folder, options.seconds) for name in options.calls or CALLS]
    print(f"Take {options.folder} along; elsewhere, compilewatch import records.jsonl reads it.")
    if not all(well):
        sys.exit("What failed or was cut says why in its log.")


if __name__ == "__main__":
    main()
