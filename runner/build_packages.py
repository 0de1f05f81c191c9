"""venv and pip as child processes: their progress is shown, their failure becomes one sentence."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from packaging.requirements import Requirement

from db.errors import CompilewatchError, one_line
from runner.scrub import scrub

_TIMEOUT_S = 3600.0
# pip would otherwise install somewhere else than into the environment it runs in, or refuse to.
_UNWANTED = ("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_USER", "PIP_PYTHON", "PIP_REQUIRE_VIRTUALENV")
_VERSIONS = re.compile(r"\(from versions: ([^)]*)\)")
_AVAILABLE = re.compile(r"^Available versions: (.+)$", re.MULTILINE)
_NO_DISTRIBUTION = re.compile(r"No matching distribution found for (\S+)")


class BuildError(CompilewatchError):
    """A build cannot be created or removed."""


def make_environment(base: Path, directory: Path) -> None:
    """An empty virtual environment with pip at `directory`, of the Python `base`."""
    finished = _run([str(base), "-I", "-m", "venv", str(directory)])
    if finished.returncode:
        missing = "ensurepip" in finished.stderr
        raise BuildError(
            f"{base} cannot make virtual environments: {_last_line(finished.stderr)}.",
            "Install its venv module (Debian: apt-get install python3-venv), or name another Python."
            if missing
            else "Name another Python with --python, or free space in data_dir.",
        )


def check_offered(python: Path, requirements: Sequence[str], *, index_url: str | None) -> None:
    """Raises BuildError for a requirement that names versions of which the pip of `python` finds none."""
    index = [] if index_url is None else ["--index-url", index_url]
    for requirement in map(Requirement, requirements):
        if not requirement.specifier:
            continue
        early = ["--pre"] if requirement.specifier.prereleases else []
        command = [str(python), "-I", "-m", "pip", "index", "versions", "--no-input"]
        command += ["--disable-pip-version-check", *early, *index, requirement.name]
        finished = _run(command, stdout=subprocess.PIPE)
        found = _AVAILABLE.search(finished.stdout)
        if found is None and not _NO_DISTRIBUTION.search(finished.stderr):
            raise _explained(finished.stderr, [str(requirement)])
        offered = [text.strip() for text in found.group(1).split(",")] if found else []
        if not any(requirement.specifier.contains(version, prereleases=True) for version in offered):
            raise _not_offered(str(requirement), offered[::-1])


def install(python: Path, requirements: Sequence[str], *, index_url: str | None) -> None:
    """Have the pip of `python` install `requirements`; its progress goes to standard error on a terminal."""
    quiet = [] if sys.stderr.isatty() else ["--quiet"]
    index = [] if index_url is None else ["--index-url", index_url]
    command = [str(python), "-I", "-m", "pip", "install", "--no-input", "--disable-pip-version-check"]
    finished = _run([*command, *quiet, *index, *requirements], stdout=sys.stderr)
    if finished.returncode:
        raise _explained(finished.stderr, requirements)


def _run(
    command: Sequence[str], *, stdout: int | TextIO = subprocess.DEVNULL
) -> subprocess.CompletedProcess[str]:
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("PYTHON") and name not in (*_UNWANTED, "VIRTUAL_ENV")
    }
    try:
        return subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
        )
    except OSError as error:
        raise BuildError(
            f"The interpreter {command[0]} cannot be started: {error.strerror}.", "Name another Python."
        ) from error
    except subprocess.TimeoutExpired as error:
        raise BuildError(
            f"{Path(command[0]).name} did not end within {_TIMEOUT_S / 60:g} minutes.",
            "Check the network, then create the build again.",
        ) from error


def _explained(stderr: str, requirements: Sequence[str]) -> BuildError:
    """pip's complaint in one sentence. Addresses of package indexes may hold passwords and are left out."""
    nothing = _NO_DISTRIBUTION.search(stderr)
    if nothing is not None:
        versions = _VERSIONS.search(stderr)
        offered = [text.strip() for text in versions.group(1).split(",")] if versions else []
        return _not_offered(nothing.group(1), [] if offered == ["none"] else offered)
    if "No space left on device" in stderr:
        return BuildError(
            "The disk is full.",
            "A build with CUDA needs 6 GB, and pip as much again in TMPDIR; set data_dir to another disk.",
        )
    return BuildError(
        f"pip could not install {', '.join(requirements)}: {_last_line(stderr)}.",
        "Try that `pip install` by hand.",
    )


def _not_offered(requirement: str, offered: Sequence[str]) -> BuildError:
    """`offered` are all versions, the newest last."""
    newest = ", ".join(offered[-5:])
    return BuildError(
        f"pip finds no {one_line(requirement)} for this Python and platform.",
        f"It offers {newest}." if newest else "Check the release, the network and pip's configuration.",
    )


def _last_line(stderr: str) -> str:
    lines = [line.strip() for line in scrub(stderr).splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith(("ERROR", "Error"))] or lines
    return one_line(errors[-1].removeprefix("ERROR: ").rstrip(".")) if errors else "it said nothing"
