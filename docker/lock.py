"""Writes the hashed locks of the image and docker/licences.md from what pip would install.

    .venv/bin/python docker/lock.py

pip resolves under constraints.txt; nothing is installed but pip itself, into a directory that is removed
again. Hashes are those of the index, for the platform this runs on: that of the image is x86-64 Linux with
CPython 3.11. torch is left out, and what only its CUDA build brings: which build it is, is decided where the
image is built; constraints.txt pins its release.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = ("postgres", "notify", "auth", "fleet", "trace")
MODELS = "models"
LEFT_OUT = {"torch", "compilewatch"}
# What a CUDA build of torch requires, and a CPU build does not.
CUDA_PARTS = ("nvidia-", "cuda-", "triton")
# Not older: only since 25.0 does the report hold the licence expressions that packages declare.
PIP = "pip==26.3"
SBOM_TOOL = "cyclonedx-bom==7.5.0"
HEAD = "# Written by docker/lock.py: what the image installs, and the only files pip may take for it.\n"
SBOM_HEAD = (
    "# Written by docker/lock.py: what writes the image's SBOM while it is built; it does not stay in it.\n"
)
LICENCES = """# Licences

What the image installs, with the licence that each package declares. `docker/lock.py` writes this page; the
image holds the same as CycloneDX in `/opt/compilewatch/sbom.cdx.json`. The CUDA build of torch brings the
libraries of NVIDIA along, under licences of their own.

| package | version | licence |
|---|---|---|
"""

Packages = dict[str, dict[str, Any]]
"""What pip reports of each package that it would install, by canonical name."""


@contextmanager
def pip() -> Iterator[Path]:
    """A pip of the pinned release, in an environment where nothing else is installed."""
    with tempfile.TemporaryDirectory(prefix="compilewatch-lock-") as directory:
        venv.create(directory, with_pip=True)
        program = Path(directory) / "bin" / "pip"
        subprocess.run([program, "install", "--quiet", PIP], check=True)
        yield program


def resolved(program: Path, *arguments: str) -> Packages:
    """What `pip install` with `arguments` would put into an empty environment."""
    command = [str(program), "install", "--dry-run", "--ignore-installed", "--quiet", "--report", "-"]
    told = subprocess.run([*command, *arguments], cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
    return {canonicalize_name(each["metadata"]["name"]): each for each in json.loads(told)["install"]}


def needed(packages: Packages, extras: tuple[str, ...]) -> set[str]:
    """The names that the package with `extras` brings, through all that they bring."""
    waiting: list[tuple[str, tuple[str, ...]]] = [("setuptools", ()), ("compilewatch", extras)]
    seen = set(waiting)
    while waiting:
        name, wanted = waiting.pop()
        for line in packages[name]["metadata"].get("requires_dist", ()):
            requirement = Requirement(line)
            child = canonicalize_name(requirement.name)
            marker = requirement.marker
            applies = marker is None or any(marker.evaluate({"extra": each}) for each in (*wanted, ""))
            is_cuda = name == "torch" and child.startswith(CUDA_PARTS)
            found = (child, tuple(sorted(requirement.extras)))
            if applies and not is_cuda and child in packages and found not in seen:
                seen.add(found)
                waiting.append(found)
    return {name for name, _ in seen}


def lock(packages: Packages, names: set[str], head: str = HEAD) -> str:
    lines = []
    for name in sorted(names - LEFT_OUT):
        package = packages[name]
        digest = package["download_info"]["archive_info"]["hashes"]["sha256"]
        lines.append(f"{name}=={package['metadata']['version']} --hash=sha256:{digest}\n")
    return head + "".join(lines)


def licence(metadata: dict[str, Any]) -> str:
    """The licence a package declares, the most exact way it does so."""
    classifiers = [
        line.rpartition(" :: ")[2]
        for line in metadata.get("classifier", ())
        if line.startswith("License :: ") and not line.endswith("OSI Approved")
    ]
    told = str(metadata.get("license") or "").strip().partition("\n")[0]
    exact = metadata.get("license_expression")
    return str(exact or ", ".join(classifiers) or told or "see its files").replace("|", "/")


def licences(packages: Packages, names: set[str]) -> str:
    lines = [LICENCES]
    for name in sorted(names - {"compilewatch"}):
        metadata = packages[name]["metadata"]
        lines.append(f"| {name} | {metadata['version'].partition('+')[0]} | {licence(metadata)} |\n")
    return "".join(lines)


def main() -> None:
    extras = ",".join((*EXTRAS, MODELS))
    with pip() as program:
        packages = resolved(program, "--constraint", "constraints.txt", "setuptools", f".[{extras}]")
        sbom = resolved(program, SBOM_TOOL)
    plain = needed(packages, EXTRAS)
    everything = needed(packages, (*EXTRAS, MODELS))
    written = {
        "docker/requirements.lock": lock(packages, plain),
        "docker/requirements-models.lock": lock(packages, everything - plain),
        "docker/requirements-sbom.lock": lock(sbom, set(sbom), SBOM_HEAD),
        "docker/licences.md": licences(packages, everything),
    }
    for name, text in written.items():
        (ROOT / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
