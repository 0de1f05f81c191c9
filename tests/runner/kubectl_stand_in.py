"""A program that stands where kubectl stands: `create -f FILE` starts what the container of a Job would run.

It starts the real worker with the manifest's arguments in the background, and prints what kubectl prints.
The machine type of the manifest becomes that of the test.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import yaml

from tests.runner.terminal import ROOT

QUEUE = "cpu"


def main(arguments: list[str]) -> int:
    create, option, path = arguments
    if (create, option) != ("create", "-f"):
        sys.stderr.write(f"error: unknown command {create!r}\n")
        return 1
    job = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    (container,) = job["spec"]["template"]["spec"]["containers"]
    worker = [*container["args"], "--gpu", "cpu"]
    worker[worker.index("--queue") + 1] = QUEUE
    with Path(path).with_suffix(".log").open("ab") as log:
        subprocess.Popen(
            [sys.executable, "-m", "compilewatch.runner", *worker],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    sys.stdout.write(f"job.batch/{job['metadata']['generateName']}7f3k2 created\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
