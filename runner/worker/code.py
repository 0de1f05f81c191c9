"""Which code of the user's own this process runs: one hash over what it imported from a git work tree.

Standard library only.
"""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

_INSTALLED = {"site-packages", "dist-packages"}
# Where the compiler writes modules that it imports: results, not sources.
_WRITTEN = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "TMPDIR")
_OWN = (Path(__file__).resolve().parents[1], Path(__file__).absolute().parents[2])


def imported_sources(root: str) -> tuple[str, list[str]]:
    """First 16 hex digits of the SHA-256 over path and content of every module of the work tree `root` that
    is imported now, in the order of their paths; and these paths, from the root.

    Installed packages are left out (their releases are recorded), and so are the interpreter, compilewatch
    and what the compiler wrote. Line ends of Windows count as those of Unix.
    """
    top = Path(root).resolve()
    outside = [
        *_interpreter(top),
        *_OWN,
        *(Path(os.environ[each]) for each in _WRITTEN if each in os.environ),
    ]
    sources: dict[str, bytes] = {}
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if not isinstance(file, str):
            continue
        path = Path(file).resolve()
        if not path.is_relative_to(top) or any(map(path.is_relative_to, outside)):
            continue
        relative = path.relative_to(top)
        if _INSTALLED.isdisjoint(relative.parts) and path.is_file():
            content = path.read_bytes()
            if path.suffix == ".py":
                content = content.replace(b"\r\n", b"\n")
            sources[relative.as_posix()] = hashlib.sha256(content).digest()
    digest = hashlib.sha256()
    for name, content in sorted(sources.items()):
        digest.update(name.encode(errors="surrogateescape") + b"\0" + content)
    return digest.hexdigest()[:16], sorted(sources)


def _interpreter(top: Path) -> list[Path]:
    """Where this Python lies, if that is below the work tree: an environment beside the code."""
    places = (Path(each).resolve() for each in (sys.prefix, sys.base_prefix))
    return [each for each in places if each != top and each.is_relative_to(top)]
