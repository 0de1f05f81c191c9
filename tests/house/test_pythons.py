"""Every Python that pyproject.toml admits gets all extras at their pinned versions, from wheels alone.

uv resolves for an interpreter that is not here, by metadata: nothing is installed. pip cannot, since it
evaluates environment markers for the interpreter that it runs under.
"""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from tests.house.test_dependencies import PROJECT, pins
from tests.house.tracked import ROOT

ADMITTED = SpecifierSet(PROJECT["project"]["requires-python"])
MINORS = [f"3.{minor}" for minor in range(30) if ADMITTED.contains(f"3.{minor}.0")]
DEBIAN_12 = "3.11.2"
UV_OPTIONS = {
    "index-url": "--index-url",
    "extra-index-url": "--extra-index-url",
    "find-links": "--find-links",
    "trusted-host": "--allow-insecure-host",
}


pytestmark = pytest.mark.slow
PIP_OPTIONS = {*UV_OPTIONS, "no-index", "cert", "proxy"}


def pip_settings() -> dict[str, list[str]]:
    """The values of each option. Variables win over [install] of pip's files, that over [global]."""
    command = [sys.executable, "-m", "pip", "config", "list"]
    # Told to be quiet in its settings, pip lists none.
    heard = os.environ | {"PIP_QUIET": "0"}
    listed = subprocess.run(command, env=heard, check=True, capture_output=True, text=True).stdout
    found: dict[str, dict[str, list[str]]] = {}
    for line in listed.splitlines():
        key, _, value = line.partition("=")
        section, _, option = key.rpartition(".")
        if option in PIP_OPTIONS:
            found.setdefault(section, {})[option] = str(ast.literal_eval(value)).split()
    sections = ("global", "install", ":env:")
    return {name: values for section in sections for name, values in found.get(section, {}).items()}


def resolve(python: str, constraints: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Resolve all extras for this Python on Linux x86-64; `folder` takes what uv keeps.

    Skips where no package index answers, with uv's sentence.
    """
    settings = pip_settings()
    options = [
        f"{UV_OPTIONS[name]}={value}"
        for name, values in settings.items()
        if name in UV_OPTIONS
        for value in values
    ]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("UV_")}
    for variable, name in (("SSL_CERT_FILE", "cert"), ("ALL_PROXY", "proxy")):
        if name in settings:
            environment[variable] = settings[name][0]
    command = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--no-config"]
    command += ["--no-python-downloads"]
    command += ["--python-version", python, "--python-platform", "x86_64-manylinux_2_28"]
    command += ["--all-extras", "--only-binary", ":all:", "--index-strategy", "unsafe-best-match"]
    command += ["--no-header", "--no-annotate", "--cache-dir", str(folder), "--constraint", str(constraints)]
    done = subprocess.run(
        [*command, *options, "pyproject.toml"],
        cwd=ROOT,
        env=environment | {"UV_HTTP_RETRIES": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 2 and "Failed to fetch" in done.stderr:
        pytest.skip(f"no package index answers: {done.stderr.splitlines()[-1].strip()}")
    return done


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What uv keeps between two resolutions of this file."""
    return tmp_path_factory.mktemp("uv")


@pytest.mark.parametrize(
    "python", [DEBIAN_12, MINORS[-1], *(pytest.param(minor, marks=pytest.mark.slow) for minor in MINORS[:-1])]
)
def test_every_admitted_python_gets_every_extra_at_its_pinned_version(python: str, kept: Path) -> None:
    done = resolve(python, ROOT / "constraints.txt", kept)
    assert done.returncode == 0, done.stderr
    resolved = [Requirement(line) for line in done.stdout.splitlines()]
    assert "torch" in {requirement.name for requirement in resolved}
    assert [str(found) for found in resolved if canonicalize_name(found.name) not in pins()] == []


def test_a_pin_that_a_python_cannot_take_is_found(kept: Path, tmp_path: Path) -> None:
    """pymdown-extensions 13.1 needs Python 3.11.5."""
    bent, pin = tmp_path / "constraints.txt", "pymdown-extensions==13.1"
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    lines = [pin if line.startswith("pymdown") else line for line in lines]
    bent.write_text("\n".join(lines), encoding="utf-8")
    done = resolve(DEBIAN_12, bent, kept)
    assert done.returncode == 1
    assert pin in done.stderr
