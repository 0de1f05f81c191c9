"""axe-core, the accessibility checker: fetched once from the npm registry into a cache, never committed."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import subprocess
import tarfile
import tempfile
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

VERSION = "4.14.1"
# As the registry states it for this version.
_SHA512 = "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
_TIMEOUT_S = 60
_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]
_SERIOUS = ("serious", "critical")


def cached() -> Path:
    """Where the script lies, or will lie."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "compilewatch-tests" / f"axe-core-{VERSION}.min.js"


def axe_source() -> str:
    """The script. Skips the test, with the command to type, where it is neither cached nor to be had."""
    path = cached()
    if not path.exists():
        command = ["npm", "pack", "--silent", f"axe-core@{VERSION}"]
        try:
            _fetch(command, path)
        except (OSError, subprocess.SubprocessError) as error:
            reason = f"needs axe-core in {path}; with npm and a registry: {' '.join(command)}"
            pytest.skip(f"{reason} ({type(error).__name__})")
    return path.read_text(encoding="utf-8")


def _fetch(command: list[str], path: Path) -> None:
    npm = shutil.which(command[0])
    if npm is None:
        raise FileNotFoundError(command[0])
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([npm, *command[1:]], cwd=folder, check=True, capture_output=True, timeout=_TIMEOUT_S)
        (package,) = Path(folder).glob("*.tgz")
        content = package.read_bytes()
    found = b64encode(hashlib.sha512(content).digest()).decode()
    assert found == _SHA512, f"the registry sent another axe-core {VERSION} than is expected"
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        script = archive.extractfile("package/axe.min.js")
        assert script is not None
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(script.read())


def serious(page: Page, source: str) -> list[str]:
    """What axe finds on the page that is serious or critical, a line per place."""
    page.evaluate(source)
    found: dict[str, Any] = page.evaluate(
        # Vega keeps an empty group where no mark is, such as what a hover lights up: nothing to describe.
        "(rules) => axe.run({include: document, exclude: ['g:empty']}, "
        "{runOnly: {type: 'tag', values: rules}, resultTypes: ['violations']})",
        _RULES,
    )
    return [
        f"{violation['id']}: {node['target'][0]}: {node['html'][:160]}: {node['failureSummary'][:240]}"
        for violation in found["violations"]
        if violation["impact"] in _SERIOUS
        for node in violation["nodes"]
    ]
