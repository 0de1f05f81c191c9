"""What one process leaves for the next: nothing to do for warm, one file for portable.

A warm cache is the same directories again, and a package is written where it is made, in `compiling`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from compilewatch.runner.worker.step.loading import UnsupportedCaseError
from compilewatch.runner.worker.step.messages import Strategy


def _portable(strategy: Strategy, name: str) -> Any:
    """The function of `torch.compiler` that moves caches; from release 2.7."""
    if strategy.cache != "portable":
        return None
    function = getattr(torch.compiler, name, None)
    if function is None:
        raise UnsupportedCaseError(
            f"torch {torch.__version__} has no torch.compiler.{name}; portable caches need 2.7."
        )
    return function


def save(strategy: Strategy, artifacts: Path) -> None:
    """Write the caches of this process to `artifacts`, where the strategy's cache state is portable."""
    save_artifacts = _portable(strategy, "save_cache_artifacts")
    if save_artifacts is None:
        return
    saved = save_artifacts()
    if saved is None:
        raise UnsupportedCaseError("Nothing was compiled, so there is no cache to carry.")
    artifacts.write_bytes(saved[0])


def load(strategy: Strategy, artifacts: Path) -> None:
    """Fill the empty caches of this process from `artifacts`, before anything is compiled."""
    load_artifacts = _portable(strategy, "load_cache_artifacts")
    if load_artifacts is not None:
        load_artifacts(artifacts.read_bytes())
