"""A virtual environment that holds torch, what torch imports, and nothing else."""

from __future__ import annotations

import venv
from pathlib import Path

import torch

_TORCH_AND_WHAT_IT_IMPORTS = (
    *("torch", "torchgen", "functorch", "sympy", "mpmath", "networkx", "jinja2", "markupsafe", "filelock"),
    *("fsspec", "typing_extensions.py", "setuptools", "_distutils_hack"),
)


def make_bare_environment(path: Path) -> Path:
    """Create it at `path`, by links to this environment's torch; returns its Python."""
    venv.create(path, with_pip=False, symlinks=True)
    site = next((path / "lib").glob("python*/site-packages"))
    packages = Path(torch.__file__).parent.parent
    for name in _TORCH_AND_WHAT_IT_IMPORTS:
        if (packages / name).exists():
            (site / name).symlink_to(packages / name)
    return path / "bin" / "python"
