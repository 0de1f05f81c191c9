"""What a GPU is asked in one lease of a quarter of an hour: two calls, each of use without the other.

    python -m tests.gpu.evidence FOLDER                         both: 7 and 5 minutes
    python -m tests.gpu.evidence FOLDER validate --seconds 240  one of them, in less time
    python -m tests.gpu.evidence FOLDER device                  what a new kind of GPU is asked besides

It needs a checkout, and an interpreter with torch, pytest and what compilewatch needs; no network. Every step
writes its log as it goes and has its line in `steps.jsonl` once it has ended, and the trials so far are in
`records.jsonl`. So what a call that is cut short has found by then is there; after each call all of it is in
`FOLDER.tar.gz`, too.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
GRACE_S = 15
AROUND_S = 45
"""What a command takes around the `--minutes` that it measures for."""
_PYTEST = ("pytest", "-m", "gpu", "-s", "-p", "no:cacheprovider")
_TESTS = tuple(f"tests/gpu/test_{name}.py" for name in ("trials", "validation", "profiles"))
_MODELS = ("encoder-512", "bert-base-train")
_STRATEGIES = ("default", "reduce-overhead")
_DRY_RUN = ("-w", "mlp-train", "-s", "eager", "--trials", "1", "--device", "cpu")


@dataclass(frozen=True)
class Step:
    """One command: a module and its arguments, of which `MINUTES` stands for those it may measure for.

    `share` is its part of the time that its call has left. `is_result` are exit codes that are results, too.
    """

    name: str
    module: tuple[str, ...]
    share: float = 1.0
    is_result: tuple[int, ...] = (0,)


MINUTES = "{minutes}"
# A failed trial is a result to look at.
_RUN = {"share": 0.55, "is_result": (0, 1)}
_TESTED = Step("tests", (*_PYTEST, *_TESTS))
CALLS = {
    "models": (
        Step(
            "models",
            (
                *("compilewatch.runner", "run", "--trials", "2", "--minutes", MINUTES),
                *(each for name in _MODELS for each in ("-w", name)),
                *(each for name in _STRATEGIES for each in ("-s", name)),
            ),
            **_RUN,
        ),
        _TESTED,
    ),
    "validate": (
        Step("validate", ("compilewatch.runner", "doctor", "--validate", "--json", "--minutes", MINUTES)),
    ),
    "device": (
        Step("findings", ("tests.gpu.findings",), share=0.4),
        Step("test-timing", (*_PYTEST, "tests/gpu/test_timing.py")),
    ),
}
SECONDS = {"models": 420.0, "validate": 300.0, "device": 540.0}
"""Of each call; the first two, and a start of a minute or two, are one lease."""
LEASE = ("models", "validate")
# The same where there is no GPU: the simulated device, and small trials.
DRY_CALLS = {
    **CALLS,
    "models": (
        Step("models", ("compilewatch.runner", "run", "--minutes", MINUTES, *_DRY_RUN), **_RUN),
        _TESTED,
    ),
    "device": (Step("findings", ("tests.gpu.findings", "--simulated"), share=0.4), *CALLS["device"][1:]),
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
        code, was_cut = _run(step, folder, environment, step.share * (ends_at - began))
        took = round(time.monotonic() - began, 1)
        line = {"call": name, "step": step.name, "exit_code": code, "seconds": took, "cut": was_cut}
        with (folder / "steps.jsonl").open("a", encoding="utf-8") as steps_file:
            steps_file.write(json.dumps(line) + "\n")
        print(json.dumps(line), flush=True)
        _export(folder, environment)
        well = well and not was_cut and code in step.is_result
    with tarfile.open(packed(folder), "w:gz") as archive:
        for file in sorted(folder.iterdir()):
            if file.suffix in {".jsonl", ".txt", ".log"}:
                archive.add(file, f"{folder.name}/{file.name}")
    return well


def packed(folder: Path) -> Path:
    """The one file to take along: of a folder what was found, without its database."""
    return folder.with_name(f"{folder.name}.tar.gz")


def _run(step: Step, folder: Path, environment: dict[str, str], seconds: float) -> tuple[int, bool]:
    """Its exit code, and whether its time was over. Interrupted first, so that it stores what it has."""
    minutes = f"{max(0.5, (seconds - AROUND_S) / 60):.2f}"
    command = [sys.executable, "-m", *(part.replace(MINUTES, minutes) for part in step.module)]
    with (folder / f"{step.name}.txt").open("ab") as out, (folder / f"{step.name}.log").open("ab") as log:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=out, stderr=log, start_new_session=True
        )
        ends = (
            (max(1.0, seconds - GRACE_S), signal.SIGINT),
            (GRACE_S / 2, signal.SIGTERM),
            (GRACE_S / 4, None),
        )
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
    parser.add_argument("calls", nargs="*", help=f"of {', '.join(CALLS)}; {' and '.join(LEASE)} without any")
    parser.add_argument("--seconds", type=float, help="for each call, and what its steps measure for follows")
    parser.add_argument("--simulated", action="store_true", help="a dry run, without a GPU")
    options = parser.parse_args()
    unknown = [name for name in options.calls if name not in CALLS]
    if unknown:
        parser.error(f"{unknown[0]} is no call; there are {', '.join(CALLS)}")
    calls = DRY_CALLS if options.simulated else CALLS
    well = [
        run_call(name, calls[name], options.folder, options.seconds or SECONDS[name])
        for name in options.calls or LEASE
    ]
    print(f"Take {packed(options.folder)} along; elsewhere, compilewatch import reads its records.jsonl.")
    if not all(well):
        sys.exit("What failed or was cut says why in its log.")


if __name__ == "__main__":
    main()
