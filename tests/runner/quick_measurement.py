"""A measured process without torch: speaks the worker's protocol on its pipe, and is done in milliseconds.

`interpreter(directory, ...)` writes a program that stands where a build's python stands. It is a real child
of the runner with a real pipe, deadline, lock and process group; only what it measures is made up. Its torch
is the one that the file `release` beside it names, so that a test can upgrade it.
"""

from __future__ import annotations

import sys
from pathlib import Path

_PROGRAM = """#!{python} -IS
import json, os, socket, subprocess, sys, time
release = open(os.path.join(os.path.dirname(__file__), "release")).read()
# Asked which torch it has, as any interpreter is.
if sys.argv[1:3] == ["-I", "-c"]:
    told = {{"__version__": release, "version": release, "python": None, "os": None, "packages": {{}}}}
    if "executable" in sys.argv[3]:
        # Before a run, what it is; before a trial of a fleet, which build it is.
        told |= {{"python": "3.11.2", "torch": release, "error": None, "device_count": 0}}
    print(json.dumps(told | dict.fromkeys(["git", "cuda", "hip", "triton"])))
    sys.exit()
spec = json.loads(sys.stdin.buffer.readline())
fd = int(sys.argv[-1])
def say(content):
    os.write(fd, json.dumps(content).encode() + b"\\n")
machine = {{"name": socket.gethostname(), "device": "cuda", "device_name": "Fake GPU", "device_count": 1,
           "device_uuid": {gpu!r}, "cpu_name": "cpu", "cpu_count": 1, "threads": 1}}
build = {{"torch": release, "torch_variant": "cpu", "settings": spec["settings"]}}
def leave_a_daemon(pid_file):
    # In a session of its own, and its parent is gone at once.
    os.system("setsid sleep 3600 & echo $! > " + pid_file)
say({{"mark": "facts", "machine": machine, "build": build}})
say({{"mark": "phase", "phase": "measure", "at_ns": time.monotonic_ns()}})
{death}
# A trial has children, as compilations do: they must not outlive it either.
child = subprocess.Popen(["sleep", "3600"])
end = time.monotonic() + {seconds}
while time.monotonic() < end:
    time.sleep(0.005)
child.kill()
record = {{"status": "ok", "samples_ns": [1000, 1100, 1200], "control_samples_ns": [2000, 2100, 2200]}}
if spec["purpose"] == "canaries":
    record = {{"status": "ok", "canaries": {{each["name"]: record for each in spec["workloads"]}}}}
say({{"mark": "record", **record}})
"""


def interpreter(directory: Path, *, gpu: str = "GPU-0", seconds: float = 0.02, death: str = "") -> Path:
    """The program's path; what it measures takes `seconds` on the device `gpu`, unless the code `death` ends
    it before.
    """
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "python"
    path.write_text(
        _PROGRAM.format(python=sys.executable, gpu=gpu, seconds=seconds, death=death), encoding="utf-8"
    )
    path.chmod(0o755)
    upgrade(path, "2.13.0")
    return path


def upgrade(python: Path, release: str) -> None:
    """Put another torch into the environment of `interpreter`."""
    (python.parent / "release").write_text(release, encoding="utf-8")


def configuration(directory: Path, python: Path, more: str = "", *, rounds: int = 1) -> Path:
    """A compilewatch.toml in `directory` whose one build is `python`, with a suite named "quick"."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "compilewatch.toml"
    path.write_text(
        f"""
data_dir = "{directory / "data"}"

[run]
suite = "quick"
canaries = false
device = "cpu"

[[build]]
name = "fake"
python = "{python}"

[[suite]]
name = "quick"
workloads = ["elementwise"]
strategies = ["eager"]
trials = {rounds}

[service]
watch_builds = false
{more}
""",
        encoding="utf-8",
    )
    return path
