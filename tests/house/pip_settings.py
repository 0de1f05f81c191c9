"""Where the caller's pip finds packages, shown to a build step: folders and indexes of this machine included.

Nothing here names an index or a folder; both are those of whoever calls.
"""

from __future__ import annotations

import ast
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

OPTIONS = {"index-url", "extra-index-url", "find-links", "no-index", "cert", "trusted-host", "proxy"}
PLACE = Path("/mnt")
"""Where a build step sees them; they are mounted, and nothing of them stays in the image."""
CONFIGURATION = PLACE / "pip.conf"


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
        if option in OPTIONS:
            found.setdefault(section, {})[option] = str(ast.literal_eval(value)).split()
    sections = ("global", "install", ":env:")
    return {name: values for section in sections for name, values in found.get(section, {}).items()}


def mounts(settings: Mapping[str, list[str]], folder: Path) -> str:
    """A shell script that mounts these settings as CONFIGURATION, with what they name, below $root.

    The file of settings is written into `folder`.
    """
    lines, script = ["[global]"], [f'mount -t tmpfs -o mode=755 tmpfs "$root"{PLACE}']
    for option, values in settings.items():
        seen = []
        for value in values:
            place = PLACE / str(len(script))
            shown, source = _inside(option, value, place)
            seen.append(shown)
            if source is not None:
                make = "mkdir" if source.is_dir() else "touch"
                bind = f'mount --bind -o ro {shlex.quote(str(source))} "$root"{place}'
                script.append(f'{make} "$root"{place}; {bind}')
        lines.append(f"{option} = " + "\n    ".join(seen))
    written = folder / CONFIGURATION.name
    written.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return "\n".join([*script, f'cp {shlex.quote(str(written))} "$root"{CONFIGURATION}'])


def _inside(option: str, value: str, place: Path) -> tuple[str, Path | None]:
    """A value as a build step sees it, and what has to be mounted on `place` for that, if anything.

    The pages of an index link to files beside it, so its parent is mounted.
    """
    is_url = value.startswith("file://")
    path = Path(urlsplit(value).path) if is_url else Path(value).expanduser()
    if not path.is_absolute():
        return value, None
    is_index = option in {"index-url", "extra-index-url"} and len(path.parts) > 2
    source = path.parent if is_index else path
    shown = place / path.relative_to(source)
    return f"file://{shown}" if is_url else str(shown), source
