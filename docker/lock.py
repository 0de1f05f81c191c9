"""Writes the hashed locks of the image and docs/licences.md from what pip would install.

    .venv/bin/python docker/lock.py

pip resolves under constraints.txt, nothing is installed; hashes are those of the index, for the platform
this runs on (that of the image: x86-64 Linux, CPython 3.11). torch is left out, and what only its CUDA
build brings: which build it is, is decided where the image is built; constraints.txt pins its release.
"""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = ("postgres", "report", "notify", "auth", "fleet")
MODELS = "models"
LEFT_OUT = {"torch", "compilewatch"}
LICENCES = """# Licences

What the image installs, with the licence that each package declares. `docker/lock.py` writes this page; the
image holds the same as CycloneDX in `/opt/compilewatch/sbom.cdx.json`. The CUDA build of torch brings the
libraries of NVIDIA along, under licences of their own.

| package | version | licence |
|---|---|---|
"""
HEAD = "# Written by docker/lock.py: what the image installs, and the only files pip may take for it.\n"


def resolved() -> dict[str, dict[str, object]]:
    """What pip would install for every extra, by canonical name."""
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory) / "report.json"
        wanted = f".[{','.join((*EXTRAS, MODELS))}]"
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet"]
        command += ["--report", str(report), "--constraint", "constraints.txt", "setuptools", wanted]
        subprocess.run(command, cwd=ROOT, check=True)
        found = json.loads(report.read_text(encoding="utf-8"))["install"]
    return {canonicalize_name(each["metadata"]["name"]): each for each in found}


def needed(packages: dict[str, dict[str, object]], extras: tuple[str, ...]) -> set[str]:
    """The names that the package with `extras` brings, through all that they bring."""
    reached, waiting = {"setuptools"}, [("compilewatch", extras)]
    while waiting:
        name, wanted = waiting.pop()
        for line in packages[name]["metadata"].get("requires_dist", ()):  # type: ignore[index,attr-defined]
            requirement = Requirement(line)
            child = canonicalize_name(requirement.name)
            marker = requirement.marker
            applies = marker is None or any(marker.evaluate({"extra": each}) for each in (*wanted, ""))
            if applies and child in packages and child not in reached and child != "torch":
                reached.add(child)
                waiting.append((child, tuple(requirement.extras)))
    return reached


def lock(packages: dict[str, dict[str, object]], names: set[str]) -> str:
    lines = []
    for name in sorted(names - LEFT_OUT):
        package = packages[name]
        digest = package["download_info"]["archive_info"]["hashes"]["sha256"]  # type: ignore[index]
        lines.append(f"{name}=={package['metadata']['version']} --hash=sha256:{digest}\n")  # type: ignore[index]
    return HEAD + "".join(lines)


def licence(metadata: dict[str, object]) -> str:
    """The licence a package declares, the most exact way it does so.

    pip's report leaves out the expression that newer packages have; what is installed here knows it.
    """
    try:
        exact = importlib.metadata.metadata(str(metadata["name"])).get("License-Expression")
    except importlib.metadata.PackageNotFoundError:
        exact = None
    classifiers = [
        line.rpartition(" :: ")[2]
        for line in metadata.get("classifier", ())  # type: ignore[attr-defined]
        if line.startswith("License :: ") and not line.endswith("OSI Approved")
    ]
    told = str(metadata.get("license") or "").strip().partition("\n")[0]
    return str(exact or ", ".join(classifiers) or told or "see its files")[:80].replace("|", "/")


def licences(packages: dict[str, dict[str, object]], names: set[str]) -> str:
    lines = [LICENCES]
    for name in sorted((names | {"torch"}) - {"compilewatch"}):
        metadata = packages[name]["metadata"]
        lines.append(f"| {name} | {metadata['version'].partition('+')[0]} | {licence(metadata)} |\n")  # type: ignore[index,arg-type]
    return "".join(lines)


def main() -> None:
    packages = resolved()
    plain = needed(packages, EXTRAS)
    everything = needed(packages, (*EXTRAS, MODELS))
    (ROOT / "docker" / "requirements.lock").write_text(lock(packages, plain), encoding="utf-8")
    (ROOT / "docker" / "requirements-models.lock").write_text(
        lock(packages, everything - plain), encoding="utf-8"
    )
    (ROOT / "docs" / "licences.md").write_text(licences(packages, everything), encoding="utf-8")


if __name__ == "__main__":
    main()
