"""A module of ours as a process of its own, which is asked on its standard input and answers on the other."""

import os
import subprocess
import sys
from pathlib import Path

import compilewatch

_ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "LD_LIBRARY_PATH", "HOME")


def begin_process(module: str) -> subprocess.Popen[bytes]:
    """`python -m module` with pipes to both, in an environment without what is configured or secret here."""
    root = str(Path(compilewatch.__file__).resolve().parent.parent)
    environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    return subprocess.Popen(
        # Without the current folder among the places of modules: a file in it may have any name.
        [sys.executable, "-P", "-m", module],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment | {"PYTHONPATH": root},
    )
