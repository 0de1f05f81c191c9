"""A base for the image where none can be pulled: Debian's Python, from the archive that this machine uses."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

from tests.house.container import PROGRAMS
from tests.house.dockerfile import Unreadable

PYTHON_IMAGE = re.compile(r"python:(?P<version>\d+\.\d+)-slim")
# With the headers of Python, which the official image has and compiled kernels include.
PACKAGES = "python3,python3-venv,libpython3-dev,ca-certificates"
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
"""The variables that the base sets, as the official one does."""


class Unavailable(Exception):
    """The image cannot be built on this machine; the message says what is missing."""


def require_means() -> None:
    """Raise Unavailable where a program is missing or namespaces cannot be made."""
    if os.geteuid() != 0:
        raise Unavailable("building the image without an engine needs root")
    missing = [name for name in (*PROGRAMS, "debootstrap", "apt-get") if shutil.which(name) is None]
    if missing:
        raise Unavailable(f"not installed, and needed to build the image: {', '.join(missing)}")
    tried = subprocess.run(
        ["unshare", "--mount", "--pid", "--net", "--fork", "mount", "-t", "tmpfs", "tmpfs", "/mnt"],
        capture_output=True,
        text=True,
        check=False,
    )
    if tried.returncode != 0:
        raise Unavailable(f"root can make no namespaces here: {tried.stderr.strip()}")


def make_base(name: str, root: Path) -> None:
    """Make a stand-in for the official image `name` in `root`: Debian with the Python of that version.

    debootstrap also copies in how names are looked up here. Raises Unreadable for any other image,
    Unavailable where this machine's Debian has another Python, CalledProcessError where debootstrap fails.
    """
    wanted = PYTHON_IMAGE.fullmatch(name)
    if wanted is None:
        raise Unreadable(f"FROM {name}")
    mirror, suite = archive()
    subprocess.run(
        ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", suite, str(root), mirror],
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    has = sorted(path.name for path in (root / "usr/lib").glob("python3.*"))
    if f"python{wanted['version']}" not in has:
        raise Unavailable(f"{name} needs Python {wanted['version']}, and {suite} has {', '.join(has)}")
    (root / "etc/hosts").write_text("127.0.0.1 localhost\n::1 localhost\n", encoding="utf-8")


def archive() -> tuple[str, str]:
    """Mirror and suite of this machine's own Debian. Raises Unavailable on another system."""
    system = platform.freedesktop_os_release()
    if system["ID"] != "debian":
        raise Unavailable(f"the base comes from Debian's archive, and this is {system['ID']}")
    suite = system["VERSION_CODENAME"]
    shown = "$(REPO_URI) $(RELEASE) $(COMPONENT)"
    listed = subprocess.run(
        ["apt-get", "indextargets", "--format", shown, "Created-By: Packages"],
        check=True,
        capture_output=True,
        text=True,
    )
    sources = [line.split() for line in listed.stdout.splitlines()]
    mirrors = [mirror for mirror, *what in sources if what == [suite, "main"]]
    if not mirrors:
        raise Unavailable(f"apt has no source for main of {suite}")
    return mirrors[0], suite
