"""Other Python environments, made in a moment: with this one's torch, or with its pip alone."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path


def make_environment(directory: Path, *, timm: str, **modules: str) -> Path:
    """Its interpreter. It has a package timm of that release, which makes it another build, and `modules`
    (source by name) of its own; everything else is imported from this environment.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", directory], check=True)
    packages = Path(
        subprocess.check_output(
            [directory / "bin" / "python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
            text=True,
        ).strip()
    )
    (packages / "shared.pth").write_text(sysconfig.get_path("purelib") + "\n")
    told = packages / f"timm-{timm}.dist-info"
    told.mkdir()
    (told / "METADATA").write_text(f"Metadata-Version: 2.1\nName: timm\nVersion: {timm}\n")
    for name, source in modules.items():
        (packages / f"{name}.py").write_text(source)
    return directory / "bin" / "python"


def make_empty_environment(base: Path, directory: Path) -> None:
    """As `runner.plan.builds.make_environment` does for this Python, without seconds of unpacking pip."""
    venv.create(directory, with_pip=False, symlinks=True)
    (packages,) = (directory / "lib").glob("python*/site-packages")
    # Importing pip would keep setuptools from being imported later, and Inductor needs it.
    (packages / "pip").symlink_to(Path(sysconfig.get_path("purelib")) / "pip")
